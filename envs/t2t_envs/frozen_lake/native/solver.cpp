#include "solver.hpp"

#include <limits>

#include "exhaustive.hpp"

namespace t2t {

struct Solver::Impl {};

Solver::Solver() : impl_(std::make_unique<Impl>()) {}
Solver::~Solver() = default;

Label Solver::label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait) {
    return exhaustive_label(problem, objective, max_nodes, want_wait);
}

Solution Solver::solve(const Problem& problem, Objective objective, std::uint64_t max_nodes) {
    return exhaustive_search(problem, objective, true, std::numeric_limits<int>::max(), max_nodes);
}

}  // namespace t2t
