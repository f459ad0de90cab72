// Plain uniform-cost search over the joint states of all agents. It is short but slow, and every faster algorithm is checked
// against it.
#pragma once
#include "solver/problem.hpp"

namespace t2t {

// The optimum and one optimal solution with cost at most `bound` (status infeasible: there is none). Without `waits` an agent must
// move at every step before its final arrival. Undecided only if `max_nodes` states do not suffice.
Solution exhaustive_search(const Problem& problem, Objective objective, bool waits, int bound, std::uint64_t max_nodes);

// Computes the label with two exhaustive searches, the second without waits.
Label exhaustive_label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait);

}  // namespace t2t
