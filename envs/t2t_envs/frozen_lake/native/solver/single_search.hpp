// Plans one agent around the fixed paths of others, for all squares at once.
#pragma once
#include <algorithm>
#include <vector>

#include "solver/agents.hpp"
#include "solver/effort.hpp"

namespace t2t {

// The squares from the start to the final arrival. The agent stays on the last one.
using Path = std::vector<std::int16_t>;

inline int square_at(const Path& path, int step) {
    return path[std::min<std::size_t>(step, path.size() - 1)];
}

template <int W>
class SingleSearch {
public:
    // Plans a path of the agent that arrives for good at `arrival` and meets none of `others`. Without `waits` the agent moves at
    // every step; with `waits` it may arrive earlier than `arrival`.
    bool plan(const Grid<W>& grid, Agent<W>& agent, int arrival, bool waits, const std::vector<const Path*>& others,
              Path& path, Effort& effort) {
        if (arrival <= last_visit(agent.goal, others)) return false;
        effort.step(arrival * (1 + (W + static_cast<int>(others.size())) / 4));
        reached_.resize(arrival + 1);
        reached_[0] = Board<W>::bit(agent.start) & agent.to_goal.ball(arrival);
        for (int step = 0; step < arrival; ++step) {
            const Board<W>& here = reached_[step];
            Board<W> next = grid.neighbours(here);
            if (waits) next |= here;
            next &= agent.to_goal.ball(arrival - step - 1);
            for (const Path* other : others) {
                const int from = square_at(*other, step), to = square_at(*other, step + 1);
                next.clear(to);
                // The other agent moves from `from` to `to`, so this agent must not move from `to` to `from`.
                if (from != to && here.test(to) && next.test(from)) {
                    Board<W> sources = grid.neighbours(from) & here;
                    sources.clear(to);
                    if (!sources.any()) next.clear(from);
                }
            }
            if (!next.any()) return false;
            reached_[step + 1] = next;
        }
        walk_back(grid, agent, arrival, waits, others, path);
        return true;
    }

    // The last step at which one of the paths is on the square, or -1 if none ever is.
    static int last_visit(int square, const std::vector<const Path*>& others) {
        int last = -1;
        for (const Path* other : others) {
            for (int step = static_cast<int>(other->size()) - 1; step > last; --step) {
                if ((*other)[step] == square) last = step;
            }
        }
        return last;
    }

private:
    void walk_back(const Grid<W>& grid, const Agent<W>& agent, int arrival, bool waits,
                   const std::vector<const Path*>& others, Path& path) {
        path.resize(arrival + 1);
        int square = agent.goal;
        for (int step = arrival; step > 0; --step) {
            path[step] = static_cast<std::int16_t>(square);
            Board<W> sources = grid.neighbours(square);
            if (waits) sources.set(square);
            sources &= reached_[step - 1];
            for (const Path* other : others) {
                if (square_at(*other, step - 1) == square) sources.clear(square_at(*other, step));
            }
            square = sources.lowest();
        }
        path[0] = static_cast<std::int16_t>(square);
        while (path.size() > 1 && path[path.size() - 2] == agent.goal) path.pop_back();
    }
    std::vector<Board<W>> reached_;
};

}  // namespace t2t
