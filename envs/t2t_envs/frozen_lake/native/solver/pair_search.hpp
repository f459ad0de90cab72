// Decides two agents exactly: for every square x of agent a, it computes all squares that agent b can be on at the same time.
#pragma once
#include <vector>

#include "solver/single_search.hpp"

namespace t2t {

template <int W>
class PairSearch {
public:
    // Whether the two agents alone have a solution of at most `budget`. A node is an expanded square. In the states here both agents
    // are under way, at some step and with `rest` of the budget left. Once one has arrived for good, the other takes a shortest path
    // around it.
    bool within(const Grid<W>& grid, Agent<W>& a, Agent<W>& b, Objective objective, int budget, bool waits,
                Effort& effort) {
        grid_ = &grid, a_ = &a, b_ = &b, waits_ = waits;
        const int squares = grid.squares(), weight = objective == Objective::makespan ? 1 : 2;
        around_a_.reset(grid, b.goal, closed(grid, a.goal));
        around_b_.reset(grid, a.goal, closed(grid, b.goal));
        begin_layer(0, squares);
        layer(0)[a.start] = Board<W>::bit(b.start);
        occupied_[0].set(a.start);
        for (int step = 0, rest = budget; rest >= 0; ++step, rest -= weight) {
            if (arrives(step, rest)) return true;
            if (rest < weight) break;
            begin_layer(step + 1, squares);
            effort.step(1 + squares * W / 64);
            const int after = rest - weight;
            const Board<W> targets = a.to_goal.ball(after);
            occupied_[step].for_each([&](int x) {
                ++effort.nodes;
                effort.step(4 + W / 2);
                expand(step, x, targets, after, objective);
            });
            if (!occupied_[step + 1].any()) break;
        }
        return false;
    }

    // The two paths of the solution that `within` found.
    void paths(Path& a, Path& b) {
        a.assign(step_ + 1, 0);
        b.assign(step_ + 1, 0);
        int x = x_, y = y_;
        for (int step = step_; step > 0; --step) {
            a[step] = static_cast<std::int16_t>(x);
            b[step] = static_cast<std::int16_t>(y);
            step_back(step, x, y);
        }
        a[0] = static_cast<std::int16_t>(x);
        b[0] = static_cast<std::int16_t>(y);
        finish(a, a_->goal, around_b_);
        finish(b, b_->goal, around_a_);
    }

private:
    static Board<W> closed(const Grid<W>& grid, int square) {
        Board<W> open = grid.free;
        open.clear(square);
        return open;
    }
    Board<W>* layer(int step) { return &layers_[static_cast<std::size_t>(step) * grid_->squares()]; }
    void begin_layer(int step, int squares) {
        const std::size_t end = static_cast<std::size_t>(step + 1) * squares;
        if (layers_.size() < end) layers_.resize(end);
        if (static_cast<int>(occupied_.size()) <= step) occupied_.resize(step + 1);
        std::fill_n(layers_.begin() + (end - squares), squares, Board<W>{});
        occupied_[step] = {};
    }
    // Whether one agent can stay on its goal from here on, and the other still finish.
    bool arrives(int step, int rest) {
        const Board<W>* reached = layer(step);
        if (occupied_[step].test(a_->goal)) {
            const Board<W> good = reached[a_->goal] & around_a_.ball(rest);
            if (good.any()) return found(step, a_->goal, good.lowest());
        }
        const Board<W> candidates = occupied_[step] & around_b_.ball(rest);
        bool success = false;
        candidates.for_each([&](int x) {
            if (!success && reached[x].test(b_->goal)) {
                success = found(step, x, b_->goal);
            }
        });
        return success;
    }
    bool found(int step, int x, int y) {
        step_ = step, x_ = x, y_ = y;
        return true;
    }
    void expand(int step, int x, const Board<W>& targets, int after, Objective objective) {
        const Board<W>& from = layer(step)[x];
        Board<W>* next = layer(step + 1);
        Board<W> base = grid_->neighbours(from);
        Board<W> moves = grid_->neighbours(x);
        if (waits_) {
            base |= from;
            moves.set(x);
        }
        moves &= targets;
        moves.for_each([&](int to) {
            const int limit = objective == Objective::makespan ? after : after - a_->to_goal.distance(to);
            Board<W> others = base & b_->to_goal.ball(limit);
            others.clear(to);
            if (to != x && from.test(to) && others.test(x)) {  // b must not come to x out of `to`
                Board<W> sources = grid_->neighbours(x) & from;
                sources.clear(to);
                if (!sources.any()) others.clear(x);
            }
            if (!others.any()) return;
            next[to] |= others;
            occupied_[step + 1].set(to);
        });
    }
    void step_back(int step, int& x, int& y) {
        const Board<W>* before = layer(step - 1);
        Board<W> from_x = grid_->neighbours(x), from_y = grid_->neighbours(y);
        if (waits_) from_x.set(x), from_y.set(y);
        from_x &= occupied_[step - 1];
        int best_x = -1, best_y = -1;
        from_x.for_each([&](int px) {
            Board<W> sources = before[px] & from_y;
            if (px == y) sources.clear(x);
            if (best_x < 0 && sources.any()) best_x = px, best_y = sources.lowest();
        });
        x = best_x, y = best_y;
    }
    static void finish(Path& path, int goal, Balls<W>& balls) {
        while (path.back() != goal) {
            const int here = path.back(), radius = balls.distance(here);
            const Board<W> closer = balls.grid().neighbours(here) & balls.ball(radius - 1);
            path.push_back(static_cast<std::int16_t>(closer.lowest()));
        }
        while (path.size() > 1 && path[path.size() - 2] == goal) path.pop_back();
    }

    const Grid<W>* grid_ = nullptr;
    Agent<W>*a_ = nullptr, *b_ = nullptr;
    bool waits_ = true;
    Balls<W> around_a_, around_b_;  // distances to b's goal around a's, and to a's around b's
    std::vector<Board<W>> layers_, occupied_;
    int step_ = 0, x_ = 0, y_ = 0;
};

}  // namespace t2t
