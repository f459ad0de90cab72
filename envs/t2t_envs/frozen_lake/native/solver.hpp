// Exact optimal solutions of small MAPF problems, for both objectives.
#pragma once
#include <cstdint>
#include <memory>

#include "problem.hpp"

namespace t2t {

// Owns the scratch memory of a search; make one per thread and use it for many problems.
class Solver {
public:
    Solver();
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    // The optimum, and where `want_wait`, whether every optimal solution waits. No path is built.
    Label label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait);
    // The optimum and one optimal solution.
    Solution solve(const Problem& problem, Objective objective, std::uint64_t max_nodes);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace t2t
