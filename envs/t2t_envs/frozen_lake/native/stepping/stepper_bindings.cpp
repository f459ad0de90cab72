// The environments' Python door: one episode at a time (`Stepper`) and many side by side (`VectorStepper`). Every array
// returned is fresh: callers keep observations, so none may change later.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>

#include "stepping/vector_stepper.hpp"

namespace py = pybind11;

namespace t2t {
namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

// A name used at every step, made once and kept for good: it outlives the interpreter.
py::handle kept(const char* text) { return PyUnicode_InternFromString(text); }

// The shape of an array, without a heap allocation.
struct Shape {
    std::array<Py_intptr_t, 5> sizes{};
    int count = 0;
    void push(py::ssize_t size) { sizes[count++] = size; }
};

// A fresh uninitialised array. `py::array_t`'s constructor does the same through two vectors and takes four times as long,
// and an agent-wise step makes twenty arrays.
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

LakeOptions options_of(int size, int agents, bool block_holes, bool block_conflicts, int max_steps, bool planes, int view) {
    if (size < 3 || size > 32) throw py::value_error("size must lie in 3..32");
    if (agents < 1 || agents > lake_agents) throw py::value_error("there are 1..16 agents");
    if (max_steps < 1) throw py::value_error("max_steps must be at least 1");
    if (view < -1 || view >= size) throw py::value_error("view must lie in 0..size-1, or be -1 for the whole grid");
    return {size, agents, block_holes, block_conflicts, max_steps, planes, view};
}

// The flat arrays of `count` instances; every later memory access relies on these checks.
Pool pool_of(const LakeOptions& options, std::size_t count, const Array<std::uint8_t>& holes, const Array<Cell>& starts,
             const Array<Cell>& goals) {
    const std::size_t cells = options.cells(), agents = options.agents;
    if (count < 1 || count > INT32_MAX || static_cast<std::size_t>(holes.size()) != count * cells ||
        static_cast<std::size_t>(starts.size()) != count * agents || starts.size() != goals.size()) {
        throw py::value_error("holes must have size * size entries per instance, starts and goals one per agent");
    }
    Pool pool{{holes.data(), holes.data() + holes.size()},
              {starts.data(), starts.data() + starts.size()},
              {goals.data(), goals.data() + goals.size()},
              count};
    for (const auto* list : {&pool.starts, &pool.goals}) {
        if (std::any_of(list->begin(), list->end(), [&](Cell c) { return c < 0 || static_cast<std::size_t>(c) >= cells; })) {
            throw py::value_error("a start or goal lies off the grid");
        }
    }
    return pool;
}

std::int64_t action_of(py::handle value) {
    const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!index) throw py::error_already_set();
    const long long action = PyLong_AsLongLong(index.ptr());
    if (action < 0 || action > 4) {
        PyErr_Clear();
        throw py::value_error("an action lies in 0..4 (left, down, right, up, wait), not " + std::string(py::str(index)));
    }
    return action;
}

void check_actions(const std::int64_t* actions, std::size_t count) {
    const auto* bad = std::find_if(actions, actions + count, [](std::int64_t a) { return a < 0 || a > 4; });
    if (bad != actions + count) {
        throw py::value_error("an action lies in 0..4 (left, down, right, up, wait), not " + std::to_string(*bad));
    }
}

// Whether it is an array of so many int64 in a row, as a MultiDiscrete space samples it.
bool is_row(const py::object& value, int length) {
    if (!py::isinstance<py::array_t<std::int64_t, py::array::c_style>>(value)) return false;
    const auto array = py::reinterpret_borrow<py::array>(value);
    return array.ndim() == 1 && array.size() == length;
}

// The arrays of one observation, or of a batch of `lead` joint ones, and where to write them.
struct Arrays {
    py::dict dict;
    py::object planes;
    ObservationOut out;

