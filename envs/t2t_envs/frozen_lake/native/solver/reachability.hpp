// Whether a team can reach its goals at all, at any cost.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "solver/effort.hpp"
#include "solver/problem.hpp"

namespace t2t {

// solved: the team can. infeasible: it is proven that it cannot. undecided: the node limit was reached first, or the team is larger
// than `max_reachability_team`. A node is a stored state.
constexpr int max_reachability_team = 5;
Status reachability(const std::vector<std::array<std::int16_t, 4>>& neighbours, const std::vector<int>& starts,
                    const std::vector<int>& goals, Effort& effort);

}  // namespace t2t
