// Shared by the bindings of the environments: options and sources from Python, and arrays for Python. Every returned array is fresh,
// because callers keep observations, so none may change later.
#pragma once
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "python_watch.hpp"
#include "stepping/seat.hpp"

namespace t2t {

namespace py = pybind11;

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

// A name used at every step. It is made once and never freed, so it outlives the interpreter.
inline py::handle kept(const char* text) { return PyUnicode_InternFromString(text); }

// The shape of an array, without a heap allocation.
struct Shape {
    std::array<Py_intptr_t, 6> sizes{};
    int count = 0;
    void push(py::ssize_t size) { sizes[count++] = size; }
};

// A fresh uninitialised array. The constructor of `py::array_t` does the same through two vectors but takes four times as long, and
// an agent-wise step makes twenty arrays.
template <typename T>
py::object make_array(const Shape& shape, T*& data) {
    static const py::handle type = py::dtype::of<T>().release();
    const auto& api = py::detail::npy_api::get();
    PyObject* array = api.PyArray_NewFromDescr_(api.PyArray_Type_, type.inc_ref().ptr(), shape.count, shape.sizes.data(),
                                                nullptr, nullptr, 0, nullptr);
    if (!array) throw py::error_already_set();
    data = reinterpret_cast<T*>(py::detail::array_proxy(array)->data);
    return py::reinterpret_steal<py::object>(array);
}

// All options of an environment except its source of lakes.
struct EnvOptions {
    Rules rules;
    Look look;
    Reuse reuse;
    Objective objective = Objective::makespan;
    std::uint64_t max_nodes = 0;
};

inline EnvOptions env_options(int frame, int agents, bool block_holes, bool block_conflicts, int max_steps, int form, int view,
                              bool relative_goals, int pixels, std::uint64_t reuse, bool reversible, int objective,
                              std::uint64_t max_nodes) {
    if (frame < 3 || frame > largest_lake) throw py::value_error("the frame must lie in 3..256");
    if (agents < 1 || agents > lake_agents) throw py::value_error("agents must lie in 1..16");
    if (max_steps < 1) throw py::value_error("max_steps must be at least 1");
    if (view < -1 || view >= frame) throw py::value_error("view must lie in 0..frame-1, or be -1 for the whole grid");
    if (form < 0 || form > static_cast<int>(Form::padded)) throw py::value_error("form must lie in 0..4");
    if (reuse < 1) throw py::value_error("reuse must be at least 1");
    if (objective != 0 && objective != 1) throw py::value_error("an objective is 0 (makespan) or 1 (sum of costs)");
    const Look look{agents, frame, static_cast<Form>(form), view, relative_goals, pixels, max_steps};
    if (look.form == Form::image && (pixels < look.width() || pixels > 1024)) {
        throw py::value_error("an image must have at least one pixel per cell and at most 1024 pixels per side");
    }
    return {{agents, block_holes, block_conflicts, max_steps}, look, {reuse, reversible}, static_cast<Objective>(objective), max_nodes};
}

// Makes a lake from flat arrays. Every later memory access relies on the checks here.
inline Drawn drawn_from(int size, int agents, const std::uint8_t* hole, const std::int32_t* starts, const std::int32_t* goals,
                        int optimum) {
    Drawn drawn;
    drawn.map.size = size;
    drawn.map.hole.assign(hole, hole + static_cast<std::ptrdiff_t>(size) * size);
    for (int i = 0; i < agents; ++i) {
        for (const std::int32_t cell : {starts[i], goals[i]}) {
            if (cell < 0 || cell >= size * size) throw py::value_error("a start or goal is off the grid");
        }
        drawn.map.starts[i] = starts[i];
        drawn.map.goals[i] = goals[i];
    }
    drawn.optimum = optimum < 0 ? optimum_undecided : optimum;  // the optimum of a given lake is not searched for
    return drawn;
}

// The arrays of one observation, or of a batch of shape `lead`, and where to write them.
struct ObservationArrays {
    py::dict dict;
    py::object array;
    ObservationOut out;

    ObservationArrays(const Look& look, const Shape& lead, bool joint) {
        if (look.form == Form::dict) {
            make_dict(look, lead, joint);
        } else {
            make_one(look, lead, joint);
        }
    }

private:
    void make_one(const Look& look, Shape shape, bool joint) {
        if (look.form == Form::flat) {
            shape.push(static_cast<py::ssize_t>(Observer(look).entries(joint)));
            array = make_array(shape, out.floats);
            return;
        }
        if (joint && (look.windowed() || look.form == Form::padded)) shape.push(look.agents);
        if (look.form == Form::image) {
            shape.push(look.pixels), shape.push(look.pixels), shape.push(3);
        } else {
            shape.push(look.form == Form::padded ? Observer::padded_planes : look.windowed() ? Observer::window_planes : 1 + 2 * look.agents);
            shape.push(look.width()), shape.push(look.width());
        }
        array = make_array(shape, out.bytes);
    }
    void make_dict(const Look& look, const Shape& lead, bool joint) {
        static const py::handle holes = kept("holes"), others = kept("others"), positions = kept("positions"),
                                goals = kept("goals");
        Shape grid = lead, cells = lead;
        if (look.windowed() && joint) grid.push(look.agents);
        grid.push(look.width()), grid.push(look.width());
        cells.push(look.windowed() && !joint ? 1 : look.agents);
        cells.push(2);
        dict[holes] = make_array(grid, out.holes);
        if (look.windowed()) dict[others] = make_array(grid, out.others);
        dict[positions] = make_array(cells, out.positions);
        dict[goals] = make_array(cells, out.goals);
    }
};

// (size, holes, starts, goals, name, guise, optimum, given): the lake that a seat is playing.
inline py::tuple lake_of(const Seat& seat, int agents) {
    if (!seat.loaded()) throw py::value_error("there is no episode yet: call reset() first");
    const Map& map = seat.map();
    return py::make_tuple(map.size, py::array_t<std::uint8_t>(static_cast<py::ssize_t>(map.hole.size()), map.hole.data()),
                          py::array_t<Spot>(agents, map.starts.data()), py::array_t<Spot>(agents, map.goals.data()),
                          seat.drawn().name, seat.guise(), seat.known_optimum(), seat.is_given());
}

// The share of the way that one agent, or all agents together (-1), have covered: 0 at the start, 1 at the goals.
inline double potential(Seat& seat, int agents, int agent) {
    std::int64_t left = 0, whole = 0;
    for (int i = std::max(agent, 0); i < (agent < 0 ? agents : agent + 1); ++i) {
        const int from_start = seat.distance_from_start(i), now = seat.distance(i);
        if (from_start == 0xffff || now == 0xffff) continue;  // cut off from its goal, so it doesn't count
        left += now;
        whole += from_start;
    }
    return static_cast<double>(whole - left) / static_cast<double>(std::max<std::int64_t>(whole, 1));
}

}  // namespace t2t
