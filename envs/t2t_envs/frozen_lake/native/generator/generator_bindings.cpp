// Python bindings of the generator: one call per cell, which returns arrays. The GIL is released during the work.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "solver/canonical.hpp"
#include "generator/generator.hpp"
#include "python_watch.hpp"

namespace py = pybind11;

namespace t2t {
namespace {

GridCell grid_cell(int size, int holes, int agents, int objective, std::uint64_t max_nodes) {
    if (size < 3 || size > 32) throw py::value_error("size must lie in 3..32");
    if (agents < 1 || agents > 16) throw py::value_error("a problem has 1..16 agents");
    if (holes < 0 || holes + agents > size * size) throw py::value_error("holes and agents do not fit on the grid");
    if (objective != 0 && objective != 1) throw py::value_error("an objective is 0 (makespan) or 1 (sum of costs)");
    return {size, holes, agents, static_cast<Objective>(objective), max_nodes};
}

template <typename T, typename Get>
py::array_t<T> table(const std::vector<LabelledInstance>& instances, int columns, Get get) {
    py::array_t<T> array({static_cast<py::ssize_t>(instances.size()), static_cast<py::ssize_t>(columns)});
    T* out = array.mutable_data();
    for (const auto& instance : instances) {
        for (int i = 0; i < columns; ++i) *out++ = static_cast<T>(get(instance, i));
    }
    return array;
}

py::dict sample(int size, int holes, int agents, int objective, std::uint64_t key, std::int64_t wait_free, std::int64_t wait,
                std::int64_t total, std::uint64_t stall, std::uint64_t max_nodes, bool both, bool one_per_form,
                bool distinct, int threads, const std::vector<py::bytes>& exclude, std::uint64_t max_steps,
                const std::optional<py::function>& progress) {
    if (threads < 1 || threads > 1024) throw py::value_error("threads must lie in 1..1024");
    SampleRequest request{grid_cell(size, holes, agents, objective, max_nodes), key, {wait_free, wait}, total, stall,
                          max_steps, both, one_per_form, distinct, threads, {}};
    for (const auto& form : exclude) request.exclude.insert(std::string(form));
    Sample sample;
    {
        const py::gil_scoped_release release;
        sample = sample_cell(request, [&](const Progress& so_far) {
            report(progress, [&](auto& tell) { tell(so_far.drawn, so_far.taken[0], so_far.taken[1], so_far.undecided); });
        });
    }
    const auto& all = sample.instances;
    using namespace py::literals;
    return py::dict("holes"_a = table<Cell>(all, holes, [](const auto& x, int i) { return x.holes[i]; }),
                    "starts"_a = table<Cell>(all, agents, [](const auto& x, int i) { return x.starts[i]; }),
                    "goals"_a = table<Cell>(all, agents, [](const auto& x, int i) { return x.goals[i]; }),
                    "costs"_a = table<std::int32_t>(all, 2, [](const auto& x, int i) { return x.cost[i]; }),
                    "wait"_a = table<std::uint8_t>(all, 1, [](const auto& x, int) { return x.requires_wait; }),
                    "drawn"_a = sample.drawn, "undecided"_a = sample.undecided, "stalled"_a = sample.stalled,
                    "hopeless"_a = sample.hopeless, "steps"_a = sample.steps);
}

py::tuple enumerate(int size, int holes, int agents, int objective, std::uint64_t max_nodes, int list_kind) {
    const GridCell cell = grid_cell(size, holes, agents, objective, max_nodes);
    Forms forms;
    {
        const py::gil_scoped_release release;
        forms = enumerate_cell(cell, list_kind, check_signals);
    }
    py::list listed;
    for (const auto& form : forms.listed) listed.append(py::bytes(form));
    return py::make_tuple(forms.count[0], forms.count[1], forms.undecided, listed);
}

py::bytes canonical(int size, const std::vector<Cell>& holes, const std::vector<Cell>& starts, const std::vector<Cell>& goals) {
    if (size < 3 || size > 32) throw py::value_error("size must lie in 3..32");
    if (starts.size() != goals.size()) throw py::value_error("every agent has a start and a goal");
    for (const auto* cells : {&holes, &starts, &goals}) {
        if (std::any_of(cells->begin(), cells->end(), [&](Cell c) { return c < 0 || c >= size * size; })) {
            throw py::value_error("every cell must lie on the grid");
        }
    }
    return py::bytes(canonical_form(Symmetries(size), holes, starts, goals));
}

}  // namespace

void bind_generator(py::module_& module) {
    using namespace py::literals;
    module.def("sample_cell", &sample, "size"_a, "holes"_a, "agents"_a, "objective"_a, "key"_a, "wait_free"_a, "wait"_a,
               "total"_a, "stall"_a, "max_nodes"_a, "both"_a = false, "one_per_form"_a = false, "distinct"_a = true,
               "threads"_a = 1, "exclude"_a = std::vector<py::bytes>(), "max_steps"_a = 0, "progress"_a = py::none(),
               "Random labelled instances of one cell, as arrays with one row per instance, in candidate order.\n"
               "It gives up once max_steps of work will hardly suffice for the request (0: never).\n"
               "progress(drawn, wait_free, wait, undecided) is called about ten times a second; if it raises, the work ends.");
    module.def("enumerate_cell", &enumerate, "size"_a, "holes"_a, "agents"_a, "objective"_a, "max_nodes"_a, "list_kind"_a = -1,
               "(wait-free forms, wait forms, undecided, listed): the numbers of canonical forms of one cell, and the forms of\n"
               "`list_kind` (0 wait-free, 1 wait, -1 none) in ascending order.");
    module.def("canonical", &canonical, "size"_a, "holes"_a, "starts"_a, "goals"_a,
               "The canonical form of an instance whose cells are numbered row * size + column.");
}

}  // namespace t2t
