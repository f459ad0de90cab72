// Draws one candidate instance and labels it. Everything here lives in scratch memory that is made once per thread.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "solver/bitboard.hpp"
#include "solver/effort.hpp"
#include "generator/generator.hpp"
#include "solver/solver.hpp"
#include "generator/stream.hpp"

namespace t2t {

// rejected: not an instance (an agent on its own goal or cut off from it, or no solution).
enum class Kind : std::uint8_t { wait_free = 0, wait = 1, rejected = 2, undecided = 3 };

class Evaluator {
public:
    virtual ~Evaluator() = default;
    // Candidate `index`: holes, then for each agent start and goal, all uniform; then its label.
    virtual Kind draw(const Stream& cell_stream, std::uint64_t index) = 0;
    // The instance behind the last call; where `both`, with the other objective's optimum. False: that one is undecided.
    virtual bool read(LabelledInstance& out, bool both) = 0;
    // For enumeration: fix the holes, then label agents on them.
    virtual void set_holes(const std::vector<Cell>& holes) = 0;
    virtual bool connected(Cell start, Cell goal) const = 0;
    virtual Kind label(const std::vector<Cell>& starts, const std::vector<Cell>& goals) = 0;
    // Steps of work since the last candidate was drawn (see Effort).
    virtual std::uint64_t steps() const = 0;
};

std::unique_ptr<Evaluator> make_evaluator(const GridCell& cell);

template <int W>
class BoardEvaluator final : public Evaluator {
public:
    explicit BoardEvaluator(const GridCell& cell)
        : cell_(cell), n_(cell.size), stride_(cell.size + 1), cells_(n_ * n_), agents_(cell.agents),
          bit_(cells_), cell_of_(n_ * stride_), routes_(cell.agents), order_(cell.agents), occupied_(cells_ + 1),
          reach_(cells_ + 1) {
        for (int c = 0; c < cells_; ++c) {
            bit_[c] = c + c / n_;
            cell_of_[bit_[c]] = static_cast<Cell>(c);
            grid_.set(bit_[c]);
        }
        for (auto& route : routes_) {
            route.own.resize(cells_ + 1);
            route.path.resize(cells_ + 1);
        }
        problem_.size = n_;
        problem_.hole.resize(cells_);
        problem_.starts.resize(agents_);
        problem_.goals.resize(agents_);
    }

    Kind draw(const Stream& cell_stream, std::uint64_t index) override {
        Stream stream = cell_stream.fork(index);
        steps_ = 0;
        spend(50 + 10 * agents_);
        free_ = grid_;
        // Floyd's algorithm: a uniform subset of `holes` cells with as many draws.
        for (int j = cells_ - cell_.holes; j < cells_; ++j) {
            const int bit = bit_[stream.below(j + 1)];
            free_.clear(free_.test(bit) ? bit : bit_[j]);
        }
        Board<W> starts = free_, goals = free_;
        for (int i = 0; i < agents_; ++i) {
            Route& route = routes_[i];
            route.start = draw_from(starts, stream);
            route.goal = draw_from(goals, stream);
            if (route.start == route.goal) return Kind::rejected;
            route.length = spread(route.start, route.goal, route.own);
            if (route.length < 0) return Kind::rejected;
            route.levels = route.own.data();
        }
        return label();
    }

    bool read(LabelledInstance& out, bool both) override {
        fill_problem();
        out.holes.clear();
        for (int c = 0; c < cells_; ++c) {
            if (problem_.hole[c]) out.holes.push_back(static_cast<Cell>(c));
        }
        out.starts = problem_.starts;
        out.goals = problem_.goals;
        const int other = 1 - static_cast<int>(cell_.objective);
        if (both && cost_[other] < 0) {
            const Label label = solver_.label(problem_, static_cast<Objective>(other), cell_.max_nodes, false);
            spend(label.steps);
            if (label.status != Status::solved) return false;
            cost_[other] = label.cost;
        }
        out.cost[1 - other] = cost_[1 - other];
        out.cost[other] = both ? cost_[other] : -1;
        out.requires_wait = wait_;
        return true;
    }

    void set_holes(const std::vector<Cell>& holes) override {
        free_ = grid_;
        for (const Cell hole : holes) free_.clear(bit_[hole]);
        levels_from_.resize(cells_);
        distance_.assign(static_cast<std::size_t>(cells_) * cells_, -1);
        for (int goal = 0; goal < cells_; ++goal) {
            if (!free_.test(bit_[goal])) continue;
            levels_from_[goal].resize(cells_ + 1);
            spread(-1, bit_[goal], levels_from_[goal]);
            for (int d = 0; levels_from_[goal][d].any(); ++d) {
                for (int start = 0; start < cells_; ++start) {
                    if (levels_from_[goal][d].test(bit_[start])) distance_[start * cells_ + goal] = d;
                }
            }
        }
    }
    std::uint64_t steps() const override { return steps_; }
    bool connected(Cell start, Cell goal) const override { return distance_[start * cells_ + goal] > 0; }

    Kind label(const std::vector<Cell>& starts, const std::vector<Cell>& goals) override {
        for (int i = 0; i < agents_; ++i) {
            routes_[i].start = bit_[starts[i]];
            routes_[i].goal = bit_[goals[i]];
            routes_[i].length = distance_[starts[i] * cells_ + goals[i]];
            routes_[i].levels = levels_from_[goals[i]].data();
        }
        return label();
    }

private:
    // One agent: `levels[d]` holds the cells at distance d from its goal, `length` is the distance of its start.
    struct Route {
        int start = 0, goal = 0, length = 0;
        const Board<W>* levels = nullptr;
        std::vector<Board<W>> own;
        std::vector<int> path;
    };

