// Whether all agents can reach their goals at all, at any cost. A solution is the proof.
#pragma once
#include <cstdint>
#include <memory>

#include "solver/effort.hpp"
#include "solver/problem.hpp"

namespace t2t {

// A map of any size. Its cells are numbered row * size + column.
struct Crossing {
    int size = 0;
    const std::uint8_t* hole = nullptr;  // size * size, 1 = hole
    int agents = 0;
    const std::int32_t *starts = nullptr, *goals = nullptr;
};

// LaCAM (Okumura, "LaCAM: search-based algorithm for quick multi-agent pathfinding", AAAI 2023): a depth-first search over joint
// states. PIBT makes each successor under constraints that are added only as needed. infeasible: every joint state was tried.
// undecided: `max_tries` joint moves were made.
class LaCAM {
public:
    LaCAM();
    ~LaCAM();
    Status run(const Crossing& crossing, std::uint64_t max_tries, Effort& effort);

private:
    struct Search;
    std::unique_ptr<Search> search_;  // keeps its memory between runs
};

}  // namespace t2t