    Arrays(const LakeOptions& options, const Shape& lead, bool joint) {
        static const py::handle holes = kept("holes"), others = kept("others"), positions = kept("positions"),
                                goals = kept("goals");
        const bool view = options.view >= 0;
        Shape grid = lead;
        if (view && joint) grid.push(options.agents);
        if (options.planes) grid.push(view ? 3 : 1 + 2 * options.agents);
        grid.push(view ? options.width() : options.size);
        grid.push(view ? options.width() : options.size);
        if (options.planes) {
            planes = make_array(grid, out.planes);
            return;
        }
        Shape cells = lead;
        cells.push(view && !joint ? 1 : options.agents);
        cells.push(2);
        dict[holes] = make_array(grid, out.holes);
        if (view) dict[others] = make_array(grid, out.others);
        dict[positions] = make_array(cells, out.positions);
        dict[goals] = make_array(cells, out.goals);
    }
};

class Stepper {
public:
    Stepper(int size, int agents, bool block_holes, bool block_conflicts, int max_steps, bool planes, int view)
        : options_(options_of(size, agents, block_holes, block_conflicts, max_steps, planes, view)), geometry_(size) {}

    void load(const Array<std::uint8_t>& holes, const Array<Cell>& starts, const Array<Cell>& goals) {
        pool_ = pool_of(options_, 1, holes, starts, goals);
        lake_.load(options_, pool_.holes.data(), pool_.starts.data(), pool_.goals.data());
        history_ = pool_.starts;
    }
    py::tuple step(const py::object& actions) {
        std::int64_t chosen[lake_agents];
        if (is_row(actions, options_.agents)) {
            const auto* data = static_cast<const std::int64_t*>(py::reinterpret_borrow<py::array>(actions).data());
            std::copy_n(data, options_.agents, chosen);
            check_actions(chosen, options_.agents);
        } else {
            const py::sequence items = py::list(actions);
            if (static_cast<int>(items.size()) != options_.agents) {
                throw py::value_error(std::to_string(items.size()) + " actions for " + std::to_string(options_.agents) + " agents");
            }
            for (int i = 0; i < options_.agents; ++i) chosen[i] = action_of(items[i]);
        }
        advance(chosen);
        return py::make_tuple(observation(-1), lake_.terminated, lake_.truncated);
    }
    // The parallel form: a dict of actions by agent name in; dicts by name of observations and action masks out.
    py::tuple step_agents(const py::tuple& names, const py::dict& actions) {
        check_names(names);
        if (actions.size() != names.size()) {
            throw py::value_error(std::to_string(actions.size()) + " actions for " + std::to_string(names.size()) + " agents");
        }
        std::int64_t chosen[lake_agents];
        for (int i = 0; i < options_.agents; ++i) {
            const py::handle action = PyDict_GetItemWithError(actions.ptr(), names[i].ptr());
            if (!action) throw py::value_error("no action for " + std::string(py::str(names[i])));
            chosen[i] = action_of(action);
        }
        advance(chosen);
        const py::tuple seen = observe_agents(names);
        return py::make_tuple(seen[0], lake_.terminated, lake_.truncated, seen[1]);
    }
    py::tuple observe_agents(const py::tuple& names) const {
        check_names(names);
        static const py::handle action_mask = kept("action_mask");
        py::dict observations, infos;
        for (int i = 0; i < options_.agents; ++i) {
            const py::handle name = PyTuple_GET_ITEM(names.ptr(), i);
            observations[name] = observation(i);
            std::int8_t* flags = nullptr;
            py::dict info;
            info[action_mask] = make_array({{5}, 1}, flags);
            write_mask(lake_, geometry_, i, flags);
            infos[name] = std::move(info);
        }
        return py::make_tuple(std::move(observations), std::move(infos));
    }
    py::object observation(int agent) const {
        check_loaded();
        if (agent < -1 || agent >= options_.agents) throw py::value_error("there is no such agent");
        Arrays arrays(options_, {}, agent < 0);
        observe(lake_, options_, geometry_, agent, arrays.out);
        if (options_.planes) return std::move(arrays.planes);
        static const py::handle step = kept("step");
        arrays.dict[step] = py::int_(lake_.step);
        return std::move(arrays.dict);
    }
    py::array_t<std::uint8_t> planes() const {
        check_loaded();
        py::array_t<std::uint8_t> array({1 + 2 * options_.agents, options_.size, options_.size});
        write_planes(lake_, options_, 0, array.mutable_data());
        return array;
    }
    py::array_t<std::int8_t> masks() const {
        check_loaded();
        py::array_t<std::int8_t> array({options_.agents, 5});
        for (int i = 0; i < options_.agents; ++i) write_mask(lake_, geometry_, i, array.mutable_data(i));
        return array;
    }
    // (valid, fell, conflict, faults, makespan, sum_of_costs); the costs are -1 unless valid.
    py::tuple outcome() const {
        check_loaded();
        const int agents = options_.agents;
        const bool valid = lake_.valid(agents);
        return py::make_tuple(valid, lake_.fell, static_cast<int>(lake_.conflict), lake_.faults,
                              valid ? lake_.makespan(agents) : -1, valid ? lake_.sum_of_costs(agents) : -1);
    }
    const std::vector<Cell>& history() const { return history_; }
    int steps() const { return lake_.step; }

private:
    void check_loaded() const {
        if (!lake_.hole) throw py::value_error("there is no episode yet: call reset() first");
    }
    void check_names(const py::tuple& names) const {
        check_loaded();
        if (static_cast<int>(names.size()) != options_.agents) throw py::value_error("one name per agent");
    }
    void advance(const std::int64_t* chosen) {
        check_loaded();
        if (lake_.done()) throw py::value_error("the episode has ended: call reset() first");
        lake_.advance(options_, geometry_, chosen);
        history_.insert(history_.end(), lake_.positions.begin(), lake_.positions.begin() + options_.agents);
    }

