#include "stepping/lake.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace t2t {
namespace {

struct Clash {
    ConflictKind kind = ConflictKind::none;  // the kind of the first pair's conflict
    std::uint32_t agents = 0;                // bit set of all agents in a conflict
};

Clash clash_of(const Spot* before, const Spot* after, int agents) {
    Clash clash;
    for (int i = 0; i < agents; ++i) {
        for (int j = i + 1; j < agents; ++j) {
            const bool vertex = after[i] == after[j];
            if (!vertex && !(after[i] == before[j] && after[j] == before[i])) continue;
            if (clash.agents == 0) clash.kind = vertex ? ConflictKind::vertex : ConflictKind::edge;
            clash.agents |= 1u << i | 1u << j;
        }
    }
    return clash;
}

}  // namespace

Geometry::Geometry(int side) : size(side) {
    for (int r = 0; r < size; ++r) {
        for (int c = 0; c < size; ++c) {
            const auto cell = [&](int row, int column) {
                const bool inside = row >= 0 && column >= 0 && row < size && column < size;
                return static_cast<Spot>(inside ? row * size + column : r * size + c);
            };
            next.push_back({cell(r, c - 1), cell(r + 1, c), cell(r, c + 1), cell(r - 1, c), cell(r, c)});
            coordinates.push_back({r, c});
        }
    }
}

const Geometry& geometry_of(int size) {
    static std::mutex making;
    static std::array<std::atomic<const Geometry*>, largest_lake + 1> made{};  // never freed: episodes point to them
    const Geometry* geometry = made[size].load(std::memory_order_acquire);
    if (geometry != nullptr) return *geometry;
    const std::lock_guard lock(making);
    geometry = made[size].load(std::memory_order_relaxed);
    if (geometry == nullptr) made[size].store(geometry = new Geometry(size), std::memory_order_release);
    return *geometry;
}

void Lake::load(const Map& on, int agents) {
    if (geometry == nullptr || geometry->size != on.size) geometry = &geometry_of(on.size);
    map = &on;
    step = 0;
    terminated = truncated = fell = false;
    conflict = ConflictKind::none;
    faults = 0;
    std::copy_n(on.starts.begin(), agents, positions.begin());
    for (int i = 0; i < agents; ++i) since[i] = on.starts[i] == on.goals[i] ? 0 : -1;
}

void Lake::advance(const Rules& rules, const std::int64_t* actions) {
    const int agents = rules.agents;
    const std::uint8_t* hole = map->hole.data();
    const Spot* goals = map->goals.data();
    std::array<Spot, lake_agents> after;
    for (int i = 0; i < agents; ++i) {
        const Spot to = geometry->next[positions[i]][actions[i]];
        after[i] = rules.block_holes && hole[to] ? positions[i] : to;
    }
    Clash clash = clash_of(positions.data(), after.data(), agents);
    while (rules.block_conflicts && clash.agents) {
        for (int i = 0; i < agents; ++i) {
            if (clash.agents >> i & 1) after[i] = positions[i];
        }
        clash = clash_of(positions.data(), after.data(), agents);
    }
    ++step;
    bool home = true;
    std::uint32_t falls = 0;  // no branch: in random play one step in five is a fall, which no processor can predict
    for (int i = 0; i < agents; ++i) {
        falls |= static_cast<std::uint32_t>(hole[after[i]] != 0) << i;
        positions[i] = after[i];
        since[i] = after[i] != goals[i] ? -1 : since[i] < 0 ? step : since[i];
        home &= since[i] >= 0;
    }
    fell |= falls != 0;
    conflict = clash.kind;
    faults = clash.agents | falls;
    terminated = home || fell || conflict != ConflictKind::none;
    truncated = !terminated && step >= rules.max_steps;
}

bool Lake::arrived(int agents) const {
    return std::all_of(since.begin(), since.begin() + agents, [](int arrival) { return arrival >= 0; });
}

int Lake::makespan(int agents) const { return *std::max_element(since.begin(), since.begin() + agents); }

int Lake::sum_of_costs(int agents) const {
    int sum = 0;
    for (int i = 0; i < agents; ++i) sum += since[i];
    return sum;
}

void write_mask(const Lake& lake, int agent, std::int8_t* out) {
    const Spot cell = lake.positions[agent];
    for (int action = 0; action < 4; ++action) {
        const Spot target = lake.geometry->next[cell][action];
        out[action] = target != cell && !lake.map->hole[target];
    }
    out[4] = 1;
}

}  // namespace t2t
