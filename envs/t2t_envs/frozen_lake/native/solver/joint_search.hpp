// A* over the joint states of a few agents, guided by pair tables; it does not know grids, only numbered cells.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "solver/pair_table.hpp"
#include "solver/wide_key.hpp"

namespace t2t {

constexpr int max_team = 16;
constexpr int max_table_team = 5, max_triples = 10;

struct JointProblem {
    int agents = 0, cells = 0;  // a cell is 0..cells-1; `cells` itself: arrived for good
    Movement movement;
    int bound = 0;  // only solutions of at most this cost are looked for
    std::vector<std::array<std::int16_t, 4>> neighbours;  // per cell, -1 where there are fewer
    std::vector<int> starts, goals;
    std::vector<std::vector<std::uint16_t>> distance;            // per agent and cell, `cells` included
    std::array<std::vector<std::uint16_t>, max_team*(max_team - 1) / 2> pair;  // pair_number(i, j), i < j
    // Only up to five agents, and only where a search turned out hard: the same for three agents.
    bool with_triples = false;
    std::array<std::vector<std::uint16_t>, max_triples> triple;  // triple_number(i, j, k), i < j < k
    // And, where that was not enough, for four agents: quad[i] is the table of a team of five without agent i, quad[0] that
    // of a team of four.
    bool with_quads = false;
    std::array<std::vector<std::uint16_t>, max_table_team> quad;
    static int pair_number(int i, int j) { return j * (j - 1) / 2 + i; }
    static int triple_number(int i, int j, int k) { return k * (k - 1) * (k - 2) / 6 + pair_number(i, j); }
};

struct JointResult {
    Status status = Status::undecided;  // infeasible: no solution within the bound
    int cost = -1;
};

// Keeps its memory from search to search.
class JointSearch {
public:
    JointSearch();
    ~JointSearch();
    // Counts states stored and expanded as nodes of `effort`, and gives up when these reach `max_nodes`.
    JointResult run(const JointProblem& problem, std::uint64_t max_nodes, Effort& effort);
    // The solution of the last run: per agent its cells from the start to the final arrival.
    void paths(std::vector<std::vector<int>>& paths) const;

private:
    template <typename Key>
    class Memory;
    std::unique_ptr<Memory<std::uint64_t>> small_;
    std::unique_ptr<Memory<WideKey>> large_;
    bool used_large_ = false;
};

}  // namespace t2t
