// The exact cost for three or four agents to finish from every joint state, for joint searches in which pairs guide too weakly.
#pragma once
#include <type_traits>
#include <vector>

#include "solver/pair_table.hpp"

namespace t2t {

// Tables of D agents are built from those of D - 1 agents on the grid without the square of the agent that has arrived.
template <int W, int D>
class TeamTableBuilder {
public:
    using Members = std::array<Member<W>, D>;
    using Smaller = std::conditional_t<D == 3, PairTableBuilder<W>, TeamTableBuilder<W, D - 1>>;

    // Fills table[((x0 * side + x1) * side + ...) + x(D-1)], side = cells + 1, as PairTableBuilder::build does for two.
    bool build(const Grid<W>& grid, const Members& members, const SquareIndex& index, Movement movement, int limit,
               std::vector<std::uint16_t>& table, Effort& effort) {
        grid_ = &grid, index_ = &index, table_ = &table, members_ = members, movement_ = movement, limit_ = limit;
        effort_ = &effort;
        weight_ = movement.objective == Objective::makespan ? 1 : D;
        side_ = static_cast<std::size_t>(index.cells()) + 1;
        std::size_t rows = 1;
        for (int d = 1; d < D; ++d) rows *= side_;
        table.assign(rows * side_, no_finish);
        effort.step(static_cast<std::int64_t>(rows * side_ / 64));
        known_.assign(rows, Board<W>{});
        for (auto& level : seeds_) level.clear();
        for (auto& level : fresh_) level.assign(rows, Board<W>{});
        for (auto& level : touched_) level.clear();
        bool whole = true;
        if (movement.commits()) {
            for (int gone = 0; gone < D; ++gone) whole &= add_smaller(gone);
        } else {
            add_goals();
        }
        for (int level = 0, idle = 0; level < static_cast<int>(seeds_.size()) || idle < ring; ++level) {
            if (level + weight_ > limit) return false;
            if (level < static_cast<int>(seeds_.size())) {
                for (const Seed& seed : seeds_[level]) put(level, seed.row, Board<W>::bit(seed.square));
            }
            auto& touched = touched_[level % ring];
            idle = touched.empty() ? idle + 1 : 0;
            for (const std::uint32_t row : touched) look_back(level, row);
            touched.clear();
        }
        return whole;
    }

private:
    static constexpr int ring = D + 1;  // levels kept at the same time; a step costs at most D
    // A state: all agents but the last are on the cells of the row, and the last is on this square.
    struct Seed {
        std::uint32_t row;
        std::int16_t square;
    };

