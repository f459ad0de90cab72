#include "stepping/observation.hpp"

#include <algorithm>
#include <cstring>

namespace t2t {
namespace {

constexpr std::uint8_t full = 255, half = 128, least = 64;

// The agent at place `index` when `first` is moved to the front.
int ordered(int first, int index) { return index == 0 ? first : index <= first ? index - 1 : index; }

void put(std::int32_t* out, const Lake& lake, Spot cell) {
    std::memcpy(out, lake.geometry->coordinates[cell].data(), 2 * sizeof *out);
}

}  // namespace

Observer::Observer(const Look& look) : look_(look) {
    const bool whole = look.form == Form::flat || look.form == Form::image;
    if (look.windowed()) scratch_.resize(static_cast<std::size_t>(window_planes) * look.area());
    else if (whole) scratch_.resize(static_cast<std::size_t>(1 + 2 * look.agents) * look.area());
}

std::size_t Observer::entries(bool joint) const {
    const std::size_t agents = look_.agents, area = look_.area(), lead = joint ? agents : 1;
    switch (look_.form) {
        case Form::planes: return look_.windowed() ? lead * window_planes * area : (1 + 2 * agents) * area;
        case Form::flat: return (look_.windowed() ? lead * (window_planes * area + 2) : (1 + 2 * agents) * area + 2 * agents) + 1;
        case Form::image: return (look_.windowed() ? lead : 1) * 3 * static_cast<std::size_t>(look_.pixels) * look_.pixels;
        case Form::padded: return lead * padded_planes * area;
        default: return 0;
    }
}

void Observer::observe(const Lake& lake, int agent, ObservationOut& out) {
    if (look_.form == Form::dict) return observe_dict(lake, agent, out);
    if (look_.form == Form::padded) {
        for (int i = std::max(agent, 0); i < (agent < 0 ? look_.agents : agent + 1); ++i) {
            write_padded(lake, i, out.bytes);
            out.bytes += padded_planes * look_.area();
        }
        return;
    }
    if (look_.windowed()) return observe_windows(lake, agent, out);
    observe_whole(lake, std::max(agent, 0), agent < 0, out);
}

void Observer::observe_dict(const Lake& lake, int agent, ObservationOut& out) {
    const int first = std::max(agent, 0), area = look_.area();
    const int shown = look_.windowed() && agent >= 0 ? 1 : look_.agents;
    if (!look_.windowed()) {
        write_grid(lake, out.holes);
        out.holes += area;
    }
    for (int i = 0; i < shown; ++i) {
        const int own = ordered(first, i);
        if (look_.windowed()) {
            write_window(lake, own, scratch_.data());
            out.holes = std::copy_n(scratch_.data(), area, out.holes);
            out.others = std::copy_n(scratch_.data() + area, area, out.others);
        }
        put(out.positions, lake, lake.positions[own]);
        put(out.goals, lake, lake.map->goals[own]);
        if (look_.relative_goals) out.goals[0] -= out.positions[0], out.goals[1] -= out.positions[1];
        out.positions += 2, out.goals += 2;
    }
}

void Observer::observe_windows(const Lake& lake, int agent, ObservationOut& out) {
    const std::size_t entries = static_cast<std::size_t>(window_planes) * look_.area();
    for (int i = std::max(agent, 0); i < (agent < 0 ? look_.agents : agent + 1); ++i) {
        if (look_.form == Form::planes) {
            write_window(lake, i, out.bytes);
            out.bytes += entries;
            continue;
        }
        write_window(lake, i, scratch_.data());
        if (look_.form == Form::flat) {
            out.floats = std::copy(scratch_.begin(), scratch_.end(), out.floats);
            write_goal_steps(lake, i, out.floats);
        } else {
            write_image(scratch_.data(), 1, 1, false, out.bytes);
            out.bytes += static_cast<std::size_t>(look_.pixels) * look_.pixels * 3;
        }
    }
    if (look_.form == Form::flat) *out.floats++ = static_cast<float>(lake.step) / static_cast<float>(look_.max_steps);
}

void Observer::observe_whole(const Lake& lake, int first, bool joint, ObservationOut& out) {
    if (look_.form == Form::planes) {
        write_planes(lake, first, out.bytes);
        out.bytes += entries(joint);
        return;
    }
    write_planes(lake, first, scratch_.data());
    if (look_.form == Form::image) {
        write_image(scratch_.data(), look_.agents, look_.agents, joint, out.bytes);
        out.bytes += entries(joint);
        return;
    }
    out.floats = std::copy(scratch_.begin(), scratch_.end(), out.floats);
    for (int i = 0; i < look_.agents; ++i) write_goal_steps(lake, ordered(first, i), out.floats);
    *out.floats++ = static_cast<float>(lake.step) / static_cast<float>(look_.max_steps);
}

int Observer::place(const Lake& lake, Spot cell) const {
    if (lake.map->size == look_.frame) return cell;
    const auto& [row, column] = lake.geometry->coordinates[cell];
    return row * look_.frame + column;
}

void Observer::write_grid(const Lake& lake, std::uint8_t* out) const {
    const int size = lake.map->size, frame = look_.frame;
    const std::uint8_t* hole = lake.map->hole.data();
    if (size == frame) {
        std::memcpy(out, hole, static_cast<std::size_t>(size) * size);
        return;
    }
    std::memset(out, 1, static_cast<std::size_t>(frame) * frame);
    for (int row = 0; row < size; ++row) std::memcpy(out + row * frame, hole + row * size, size);
}

void Observer::write_planes(const Lake& lake, int first, std::uint8_t* out) const {
    const std::size_t area = static_cast<std::size_t>(look_.frame) * look_.frame, agents = look_.agents;
    write_grid(lake, out);
    std::memset(out + area, 0, 2 * agents * area);
    for (std::size_t i = 0; i < agents; ++i) {
        const int agent = ordered(first, static_cast<int>(i));
        out[(1 + i) * area + place(lake, lake.positions[agent])] = 1;
        out[(1 + agents + i) * area + place(lake, lake.map->goals[agent])] = 1;
    }
}

// The window around an agent: holes and cells off the grid, the other agents, and the goal (or, if it is outside the window, the
// nearest cell of the border).
void Observer::write_window(const Lake& lake, int agent, std::uint8_t* out) const {
    const int size = lake.map->size, width = look_.width(), area = look_.area();
    const auto& coordinates = lake.geometry->coordinates;
    const int top = coordinates[lake.positions[agent]][0] - look_.view, left = coordinates[lake.positions[agent]][1] - look_.view;
    std::memset(out, 1, area);
    std::memset(out + area, 0, 2 * area);
    const int from = std::max(0, left), to = std::min(size, left + width);
    for (int r = std::max(0, top); r < std::min(size, top + width); ++r) {
        std::memcpy(out + (r - top) * width + (from - left), lake.map->hole.data() + r * size + from, to - from);
    }
    for (int other = 0; other < look_.agents; ++other) {
        const auto [r, c] = coordinates[lake.positions[other]];
        const int y = r - top, x = c - left;
        if (other != agent && y >= 0 && x >= 0 && y < width && x < width) out[area + y * width + x] = 1;
    }
    const auto [r, c] = coordinates[lake.map->goals[agent]];
    out[2 * area + std::clamp(r - top, 0, width - 1) * width + std::clamp(c - left, 0, width - 1)] = 1;
}

// The planes: where the lake is, its holes, the agent, its goal, the other agents, their goals.
void Observer::write_padded(const Lake& lake, int agent, std::uint8_t* out) const {
    const int size = lake.map->size, frame = look_.frame;
    const std::size_t area = static_cast<std::size_t>(frame) * frame;
    std::memset(out, 0, padded_planes * area);
    for (int row = 0; row < size; ++row) {
        std::memset(out + row * frame, 1, size);
        std::memcpy(out + area + row * frame, lake.map->hole.data() + row * size, size);
    }
    for (int i = 0; i < look_.agents; ++i) {
        const std::size_t plane = i == agent ? 2 : 4;
        out[plane * area + place(lake, lake.positions[i])] = 1;
        out[(plane + 1) * area + place(lake, lake.map->goals[i])] = 1;
    }
}

// Every cell is a square of pixels, from the upper left corner; left-over pixels look like a hole. Holes are red, agents green and
// goals blue. The first agent is brightest; the others all look alike or, in a joint observation, each is a little darker than the
// one before.
void Observer::write_image(const std::uint8_t* planes, int position_planes, int goal_planes, bool joint, std::uint8_t* out) const {
    const int width = look_.width(), side = look_.pixels, unit = side / width, agents = position_planes;
    const std::size_t area = static_cast<std::size_t>(width) * width;
    const bool windows = look_.windowed();
    const auto shade = [&](int index) {
        if (index == 0 && !windows) return full;
        if (!joint) return half;
        return static_cast<std::uint8_t>(full - (full - least) * index / std::max(agents - 1, 1));
    };
    std::uint8_t* pixel = out;
    for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x, pixel += 3) {
            const int row = y / unit, column = x / unit;
            pixel[0] = full, pixel[1] = pixel[2] = 0;
            if (row >= width || column >= width) continue;
            pixel[0] = planes[row * width + column] ? full : 0;
        }
    }
    const auto paint = [&](int cell, int channel, std::uint8_t value) {
        const int top = cell / width * unit, left = cell % width * unit;
        for (int y = top; y < top + unit; ++y) {
            for (int x = left; x < left + unit; ++x) out[(y * side + x) * 3 + channel] = value;
        }
    };
    for (int channel = 1; channel <= 2; ++channel) {
        const int count = channel == 1 ? position_planes : goal_planes, first = channel == 1 ? 1 : 1 + position_planes;
        for (int i = count - 1; i >= 0; --i) {  // so that the first agent is on top
            const std::uint8_t* plane = planes + static_cast<std::size_t>(first + i) * area;
            for (std::size_t cell = 0; cell < area; ++cell) {
                if (plane[cell]) paint(static_cast<int>(cell), channel, windows && channel == 2 ? full : shade(i));
            }
        }
    }
    if (windows) paint(static_cast<int>(area / 2), 1, full);  // the agent itself
}

// The rows and columns to the goal, divided by the frame's side minus one.
void Observer::write_goal_steps(const Lake& lake, int agent, float*& out) const {
    const auto& coordinates = lake.geometry->coordinates;
    const auto &at = coordinates[lake.positions[agent]], &goal = coordinates[lake.map->goals[agent]];
    for (int axis = 0; axis < 2; ++axis) *out++ = static_cast<float>(goal[axis] - at[axis]) / static_cast<float>(look_.frame - 1);
}

}  // namespace t2t
