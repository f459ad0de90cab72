// What is known about each agent alone: its distances, as balls around its goal.
#pragma once
#include <algorithm>
#include <vector>

#include "solver/bitboard.hpp"

namespace t2t {

constexpr int unreachable = 0x3fff;

// ball(r) is the set of squares from which the goal is at most r steps away. Some squares may be closed.
template <int W>
class Balls {
public:
    void reset(const Grid<W>& grid, int goal, const Board<W>& open) {
        grid_ = &grid;
        open_ = open;
        balls_.clear();
        balls_.push_back(Board<W>::bit(goal));
        complete_ = false;
    }
    const Board<W>& ball(int radius) {
        while (radius >= static_cast<int>(balls_.size()) && !complete_) grow();
        return balls_[std::min<std::size_t>(radius, balls_.size() - 1)];
    }
    // The distance of a square. The search goes outwards from `from`, which must be a lower bound.
    int distance(int square, int from = 0) {
        for (int radius = from;; ++radius) {
            if (ball(radius).test(square)) return radius;
            if (complete_ && radius >= static_cast<int>(balls_.size())) return unreachable;
        }
    }
    // The squares at exactly this distance.
    Board<W> ring(int radius) { return radius == 0 ? ball(0) : ball(radius).without(ball(radius - 1)); }
    // Whether this ball holds every square from which the goal can be reached.
    bool complete(int radius) { return ball(radius) == ball(radius + 1); }
    const Grid<W>& grid() const { return *grid_; }

private:
    void grow() {
        const Board<W> larger = balls_.back() | (grid_->neighbours(balls_.back()) & open_);
        complete_ = larger == balls_.back();
        if (!complete_) balls_.push_back(larger);
    }
    const Grid<W>* grid_ = nullptr;
    Board<W> open_;
    std::vector<Board<W>> balls_;
    bool complete_ = false;
};

template <int W>
struct Agent {
    int start = 0, goal = 0, distance = 0;
    Balls<W> to_goal;
};

}  // namespace t2t
