// Types that all parts of the native core share: one MAPF-FrozenLake problem and the result of a search.
#pragma once
#include <cstdint>
#include <vector>

namespace t2t {

// Cells are numbered row * size + column, row 0 at the top. Actions: 0 left, 1 down, 2 right, 3 up, 4 wait.
using Cell = std::int16_t;

enum class Objective : std::uint8_t { makespan = 0, sum_of_costs = 1 };

// undecided: a node limit ended the search. No part turns this into a guess.
enum class Status : std::uint8_t { solved = 0, infeasible = 1, undecided = 2 };

enum class Answer : std::uint8_t { no = 0, yes = 1, undecided = 2 };

struct Problem {
    int size = 0;                    // N, 3..32
    std::vector<std::uint8_t> hole;  // N*N, 1 = hole
    std::vector<Cell> starts;        // k cells, distinct
    std::vector<Cell> goals;         // k cells, distinct
    int num_agents() const { return static_cast<int>(starts.size()); }
};

struct Label {
    Status status = Status::undecided;
    int cost = -1;                          // the optimum, if status is solved
    Answer requires_wait = Answer::undecided;  // true iff every optimal solution waits before some agent's final arrival
    std::uint64_t nodes = 0;                // search nodes stored and expanded; `max_nodes` limits their number
    std::uint64_t steps = 0;                // all work done, in steps of about ten nanoseconds (see Effort)
};

struct Solution {
    Label label;
    std::vector<std::vector<Cell>> paths;  // per agent, start cell first, each ending at its final arrival
};

}  // namespace t2t
