// The joint moves from one state of a search. Before any joint move is made, a set of bits says for every two options of two agents
// whether they exclude each other.
//
// For the sum of costs, the moves of a block (see Split) are listed with the table of its agents, and then moves of different blocks
// that do not collide are combined. The table also says how much a block's move adds to the bound, so only moves within the limit
// are made. For the makespan, options of two agents also exclude each other if the two would then need too long together.
#pragma once
#include <algorithm>
#include <vector>

#include "solver/joint_bounds.hpp"

namespace t2t {

template <typename Key>
class JointMoves {
public:
    // A set of options must fit into the bits of a key.
    static constexpr int max_agents = static_cast<int>(8 * sizeof(Key)) / 6;
    static_assert(max_agents >= max_team || sizeof(Key) == 8);

    // Calls child(key of the next state) for every joint move from `now` whose bound, including `cost` so far, is at most `limit`,
    // as long as `child` returns true. Returns a lower bound, above the limit, of all other moves, or `never` if there are none.
    template <typename Child>
    int within_sum(const JointProblem& problem, const JointBounds& bounds, const int* now, int bits, int cost, int limit,
                   Effort& effort, Child child) {
        effort_ = &effort;
        const Split split = bounds.split(now);
        base_ = cost + split.total, room_ = limit - base_;
        if (room_ < 0) return base_;
        list_all_options(problem, bounds, now, bits, no_finish - 1);
        if (list_blocks(split)) join(0, 0, 0, 0, child);
        return next_;
    }
    // The same for the makespan, using only distances and pairs: child(key, the sum of the steps that all agents still need alone).
    template <typename Child>
    int within_makespan(const JointProblem& problem, const JointBounds& bounds, const int* now, int bits, int cost, int limit,
                        Effort& effort, Child child) {
        effort_ = &effort;
        base_ = cost + 1, room_ = limit - base_;
        if (room_ < 0) return base_;
        list_all_options(problem, bounds, now, bits, room_);
        for (int j = 1; j < problem.agents; ++j) {
            for (int i = 0; i < j; ++i) note_slow_pairs(i, j);
        }
        combine(0, 0, 0, 0, child);
        return next_;
    }

private:
    // The options of one agent: to wait, to go four ways, and to arrive on the goal for good. Each is a bit in a set of options.
    static constexpr int most_options = 6;
    using Options = Key;

    struct Option {
        int state, place, step;  // the cell, or `cells` for arrived; the cell where the agent then is; the cost
        Options meets;           // options of other agents that exclude this one
    };
    struct Move {  // a joint move of a block
        Key key;
        Options options, meets;
    };
    struct Block {
        std::vector<std::vector<Move>> moves;  // by how much they add to the bound, up to room_
        int least, least_after;                // the least that any of its moves adds, and that the later blocks add together
    };
    struct Prefix {  // a move of the first agents of a block
        std::size_t entry;
        int steps;
        Move move;
    };

    // Lists every agent's options after which it needs at most `most` steps alone.
    void list_all_options(const JointProblem& problem, const JointBounds& bounds, const int* now, int bits, int most) {
        problem_ = &problem, bounds_ = &bounds, now_ = now, bits_ = bits, next_ = never;
        to_.resize(problem.cells), on_.resize(problem.cells);
        for (int i = 0; i < problem.agents; ++i) list_options(i, most);
        for (int i = 0; i < problem.agents; ++i) note_meetings(i);
        for (int i = 0; i < problem.agents; ++i) forget_options(i);
    }
    void list_options(int i, int most) {
        const int cells = problem_->cells, from = now_[i], goal = problem_->goals[i];
        place_[i] = from == cells ? goal : from;
        count_[i] = 0;
        on_[place_[i]] = i + 1;
        const auto& distance = problem_->distance[i];
        const bool commits = problem_->movement.commits();
        auto add = [&](int state, int place, int step) {
            if (distance[state] > most) return beyond(distance[state]);
            to_[place] |= bit(i, count_[i]);
            options_[i][count_[i]++] = {state, place, step, 0};
        };
        if (from == cells) return add(cells, goal, 0);
        if (problem_->movement.waits) add(from, from, 1);
        for (const int to : problem_->neighbours[from]) {
            if (to < 0) break;
            add(to, to, 1);
            if (commits && to == goal) add(cells, to, 1);
        }
    }
    static Options bit(int agent, int option) { return Options{1} << (agent * most_options + option); }
    static Options all_of(int agent) { return Options{(1u << most_options) - 1} << (agent * most_options); }
    // Two options exclude each other if they end on the same cell or swap cells.
    void note_meetings(int i) {
        for (int o = 0; o < count_[i]; ++o) {
            Option& option = options_[i][o];
            option.meets = to_[option.place] & ~all_of(i);
            const int other = on_[option.place] - 1;
            if (other >= 0 && other != i) option.meets |= to_[place_[i]] & all_of(other);
        }
    }
    void forget_options(int i) {
        on_[place_[i]] = 0;
        for (int o = 0; o < count_[i]; ++o) to_[options_[i][o].place] = 0;
    }

