// A* over the joint states of a few agents, guided by pair tables. It knows only numbered cells, not grids.
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
    int agents = 0, cells = 0;  // cells are 0..cells-1; `cells` itself means arrived for good
    Movement movement;
    int bound = 0;  // the search only looks for solutions of at most this cost
    std::vector<std::array<std::int16_t, 4>> neighbours;  // per cell, filled up with -1
    std::vector<int> starts, goals;
    std::vector<std::vector<std::uint16_t>> distance;            // per agent and cell, including `cells`
    std::array<std::vector<std::uint16_t>, max_team*(max_team - 1) / 2> pair;  // pair_number(i, j), i < j
    // The same for three agents, only for teams of up to five agents, and only if a search has turned out hard.
    bool with_triples = false;
    std::array<std::vector<std::uint16_t>, max_triples> triple;  // triple_number(i, j, k), i < j < k
    // The same for four agents, if the triples were not enough: quad[i] is the table of a team of five without agent i, or quad[0]
    // the table of a team of four.
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
    // Counts stored and expanded states as nodes of `effort`, and gives up when these reach `max_nodes`.
    JointResult run(const JointProblem& problem, std::uint64_t max_nodes, Effort& effort);
    // The solution of the last run: each agent's cells from the start to the final arrival.
    void paths(std::vector<std::vector<int>>& paths) const;

private:
    template <typename Key>
    class Memory;
    std::unique_ptr<Memory<std::uint64_t>> small_;
    std::unique_ptr<Memory<WideKey>> large_;
    bool used_large_ = false;
};

}  // namespace t2t
