// Stepping of the environments: one joint move, the episode's bookkeeping, and the observations. The same rules as
// rules.py, move for move (a property test compares them).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/problem.hpp"
#include "generator/stream.hpp"

namespace t2t {

inline constexpr int lake_agents = 16;  // the most agents an environment takes

struct LakeOptions {
    int size = 0, agents = 0;
    bool block_holes = false, block_conflicts = false;
    int max_steps = 0;
    bool planes = false;  // observations as planes, else as a dict of arrays
    int view = -1;        // each agent sees the cells at most this far away (rows and columns apart); -1: the whole grid
    int cells() const { return size * size; }
    int width() const { return 2 * view + 1; }
};

// What follows from the size alone.
struct Geometry {
    explicit Geometry(int size);
    std::vector<std::array<Cell, 5>> next;                  // cell after each action; off the grid: the cell itself
    std::vector<std::array<std::int32_t, 2>> coordinates;  // (row, column)
};

enum class ConflictKind : std::uint8_t { none = 0, vertex = 1, edge = 2 };

// One episode. It does not own `hole`.
struct Lake {
    const std::uint8_t* hole = nullptr;
    std::array<Cell, lake_agents> positions{}, goals{};
    std::array<int, lake_agents> since{};  // the step at which the agent entered the goal it stands on; -1 elsewhere
    int step = 0;
    bool terminated = false, truncated = false, fell = false;
    ConflictKind conflict = ConflictKind::none;
    std::uint32_t faults = 0;  // bit set of the agents that fell or took part in a conflict

    void load(const LakeOptions& options, const std::uint8_t* hole, const Cell* starts, const Cell* goals);
    // One joint action, `actions` in 0..4.
    void advance(const LakeOptions& options, const Geometry& geometry, const std::int64_t* actions);
    bool done() const { return terminated || truncated; }
    bool arrived(int agents) const;                 // all agents stand on their goals
    bool valid(int agents) const { return terminated && !fell && conflict == ConflictKind::none && arrived(agents); }
    int makespan(int agents) const;                 // the last final arrival, where all have arrived
    int sum_of_costs(int agents) const;
};

// Where an observation goes; `dict` observations fill the first four, `planes` ones the last.
struct ObservationOut {
    std::uint8_t* holes = nullptr;
    std::uint8_t* others = nullptr;  // with a view only: the other agents in the window
    std::int32_t* positions = nullptr;
    std::int32_t* goals = nullptr;
    std::uint8_t* planes = nullptr;
    // Past the observation of `agents` agents (with a view: of their windows; without, one observation holds all).
    void next(const LakeOptions& options, int agents);
};

// The observation of all agents (agent = -1), or of one agent: itself first, then the others in their order.
void observe(const Lake& lake, const LakeOptions& options, const Geometry& geometry, int agent, ObservationOut out);
// 1 + 2k planes of the whole grid: holes, one per position, one per goal, agents in the order of `observe`.
void write_planes(const Lake& lake, const LakeOptions& options, int first, std::uint8_t* out);
// Per action 1 where it is no move off the grid or into a hole; waiting always is.
void write_mask(const Lake& lake, const Geometry& geometry, int agent, std::int8_t* out);

}  // namespace t2t
