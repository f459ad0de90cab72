// Python bindings of one environment: load or draw a lake, then step.
#include "stepping/arrays.hpp"

namespace t2t {
namespace {

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

// Whether the value is a contiguous array of `length` int64, as a MultiDiscrete space samples it.
bool is_row(const py::object& value, int length) {
    if (!py::isinstance<py::array_t<std::int64_t, py::array::c_style>>(value)) return false;
    const auto array = py::reinterpret_borrow<py::array>(value);
    return array.ndim() == 1 && array.size() == length;
}

class Stepper {
public:
    Stepper(const EnvOptions& options, std::shared_ptr<LakeSource> source)
        : options_(options), source_(std::move(source)), seat_(*source_, options.reuse, options.look.agents), observer_(options.look) {}

    void set_source(std::shared_ptr<LakeSource> source) {
        source_ = std::move(source);
        seat_.set_source(*source_);
    }
    void seed(std::uint64_t key) { seat_.seed(key); }
    void restart() {
        {
            const py::gil_scoped_release release;
            Watch(check_signals).run(1, [this](int) { seat_.restart(); });
        }
        check_frame(seat_.map().size);
        history_.assign(seat_.lake.positions.begin(), seat_.lake.positions.begin() + agents());
    }
    void play(int size, const Array<std::uint8_t>& holes, const Array<std::int32_t>& starts, const Array<std::int32_t>& goals,
              int optimum) {
        check_frame(size);
        if (holes.size() != static_cast<py::ssize_t>(size) * size || starts.size() != agents() || goals.size() != agents()) {
            throw py::value_error("holes must have size * size entries, starts and goals one per agent");
        }
        seat_.play(drawn_from(size, agents(), holes.data(), starts.data(), goals.data(), optimum));
        history_.assign(seat_.lake.positions.begin(), seat_.lake.positions.begin() + agents());
    }
    py::tuple step(const py::object& actions) {
        std::int64_t chosen[lake_agents];
        if (is_row(actions, agents())) {
            const auto* data = static_cast<const std::int64_t*>(py::reinterpret_borrow<py::array>(actions).data());
            std::copy_n(data, agents(), chosen);
            for (int i = 0; i < agents(); ++i) {
                if (chosen[i] < 0 || chosen[i] > 4) action_of(py::int_(chosen[i]));
            }
        } else {
            const py::sequence items = py::list(actions);
            if (static_cast<int>(items.size()) != agents()) {
                throw py::value_error(std::to_string(items.size()) + " actions for " + std::to_string(agents()) + " agents");
            }
            for (int i = 0; i < agents(); ++i) chosen[i] = action_of(items[i]);
        }
        advance(chosen);
        return py::make_tuple(observation(-1), seat_.lake.terminated, seat_.lake.truncated);
    }
    // The parallel form: takes a dict of actions by agent name, and returns dicts of observations and infos by name.
    py::tuple step_agents(const py::tuple& names, const py::dict& actions, bool masks) {
        check_names(names);
        if (seat_.lake.done()) throw py::value_error("the episode has ended: call reset() first");
        if (actions.size() != names.size()) {
            throw py::value_error(std::to_string(actions.size()) + " actions for " + std::to_string(names.size()) + " agents");
        }
        std::int64_t chosen[lake_agents];
        for (int i = 0; i < agents(); ++i) {
            const py::handle action = PyDict_GetItemWithError(actions.ptr(), names[i].ptr());
            if (!action) throw py::value_error("no action for " + std::string(py::str(names[i])));
            chosen[i] = action_of(action);
        }
        advance(chosen);
        const py::tuple seen = observe_agents(names, masks);
        return py::make_tuple(seen[0], seat_.lake.terminated, seat_.lake.truncated, seen[1]);
    }
    py::tuple observe_agents(const py::tuple& names, bool masks) {
        check_names(names);
        static const py::handle action_mask = kept("action_mask");
        py::dict observations, infos;
        for (int i = 0; i < agents(); ++i) {
            const py::handle name = PyTuple_GET_ITEM(names.ptr(), i);
            observations[name] = observation(i);
            py::dict info;
            if (masks) {
                std::int8_t* flags = nullptr;
                info[action_mask] = make_array({{5}, 1}, flags);
                write_mask(seat_.lake, i, flags);
            }
            infos[name] = std::move(info);
        }
        return py::make_tuple(std::move(observations), std::move(infos));
    }
    py::object observation(int agent) {
        check_loaded();
        if (agent < -1 || agent >= agents()) throw py::value_error("there is no such agent");
        ObservationArrays arrays(options_.look, {}, agent < 0);
        observer_.observe(seat_.lake, agent, arrays.out);
        if (options_.look.form != Form::dict) return std::move(arrays.array);
        static const py::handle step = kept("step");
        arrays.dict[step] = py::int_(seat_.lake.step);
        return std::move(arrays.dict);
    }
    py::object planes() const {
        check_loaded();
        std::uint8_t* out = nullptr;
        py::object array = make_array({{1 + 2 * agents(), options_.look.frame, options_.look.frame}, 3}, out);
        observer_.write_planes(seat_.lake, 0, out);
        return array;
    }
    py::object masks() const {
        check_loaded();
        std::int8_t* out = nullptr;
        py::object array = make_array({{agents(), 5}, 2}, out);
        for (int i = 0; i < agents(); ++i) write_mask(seat_.lake, i, out + 5 * i);
        return array;
    }
    // (valid, fell, conflict, faults, makespan, sum_of_costs); the costs are -1 unless valid.
    py::tuple outcome() const {
        check_loaded();
        const Lake& lake = seat_.lake;
        const bool valid = lake.valid(agents());
        return py::make_tuple(valid, lake.fell, static_cast<int>(lake.conflict), lake.faults,
                              valid ? lake.makespan(agents()) : -1, valid ? lake.sum_of_costs(agents()) : -1);
    }
    int optimum() {
        check_loaded();
        const py::gil_scoped_release release;
        Watch(check_signals).run(1, [this](int) { seat_.optimum(options_.objective, options_.max_nodes); });
        return seat_.known_optimum();
    }
    double potential_of(int agent) {
        check_loaded();
        return potential(seat_, agents(), agent);
    }
    py::tuple lake() const { return lake_of(seat_, agents()); }
    py::tuple save() const { return py::make_tuple(py::bytes(seat_.save()), history_); }
    void load(const std::string& state, std::vector<Spot> history) {
        seat_.load(state);
        if (seat_.loaded()) check_frame(seat_.map().size);
        history_ = std::move(history);
    }
    const std::vector<Spot>& history() const { return history_; }
    int steps() const { return seat_.lake.step; }

private:
    int agents() const { return options_.look.agents; }
    void check_loaded() const {
        if (!seat_.loaded()) throw py::value_error("there is no episode yet: call reset() first");
    }
    void check_frame(int size) const {
        if (size < 3 || size > options_.look.frame) throw py::value_error("the lake is larger than the frame");
    }
    void check_names(const py::tuple& names) const {
        check_loaded();
        if (static_cast<int>(names.size()) != agents()) throw py::value_error("names must have one entry per agent");
    }
    void advance(const std::int64_t* chosen) {
        check_loaded();
        Lake& lake = seat_.lake;
        if (lake.done()) throw py::value_error("the episode has ended: call reset() first");
        lake.advance(options_.rules, chosen);
        history_.insert(history_.end(), lake.positions.begin(), lake.positions.begin() + agents());
    }

