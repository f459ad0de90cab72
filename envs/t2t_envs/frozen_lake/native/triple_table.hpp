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
        for (auto& level : fresh_) level.clear();
        bool whole = true;
        for (int gone = 0; gone < 3; ++gone) whole &= add_pairs(gone, movement, limit);
        for (std::size_t level = 0; level < fresh_.size(); ++level) {
            if (static_cast<int>(level) + 3 > limit) return false;
            merge_fresh(static_cast<int>(level));
        }
        return whole;
    }

private:
    struct States {  // one agent each on x and y, the third on any of zs
        std::int16_t x, y;
        Board<W> zs;
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
                Board<W> z = Board<W>::bit(index_->square[cell[2]]);
                put(cost, index_->square[cell[0]], index_->square[cell[1]], z);
            }
        }
        return whole;
    }
    void put(int level, int x, int y, const Board<W>& zs) {
        if (level >= static_cast<int>(fresh_.size())) fresh_.resize(level + 1);
        fresh_[level].push_back({static_cast<std::int16_t>(x), static_cast<std::int16_t>(y), zs});
    }
    void merge_fresh(int level) {
        // Several entries of one (x, y) are looked back from at once.
        auto& states = fresh_[level];
        std::sort(states.begin(), states.end(),
                  [](const States& a, const States& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
        for (std::size_t i = 0; i < fresh_[level].size();) {
            States merged = fresh_[level][i];
            for (++i; i < fresh_[level].size() && fresh_[level][i].x == merged.x && fresh_[level][i].y == merged.y; ++i) {
                merged.zs |= fresh_[level][i].zs;
            }
            look_back(level + 3, merged);
        }
        fresh_[level].clear();
    }
    void look_back(int level, const States& to) {
        Board<W> base = grid_->neighbours(to.zs);
        Board<W> from_x = grid_->neighbours(to.x), from_y = grid_->neighbours(to.y);
        if (waits_) {
            base |= to.zs;
            from_x.set(to.x);
            from_y.set(to.y);
        }
        base &= domains_[2];
        from_x &= domains_[0];
        from_y &= domains_[1];
        from_x.for_each([&](int x) {
            from_y.for_each([&](int y) {
                if (x == y || (x == to.y && y == to.x)) return;
                Board<W>& known = known_[index_->of_square[x] * side_ + index_->of_square[y]];
                Board<W> before = base.without(known);
                before.clear(x);
                before.clear(y);
                forbid_swap(before, to.zs, x, to.x);
                forbid_swap(before, to.zs, y, to.y);
                if (!before.any()) return;
                known |= before;
                std::uint16_t* row = &entry({index_->of_square[x], index_->of_square[y], 0});
                before.for_each([&](int z) { row[index_->of_square[z]] = static_cast<std::uint16_t>(level); });
                put(level, x, y, before);
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
    std::vector<std::vector<States>> fresh_;
};

}  // namespace t2t
