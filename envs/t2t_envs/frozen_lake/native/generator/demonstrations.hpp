// Optimal answers that are easy to imitate: a fixed rule chooses one of the optimal solutions, unless the rule finds none.
#pragma once
#include <cstdint>
#include <vector>

#include "solver/problem.hpp"

namespace t2t {

// How a demonstration was found. independent: every agent takes its own preferred shortest path. in_turn: one agent after another
// takes the preferred one of its shortest paths around those before it. searched: no order of turns is optimal, so the solution is
// the solver's.
enum class Origin : std::uint8_t { independent = 0, in_turn = 1, searched = 2, undecided = 3 };

struct Demonstration {
    Origin origin = Origin::undecided;
    std::vector<std::vector<Cell>> paths;  // per agent, start cell first, each ending at its final arrival
};

// A solution of makespan `optimum`, which must be the exact optimum. Of two paths, the preferred one is decided by the first step
// where they differ: down before up before left before right before waiting. Agents take turns in the order 0, 1, .., k-1 first,
// then in ascending permutations.
Demonstration demonstrate(const Problem& problem, int optimum, std::uint64_t max_nodes);

}  // namespace t2t
