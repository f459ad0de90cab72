// An environment's observations of a lake, in all forms. observations.py does the same in Python.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stepping/lake.hpp"

namespace t2t {

enum class Form : std::uint8_t { dict = 0, planes = 1, flat = 2, image = 3, padded = 4 };

// Arrays are as large as the frame, F x F. A smaller lake is in the upper left corner, and cells off the lake look like holes.
struct Look {
    int agents = 0, frame = 0;
    Form form = Form::dict;
    int view = -1;               // each agent sees the cells at most this many rows and columns away; -1: all cells
    bool relative_goals = false;  // whether the dict gives goals as steps from the agent
    int pixels = 0;              // the side of an image
    int max_steps = 0;
    bool windowed() const { return view >= 0; }
    int width() const { return windowed() ? 2 * view + 1 : frame; }
    int area() const { return width() * width(); }
};

// Where an observation is written: a dict into the first four arrays, a flat one into `floats`, any other form into `bytes`.
struct ObservationOut {
    std::uint8_t* holes = nullptr;
    std::uint8_t* others = nullptr;  // with a view only: the other agents in the window
    std::int32_t* positions = nullptr;
    std::int32_t* goals = nullptr;
    std::uint8_t* bytes = nullptr;
    float* floats = nullptr;
};

class Observer {
public:
    explicit Observer(const Look& look);
    const Look& look() const { return look_; }
    // The number of entries of one agent's observation, or of the joint one. Not for dicts.
    std::size_t entries(bool joint) const;
    // Writes the joint observation (agent = -1), or that of one agent, with itself first and then the others in order. Moves `out`
    // past the entries that it has written.
    void observe(const Lake& lake, int agent, ObservationOut& out);
    // 1 + 2k planes of the frame: holes, one per position, one per goal, agents in the order of `observe`.
    void write_planes(const Lake& lake, int first, std::uint8_t* out) const;

    static constexpr int padded_planes = 6, window_planes = 3;

private:
    void observe_dict(const Lake& lake, int agent, ObservationOut& out);
    void observe_windows(const Lake& lake, int agent, ObservationOut& out);
    void observe_whole(const Lake& lake, int first, bool joint, ObservationOut& out);
    void write_grid(const Lake& lake, std::uint8_t* out) const;
    void write_window(const Lake& lake, int agent, std::uint8_t* out) const;
    void write_padded(const Lake& lake, int agent, std::uint8_t* out) const;
    void write_image(const std::uint8_t* planes, int position_planes, int goal_planes, bool joint, std::uint8_t* out) const;
    void write_goal_steps(const Lake& lake, int agent, float*& out) const;
    int place(const Lake& lake, Spot cell) const;  // the index of a cell in the frame

    const Look look_;
    std::vector<std::uint8_t> scratch_;  // planes from which the other forms are made
};

}  // namespace t2t
