// The short way of verifying ordinary answers. `parser.py`, `rules.py` and `verifier.py` are the rules; what is read here they
// read the same (property tests and a fuzz target compare), and whatever is not certain is left to them.
#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace t2t {

// A cell as an answer names it, on the grid or not; at most six digits, so that sums and differences fit.
struct NamedCell {
    int row = 0, column = 0;
    bool operator==(const NamedCell&) const = default;
};

inline constexpr int max_label = 99;  // of an agent, as read here

// The paths of one answer in the order in which their labels appear, no label twice.
struct WrittenAnswer {
    struct Path {
        int label = 0;
        std::size_t begin = 0, end = 0;  // its cells, at least one
    };
    std::vector<NamedCell> cells;
    std::vector<Path> paths;
    std::bitset<max_label + 1> labels;
};

// Reads a text of code points; false where it has anything in it that this grammar does not know:
//
//     what follows the thoughts in <think> marks with which it may begin; the last <answer> block in that, up to the next tag
//     line   = "Agent " number, marks with a colon among them, cells with a comma, dash or arrow or only blanks between
//            | three backticks and a language | words and punctuation, but for "agent" and "robot" | nothing
//     before "Agent": blanks, bullets, asterisks; a cell: (r,c) or [r,c], blanks inside
//
// Without tags words end a block of agent lines, and the last block counts. With tags that hold no path it is Python's turn.
template <typename Char>
bool read_answer(const Char* text, std::size_t length, WrittenAnswer& answer);

struct Question {
    static constexpr int max_size = 32, max_agents = 16;
    int size = 0, agents = 0;
    std::bitset<max_size * max_size> holes;  // row * size + column
    std::array<NamedCell, max_agents> starts, goals;
};

struct Judgement {
    unsigned checks = 0;  // bit i: the i-th of the eight checks holds
    std::int64_t makespan = -1, sum_of_costs = -1;  // -1 unless all hold
    bool valid() const { return checks == 0xff; }
};

// The eight checks and both costs. Work is linear in the cells, times the number of agents.
Judgement judge(const Question& question, const WrittenAnswer& answer);

}  // namespace t2t
