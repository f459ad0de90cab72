// One episode: a joint move and the bookkeeping around it. The rules are those of rules.py, move for move (a property test compares
// them).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace t2t {

inline constexpr int lake_agents = 16, largest_lake = 256;  // the limits of an environment

// A cell of a lake, row * size + column. The solver's cells have half as many bits, because its grids are smaller.
using Spot = std::int32_t;

// Everything that depends only on the size of a lake.
struct Geometry {
    explicit Geometry(int size);
    int size;
    std::vector<std::array<Spot, 5>> next;                  // cell after each action; the cell itself for a move off the grid
    std::vector<std::array<std::int32_t, 2>> coordinates;  // (row, column)
};
// It is made once per size and kept.
const Geometry& geometry_of(int size);

struct Rules {
    int agents = 0;
    bool block_holes = false, block_conflicts = false;
    int max_steps = 0;
};

// A lake with its agents.
struct Map {
    int size = 0;
    std::vector<std::uint8_t> hole;  // size * size, 1 = hole
    std::array<Spot, lake_agents> starts{}, goals{};
};

enum class ConflictKind : std::uint8_t { none = 0, vertex = 1, edge = 2 };

// An episode on a map. The map must outlive it.
struct Lake {
    const Map* map = nullptr;
    const Geometry* geometry = nullptr;
    std::array<Spot, lake_agents> positions{};
    std::array<int, lake_agents> since{};  // the step at which the agent entered the goal it stands on; -1 elsewhere
    int step = 0;
    bool terminated = false, truncated = false, fell = false;
    ConflictKind conflict = ConflictKind::none;
    std::uint32_t faults = 0;  // bit set of the agents that fell or took part in a conflict

    void load(const Map& map, int agents);
    // Performs one joint action; `actions` are in 0..4.
    void advance(const Rules& rules, const std::int64_t* actions);
    bool done() const { return terminated || truncated; }
    bool arrived(int agents) const;                 // all agents stand on their goals
    bool valid(int agents) const { return terminated && !fell && conflict == ConflictKind::none && arrived(agents); }
    int makespan(int agents) const;                 // the last final arrival, if all have arrived
    int sum_of_costs(int agents) const;
};

// Writes 0 for each action that moves off the grid or into a hole, otherwise 1; waiting is always 1.
void write_mask(const Lake& lake, int agent, std::int8_t* out);

}  // namespace t2t