    LakeOptions options_;
    Geometry geometry_;
    Pool pool_;  // the one instance
    Lake lake_;
    std::vector<Cell> history_;  // k cells per step, the starts first
};

std::unique_ptr<VectorStepper> make_vector(int size, int agents, bool block_holes, bool block_conflicts, int max_steps,
                                           bool planes, int view, const Array<std::uint8_t>& holes, const Array<Cell>& starts,
                                           const Array<Cell>& goals, std::size_t count) {
    const LakeOptions options = options_of(size, agents, block_holes, block_conflicts, max_steps, planes, view);
    if (count < 1 || count > INT32_MAX) throw py::value_error("there must be at least one environment");
    Pool pool = pool_of(options, static_cast<std::size_t>(holes.size()) / options.cells(), holes, starts, goals);
    return std::make_unique<VectorStepper>(options, std::move(pool), count);
}

py::object observe_vector(const VectorStepper& stepper) {
    const py::ssize_t count = static_cast<py::ssize_t>(stepper.count());
    Arrays arrays(stepper.options(), {{count}, 1}, true);
    if (stepper.options().planes) {
        stepper.observe(arrays.out, nullptr);
        return std::move(arrays.planes);
    }
    std::int64_t* steps = nullptr;
    arrays.dict["step"] = make_array({{count}, 1}, steps);
    {
        const py::gil_scoped_release release;
        stepper.observe(arrays.out, steps);
    }
    return std::move(arrays.dict);
}

template <typename T, typename Get>
py::array_t<T> column(const VectorStepper& stepper, Get get) {
    py::array_t<T> array(static_cast<py::ssize_t>(stepper.count()));
    std::transform(stepper.lakes().begin(), stepper.lakes().end(), array.mutable_data(), get);
    return array;
}

// (terminated, truncated, whether any episode restarted)
py::tuple step_vector(VectorStepper& stepper, const Array<std::int64_t>& actions) {
    const std::size_t entries = stepper.count() * stepper.options().agents;
    if (static_cast<std::size_t>(actions.size()) != entries) {
        throw py::value_error(std::to_string(actions.size()) + " actions where there are " + std::to_string(entries) + " agents");
    }
    check_actions(actions.data(), entries);
    bool restarted = false;
    {
        const py::gil_scoped_release release;
        restarted = stepper.step(actions.data());
    }
    return py::make_tuple(column<bool>(stepper, [](const Lake& lake) { return lake.terminated; }),
                          column<bool>(stepper, [](const Lake& lake) { return lake.truncated; }), restarted);
}

// The outcome of every environment as arrays: as `Stepper.outcome`.
py::tuple outcomes(const VectorStepper& stepper) {
    const int agents = stepper.options().agents;
    return py::make_tuple(
        column<bool>(stepper, [=](const Lake& lake) { return lake.valid(agents); }),
        column<bool>(stepper, [](const Lake& lake) { return lake.fell; }),
        column<std::uint8_t>(stepper, [](const Lake& lake) { return static_cast<std::uint8_t>(lake.conflict); }),
        column<std::int64_t>(stepper, [=](const Lake& lake) { return lake.valid(agents) ? lake.makespan(agents) : -1; }),
        column<std::int64_t>(stepper, [=](const Lake& lake) { return lake.valid(agents) ? lake.sum_of_costs(agents) : -1; }));
}

