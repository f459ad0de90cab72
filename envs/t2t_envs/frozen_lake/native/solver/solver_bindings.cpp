// Python bindings of the solver: they take arrays of problems and return arrays of labels. The GIL is released during the work.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <string>

#include "python_watch.hpp"
#include "solver/effort.hpp"
#include "solver/solver.hpp"

namespace py = pybind11;

namespace t2t {
namespace {

constexpr int min_size = 3, max_size = 32, max_agents = 16;

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <typename T>
std::span<const T> view(const Array<T>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
}

void check_cells(const Problem& problem, const std::vector<Cell>& cells, const char* what) {
    std::vector<std::uint8_t> seen(problem.hole.size());
    for (const Cell cell : cells) {
        if (cell < 0 || static_cast<std::size_t>(cell) >= seen.size() || problem.hole[cell] || seen[cell]++) {
            throw py::value_error(std::string(what) + ": every cell must lie on the grid, off the holes, and occur once");
        }
    }
}

void check(const Problem& problem) {
    if (problem.size < min_size || problem.size > max_size) throw py::value_error("size must lie in 3..32");
    if (problem.hole.size() != static_cast<std::size_t>(problem.size) * problem.size) {
        throw py::value_error("holes must have size * size entries");
    }
    if (problem.starts.empty() || problem.starts.size() > max_agents || problem.starts.size() != problem.goals.size()) {
        throw py::value_error("a problem has 1..16 agents, each with a start and a goal");
    }
    check_cells(problem, problem.starts, "starts");
    check_cells(problem, problem.goals, "goals");
}

// Takes the next `count` entries from the front of a flat array.
template <typename T>
std::vector<T> take(std::span<const T>& flat, std::size_t count) {
    if (flat.size() < count) throw py::value_error("the flat arrays are shorter than sizes and agents say");
    std::vector<T> part(flat.begin(), flat.begin() + count);
    flat = flat.subspan(count);
    return part;
}

std::vector<Problem> problems_of(std::span<const std::int32_t> sizes, std::span<const std::int32_t> agents,
                                 std::span<const std::uint8_t> holes, std::span<const Cell> starts,
                                 std::span<const Cell> goals) {
    if (sizes.size() != agents.size()) throw py::value_error("sizes and agents must have one entry per problem");
    std::vector<Problem> problems(sizes.size());
    for (std::size_t i = 0; i < problems.size(); ++i) {
        if (sizes[i] < min_size || sizes[i] > max_size) throw py::value_error("size must lie in 3..32");
        if (agents[i] < 1 || agents[i] > max_agents) throw py::value_error("a problem has 1..16 agents");
        problems[i].size = sizes[i];
        problems[i].hole = take(holes, static_cast<std::size_t>(sizes[i]) * sizes[i]);
        problems[i].starts = take(starts, agents[i]);
        problems[i].goals = take(goals, agents[i]);
        check(problems[i]);
    }
    if (!holes.empty() || !starts.empty() || !goals.empty()) {
        throw py::value_error("the flat arrays are longer than sizes and agents say");
    }
    return problems;
}

// A solver keeps its memory from problem to problem, and a thread keeps its solver from call to call. The solver is kept only
// after small maps and short searches, so that little memory stays allocated.
class ThreadSolver {
public:
    explicit ThreadSolver(Method method) : method_(method) {
        if (method == Method::fast) solver_.swap(kept_);
        if (!solver_) solver_ = std::make_unique<Solver>(method);
    }
    ThreadSolver(const ThreadSolver&) = delete;
    ThreadSolver& operator=(const ThreadSolver&) = delete;
    Label label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait) {
        const Label label = solver_->label(problem, objective, max_nodes, want_wait);
        note(problem, label);
        return label;
    }
    Solution solve(const Problem& problem, Objective objective, std::uint64_t max_nodes) {
        Solution solution = solver_->solve(problem, objective, max_nodes);
        note(problem, solution.label);
        return solution;
    }
    // To be called if nothing was thrown.
    void keep() {
        if (method_ == Method::fast && small_) kept_.swap(solver_);
    }

private:
    static constexpr int small_size = 10;
    static constexpr std::uint64_t few_nodes = 200'000;
    void note(const Problem& problem, const Label& label) {
        pace_.step(static_cast<std::int64_t>(label.steps));
        small_ = small_ && problem.size <= small_size && label.nodes <= few_nodes;
    }
    static thread_local std::unique_ptr<Solver> kept_;
    const Method method_;
    std::unique_ptr<Solver> solver_;
    bool small_ = true;
    Effort pace_;
};
thread_local std::unique_ptr<Solver> ThreadSolver::kept_;

struct Work {
    const std::vector<Problem>& problems;
    std::span<const std::uint8_t> objectives;
    std::uint64_t max_nodes;
    bool want_wait;
    Method method;
    const std::optional<py::function>& progress;
    std::vector<Label> labels = std::vector<Label>(problems.size());
    std::atomic<std::size_t> next{0}, done{0};

