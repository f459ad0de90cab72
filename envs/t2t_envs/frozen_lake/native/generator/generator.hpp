// Random instances with exact labels, and complete lists of small cells. A cell is (size, holes, agents, objective).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "solver/problem.hpp"

namespace t2t {

struct GridCell {
    int size = 0;    // N, 3..32
    int holes = 0;   // number of hole cells
    int agents = 0;  // k, at most the number of free cells
    Objective objective = Objective::makespan;
    std::uint64_t max_nodes = 0;  // the solver's limit per search
};

struct LabelledInstance {
    std::vector<Cell> holes, starts, goals;
    int cost[2] = {-1, -1};  // by objective; -1 if not asked for
    bool requires_wait = false;
};

struct SampleRequest {
    GridCell cell;
    std::uint64_t key = 0;              // candidate i is drawn from Stream(key).fork(i)
    std::int64_t quota[2] = {0, 0};     // the most instances that do not, and that do, require a wait
    std::int64_t total = 0;             // the most instances of both kinds together
    std::uint64_t stall = 0;            // give up after this many candidates in a row without a new instance
    std::uint64_t max_steps = 0;        // give up once this much work will hardly suffice for the request (0: never); see Effort
    bool both = false;                  // label the other objective too
    bool one_per_form = false;          // distinct canonical forms instead of distinct up to relabelling agents
    bool distinct = true;               // if off, draws are independent and may repeat
    int threads = 1;                    // does not affect the result
    std::unordered_set<std::string> exclude;  // canonical forms that are never drawn
};

struct Sample {
    std::vector<LabelledInstance> instances;  // in candidate order
    std::uint64_t drawn = 0;                  // candidates looked at
    std::uint64_t undecided = 0;              // candidates left out because a node limit ended the search
    std::uint64_t steps = 0;                  // steps of work on these candidates
    bool stalled = false, hopeless = false;   // whether it gave up, and whether `max_steps` was the reason
};

// The progress of a sample: candidates looked at, instances taken by kind, undecided candidates, steps of work.
struct Progress {
    std::uint64_t drawn;
    std::int64_t taken[2];
    std::uint64_t undecided, steps;
};
using Heartbeat = std::function<void(const Progress&)>;

// `heartbeat` is called about ten times a second from the calling thread. If it throws, the work ends.
Sample sample_cell(const SampleRequest& request, const Heartbeat& heartbeat);

struct Forms {
    std::uint64_t count[2] = {0, 0};   // canonical forms that do not, and do, require a wait
    std::uint64_t undecided = 0;
    std::vector<std::string> listed;   // the forms of the listed kind, in ascending order of their bytes
};

// All canonical forms of a cell. `list_kind`: 0 or 1 lists the forms that do not, or do, require a wait; -1 only counts.
Forms enumerate_cell(const GridCell& cell, int list_kind, const std::function<void()>& heartbeat);

}  // namespace t2t
