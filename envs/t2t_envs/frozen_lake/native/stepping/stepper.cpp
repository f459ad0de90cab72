#include "stepping/stepper.hpp"

#include <algorithm>
#include <cstring>

namespace t2t {
namespace {

struct Clash {
    ConflictKind kind = ConflictKind::none;  // that of the first pair
    std::uint32_t agents = 0;                // bit set of all that take part in one
};

Clash clash_of(const Cell* before, const Cell* after, int agents) {
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

void put(std::int32_t* out, const Geometry& geometry, Cell cell) {
    std::memcpy(out, geometry.coordinates[cell].data(), sizeof geometry.coordinates[cell]);
}

// The agent at place `index` when `first` is moved to the front.
int ordered(int first, int index) { return index == 0 ? first : index <= first ? index - 1 : index; }

// Marks a cell of the window around `agent`; a goal further away is marked on the border nearest to it.
struct Window {
    const LakeOptions& options;
    const Geometry& geometry;
    const Lake& lake;
    int agent;

    int row() const { return geometry.coordinates[lake.positions[agent]][0] - options.view; }
    int column() const { return geometry.coordinates[lake.positions[agent]][1] - options.view; }

    void holes(std::uint8_t* out) const {
        const int size = options.size, width = options.width(), top = row(), left = column();
        std::memset(out, 1, static_cast<std::size_t>(width) * width);
        const int from = std::max(0, left), to = std::min(size, left + width);
        for (int r = std::max(0, top); r < std::min(size, top + width); ++r) {
            std::memcpy(out + (r - top) * width + (from - left), lake.hole + r * size + from, to - from);
        }
    }
    void others(std::uint8_t* out) const {
        const int width = options.width();
        std::memset(out, 0, static_cast<std::size_t>(width) * width);
        for (int other = 0; other < options.agents; ++other) {
            const auto [r, c] = geometry.coordinates[lake.positions[other]];
            const int y = r - row(), x = c - column();
            if (other != agent && y >= 0 && x >= 0 && y < width && x < width) out[y * width + x] = 1;
        }
    }
    void goal(std::uint8_t* out) const {
        const int width = options.width();
        std::memset(out, 0, static_cast<std::size_t>(width) * width);
        const auto [r, c] = geometry.coordinates[lake.goals[agent]];
        out[std::clamp(r - row(), 0, width - 1) * width + std::clamp(c - column(), 0, width - 1)] = 1;
    }
};

void observe_window(const Lake& lake, const LakeOptions& options, const Geometry& geometry, int agent,
                    const ObservationOut& out) {
    const Window window{options, geometry, lake, agent};
    if (options.planes) {
        const int area = options.width() * options.width();
        window.holes(out.planes);
        window.others(out.planes + area);
        window.goal(out.planes + 2 * area);
        return;
    }
    window.holes(out.holes);
    window.others(out.others);
    put(out.positions, geometry, lake.positions[agent]);
    put(out.goals, geometry, lake.goals[agent]);
}

}  // namespace

Geometry::Geometry(int size) {
    for (int r = 0; r < size; ++r) {
        for (int c = 0; c < size; ++c) {
            const auto cell = [&](int row, int column) {
                const bool inside = row >= 0 && column >= 0 && row < size && column < size;
                return static_cast<Cell>(inside ? row * size + column : r * size + c);
            };
            next.push_back({cell(r, c - 1), cell(r + 1, c), cell(r, c + 1), cell(r - 1, c), cell(r, c)});
            coordinates.push_back({r, c});
        }
    }
}

void Lake::load(const LakeOptions& options, const std::uint8_t* holes, const Cell* starts, const Cell* ends) {
    *this = Lake{};
    hole = holes;
    std::copy_n(starts, options.agents, positions.begin());
    std::copy_n(ends, options.agents, goals.begin());
    for (int i = 0; i < options.agents; ++i) since[i] = positions[i] == goals[i] ? 0 : -1;
}

void Lake::advance(const LakeOptions& options, const Geometry& geometry, const std::int64_t* actions) {
    const int agents = options.agents;
    std::array<Cell, lake_agents> after;
    for (int i = 0; i < agents; ++i) {
        after[i] = geometry.next[positions[i]][actions[i]];
        if (options.block_holes && hole[after[i]]) after[i] = positions[i];
    }
    Clash clash = clash_of(positions.data(), after.data(), agents);
    while (options.block_conflicts && clash.agents) {
        for (int i = 0; i < agents; ++i) {
            if (clash.agents >> i & 1) after[i] = positions[i];
        }
        clash = clash_of(positions.data(), after.data(), agents);
    }
    ++step;
    bool home = true;
    for (int i = 0; i < agents; ++i) {
        if (hole[after[i]]) {
            fell = true;
            clash.agents |= 1u << i;
        }
        positions[i] = after[i];
        since[i] = after[i] != goals[i] ? -1 : since[i] < 0 ? step : since[i];
        home &= since[i] >= 0;
    }
    conflict = clash.kind;
    faults = clash.agents;
    terminated = home || fell || conflict != ConflictKind::none;
    truncated = !terminated && step >= options.max_steps;
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

void ObservationOut::next(const LakeOptions& options, int agents) {
    const std::ptrdiff_t window = static_cast<std::ptrdiff_t>(options.width()) * options.width();
    if (options.planes) {
        planes += options.view >= 0 ? 3 * window * agents : (1 + 2 * options.agents) * options.cells();
        return;
    }
    holes += options.view >= 0 ? window * agents : options.cells();
    if (options.view >= 0) others += window * agents;
    positions += 2 * agents;
    goals += 2 * agents;
}

void write_planes(const Lake& lake, const LakeOptions& options, int first, std::uint8_t* out) {
    const std::size_t cells = options.cells(), agents = options.agents;
    std::memcpy(out, lake.hole, cells);
    std::memset(out + cells, 0, 2 * agents * cells);
    for (std::size_t i = 0; i < agents; ++i) {
        const int agent = ordered(first, static_cast<int>(i));
        out[(1 + i) * cells + lake.positions[agent]] = 1;
        out[(1 + agents + i) * cells + lake.goals[agent]] = 1;
    }
}

void observe(const Lake& lake, const LakeOptions& options, const Geometry& geometry, int agent, ObservationOut out) {
    if (options.view >= 0) {
        if (agent >= 0) return observe_window(lake, options, geometry, agent, out);
        for (int i = 0; i < options.agents; ++i, out.next(options, 1)) {
            observe_window(lake, options, geometry, i, out);
        }
        return;
    }
    const int first = std::max(agent, 0);
    if (options.planes) return write_planes(lake, options, first, out.planes);
    std::memcpy(out.holes, lake.hole, options.cells());
    for (int i = 0; i < options.agents; ++i) {
        put(out.positions + 2 * i, geometry, lake.positions[ordered(first, i)]);
        put(out.goals + 2 * i, geometry, lake.goals[ordered(first, i)]);
    }
}

void write_mask(const Lake& lake, const Geometry& geometry, int agent, std::int8_t* out) {
    const Cell cell = lake.positions[agent];
    for (int action = 0; action < 4; ++action) {
        const Cell target = geometry.next[cell][action];
        out[action] = target != cell && !lake.hole[target];
    }
    out[4] = 1;
}

}  // namespace t2t
