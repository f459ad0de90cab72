// The suite's own random integers. t2t_core/seeding.py does the same in Python, draw for draw.
#pragma once
#include <cstdint>

namespace t2t {

inline std::uint64_t mix64(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

// SplitMix64 (Steele, Lea, Flood 2014). `fork(i)` returns the i-th independent stream of the same key, so that work can be
// split across threads without changing a draw.
class Stream {
public:
    explicit Stream(std::uint64_t key) : state_(key) {}
    std::uint64_t next() { return mix64(state_ += 0x9E3779B97F4A7C15ULL); }
    // Uniform in [0, n), n >= 1: multiply-shift with rejection (Lemire 2019) on the high 32 bits; n < 2^32.
    std::uint32_t below(std::uint32_t n) {
        std::uint64_t m = (next() >> 32) * n;
        if (static_cast<std::uint32_t>(m) < n) {
            const std::uint32_t threshold = (0u - n) % n;
            while (static_cast<std::uint32_t>(m) < threshold) m = (next() >> 32) * n;
        }
        return static_cast<std::uint32_t>(m >> 32);
    }
    Stream fork(std::uint64_t index) const {
        return Stream(mix64(state_ ^ mix64(index + 0x9E3779B97F4A7C15ULL)));
    }

private:
    std::uint64_t state_;
};

}  // namespace t2t
