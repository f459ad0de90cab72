// Lower bounds of the remaining cost of a team, from the tables of a JointProblem.
#pragma once
#include <initializer_list>
#include <limits>

#include "solver/excess.hpp"
#include "solver/joint_search.hpp"

namespace t2t {

constexpr int never = std::numeric_limits<int>::max() / 2;

// The agents, split into blocks of at most four with known joint costs, so that the sum over the blocks is large.
struct Split {
    int order[max_team];                            // the agents, block after block
    int size[max_team], cost[max_team], total = 0;  // of the block that starts at this position; the cost of all blocks
};

// A state is an array of the agents' cells.
class JointBounds {
public:
    explicit JointBounds(const JointProblem& problem) : problem_(&problem), agents_(problem.agents) {}

    int pair_cost(int i, int x, int j, int y) const {  // i < j
        return problem_->pair[JointProblem::pair_number(i, j)][static_cast<std::size_t>(x) * (problem_->cells + 1) + y];
    }
    int triple_cost(int i, int x, int j, int y, int k, int z) const {  // i < j < k
        const std::size_t side = problem_->cells + 1;
        return problem_->triple[JointProblem::triple_number(i, j, k)][(x * side + y) * side + z];
    }
    // A lower bound of the cost of the whole team from this state, or `never` if it cannot finish.
    int whole_bound(const int* state) const {
        if (problem_->with_quads) return quad_bound(state);
        if (problem_->with_triples) return triple_bound(state);
        int sum = 0, largest = 0, excess[max_team * (max_team - 1) / 2];
        for (int j = 0; j < agents_; ++j) {
            const int own = problem_->distance[j][state[j]];
            sum += own;
            largest = std::max(largest, own);
            for (int i = 0; i < j; ++i) {
                const int both = pair_cost(i, state[i], j, state[j]);
                largest = std::max(largest, both);
                excess[JointProblem::pair_number(i, j)] =
                    std::max(0, both - own - static_cast<int>(problem_->distance[i][state[i]]));
            }
        }
        if (largest >= no_finish) return never;
        return makespan() ? largest : sum + excess_bound(excess, agents_);
    }
    // The table of one to four agents, in their order.
    const std::uint16_t* table_of(const int* agents, int count) const {
        const auto* a = agents;
        if (count == 1) return problem_->distance[a[0]].data();
        if (count == 2) return problem_->pair[JointProblem::pair_number(a[0], a[1])].data();
        if (count == 3) return problem_->triple[JointProblem::triple_number(a[0], a[1], a[2])].data();
        return problem_->quad[agents_ == 4 ? 0 : 10 - a[0] - a[1] - a[2] - a[3]].data();
    }
    // The remaining cost of zero to three agents.
    int cost_of(const int* agents, int count, const int* state) const {
        std::size_t entry = 0;
        for (int n = 0; n < count; ++n) entry = entry * (problem_->cells + 1) + state[agents[n]];
        return count == 0 ? 0 : table_of(agents, count)[entry];
    }
    Split split(const int* state) const {
        Split split;
        int at = 0;
        bool used[max_team] = {};
        if (problem_->with_quads) {
            add_four(split, at, used, state);
        } else if (problem_->with_triples) {
            add_three(split, at, used, state);
        }
        while (add_two(split, at, used, state)) continue;
        for (int i = 0; i < agents_; ++i) {
            if (!used[i]) add_block(split, at, {i}, problem_->distance[i][state[i]]);
        }
        return split;
    }

private:
    bool makespan() const { return problem_->movement.objective == Objective::makespan; }
    // For the makespan, the largest cost of a triple. For the sum of costs, the larger of two bounds: the best triple plus the other
    // agents, and the sum over all triples divided by the number of triples that each agent is in.
    int triple_bound(const int* state) const {
        int largest = 0, total = 0;
        for (int k = 2; k < agents_; ++k) {
            for (int j = 1; j < k; ++j) {
                for (int i = 0; i < j; ++i) {
                    const int cost = triple_cost(i, state[i], j, state[j], k, state[k]);
                    if (cost >= no_finish) return never;
                    total += cost;
                    largest = std::max(largest, makespan() ? cost : cost + rest_of(state, i, j, k));
                }
            }
        }
        if (makespan()) return largest;
        const int each = (agents_ - 1) * (agents_ - 2) / 2;
        return std::max(largest, (total + each - 1) / each);
    }
    // The cost of all agents but one, or of all agents in a team of four.
    int quad_cost(int out, const int* state) const {
        if (agents_ == 4) out = 0;
        std::size_t entry = 0;
        for (int i = 0; i < agents_; ++i) {
            if (i != out || agents_ == 4) entry = entry * (problem_->cells + 1) + state[i];
        }
        return problem_->quad[out][entry];
    }
    int quad_bound(const int* state) const {
        if (agents_ == 4) return quad_cost(0, state);
        int largest = 0, total = 0;
        for (int out = 0; out < max_table_team; ++out) {
            const int cost = quad_cost(out, state);
            if (cost >= no_finish) return never;
            total += cost;
            largest = std::max(largest, makespan() ? cost : cost + problem_->distance[out][state[out]]);
        }
        return makespan() ? largest : std::max(largest, (total + 3) / 4);
    }
    int rest_of(const int* state, int i, int j, int k) const {
        int other[2], n = 0;
        for (int a = 0; a < agents_; ++a) {
            if (a != i && a != j && a != k) other[n++] = a;
        }
        if (n == 0) return 0;
        if (n == 1) return problem_->distance[other[0]][state[other[0]]];
        return pair_cost(other[0], state[other[0]], other[1], state[other[1]]);
    }
    void add_block(Split& split, int& at, std::initializer_list<int> members, int cost) const {
        split.cost[at] = cost;
        split.size[at] = static_cast<int>(members.size());
        split.total += cost;
        for (const int agent : members) split.order[at++] = agent;
    }
    // Adds the block of four agents whose cost, together with that of the fifth, is largest.
    void add_four(Split& split, int& at, bool* used, const int* state) const {
        int best = agents_, most = -1;
        for (int out = agents_ == 4 ? 4 : 0; out < max_table_team; ++out) {
            const int sum = quad_cost(out, state) + (out < agents_ ? problem_->distance[out][state[out]] : 0);
            if (sum > most) most = sum, best = out;
        }
        int members[4], n = 0;
        for (int i = 0; i < agents_; ++i) {
            if (i != best) used[members[n++] = i] = true;
        }
        add_block(split, at, {members[0], members[1], members[2], members[3]}, quad_cost(best, state));
    }
    void add_three(Split& split, int& at, bool* used, const int* state) const {
        int best[3] = {0, 1, 2}, most = -1;
        for (int k = 2; k < agents_; ++k) {
            for (int j = 1; j < k; ++j) {
                for (int i = 0; i < j; ++i) {
                    const int sum = triple_cost(i, state[i], j, state[j], k, state[k]) + rest_of(state, i, j, k);
                    if (sum > most) most = sum, best[0] = i, best[1] = j, best[2] = k;
                }
            }
        }
        const int i = best[0], j = best[1], k = best[2];
        used[i] = used[j] = used[k] = true;
        add_block(split, at, {i, j, k}, triple_cost(i, state[i], j, state[j], k, state[k]));
    }
    // Adds the pair that needs most beyond its members alone. Returns false if no pair needs more.
    bool add_two(Split& split, int& at, bool* used, const int* state) const {
        int most = 0, a = 0, b = 0;
        for (int j = 1; j < agents_; ++j) {
            for (int i = 0; i < j; ++i) {
                if (used[i] || used[j]) continue;
                const int excess = pair_cost(i, state[i], j, state[j]) - problem_->distance[i][state[i]] -
                                   problem_->distance[j][state[j]];
                if (excess > most) most = excess, a = i, b = j;
            }
        }
        if (most == 0) return false;
        used[a] = used[b] = true;
        add_block(split, at, {a, b}, pair_cost(a, state[a], b, state[b]));
        return true;
    }

    const JointProblem* problem_;
    int agents_;
};

}  // namespace t2t
