// Python bindings of many environments side by side.
#include <deque>

#include "stepping/arrays.hpp"

namespace t2t {
namespace {

// The observations of a batch, one lake after the other.
class Batch {
public:
    Batch(const Look& look, const Shape& shape) : arrays_(look, shape, true), as_dict_(look.form == Form::dict) {
        static const py::handle step = kept("step");
        if (as_dict_) arrays_.dict[step] = make_array(shape, steps_);
    }
    void write(Observer& observer, const Lake& lake) {
        observer.observe(lake, -1, arrays_.out);
        if (as_dict_) *steps_++ = lake.step;
    }
    py::object result() { return as_dict_ ? py::object(std::move(arrays_.dict)) : std::move(arrays_.array); }

private:
    ObservationArrays arrays_;
    const bool as_dict_;
    std::int64_t* steps_ = nullptr;
};

// How the episodes of a batch ended, as arrays: whether each was solved, whether it failed, the number of the check that failed (1 a
// fall, 2 a conflict, 3 the time limit; 0: none, or not ended yet), the kind of its conflict, and the costs, -1 unless solved.
class Outcomes {
public:
    explicit Outcomes(const Shape& shape)
        : arrays_(py::make_tuple(make_array(shape, valid_), make_array(shape, failed_), make_array(shape, failure_),
                                 make_array(shape, conflict_), make_array(shape, makespan_), make_array(shape, sum_of_costs_))) {}
    void write(std::size_t i, const Lake& lake, int agents) {
        const bool valid = lake.valid(agents), failed = lake.done() && !valid;
        any_valid_ |= valid;
        any_failed_ |= failed;
        valid_[i] = valid;
        failed_[i] = failed;
        failure_[i] = !failed ? 0 : lake.fell ? 1 : lake.conflict != ConflictKind::none ? 2 : 3;
        conflict_[i] = static_cast<std::int64_t>(lake.conflict);
        makespan_[i] = valid ? lake.makespan(agents) : -1;
        sum_of_costs_[i] = valid ? lake.sum_of_costs(agents) : -1;
    }
    // (any valid, any failed, the arrays)
    py::tuple tuple() const { return py::make_tuple(any_valid_, any_failed_, arrays_); }

private:
    bool *valid_ = nullptr, *failed_ = nullptr, any_valid_ = false, any_failed_ = false;
    std::int64_t *failure_ = nullptr, *conflict_ = nullptr, *makespan_ = nullptr, *sum_of_costs_ = nullptr;
    const py::tuple arrays_;
};

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
    // Restarts the environments in the mask. If keys are given, they restart the streams first.
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
    // (observation, terminated, truncated, ended, outcomes, whether any episode restarted). If an episode had already ended, the next
    // one begins instead of a step. `outcomes` is None if none has ended. Everything is written in one pass, while a seat is in the
    // cache.
    py::tuple step(const Array<std::int64_t>& actions) {
        const std::int64_t* action = checked(actions);
        bool any = false, any_ended = false, *terminated = nullptr, *truncated = nullptr, *ended = nullptr;
        const Shape shape{{count()}, 1};
        py::object terminations = make_array(shape, terminated), truncations = make_array(shape, truncated),
                   ends = make_array(shape, ended);
        Batch batch(options_.look, shape);
        Outcomes outcomes(shape);
        {
            const py::gil_scoped_release release;
            Watch(check_signals).run(1, [&](int) {
                for (std::size_t i = 0; i < seats_.size(); ++i, action += agents()) {
                    if (i + ahead < seats_.size()) seats_[i + ahead].prefetch();
                    Lake& lake = seats_[i].lake;
                    const bool done = lake.done();
                    restarted_[i] = done;
                    any |= done;
                    done ? restart(seats_[i]) : lake.advance(options_.rules, action);
                    terminated[i] = lake.terminated;
                    truncated[i] = lake.truncated;
                    any_ended |= ended[i] = lake.done();
                    outcomes.write(i, lake, agents());
                    batch.write(observer_, lake);
                }
            });
        }
        py::object verdicts = any_ended ? py::object(outcomes.tuple()) : py::none();
        return py::make_tuple(batch.result(), std::move(terminations), std::move(truncations), std::move(ends), std::move(verdicts), any);
    }
    py::object observe() {
        check_loaded();
        Batch batch(options_.look, {{count()}, 1});
        {
            const py::gil_scoped_release release;
            for (const Seat& seat : seats_) batch.write(observer_, seat.lake);
        }
        return batch.result();
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
    // The optima of the environments in the mask, searched for if they are not known. -1 for the others, -2 if undecided.
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
        if (states.size() != seats_.size()) throw py::value_error("states must have one entry per environment");
        for (std::size_t i = 0; i < states.size(); ++i) seats_[i].load(states[i]);
    }

private:
    const std::int64_t* checked(const Array<std::int64_t>& actions) const {
        const std::size_t entries = seats_.size() * agents();
        if (static_cast<std::size_t>(actions.size()) != entries) {
            throw py::value_error(std::to_string(actions.size()) + " actions for " + std::to_string(entries) + " agents");
        }
        const std::int64_t* action = actions.data();
        std::uint64_t bits = 0;  // ends up above 7 if an action is outside 0..4; no branch, so many are checked at a time
        for (std::size_t i = 0; i < entries; ++i) {
            const auto value = static_cast<std::uint64_t>(action[i]);
            bits |= value | (value + 3);
        }
        if (bits > 7) throw py::value_error("an action lies in 0..4 (left, down, right, up, wait)");
        return action;
    }
    static constexpr std::size_t ahead = 4;  // seats are fetched into the cache this many seats before they are needed

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
    std::deque<Seat> seats_;  // a deque, so that seats keep their addresses: an episode points to its map
    std::vector<std::uint8_t> restarted_;  // whether the last step began an episode
};

}  // namespace

void bind_vector_stepper(py::module_& module) {
    using namespace py::literals;
    py::class_<VectorStepper>(module, "VectorStepper", "Many environments, each with its own stream of lakes.")
        .def(py::init<const EnvOptions&, std::shared_ptr<LakeSource>, std::size_t>(), "options"_a, "source"_a, "count"_a)
        .def("set_source", &VectorStepper::set_source, "source"_a, "Takes effect at the next restart of each.")
        .def("reset", &VectorStepper::reset, "mask"_a, "keys"_a,
             "Restarts the environments in the mask; keys, if given, restart their streams first.")
        .def("step", &VectorStepper::step, "actions"_a,
             "(observation, terminated, truncated, ended, outcomes, any_restarted); ended episodes restart instead of a step.\n"
             "outcomes: None, or (any_valid, any_failed, (valid, failed, failure, conflict, makespan, sum_of_costs)); costs are -1\n"
             "unless valid.")
        .def("observe", &VectorStepper::observe)
        .def("masks", &VectorStepper::masks, "(count, k, 5)")
        .def("optima", &VectorStepper::optima, "mask"_a,
             "The optima of the environments in the mask; -1 for the others, -2 if undecided.")
        .def("potentials", &VectorStepper::potentials, "0 at the start, 1 with all agents at their goals.")
        .def("lake", &VectorStepper::lake, "index"_a)
        .def("save", &VectorStepper::save)
        .def("load", &VectorStepper::load, "states"_a)
        .def_property_readonly("positions", &VectorStepper::positions, "(count, k) cells.")
        .def_property_readonly("steps", &VectorStepper::steps)
        .def_property_readonly("restarted", &VectorStepper::restarted);
}

}  // namespace t2t