    // If one agent is on its goal for good, the others are a smaller team on a grid without that square.
    bool add_smaller(int gone) {
        const Agent<W>& arrived = *members_[gone].agent;
        std::array<Member<W>, D - 1> left;
        for (int d = 0, n = 0; d < D; ++d) {
            if (d == gone) continue;
            left[n] = members_[d];
            left[n++].domain.clear(arrived.goal);
        }
        const int limit = limit_ - (weight_ == 1 ? 0 : arrived.distance);
        bool whole;
        if constexpr (D == 3) {
            whole = smaller_.build(*grid_, left[0], left[1], *index_, movement_, limit, part_, *effort_);
        } else {
            whole = smaller_.build(*grid_, left, *index_, movement_, limit, part_, *effort_);
        }
        std::array<int, D> cell{};
        effort_->step(static_cast<std::int64_t>(part_.size()));
        for (std::size_t entry = 0; entry < part_.size(); ++entry) {
            if (part_[entry] >= no_finish) continue;
            std::size_t rest = entry;
            for (int d = D - 1; d >= 0; --d) {
                if (d == gone) continue;
                cell[d] = static_cast<int>(rest % side_);
                rest /= side_;
            }
            add_entry(gone, cell, part_[entry]);
        }
        return whole;
    }
    void add_entry(int gone, std::array<int, D> cell, std::uint16_t cost) {
        const int done = index_->done();
        cell[gone] = done;
        (*table_)[row_of(cell) * side_ + cell[D - 1]] = cost;
        // The cells of all agents in this state; an earlier step may lead here.
        for (int d = 0; d < D; ++d) {
            if (cell[d] == done) cell[d] = index_->of_square[members_[d].agent->goal];
        }
        if (cost >= seeds_.size()) seeds_.resize(cost + 1);
        seeds_[cost].push_back({static_cast<std::uint32_t>(row_of(cell)), index_->square[cell[D - 1]]});
    }
    // Adds the state with all agents on their goals at once.
    void add_goals() {
        std::array<int, D> cell;
        for (int d = 0; d < D; ++d) cell[d] = index_->of_square[members_[d].agent->goal];
        const std::size_t row = row_of(cell);
        (*table_)[row * side_ + cell[D - 1]] = 0;
        known_[row].set(members_[D - 1].agent->goal);
        put(0, row, known_[row]);
    }
    std::size_t row_of(const std::array<int, D>& cell) const {
        std::size_t row = 0;
        for (int d = 0; d + 1 < D; ++d) row = row * side_ + cell[d];
        return row;
    }
    // Adds states of this level, from which to look one step back.
    void put(int level, std::size_t row, const Board<W>& squares) {
        Board<W>& fresh = fresh_[level % ring][row];
        if (!fresh.any()) touched_[level % ring].push_back(static_cast<std::uint32_t>(row));
        fresh |= squares;
    }
    // Finds the states from which one joint step leads to this row, with the last agent on one of the fresh squares.
    void look_back(int level, std::uint32_t row) {
        effort_->step(D == 3 ? 10 : 40);
        Board<W>& fresh = fresh_[level % ring][row];
        last_ = fresh;
        fresh = {};
        level_ = level + weight_;
        // All agents must have been able to get here from their starts within the limit.
        const int steps = (limit_ - level_) / weight_;
        std::size_t rest = row;
        for (int d = D - 2; d >= 0; --d) {
            to_[d] = index_->square[rest % side_];
            rest /= side_;
            sources_[d] = grid_->neighbours(to_[d]);
            if (movement_.waits) sources_[d].set(to_[d]);
            sources_[d] &= members_[d].domain & members_[d].from_start->ball(steps);
        }
        base_ = grid_->neighbours(last_);
        if (movement_.waits) base_ |= last_;
        base_ &= members_[D - 1].domain & members_[D - 1].from_start->ball(steps);
        if (base_.any()) choose<0>(0);
    }
    template <int d>
    void choose(std::size_t row) {
        sources_[d].for_each([&](int square) {
            for (int e = 0; e < d; ++e) {
                if (from_[e] == square || (from_[e] == to_[d] && square == to_[e])) return;
            }
            from_[d] = square;
            const std::size_t longer = row * side_ + index_->of_square[square];
            if constexpr (d + 2 < D) {
                choose<d + 1>(longer);
            } else {
                learn(longer);
            }
        });
    }
    void learn(std::size_t row) {
        Board<W>& known = known_[row];
        Board<W> before = base_.without(known);
        if (!before.any()) return;
        for (int d = 0; d + 1 < D; ++d) {
            before.clear(from_[d]);
            forbid_swap(before, from_[d], to_[d]);
        }
        if (!before.any()) return;
        known |= before;
        std::uint16_t* costs = table_->data() + row * side_;
        before.for_each([&](int square) { costs[index_->of_square[square]] = static_cast<std::uint16_t>(level_); });
        put(level_, row, before);
    }
    // The last agent must not go from `to` to `from` while another one goes from `from` to `to`.
    void forbid_swap(Board<W>& before, int from, int to) const {
        if (from == to || !last_.test(from) || !before.test(to)) return;
        Board<W> targets = grid_->neighbours(to) & last_;
        targets.clear(from);
        if (!targets.any()) before.clear(to);
    }

    const Grid<W>* grid_ = nullptr;
    const SquareIndex* index_ = nullptr;
    Effort* effort_ = nullptr;
    std::vector<std::uint16_t>* table_ = nullptr;
    Members members_{};
    Movement movement_;
    int limit_ = 0, weight_ = D;
    std::size_t side_ = 0;
    Smaller smaller_;
    std::vector<std::uint16_t> part_;
    std::vector<Board<W>> known_;
    std::vector<std::vector<Seed>> seeds_;  // per level
    std::array<std::vector<Board<W>>, ring> fresh_;
    std::array<std::vector<std::uint32_t>, ring> touched_;
    // For the row that `look_back` handles: the last agent's squares there and one step before, and for the other agents their
    // squares one step before, their squares there and the square chosen for each.
    Board<W> last_, base_;
    std::array<Board<W>, D - 1> sources_;
    std::array<int, D - 1> to_{}, from_{};
    int level_ = 0;
};

}  // namespace t2t