void reset_vector(VectorStepper& stepper, const Array<bool>& mask, const Array<std::uint64_t>& keys) {
    const py::ssize_t count = static_cast<py::ssize_t>(stepper.count());
    if (mask.size() != count || (keys.size() != 0 && keys.size() != count)) {
        throw py::value_error("mask and keys have one entry per environment (keys may be empty)");
    }
    for (py::ssize_t i = 0; i < count; ++i) {
        if (!mask.data()[i]) continue;
        if (keys.size() != 0) stepper.seed(i, keys.data()[i]);
        stepper.restart(i);
    }
}

py::array_t<Cell> positions(const VectorStepper& stepper) {
    const int agents = stepper.options().agents;
    py::array_t<Cell> array({static_cast<py::ssize_t>(stepper.count()), static_cast<py::ssize_t>(agents)});
    Cell* out = array.mutable_data();
    for (const Lake& lake : stepper.lakes()) out = std::copy_n(lake.positions.begin(), agents, out);
    return array;
}

template <typename T>
py::array_t<T> copied(const std::vector<T>& values) {
    return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

}  // namespace

void bind_stepper(py::module_& module) {
    using namespace py::literals;
    py::class_<Stepper>(module, "Stepper", "One environment: load an instance (cells as row * size + column), then step.")
        .def(py::init<int, int, bool, bool, int, bool, int>(), "size"_a, "agents"_a, "block_holes"_a, "block_conflicts"_a,
             "max_steps"_a, "planes"_a, "view"_a)
        .def("load", &Stepper::load, "holes"_a, "starts"_a, "goals"_a)
        .def("step", &Stepper::step, "actions"_a, "(observation, terminated, truncated) of one joint action.")
        .def("step_agents", &Stepper::step_agents, "names"_a, "actions"_a,
             "(observations, terminated, truncated, infos) of a dict of actions; infos hold the action masks.")
        .def("observe_agents", &Stepper::observe_agents, "names"_a, "(observations, infos) by agent name.")
        .def("observation", &Stepper::observation, "agent"_a = -1, "The joint observation, or one agent's.")
        .def("planes", &Stepper::planes, "The whole grid as (1 + 2k, N, N) planes.")
        .def("masks", &Stepper::masks, "(k, 5): 1 where an action is no move off the grid or into a hole.")
        .def("outcome", &Stepper::outcome, "(valid, fell, conflict, faults, makespan, sum_of_costs); costs -1 unless valid.")
        .def_property_readonly("steps", &Stepper::steps)
        .def_property_readonly("history", &Stepper::history, "The cells of all agents, step after step, from the starts on.");
    py::class_<VectorStepper>(module, "VectorStepper", "Many environments whose instances are drawn from a pool of flat arrays.")
        .def(py::init(&make_vector), "size"_a, "agents"_a, "block_holes"_a, "block_conflicts"_a, "max_steps"_a, "planes"_a,
             "view"_a, "holes"_a, "starts"_a, "goals"_a, "count"_a)
        .def("reset", &reset_vector, "mask"_a, "keys"_a, "Restart where the mask says; keys reseed the streams first.")
        .def("step", &step_vector, "actions"_a, "(terminated, truncated, any_restarted); ended episodes restart instead.")
        .def("observe", &observe_vector)
        .def("outcomes", &outcomes, "Arrays (valid, fell, conflict, makespan, sum_of_costs); costs -1 unless valid.")
        .def_property_readonly("positions", &positions, "(count, k) cells.")
        .def_property_readonly(
            "steps", [](const VectorStepper& s) { return column<std::int64_t>(s, [](const Lake& l) { return l.step; }); })
        .def_property_readonly("instances", [](const VectorStepper& s) { return copied(s.instances()); })
        .def_property_readonly("restarted", [](const VectorStepper& s) { return copied(s.restarted()); });
}

}  // namespace t2t