    void spend(std::uint64_t steps) {
        steps_ += steps;
        pace_.step(static_cast<std::int64_t>(steps));
    }
    int draw_from(Board<W>& left, Stream& stream) {
        int bit;
        do bit = bit_[stream.below(cells_)];
        while (!left.test(bit));
        left.clear(bit);
        return bit;
    }

    // Levels of distance around `goal`, until `start` is met (its distance) or all is flooded (-1, and an empty last level).
    int spread(int start, int goal, std::vector<Board<W>>& levels) const {
        Board<W> unseen = free_, level = Board<W>::bit(goal);
        for (int d = 0;; ++d) {
            levels[d] = level;
            if (start >= 0 && level.test(start)) return d;
            if (!level.any()) return -1;
            unseen = unseen.without(level);
            level = level.neighbours(stride_) & unseen;
        }
    }

    Kind label() {
        cost_[0] = cost_[1] = 0;
        for (const Route& route : routes_) {
            cost_[0] = std::max(cost_[0], route.length);
            cost_[1] += route.length;
        }
        wait_ = false;
        // Shortest paths without conflict are optimal for both objectives, and wait nowhere.
        for (int first = 0; first < agents_; ++first) {
            if (shortest_paths_agree(first)) return Kind::wait_free;
        }
        return search();
    }

    // Plans the agents one after the other, from agent `first` on, each on a shortest path around those before it.
    bool shortest_paths_agree(int first) {
        horizon_ = cost_[0];
        std::fill_n(occupied_.begin(), horizon_ + 1, Board<W>{});
        for (int planned = 0; planned < agents_; ++planned) {
            order_[planned] = (first + planned) % agents_;
            if (!plan(planned)) return false;
        }
        return true;
    }

    bool plan(int planned) {
        Route& route = routes_[order_[planned]];
        const int length = route.length;
        reach_[0] = Board<W>::bit(route.start);
        for (int t = 0; t < length; ++t) {
            Board<W> next = (reach_[t].neighbours(stride_) & route.levels[length - t - 1]).without(occupied_[t + 1]);
            for (int j = 0; j < planned; ++j) forbid_swap(routes_[order_[j]], t, next);
            if (!next.any()) return false;
            reach_[t + 1] = next;
        }
        for (int t = length + 1; t <= horizon_; ++t) {
            if (occupied_[t].test(route.goal)) return false;
        }
        trace(route, planned);
        for (int t = 0; t <= horizon_; ++t) occupied_[t].set(route.path[std::min(t, length)]);
        return true;
    }

    // Drops from `next` the cell that `other` leaves for a cell of reach_[t], if it can be entered from nowhere else.
    void forbid_swap(const Route& other, int t, Board<W>& next) const {
        if (t >= other.length) return;
        const int from = other.path[t], to = other.path[t + 1];
        if (!next.test(from) || !reach_[t].test(to)) return;
        Board<W> others = Board<W>::bit(from).neighbours(stride_) & reach_[t];
        others.clear(to);
        if (!others.any()) next.clear(from);
    }

    void trace(Route& route, int planned) {
        int at = route.path[route.length] = route.goal;
        for (int t = route.length - 1; t >= 0; --t) {
            Board<W> before = Board<W>::bit(at).neighbours(stride_) & reach_[t];
            for (int j = 0; j < planned; ++j) {
                const Route& other = routes_[order_[j]];
                if (t < other.length && other.path[t] == at) before.clear(other.path[t + 1]);
            }
            at = route.path[t] = before.lowest();
        }
    }

    Kind search() {
        fill_problem();
        const Label label = solver_.label(problem_, cell_.objective, cell_.max_nodes, true);
        spend(label.steps);
        cost_[0] = cost_[1] = -1;
        if (label.status == Status::infeasible) return Kind::rejected;
        if (label.status == Status::undecided || label.requires_wait == Answer::undecided) return Kind::undecided;
        cost_[static_cast<int>(cell_.objective)] = label.cost;
        wait_ = label.requires_wait == Answer::yes;
        return wait_ ? Kind::wait : Kind::wait_free;
    }

    void fill_problem() {
        for (int c = 0; c < cells_; ++c) problem_.hole[c] = !free_.test(bit_[c]);
        for (int i = 0; i < agents_; ++i) {
            problem_.starts[i] = cell_of_[routes_[i].start];
            problem_.goals[i] = cell_of_[routes_[i].goal];
        }
    }

    GridCell cell_;
    int n_, stride_, cells_, agents_;
    std::vector<int> bit_;
    std::vector<Cell> cell_of_;
    Board<W> grid_, free_;
    std::vector<Route> routes_;
    std::vector<int> order_;
    std::vector<Board<W>> occupied_, reach_;
    int horizon_ = 0;
    int cost_[2] = {-1, -1};
    bool wait_ = false;
    std::vector<std::vector<Board<W>>> levels_from_;
    std::vector<int> distance_;
    Problem problem_;
    Solver solver_;
    std::uint64_t steps_ = 0;
    Effort pace_;
};

}  // namespace t2t
