#pragma once

namespace t2t {

// Has the cache fetch what will be read soon. A hint only.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

}  // namespace t2t