    void label_all(int threads) {
        Watch([this] { tell(); }).run(threads, [this](int) { label_some(); });
    }
    // Each label depends only on its problem, so it does not matter which thread computes it.
    void label_some() {
        constexpr std::size_t chunk = 16;
        ThreadSolver solver(method);
        for (std::size_t from; (from = next.fetch_add(chunk)) < problems.size();) {
            for (std::size_t i = from; i < std::min(from + chunk, problems.size()); ++i) {
                const auto objective = static_cast<Objective>(objectives[i]);
                labels[i] = solver.label(problems[i], objective, max_nodes, want_wait);
                ++done;
            }
        }
        solver.keep();
    }
    void tell() const {
        report(progress, [this](auto& call) { call(done.load()); });
    }
};

template <typename T, typename Get>
py::array_t<T> column(const std::vector<Label>& labels, Get get) {
    py::array_t<T> array(static_cast<py::ssize_t>(labels.size()));
    std::transform(labels.begin(), labels.end(), array.mutable_data(), get);
    return array;
}

py::tuple solve_many(const Array<std::int32_t>& sizes, const Array<std::int32_t>& agents, const Array<std::uint8_t>& holes,
                     const Array<Cell>& starts, const Array<Cell>& goals, const Array<std::uint8_t>& objectives,
                     std::uint64_t max_nodes, bool want_wait, int threads, int method,
                     const std::optional<py::function>& progress) {
    const auto problems = problems_of(view(sizes), view(agents), view(holes), view(starts), view(goals));
    const auto kinds = view(objectives);
    if (kinds.size() != problems.size()) throw py::value_error("objectives must have one entry per problem");
    if (std::any_of(kinds.begin(), kinds.end(), [](auto kind) { return kind > 1; })) {
        throw py::value_error("an objective is 0 (makespan) or 1 (sum of costs)");
    }
    if (threads < 1 || threads > 1024) throw py::value_error("threads must lie in 1..1024");
    if (method < 0 || method > static_cast<int>(Method::fours)) throw py::value_error("method must lie in 0..4");
    Work work{problems, kinds, max_nodes, want_wait, static_cast<Method>(method), progress};
    {
        const py::gil_scoped_release release;
        work.label_all(threads);
    }
    return py::make_tuple(
        column<std::uint8_t>(work.labels, [](const Label& l) { return static_cast<std::uint8_t>(l.status); }),
        column<std::int32_t>(work.labels, [](const Label& l) { return l.cost; }),
        column<std::uint8_t>(work.labels, [](const Label& l) { return static_cast<std::uint8_t>(l.requires_wait); }),
        column<std::uint64_t>(work.labels, [](const Label& l) { return l.nodes; }),
        column<std::uint64_t>(work.labels, [](const Label& l) { return l.steps; }));
}

py::tuple solve(int size, std::vector<std::uint8_t> holes, std::vector<Cell> starts, std::vector<Cell> goals, int objective,
                std::uint64_t max_nodes) {
    const Problem problem{size, std::move(holes), std::move(starts), std::move(goals)};
    check(problem);
    if (objective != 0 && objective != 1) throw py::value_error("an objective is 0 (makespan) or 1 (sum of costs)");
    Solution solution;
    {
        const py::gil_scoped_release release;
        Watch(check_signals).run(1, [&](int) {
            ThreadSolver solver(Method::fast);
            solution = solver.solve(problem, static_cast<Objective>(objective), max_nodes);
            solver.keep();
        });
    }
    return py::make_tuple(static_cast<int>(solution.label.status), solution.label.cost, solution.label.nodes, solution.paths);
}

}  // namespace

void bind_solver(py::module_& module) {
    using namespace py::literals;
    module.def("solve_many", &solve_many, "sizes"_a, "agents"_a, "holes"_a, "starts"_a, "goals"_a, "objectives"_a,
               "max_nodes"_a, "want_wait"_a, "threads"_a = 1, "method"_a = 0, "progress"_a = py::none(),
               "Labels of n problems given as flat arrays: (status, cost, requires_wait, nodes, steps), one entry per problem.\n"
               "status: 0 solved, 1 infeasible, 2 undecided; requires_wait: 0 no, 1 yes, 2 undecided.\n"
               "method: 0 fast; 1 all joint states; 2, 3, 4 one joint search guided by tables of 2, 3, 4 agents. The slow methods\n"
               "exist to check each against the others.\n"
               "progress(done) is called about ten times a second; if it raises, the work ends.");
    module.def("solve", &solve, "size"_a, "holes"_a, "starts"_a, "goals"_a, "objective"_a, "max_nodes"_a,
               "(status, cost, nodes, paths) of one problem; each path ends at its agent's final arrival.");
}

}  // namespace t2t