    const EnvOptions options_;
    std::shared_ptr<LakeSource> source_;
    Seat seat_;
    Observer observer_;
    std::vector<Spot> history_;  // k cells per step, from the starts on
};

}  // namespace

void bind_stepper(py::module_& module) {
    using namespace py::literals;
    py::class_<Stepper>(module, "Stepper", "One environment: draw a lake or play a given one (cells as row * size + column), then step.")
        .def(py::init<const EnvOptions&, std::shared_ptr<LakeSource>>(), "options"_a, "source"_a)
        .def("set_source", &Stepper::set_source, "source"_a, "Takes effect at the next restart.")
        .def("seed", &Stepper::seed, "key"_a, "Restarts the stream of lakes.")
        .def("restart", &Stepper::restart, "Plays the next lake of the stream.")
        .def("play", &Stepper::play, "size"_a, "holes"_a, "starts"_a, "goals"_a, "optimum"_a, "Plays a given lake.")
        .def("step", &Stepper::step, "actions"_a, "(observation, terminated, truncated) of one joint action.")
        .def("step_agents", &Stepper::step_agents, "names"_a, "actions"_a, "masks"_a,
             "(observations, terminated, truncated, infos) of a dict of actions; infos hold the action masks.")
        .def("observe_agents", &Stepper::observe_agents, "names"_a, "masks"_a, "(observations, infos) by agent name.")
        .def("observation", &Stepper::observation, "agent"_a = -1, "The joint observation, or one agent's.")
        .def("planes", &Stepper::planes, "The whole grid as (1 + 2k, F, F) planes.")
        .def("masks", &Stepper::masks, "(k, 5): 0 if an action moves off the grid or into a hole, otherwise 1.")
        .def("outcome", &Stepper::outcome, "(valid, fell, conflict, faults, makespan, sum_of_costs); costs are -1 unless valid.")
        .def("optimum", &Stepper::optimum, "The lake's optimum, searched for if it is not known; below 0 if undecided.")
        .def("potential", &Stepper::potential_of, "agent"_a = -1, "0 at the start, 1 with all (or this agent) at the goal.")
        .def("lake", &Stepper::lake, "(size, holes, starts, goals, name, guise, optimum, given) of the lake being played.")
        .def("save", &Stepper::save)
        .def("load", &Stepper::load, "state"_a, "history"_a)
        .def_property_readonly("steps", &Stepper::steps)
        .def_property_readonly("history", &Stepper::history, "The cells of all agents, step by step, from the starts on.");
}

}  // namespace t2t
