// Whether a team can reach its goals at all, at any cost.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "solver/problem.hpp"

namespace t2t {

// solved: it can; infeasible: it cannot, proven; undecided: the node limit came first, or the team is larger than
// `max_reachability_team`. `nodes` counts states stored.
constexpr int max_reachability_team = 5;
Status reachability(const std::vector<std::array<std::int16_t, 4>>& neighbours, const std::vector<int>& starts,
                    const std::vector<int>& goals, std::uint64_t max_nodes, std::uint64_t& nodes);

}  // namespace t2t
