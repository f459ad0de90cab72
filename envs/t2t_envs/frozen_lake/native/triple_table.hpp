// The exact sum of costs of finishing three agents from every triple of squares, for searches that pairs guide too little.
#pragma once
#include <vector>

#include "pair_table.hpp"

namespace t2t {

template <int W>
class TripleTableBuilder {
public:
    // Fills table[(x * side + y) * side + z], side = cells + 1, as PairTableBuilder::build does for two agents.
    bool build(const Grid<W>& grid, const std::array<const Agent<W>*, 3>& agents, const std::array<Board<W>, 3>& domains,
               const SquareIndex& index, Movement movement, int limit, std::vector<std::uint16_t>& table) {
        grid_ = &grid, index_ = &index, table_ = &table, agents_ = agents, domains_ = domains, waits_ = movement.waits;
        side_ = static_cast<std::size_t>(index.cells()) + 1;
        table.assign(side_ * side_ * side_, no_finish);
        known_.assign(side_ * side_, Board<W>{});
        for (auto& level : seeds_) level.clear();
        for (auto& level : fresh_) level.assign(side_ * side_, Board<W>{});
        for (auto& level : touched_) level.clear();
        bool whole = true;
        for (int gone = 0; gone < 3; ++gone) whole &= add_pairs(gone, movement, limit);
        for (int level = 0, idle = 0; level < static_cast<int>(seeds_.size()) || idle < ring; ++level) {
            if (level + 3 > limit) return false;
            if (level < static_cast<int>(seeds_.size())) {
                for (const Seed& seed : seeds_[level]) put(level, seed.x, seed.y, Board<W>::bit(seed.z));
            }
            auto& touched = touched_[level % ring];
            idle = touched.empty() ? idle + 1 : 0;
            for (const auto& [x, y] : touched) look_back(level, x, y);
            touched.clear();
        }
        return whole;
    }

private:
    static constexpr int ring = 4;  // levels kept at once; a step costs three
    struct Seed {
        std::int16_t x, y, z;
    };

    std::uint16_t& entry(std::array<int, 3> cell) { return (*table_)[(cell[0] * side_ + cell[1]) * side_ + cell[2]]; }

    // With one agent on its goal for good the other two are a pair on a grid without that square.
    bool add_pairs(int gone, Movement movement, int limit) {
        const int first = gone == 0 ? 1 : 0, second = gone == 2 ? 1 : 2;
        Board<W> a = domains_[first], b = domains_[second];
        a.clear(agents_[gone]->goal);
        b.clear(agents_[gone]->goal);
        const bool whole = pairs_.build(*grid_, *agents_[first], *agents_[second], a, b, *index_, movement, limit, pair_);
        const int done = index_->done(), goal_first = index_->of_square[agents_[first]->goal],
                  goal_second = index_->of_square[agents_[second]->goal];
        std::array<int, 3> cell{};
        for (int p = 0; p <= done; ++p) {
            for (int q = 0; q <= done; ++q) {
                int cost = pair_[p * side_ + q];
                if (cost >= no_finish) continue;
                cell[gone] = done, cell[first] = p, cell[second] = q;
                entry(cell) = static_cast<std::uint16_t>(cost);
                // Where everybody stands in this state; an earlier step may lead here.
                cell[gone] = index_->of_square[agents_[gone]->goal];
                if (p == done) cell[first] = goal_first;
                if (q == done) cell[second] = goal_second;
                if (cost >= static_cast<int>(seeds_.size())) seeds_.resize(cost + 1);
                seeds_[cost].push_back({static_cast<std::int16_t>(cell[0]), static_cast<std::int16_t>(cell[1]),
                                        index_->square[cell[2]]});
            }
        }
        return whole;
    }
    // States with the first two agents on cells x and y and the third on one of zs, to look back from at this level.
    void put(int level, int x, int y, const Board<W>& zs) {
        Board<W>& fresh = fresh_[level % ring][x * side_ + y];
        if (!fresh.any()) touched_[level % ring].push_back({static_cast<std::int16_t>(x), static_cast<std::int16_t>(y)});
        fresh |= zs;
    }
    void look_back(int level, int cell_x, int cell_y) {
        Board<W>& fresh = fresh_[level % ring][cell_x * side_ + cell_y];
        const Board<W> zs = fresh;
        fresh = {};
        const int to_x = index_->square[cell_x], to_y = index_->square[cell_y];
        Board<W> base = grid_->neighbours(zs);
        Board<W> from_x = grid_->neighbours(to_x), from_y = grid_->neighbours(to_y);
        if (waits_) {
            base |= zs;
            from_x.set(to_x);
            from_y.set(to_y);
        }
        base &= domains_[2];
        from_x &= domains_[0];
        from_y &= domains_[1];
        from_x.for_each([&](int x) {
            const std::size_t row = index_->of_square[x] * side_;
            from_y.for_each([&](int y) {
                Board<W>& known = known_[row + index_->of_square[y]];
                Board<W> before = base.without(known);
                if (!before.any() || x == y || (x == to_y && y == to_x)) return;
                before.clear(x);
                before.clear(y);
                forbid_swap(before, zs, x, to_x);
                forbid_swap(before, zs, y, to_y);
                if (!before.any()) return;
                known |= before;
                std::uint16_t* costs = table_->data() + (row + index_->of_square[y]) * side_;
                before.for_each([&](int z) { costs[index_->of_square[z]] = static_cast<std::uint16_t>(level + 3); });
                put(level + 3, index_->of_square[x], index_->of_square[y], before);
            });
        });
    }
    // The third agent must not go out of `to` onto `from` while another one goes from `from` to `to`.
    void forbid_swap(Board<W>& before, const Board<W>& zs, int from, int to) const {
        if (from == to || !zs.test(from) || !before.test(to)) return;
        Board<W> targets = grid_->neighbours(to) & zs;
        targets.clear(from);
        if (!targets.any()) before.clear(to);
    }

    const Grid<W>* grid_ = nullptr;
    const SquareIndex* index_ = nullptr;
    std::vector<std::uint16_t>* table_ = nullptr;
    std::array<const Agent<W>*, 3> agents_{};
    std::array<Board<W>, 3> domains_{};
    bool waits_ = true;
    std::size_t side_ = 0;
    PairTableBuilder<W> pairs_;
    std::vector<std::uint16_t> pair_;
    std::vector<Board<W>> known_;
    std::vector<std::vector<Seed>> seeds_;  // per level
    std::array<std::vector<Board<W>>, ring> fresh_;
    std::array<std::vector<std::array<std::int16_t, 2>>, ring> touched_;
};

}  // namespace t2t
