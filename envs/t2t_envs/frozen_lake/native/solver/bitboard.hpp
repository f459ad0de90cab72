// Sets of cells as bits: one 64-bit word up to 7x7, two up to 10x10, more for larger maps.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

#include "solver/problem.hpp"

namespace t2t {

template <int W>
struct Board {
    std::array<std::uint64_t, W> word{};

    static Board bit(int square) {
        Board board;
        board.set(square);
        return board;
    }
    bool test(int square) const { return word[at(square)] >> (square & 63) & 1; }
    void set(int square) { word[at(square)] |= std::uint64_t{1} << (square & 63); }
    void clear(int square) { word[at(square)] &= ~(std::uint64_t{1} << (square & 63)); }
    bool any() const {
        std::uint64_t all = 0;
        for (int i = 0; i < W; ++i) all |= word[i];
        return all != 0;
    }
    // The lowest square of a set that is not empty.
    int lowest() const {
        int i = 0;
        while (W > 1 && word[i] == 0) ++i;
        return i * 64 + std::countr_zero(word[i]);
    }
    Board without(const Board& other) const {
        Board result;
        for (int i = 0; i < W; ++i) result.word[i] = word[i] & ~other.word[i];
        return result;
    }
    Board operator&(const Board& other) const {
        Board result;
        for (int i = 0; i < W; ++i) result.word[i] = word[i] & other.word[i];
        return result;
    }
    Board operator|(const Board& other) const {
        Board result;
        for (int i = 0; i < W; ++i) result.word[i] = word[i] | other.word[i];
        return result;
    }
    Board& operator|=(const Board& other) { return *this = *this | other; }
    Board& operator&=(const Board& other) { return *this = *this & other; }
    bool operator==(const Board&) const = default;

    // Shifts towards higher squares, 1 <= by < 64.
    Board up(int by) const {
        Board result;
        for (int i = W - 1; i >= 0; --i) result.word[i] = word[i] << by | (i ? word[i - 1] >> (64 - by) : 0);
        return result;
    }
    Board down(int by) const {
        Board result;
        for (int i = 0; i < W; ++i) result.word[i] = word[i] >> by | (i + 1 < W ? word[i + 1] << (64 - by) : 0);
        return result;
    }
    // The squares one move away from any square of the set, including holes. 0 < stride < 64.
    Board neighbours(int stride) const { return up(1) | down(1) | up(stride) | down(stride); }
    template <typename Visit>
    void for_each(Visit visit) const {
        for (int i = 0; i < W; ++i) {
            for (std::uint64_t rest = word[i]; rest; rest &= rest - 1) visit(i * 64 + std::countr_zero(rest));
        }
    }

private:
    static int at(int square) { return W == 1 ? 0 : square >> 6; }
};

// The free squares of a map. Rows are size + 1 squares apart, so that a step off the end of a row does not reach the next row.
template <int W>
struct Grid {
    int size = 0, stride = 0;
    Board<W> free;

    explicit Grid(const Problem& problem) : size(problem.size), stride(problem.size + 1) {
        const std::uint8_t* hole = problem.hole.data();
        for (int row = 0; row < size; ++row) {
            for (int column = 0; column < size; ++column) {
                const int square = row * stride + column;
                free.word[square >> 6] |= std::uint64_t{*hole++ == 0} << (square & 63);
            }
        }
    }
    int squares() const { return size * stride; }
    int square_of(Cell cell) const { return cell + cell / size; }
    Cell cell_of(int square) const { return static_cast<Cell>(square - square / stride); }
    // The free squares one move away from any square of the set.
    Board<W> neighbours(const Board<W>& set) const { return set.neighbours(stride) & free; }
    Board<W> neighbours(int square) const { return neighbours(Board<W>::bit(square)); }
};

}  // namespace t2t
