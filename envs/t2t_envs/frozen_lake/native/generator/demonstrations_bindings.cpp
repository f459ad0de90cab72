// Python bindings of demonstrations: they take the instances of one cell and return their answers. The GIL is released during the
// work.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vector>

#include "generator/demonstrations.hpp"
#include "python_watch.hpp"

namespace py = pybind11;

namespace t2t {
namespace {

using Table = py::array_t<Cell, py::array::c_style | py::array::forcecast>;
using Column = py::array_t<std::int32_t, py::array::c_style | py::array::forcecast>;

std::vector<Problem> problems_of(int size, const Table& holes, const Table& starts, const Table& goals) {
    const auto h = holes.unchecked<2>(), s = starts.unchecked<2>(), g = goals.unchecked<2>();
    if (size < 3 || size > 32) throw py::value_error("size must lie in 3..32");
    if (h.shape(0) != s.shape(0) || s.shape(0) != g.shape(0) || s.shape(1) != g.shape(1) || s.shape(1) < 1) {
        throw py::value_error("holes, starts and goals have one row per instance; starts and goals one column per agent");
    }
    const auto cell = [&](Cell value) {
        if (value < 0 || value >= size * size) throw py::value_error("every cell must lie on the grid");
        return value;
    };
    std::vector<Problem> problems(h.shape(0));
    for (py::ssize_t i = 0; i < h.shape(0); ++i) {
        Problem& problem = problems[i];
        problem.size = size;
        problem.hole.assign(static_cast<std::size_t>(size) * size, 0);
        for (py::ssize_t j = 0; j < h.shape(1); ++j) problem.hole[cell(h(i, j))] = 1;
        for (py::ssize_t j = 0; j < s.shape(1); ++j) {
            problem.starts.push_back(cell(s(i, j)));
            problem.goals.push_back(cell(g(i, j)));
        }
    }
    return problems;
}

py::tuple demonstrate_many(int size, const Table& holes, const Table& starts, const Table& goals, const Column& optima,
                           std::uint64_t max_nodes) {
    const auto problems = problems_of(size, holes, starts, goals);
    if (static_cast<std::size_t>(optima.size()) != problems.size()) {
        throw py::value_error("optima must have one entry per instance");
    }
    std::vector<Demonstration> found(problems.size());
    const std::int32_t* optimum = optima.data();
    {
        const py::gil_scoped_release release;
        Watch(check_signals).run(1, [&](int) {
            for (std::size_t i = 0; i < found.size(); ++i) found[i] = demonstrate(problems[i], optimum[i], max_nodes);
        });
    }
    py::list origins, paths;
    for (auto& one : found) {
        origins.append(static_cast<int>(one.origin));
        paths.append(std::move(one.paths));
    }
    return py::make_tuple(origins, paths);
}

}  // namespace

void bind_demonstrations(py::module_& module) {
    using namespace py::literals;
    module.def("demonstrate_many", &demonstrate_many, "size"_a, "holes"_a, "starts"_a, "goals"_a, "optima"_a, "max_nodes"_a,
               "(origins, paths): for each instance one optimal answer that is easy to imitate; `optima` are the exact makespans.\n"
               "origin: 0 independent paths, 1 planned in turn, 2 the solver's, 3 undecided (no paths).");
}

}  // namespace t2t
