// Exact optimal solutions of small MAPF problems, for both objectives.
#pragma once
#include <cstdint>
#include <memory>

#include "solver/problem.hpp"

namespace t2t {

// `fast` is what everybody uses. The others decide the same by one algorithm alone, so that each can be checked against
// the rest: all joint states without any bound; or, for three agents and more, one joint search of all agents guided by
// tables of pairs, of triples, or of four agents (where there are such tables: sums of costs, up to five agents).
enum class Method : std::uint8_t { fast = 0, exhaustive = 1, pairs = 2, triples = 3, fours = 4 };

// Owns the scratch memory of a search; make one per thread and use it for many problems.
class Solver {
public:
    explicit Solver(Method method = Method::fast);
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
