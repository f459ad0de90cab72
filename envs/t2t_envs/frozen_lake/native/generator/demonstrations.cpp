#include "generator/demonstrations.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "solver/effort.hpp"
#include "solver/solver.hpp"

namespace t2t {
namespace {

constexpr int waiting = 4;

class Planner {
public:
    explicit Planner(const Problem& problem) : problem_(problem), cells_(problem.size * problem.size), next_(cells_) {
        constexpr std::array<int, 5> rows{1, -1, 0, 0, 0}, columns{0, 0, -1, 1, 0};  // in order of preference
        const int n = problem.size;
        for (int cell = 0; cell < cells_; ++cell) {
            for (int action = 0; action <= waiting; ++action) {
                const int r = cell / n + rows[action], c = cell % n + columns[action];
                const bool open = r >= 0 && c >= 0 && r < n && c < n && !problem.hole[r * n + c] && !problem.hole[cell];
                next_[cell][action] = open ? static_cast<Cell>(r * n + c) : Cell{-1};
            }
        }
    }

    // Plans one agent after another in the given order. Returns false if one of them cannot arrive by `bound`.
    bool in_turn(const std::vector<int>& order, int bound, std::vector<std::vector<Cell>>& paths) {
        done_.clear();
        for (const int agent : order) {
            paths[agent].clear();
            if (!plan(problem_.starts[agent], problem_.goals[agent], bound, paths[agent])) return false;
            done_.push_back(&paths[agent]);
        }
        return true;
    }

    std::vector<Cell> alone(int agent, int bound) {
        done_.clear();
        std::vector<Cell> path;
        plan(problem_.starts[agent], problem_.goals[agent], bound, path);
        return path;
    }

private:
    static Cell at(const std::vector<Cell>& path, int step) {
        return path[std::min<std::size_t>(step, path.size() - 1)];
    }
    bool taken(Cell cell, int step) const {
        return std::any_of(done_.begin(), done_.end(), [&](const auto* path) { return at(*path, step) == cell; });
    }
    bool may_move(Cell from, Cell to, int step) const {
        return !taken(to, step + 1) && std::none_of(done_.begin(), done_.end(), [&](const auto* path) {
            return from != to && at(*path, step) == to && at(*path, step + 1) == from;
        });
    }
    // Of the paths that arrive for good as early as possible, the preferred one.
    bool plan(Cell start, Cell goal, int bound, std::vector<Cell>& path) {
        int earliest = 0;
        for (const auto* other : done_) {
            if (other->back() == goal) return false;
            for (int t = 0; t < static_cast<int>(other->size()); ++t) {
                if ((*other)[t] == goal) earliest = std::max(earliest, t + 1);
            }
        }
        for (int length = earliest; length <= bound; ++length) {
            if (!reach_back(start, goal, length)) continue;
            path.assign(1, start);
            for (int t = 0; t < length; ++t) {
                for (const Cell cell : next_[path.back()]) {
                    if (cell < 0 || !reached(t + 1, cell) || !may_move(path.back(), cell, t)) continue;
                    path.push_back(cell);
                    break;
                }
            }
            return true;
        }
        return false;
    }
    // Marks, for each step, the cells from which the goal can be reached at step `length`.
    bool reach_back(Cell start, Cell goal, int length) {
        reached_.assign(static_cast<std::size_t>(length + 1) * cells_, 0);
        if (taken(goal, length)) return false;
        reached_[static_cast<std::size_t>(length) * cells_ + goal] = 1;
        for (int t = length - 1; t >= 0; --t) {
            effort_.step(2 * cells_);
            for (Cell cell = 0; cell < cells_; ++cell) {
                if (problem_.hole[cell] || taken(cell, t)) continue;
                for (const Cell to : next_[cell]) {
                    if (to < 0 || !reached(t + 1, to) || !may_move(cell, to, t)) continue;
                    reached_[static_cast<std::size_t>(t) * cells_ + cell] = 1;
                    break;
                }
            }
        }
        return reached(0, start);
    }
    bool reached(int step, Cell cell) const { return reached_[static_cast<std::size_t>(step) * cells_ + cell] != 0; }

    const Problem& problem_;
    Effort effort_;
    int cells_;
    std::vector<std::array<Cell, 5>> next_;
    std::vector<const std::vector<Cell>*> done_;
    std::vector<std::uint8_t> reached_;
};

}  // namespace

Demonstration demonstrate(const Problem& problem, int optimum, std::uint64_t max_nodes) {
    Planner planner(problem);
    const int agents = problem.num_agents();
    std::vector<int> order(agents);
    std::iota(order.begin(), order.end(), 0);
    Demonstration found;
    found.paths.resize(agents);
    do {
        if (!planner.in_turn(order, optimum, found.paths)) continue;
        found.origin = Origin::independent;
        for (int agent = 0; agent < agents; ++agent) {
            if (found.paths[agent] != planner.alone(agent, optimum)) found.origin = Origin::in_turn;
        }
        return found;
    } while (std::next_permutation(order.begin(), order.end()));
    Solution solution = Solver().solve(problem, Objective::makespan, max_nodes);
    if (solution.label.status == Status::solved) {
        found.origin = Origin::searched;
        found.paths = std::move(solution.paths);
    }
    return found;
}

}  // namespace t2t
