// A fast path for verifying ordinary answers. `parser.py`, `rules.py` and `verifier.py` define the rules. Whatever is read here,
// they read the same (property tests and a fuzz target compare them); anything uncertain is left to them.
#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace t2t {

// A cell as written in an answer, on the grid or not. Coordinates have at most six digits, so sums and differences fit.
struct NamedCell {
    int row = 0, column = 0;
    bool operator==(const NamedCell&) const = default;
};

inline constexpr int max_label = 99;  // the largest agent label that is read here

// The paths of one answer in the order in which their labels appear. No label occurs twice.
struct WrittenAnswer {
    struct Path {
        int label = 0;
        std::size_t begin = 0, end = 0;  // the range of its cells, at least one
    };
    std::vector<NamedCell> cells;
    std::vector<Path> paths;
    std::bitset<max_label + 1> labels;
};

// Reads a text of code points. Returns false if the text contains anything that this grammar does not cover:
//
//     body   = the text after any leading <think> block; in it the last <answer> block, up to the next tag
//     line   = "Agent " number, marks with a colon among them, cells separated by a comma, dash, arrow or only blanks
//            | three backticks and a language | words and punctuation, without "agent" and "robot" | nothing
//     before "Agent": blanks, bullets, asterisks; a cell: (r,c) or [r,c], blanks inside
//
// Without tags, words end a block of agent lines, and the last block counts. If the tags hold no path, Python reads the text.
template <typename Char>
bool read_answer(const Char* text, std::size_t length, WrittenAnswer& answer);

struct Question {
    static constexpr int max_size = 32, max_agents = 16;
    int size = 0, agents = 0;
    std::bitset<max_size * max_size> holes;  // row * size + column
    std::array<NamedCell, max_agents> starts, goals;
};

struct Judgement {
    unsigned checks = 0;  // bit i is set if the i-th of the eight checks holds
    std::int64_t makespan = -1, sum_of_costs = -1;  // -1 unless all checks hold
    bool valid() const { return checks == 0xff; }
};

// Evaluates the eight checks and both costs. The work is linear in the number of cells times the number of agents.
Judgement judge(const Question& question, const WrittenAnswer& answer);

}  // namespace t2t
