#pragma once

namespace t2t {

// Asks the cache to fetch data that will be read soon. It is only a hint.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

}  // namespace t2t