    void note_slow_pairs(int i, int j) {
        for (int a = 0; a < count_[i]; ++a) {
            for (int b = 0; b < count_[j]; ++b) {
                Option &one = options_[i][a], &other = options_[j][b];
                const int need = bounds_->pair_cost(i, one.state, j, other.state);
                if (need <= room_ || one.meets & bit(j, b)) continue;
                beyond(need);
                one.meets |= bit(j, b);
                other.meets |= bit(i, a);
            }
        }
    }
    // Notes a move that adds too much.
    void beyond(int added) {
        if (added < no_finish) next_ = std::min(next_, base_ + added);
    }

    template <typename Child>
    bool combine(int i, Key key, Options meets, int rest, Child& child) {
        if (i == problem_->agents) return child(key, rest);
        effort_->step();
        for (int o = 0; o < count_[i]; ++o) {
            if (meets & bit(i, o)) continue;
            const Option& option = options_[i][o];
            const Key longer = key | static_cast<Key>(option.state) << (i * bits_);
            if (!combine(i + 1, longer, meets | option.meets, rest + problem_->distance[i][option.state], child)) return false;
        }
        return true;
    }

    // Returns false if some block has no move within the limit.
    bool list_blocks(const Split& split) {
        blocks_used_ = 0;
        for (int at = 0; at < problem_->agents; at += split.size[at]) {
            if (blocks_used_ == blocks_.size()) blocks_.emplace_back();
            Block& block = blocks_[blocks_used_++];
            if (static_cast<int>(block.moves.size()) <= room_) block.moves.resize(room_ + 1);
            for (int added = 0; added <= room_; ++added) block.moves[added].clear();
            members_ = split.order + at, size_ = split.size[at], before_ = split.cost[at];
            for (int n = 0; n < size_; ++n) {
                tables_[n] = bounds_->table_of(members_, n + 1);
                rest_[n] = bounds_->cost_of(members_ + n + 1, size_ - n - 1, now_);
            }
            int moves = 1;
            for (int n = 0; n < size_; ++n) moves *= count_[members_[n]];
            effort_->step(10 + moves / 2);
            list_moves<0>(block, {0, 0, {0, 0, 0}});
            block.least = 0;
            while (block.least <= room_ && block.moves[block.least].empty()) ++block.least;
            if (block.least > room_) return false;
        }
        int after = 0;
        for (std::size_t b = blocks_used_; b-- > 0;) {
            blocks_[b].least_after = after;
            after += blocks_[b].least;
        }
        return true;
    }
    // Extends a move of the members before place n by the options of the member at place n.
    template <int n>
    void list_moves(Block& block, const Prefix& prefix) {
        const int agent = members_[n];
        for (int o = 0; o < count_[agent]; ++o) {
            if (prefix.move.meets & bit(agent, o)) continue;
            const Option& option = options_[agent][o];
            const std::size_t entry = prefix.entry * (problem_->cells + 1) + option.state;
            const int need = tables_[n][entry], steps = prefix.steps + option.step;
            if (need >= no_finish) continue;
            const int added = std::max(0, steps + need + rest_[n] - before_);
            if (added > room_) {
                beyond(added);
                continue;
            }
            const Move move{prefix.move.key | static_cast<Key>(option.state) << (agent * bits_),
                            prefix.move.options | bit(agent, o), prefix.move.meets | option.meets};
            if (n + 1 == size_) {
                block.moves[added].push_back(move);
            } else if constexpr (n + 1 < 4) {  // a block has at most four
                list_moves<n + 1>(block, {entry, steps, move});
            }
        }
    }

    template <typename Child>
    bool join(std::size_t b, Key key, Options meets, int added, Child& child) {
        const Block& block = blocks_[b];
        const bool last = b + 1 == blocks_used_;
        if (!last) effort_->step(8);
        const int left = room_ - added - block.least_after;
        for (int more = block.least; more <= room_; ++more) {
            if (more > left) {
                if (block.moves[more].empty()) continue;
                beyond(added + more + block.least_after);
                return true;
            }
            for (const Move& move : block.moves[more]) {
                if (meets & move.options) continue;
                const Key longer = key | move.key;
                if (!(last ? child(longer) : join(b + 1, longer, meets | move.meets, added + more, child))) return false;
            }
        }
        return true;
    }

    const JointProblem* problem_ = nullptr;
    const JointBounds* bounds_ = nullptr;
    Effort* effort_ = nullptr;
    const int* now_ = nullptr;
    int bits_ = 0, base_ = 0, room_ = 0, next_ = 0;
    Option options_[max_team][most_options];
    int count_[max_team], place_[max_team];
    std::vector<Options> to_;  // per cell, the options that end there
    std::vector<int> on_;      // per cell, the agent on it, counted from 1
    std::vector<Block> blocks_;
    std::size_t blocks_used_ = 0;
    // The current block: its agents, its bound before any move, and, by the number of agents that have moved, the table of these
    // agents and the bound of the others.
    const int* members_ = nullptr;
    int size_ = 0, before_ = 0, rest_[4];
    const std::uint16_t* tables_[4];
};

}  // namespace t2t
