// Sets of grid cells as bits: cell (row, column) is bit row * (N + 1) + column, so that a shift never wraps into a row.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

namespace t2t {

template <int W>
struct Bits {
    std::array<std::uint64_t, W> word{};

    static Bits of(int bit) {
        Bits bits;
        bits.set(bit);
        return bits;
    }
    void set(int bit) { word[W == 1 ? 0 : bit >> 6] |= std::uint64_t{1} << (bit & 63); }
    void reset(int bit) { word[W == 1 ? 0 : bit >> 6] &= ~(std::uint64_t{1} << (bit & 63)); }
    bool test(int bit) const { return word[W == 1 ? 0 : bit >> 6] >> (bit & 63) & 1; }
    bool any() const {
        std::uint64_t all = 0;
        for (const auto part : word) all |= part;
        return all != 0;
    }
    int lowest() const {
        int i = 0;
        while (i < W - 1 && word[i] == 0) ++i;
        return 64 * i + std::countr_zero(word[i]);
    }
    // All cells next to the set, on and off the grid; the caller masks with the free cells. 0 < stride < 64.
    Bits neighbours(int stride) const { return up(1) | down(1) | up(stride) | down(stride); }

    friend Bits operator&(const Bits& a, const Bits& b) {
        Bits result;
        for (int i = 0; i < W; ++i) result.word[i] = a.word[i] & b.word[i];
        return result;
    }
    friend Bits operator|(const Bits& a, const Bits& b) {
        Bits result;
        for (int i = 0; i < W; ++i) result.word[i] = a.word[i] | b.word[i];
        return result;
    }
    Bits without(const Bits& other) const {
        Bits result;
        for (int i = 0; i < W; ++i) result.word[i] = word[i] & ~other.word[i];
        return result;
    }

private:
    Bits up(int by) const {
        Bits result;
        for (int i = W - 1; i > 0; --i) result.word[i] = word[i] << by | word[i - 1] >> (64 - by);
        result.word[0] = word[0] << by;
        return result;
    }
    Bits down(int by) const {
        Bits result;
        for (int i = 0; i < W - 1; ++i) result.word[i] = word[i] >> by | word[i + 1] << (64 - by);
        result.word[W - 1] = word[W - 1] >> by;
        return result;
    }
};

}  // namespace t2t
