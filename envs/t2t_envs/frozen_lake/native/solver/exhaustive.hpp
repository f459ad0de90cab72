// Plain uniform-cost search over the joint states of all agents: slow, short, and the judge of every faster algorithm.
#pragma once
#include "solver/problem.hpp"

namespace t2t {

// The optimum and one optimal solution with cost at most `bound` (status infeasible: there is none). With `waits` off
// an agent must move at every step before its final arrival. Decides everything if `max_nodes` states suffice.
Solution exhaustive_search(const Problem& problem, Objective objective, bool waits, int bound, std::uint64_t max_nodes);

// The label by two exhaustive searches, the second without waits.
Label exhaustive_label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait);

}  // namespace t2t
