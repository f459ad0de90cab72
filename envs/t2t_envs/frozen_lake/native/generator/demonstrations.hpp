// Optimal answers that are easy to imitate: of all optimal solutions, one chosen by a fixed rule wherever the rule finds one.
#pragma once
#include <cstdint>
#include <vector>

#include "solver/problem.hpp"

namespace t2t {

// How a demonstration was found. independent: every agent's own preferred shortest path. in_turn: one agent after another, each
// on the preferred one of its shortest paths around those before it. searched: the solver's, where no order of turns is optimal.
enum class Origin : std::uint8_t { independent = 0, in_turn = 1, searched = 2, undecided = 3 };

struct Demonstration {
    Origin origin = Origin::undecided;
    std::vector<std::vector<Cell>> paths;  // per agent, start cell first, each ending at its final arrival
};

// A solution of makespan `optimum` (which must be the exact one). Preferred is, at the first step where two paths differ, down
// before up before left before right before waiting. Turns are tried in order 0, 1, .., k-1 first, then in rising permutations.
Demonstration demonstrate(const Problem& problem, int optimum, std::uint64_t max_nodes);

}  // namespace t2t
