// The door of many environments side by side.
#include <deque>

#include "stepping/arrays.hpp"

namespace t2t {
namespace {

class VectorStepper {
public:
    VectorStepper(const EnvOptions& options, std::shared_ptr<LakeSource> source, std::size_t count)
        : options_(options), source_(std::move(source)), observer_(options.look), restarted_(count) {
        if (count < 1 || count > INT32_MAX) throw py::value_error("there must be at least one environment");
        for (std::size_t i = 0; i < count; ++i) seats_.emplace_back(*source_, options_.reuse, agents());
    }
    void set_source(std::shared_ptr<LakeSource> source) {
        for (Seat& seat : seats_) seat.set_source(*source);
        source_ = std::move(source);
    }
    // Restarts where the mask says; keys, where given, start the streams anew before.
    void reset(const Array<bool>& mask, const Array<std::uint64_t>& keys) {
        if (mask.size() != count() || (keys.size() != 0 && keys.size() != count())) {
            throw py::value_error("mask and keys have one entry per environment (keys may be empty)");
        }
        const bool* chosen = mask.data();
        const std::uint64_t* key = keys.size() == 0 ? nullptr : keys.data();
        const py::gil_scoped_release release;
        Watch(check_signals).run(1, [&](int) {
            for (std::size_t i = 0; i < seats_.size(); ++i) {
                if (!chosen[i]) continue;
                if (key != nullptr) seats_[i].seed(key[i]);
                restart(seats_[i]);
            }
        });
    }
    // (terminated, truncated, whether any episode restarted); where one has ended the next begins instead.
    py::tuple step(const Array<std::int64_t>& actions) {
        const std::size_t entries = seats_.size() * agents();
        if (static_cast<std::size_t>(actions.size()) != entries) {
            throw py::value_error(std::to_string(actions.size()) + " actions where there are " + std::to_string(entries) + " agents");
        }
        const std::int64_t* action = actions.data();
        if (std::any_of(action, action + entries, [](std::int64_t a) { return a < 0 || a > 4; })) {
            throw py::value_error("an action lies in 0..4 (left, down, right, up, wait)");
        }
        bool any = false, *terminated = nullptr, *truncated = nullptr;
        py::object terminations = make_array({{count()}, 1}, terminated), truncations = make_array({{count()}, 1}, truncated);
        {
            const py::gil_scoped_release release;
            Watch(check_signals).run(1, [&](int) {
                for (std::size_t i = 0; i < seats_.size(); ++i, action += agents()) {
                    Lake& lake = seats_[i].lake;
                    const bool done = lake.done();
                    restarted_[i] = done;
                    any |= done;
                    done ? restart(seats_[i]) : lake.advance(options_.rules, action);
                    terminated[i] = lake.terminated;
                    truncated[i] = lake.truncated;
                }
            });
        }
        return py::make_tuple(std::move(terminations), std::move(truncations), any);
    }
    py::object observe() {
        check_loaded();
        ObservationArrays arrays(options_.look, {{count()}, 1}, true);
        std::int64_t* steps = nullptr;
        const bool as_dict = options_.look.form == Form::dict;
        static const py::handle step = kept("step");
        if (as_dict) arrays.dict[step] = make_array({{count()}, 1}, steps);
        {
            const py::gil_scoped_release release;
            for (const Seat& seat : seats_) {
                observer_.observe(seat.lake, -1, arrays.out);
                if (as_dict) *steps++ = seat.lake.step;
            }
        }
        if (as_dict) return std::move(arrays.dict);
        return std::move(arrays.array);
    }
    py::object masks() const {
        check_loaded();
        std::int8_t* out = nullptr;
        py::object array = make_array({{count(), agents(), 5}, 3}, out);
        for (const Seat& seat : seats_) {
            for (int i = 0; i < agents(); ++i, out += 5) write_mask(seat.lake, i, out);
        }
        return array;
    }
    // How each episode ended, as arrays: whether it was solved, the number of the check that failed (1 a fall, 2 a conflict, 3 the
    // clock; 0: none, or it goes on), the kind of its conflict, and the costs, -1 unless it was solved.
    py::tuple outcomes() {
        check_loaded();
        const Shape shape{{count()}, 1};
        bool* valid = nullptr;
        std::int64_t *failure = nullptr, *conflict = nullptr, *makespan = nullptr, *sum_of_costs = nullptr;
        py::tuple arrays = py::make_tuple(make_array(shape, valid), make_array(shape, failure), make_array(shape, conflict),
                                          make_array(shape, makespan), make_array(shape, sum_of_costs));
        for (const Seat& seat : seats_) {
            const Lake& lake = seat.lake;
            *valid = lake.valid(agents());
            *failure++ = *valid || !lake.done() ? 0 : lake.fell ? 1 : lake.conflict != ConflictKind::none ? 2 : 3;
            *conflict++ = static_cast<std::int64_t>(lake.conflict);
            *makespan++ = *valid ? lake.makespan(agents()) : -1;
            *sum_of_costs++ = *valid ? lake.sum_of_costs(agents()) : -1;
            ++valid;
        }
        return arrays;
    }
    // The optima where the mask says, searched for where they are not known; -1 elsewhere, -2 where undecided.
    py::object optima(const Array<bool>& mask) {
        check_loaded();
        if (mask.size() != count()) throw py::value_error("the mask has one entry per environment");
        std::int64_t* out = nullptr;
        py::object array = make_array({{count()}, 1}, out);
        const bool* chosen = mask.data();
        const py::gil_scoped_release release;
        Watch(check_signals).run(1, [&](int) {
            for (std::size_t i = 0; i < seats_.size(); ++i) {
                out[i] = chosen[i] ? seats_[i].optimum(options_.objective, options_.max_nodes) : optimum_unknown;
            }
        });
        return array;
    }
    py::object potentials() {
        check_loaded();
        return column<double>([this](Seat& seat) { return potential(seat, agents(), -1); });
    }
    py::object positions() const {
        Spot* out = nullptr;
        py::object array = make_array({{count(), agents()}, 2}, out);
        for (const Seat& seat : seats_) out = std::copy_n(seat.lake.positions.begin(), agents(), out);
        return array;
    }
    py::object steps() {
        return column<std::int64_t>([](const Seat& seat) { return seat.lake.step; });
    }
    py::object restarted() const { return py::array_t<std::uint8_t>(count(), restarted_.data()); }
    py::tuple lake(std::size_t index) const { return lake_of(seats_.at(index), agents()); }
    py::list save() const {
        py::list states;
        for (const Seat& seat : seats_) states.append(py::bytes(seat.save()));
        return states;
    }
    void load(const std::vector<std::string>& states) {
        if (states.size() != seats_.size()) throw py::value_error("one state per environment");
        for (std::size_t i = 0; i < states.size(); ++i) seats_[i].load(states[i]);
    }

private:
    py::ssize_t count() const { return static_cast<py::ssize_t>(seats_.size()); }
    int agents() const { return options_.look.agents; }
    void check_loaded() const {
        if (!seats_.front().loaded()) throw py::value_error("there is no episode yet: call reset() first");
    }
    void restart(Seat& seat) {
        seat.restart();
        if (seat.map().size > options_.look.frame) throw std::invalid_argument("the lake is larger than the frame");
    }
    template <typename T, typename Get>
    py::object column(Get get) {
        T* out = nullptr;
        py::object array = make_array({{count()}, 1}, out);
        for (Seat& seat : seats_) *out++ = get(seat);
        return array;
    }

