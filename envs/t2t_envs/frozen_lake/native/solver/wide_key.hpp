// A 128-bit key for joint states that do not fit into 64 bits, because standard C++ has no integer of that size.
#pragma once
#include <cstdint>

namespace t2t {

struct WideKey {
    std::uint64_t low = 0, high = 0;

    constexpr WideKey() = default;
    constexpr explicit(false) WideKey(std::uint64_t value) : low(value) {}
    constexpr explicit operator std::uint64_t() const { return low; }
    constexpr explicit operator int() const { return static_cast<int>(low); }
    constexpr explicit operator bool() const { return (low | high) != 0; }
    constexpr bool operator==(const WideKey&) const = default;

    constexpr WideKey operator<<(int by) const {  // 0 <= by < 128
        if (by == 0) return *this;
        if (by >= 64) return {0, low << (by - 64)};
        return {low << by, high << by | low >> (64 - by)};
    }
    constexpr WideKey operator>>(int by) const {
        if (by == 0) return *this;
        if (by >= 64) return {high >> (by - 64), 0};
        return {low >> by | high << (64 - by), high >> by};
    }
    constexpr WideKey operator&(const WideKey& other) const { return {low & other.low, high & other.high}; }
    constexpr WideKey operator|(const WideKey& other) const { return {low | other.low, high | other.high}; }
    constexpr WideKey operator~() const { return {~low, ~high}; }
    constexpr WideKey& operator&=(const WideKey& other) { return *this = *this & other; }
    constexpr WideKey& operator|=(const WideKey& other) { return *this = *this | other; }

private:
    constexpr WideKey(std::uint64_t lower, std::uint64_t upper) : low(lower), high(upper) {}
};

}  // namespace t2t
