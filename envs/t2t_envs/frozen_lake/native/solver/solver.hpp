// Exact optimal solutions of small MAPF problems, for both objectives.
#pragma once
#include <cstdint>
#include <memory>

#include "solver/problem.hpp"

namespace t2t {

// `fast` is the method for all ordinary use. The others reach the same results with a single algorithm, so that each can be
// checked against the rest: `exhaustive` searches all joint states without any bound; the others plan three or more agents in one
// joint search, guided by tables of pairs, of triples, or of four agents (if there are such tables: sums of costs, up to five
// agents).
enum class Method : std::uint8_t { fast = 0, exhaustive = 1, pairs = 2, triples = 3, fours = 4 };

// Owns the scratch memory of a search. Make one per thread and use it for many problems.
class Solver {
public:
    explicit Solver(Method method = Method::fast);
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    // The optimum and, with `want_wait`, whether every optimal solution waits. No path is built.
    Label label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait);
    // The optimum and one optimal solution.
    Solution solve(const Problem& problem, Objective objective, std::uint64_t max_nodes);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace t2t