    const EnvOptions options_;
    std::shared_ptr<LakeSource> source_;
    Observer observer_;
    std::deque<Seat> seats_;  // they stay where they are: an episode points to its map
    std::vector<std::uint8_t> restarted_;  // whether the last step began an episode
};

}  // namespace

void bind_vector_stepper(py::module_& module) {
    using namespace py::literals;
    py::class_<VectorStepper>(module, "VectorStepper", "Many environments, each with its own stream of lakes.")
        .def(py::init<const EnvOptions&, std::shared_ptr<LakeSource>, std::size_t>(), "options"_a, "source"_a, "count"_a)
        .def("set_source", &VectorStepper::set_source, "source"_a, "From each next restart on.")
        .def("reset", &VectorStepper::reset, "mask"_a, "keys"_a, "Restart where the mask says; keys start the streams anew before.")
        .def("step", &VectorStepper::step, "actions"_a, "(terminated, truncated, any_restarted); ended episodes restart instead.")
        .def("observe", &VectorStepper::observe)
        .def("masks", &VectorStepper::masks, "(count, k, 5)")
        .def("outcomes", &VectorStepper::outcomes, "Arrays (valid, failure, conflict, makespan, sum_of_costs); costs -1 unless valid.")
        .def("optima", &VectorStepper::optima, "mask"_a, "Where the mask says; -1 elsewhere, -2 undecided.")
        .def("potentials", &VectorStepper::potentials, "0 at the start, 1 with all agents at their goals.")
        .def("lake", &VectorStepper::lake, "index"_a)
        .def("save", &VectorStepper::save)
        .def("load", &VectorStepper::load, "states"_a)
        .def_property_readonly("positions", &VectorStepper::positions, "(count, k) cells.")
        .def_property_readonly("steps", &VectorStepper::steps)
        .def_property_readonly("restarted", &VectorStepper::restarted);
}

}  // namespace t2t
