// The exact cost for two agents to finish from every pair of squares. It is the lower bound that guides the joint search.
#pragma once
#include <vector>

#include "solver/agents.hpp"
#include "solver/effort.hpp"

namespace t2t {

constexpr std::uint16_t no_finish = 0x3fff;

// The open squares of a joint search, numbered without gaps. An agent that has arrived for good has the number `done()`.
struct SquareIndex {
    std::vector<std::int16_t> of_square, square;
    int cells() const { return static_cast<int>(square.size()); }
    int done() const { return cells(); }
};

// `commits`: an agent that steps on its goal may declare its arrival final; from then on it stays and costs nothing. Without commits
// (for the makespan with waits, because waiting on the goal costs no more) both agents just have to be on their goals at once.
struct Movement {
    Objective objective = Objective::makespan;
    bool waits = true;
    bool commits() const { return objective == Objective::sum_of_costs || !waits; }
    int pair_weight() const { return objective == Objective::makespan ? 1 : 2; }
};

// An agent as a table sees it: it stays in its domain and reaches no square earlier than `from_start` says.
template <int W>
struct Member {
    const Agent<W>* agent = nullptr;
    Board<W> domain;
    Balls<W>* from_start = nullptr;
};

template <int W>
class PairTableBuilder {
public:
    // Fills table[x * (cells + 1) + y]. Costs above `limit`, and states that are on no solution of at most `limit`, may be
    // no_finish. Returns true if the limit cut nothing off.
    bool build(const Grid<W>& grid, const Member<W>& first, const Member<W>& second, const SquareIndex& index,
               Movement movement, int limit, std::vector<std::uint16_t>& table, Effort& effort) {
        const Agent<W>&a = *first.agent, &b = *second.agent;
        grid_ = &grid, index_ = &index, movement_ = movement, table_ = &table, limit_ = limit;
        effort_ = &effort;
        first_ = first, second_ = second;
        side_ = index.cells() + 1;
        table.assign(static_cast<std::size_t>(side_) * side_, no_finish);
        effort.step(side_ * side_ / 64);
        squares_ = grid.squares();
        known_.assign(squares_, Board<W>{});
        fresh_.assign(static_cast<std::size_t>(squares_) * ring, Board<W>{});
        for (auto& rows : fresh_rows_) rows = {};
        if (movement.commits()) {
            add_single(a, b);
        } else {
            put(0, a.goal, Board<W>::bit(b.goal));
            learn(0, a.goal, Board<W>::bit(b.goal));
        }
        return sweep(a, b);
    }

private:
    static constexpr int ring = 4;  // levels kept at the same time, more than any pair weight

    Board<W>& fresh(int level, int x) { return fresh_[static_cast<std::size_t>(level % ring) * squares_ + x]; }
    // Adds states (x, ys) of this level, from which to look one step back.
    void put(int level, int x, const Board<W>& ys) {
        fresh(level, x) |= ys;
        fresh_rows_[level % ring].set(x);
    }
    void learn(int level, int x, const Board<W>& ys) {
        known_[x] |= ys;
        std::uint16_t* row = table_->data() + static_cast<std::size_t>(index_->of_square[x]) * side_;
        ys.for_each([&](int y) { row[index_->of_square[y]] = static_cast<std::uint16_t>(level); });
    }
    // Fills the entries where one agent has arrived for good: the other takes a shortest path around that agent's goal.
    void add_single(const Agent<W>& a, const Agent<W>& b) {
        Board<W> open_a = first_.domain, open_b = second_.domain;
        open_a.clear(b.goal);
        open_b.clear(a.goal);
        alone_a_.reset(*grid_, a.goal, open_a);
        alone_b_.reset(*grid_, b.goal, open_b);
        const int done = index_->done();
        std::uint16_t* table = table_->data();
        table[static_cast<std::size_t>(done) * side_ + done] = 0;
        for (int radius = 0;; ++radius) {
            alone_a_.ring(radius).for_each([&](int x) {
                table[static_cast<std::size_t>(index_->of_square[x]) * side_ + done] = static_cast<std::uint16_t>(radius);
            });
            alone_b_.ring(radius).for_each([&](int y) {
                table[static_cast<std::size_t>(done) * side_ + index_->of_square[y]] = static_cast<std::uint16_t>(radius);
            });
            if (alone_a_.complete(radius) && alone_b_.complete(radius)) {
                last_ring_ = radius;
                return;
            }
        }
    }
    bool sweep(const Agent<W>& a, const Agent<W>& b) {
        const int weight = movement_.pair_weight();
        int idle = 0;
        for (int level = 0; idle < ring || (movement_.commits() && level <= last_ring_); ++level) {
            if (level + weight > limit_) return false;
            if (movement_.commits() && level <= last_ring_) {
                const Board<W> ys = alone_b_.ring(level), xs = alone_a_.ring(level);
                if (ys.any()) put(level, a.goal, ys);
                xs.for_each([&](int x) { put(level, x, Board<W>::bit(b.goal)); });
            }
            Board<W>& rows = fresh_rows_[level % ring];
            idle = rows.any() ? 0 : idle + 1;
            rows.for_each([&](int x) { look_back(level, x, level + weight); });
            rows = {};
        }
        return true;
    }
    // Finds the states from which one joint step leads to (to, some y) of this level.
    void look_back(int level, int to, int earlier) {
        effort_->step(6 + W);
        const Board<W> ys = fresh(level, to);
        fresh(level, to) = {};
        Board<W> base = grid_->neighbours(ys);
        Board<W> sources = grid_->neighbours(to);
        if (movement_.waits) {
            base |= ys;
            sources.set(to);
        }
        // Both agents must have been able to get here from their starts within the limit.
        const int steps = (limit_ - earlier) / movement_.pair_weight();
        base &= second_.domain & second_.from_start->ball(steps);
        (sources & first_.domain & first_.from_start->ball(steps)).for_each([&](int x) {
            Board<W> before = base.without(known_[x]);
            before.clear(x);
            if (x != to && ys.test(x) && before.test(to)) {  // not by swapping, with b moving from `to` to x
                Board<W> targets = grid_->neighbours(to) & ys;
                targets.clear(x);
                if (!targets.any()) before.clear(to);
            }
            if (!before.any()) return;
            learn(earlier, x, before);
            put(earlier, x, before);
        });
    }

    const Grid<W>* grid_ = nullptr;
    const SquareIndex* index_ = nullptr;
    Movement movement_;
    std::vector<std::uint16_t>* table_ = nullptr;
    Effort* effort_ = nullptr;
    int side_ = 0, squares_ = 0, last_ring_ = 0, limit_ = 0;
    Member<W> first_, second_;
    Balls<W> alone_a_, alone_b_;
    std::vector<Board<W>> known_, fresh_;
    std::array<Board<W>, ring> fresh_rows_{};
};

}  // namespace t2t
