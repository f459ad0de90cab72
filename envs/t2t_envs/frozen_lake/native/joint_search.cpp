#include "joint_search.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>
#include <memory>

#include "excess.hpp"

namespace t2t {
namespace {

constexpr std::uint32_t none = 0xffffffffu;
constexpr int never = std::numeric_limits<int>::max() / 2;

}  // namespace

// A state is the cells of all agents, packed; states are expanded in the order of f = cost + lower bound. An expansion
// makes only the successors with the f of the moment and notes the next larger one, at which the state is expanded again
// (partial expansion: Goldenberg et al., "Enhanced partial expansion A*", 2014).
template <typename Key>
class JointSearch::Memory {
public:
    JointResult run(const JointProblem& problem, std::uint64_t max_nodes, std::uint64_t& nodes) {
        problem_ = &problem;
        agents_ = problem.agents;
        bits_ = std::bit_width(static_cast<unsigned>(problem.cells));
        makespan_ = problem.movement.objective == Objective::makespan;
        commits_ = problem.movement.commits();
        nodes_.clear();
        for (auto& bucket : buckets_) bucket.clear();
        slots_.assign(1024, Slot{});
        goal_ = none;
        layer_ = 0;
        add_starts(0);
        JointResult result;
        for (layer_ = 0; layer_ < static_cast<int>(buckets_.size()); ++layer_) {
            while (!buckets_[layer_].empty()) {
                const std::uint32_t node = buckets_[layer_].back();
                buckets_[layer_].pop_back();
                if (nodes_[node].next != layer_) continue;
                if (is_goal(node)) {
                    nodes += nodes_.size();
                    goal_ = node;
                    return {Status::solved, nodes_[node].cost};
                }
                if (nodes + nodes_.size() >= max_nodes) {
                    nodes += nodes_.size();
                    return result;
                }
                ++nodes;
                expand(node);
            }
        }
        nodes += nodes_.size();
        result.status = Status::infeasible;
        return result;
    }

    void paths(std::vector<std::vector<int>>& paths) const {
        std::vector<std::uint32_t> chain;
        for (std::uint32_t node = goal_; node != none; node = nodes_[node].parent) chain.push_back(node);
        paths.assign(agents_, {});
        for (int i = 0; i < agents_; ++i) {
            const int goal = problem_->goals[i];
            for (auto node = chain.rbegin(); node != chain.rend(); ++node) {
                const int cell = unpack(nodes_[*node].key, i);
                paths[i].push_back(cell == problem_->cells ? goal : cell);
                if (cell == problem_->cells) break;
            }
            while (paths[i].size() > 1 && paths[i][paths[i].size() - 2] == goal) paths[i].pop_back();
        }
    }

private:
    struct Node {
        Key key;
        std::uint32_t parent;
        int cost, rest, next;  // so far; lower bound of what is left; the f at which it is to be expanded
    };

    struct Slot {
        Key key;
        std::uint32_t node = none;
        int cost;
    };

    int unpack(Key key, int agent) const {
        return static_cast<int>(key >> (agent * bits_)) & ((1 << bits_) - 1);
    }
    bool is_goal(std::uint32_t node) const {
        for (int i = 0; i < agents_; ++i) {
            if (unpack(nodes_[node].key, i) != (commits_ ? problem_->cells : problem_->goals[i])) return false;
        }
        return true;
    }
    // All states at step 0: an agent that starts on its goal may have arrived already.
    void add_starts(int agent) {
        if (agent == agents_) {
            add(pack(now_), none, 0, problem_->bound);
            return;
        }
        now_[agent] = problem_->starts[agent];
        add_starts(agent + 1);
        if (!commits_ || problem_->starts[agent] != problem_->goals[agent]) return;
        now_[agent] = problem_->cells;
        add_starts(agent + 1);
    }
    int pair_cost(int i, int x, int j, int y) const {  // i < j
        return problem_->pair[JointProblem::pair_number(i, j)][static_cast<std::size_t>(x) * (problem_->cells + 1) + y];
    }
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
        return makespan_ ? largest : sum + excess_bound(excess, agents_);
    }
    int triple_cost(int i, int x, int j, int y, int k, int z) const {  // i < j < k
        const std::size_t side = problem_->cells + 1;
        return problem_->triple[JointProblem::triple_number(i, j, k)][(x * side + y) * side + z];
    }
    // Three agents at what they need together, and the others too; or every triple, each agent being in as many of them.
    int triple_bound(const int* state) const {
        int largest = 0, total = 0;
        for (int k = 2; k < agents_; ++k) {
            for (int j = 1; j < k; ++j) {
                for (int i = 0; i < j; ++i) {
                    const int cost = triple_cost(i, state[i], j, state[j], k, state[k]);
                    if (cost >= no_finish) return never;
                    total += cost;
                    largest = std::max(largest, cost + rest_of(state, i, j, k));
                }
            }
        }
        const int each = (agents_ - 1) * (agents_ - 2) / 2;
        return std::max(largest, (total + each - 1) / each);
    }
    // Of all agents but one; of a team of four, of all.
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
            largest = std::max(largest, cost + problem_->distance[out][state[out]]);
        }
        return std::max(largest, (total + 3) / 4);
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

    Key pack(const int* state) const {
        Key key = 0;
        for (int i = 0; i < agents_; ++i) key |= static_cast<Key>(state[i]) << (i * bits_);
        return key;
    }
    // A state reached at this cost. It is stored if its f is within `limit`, else its f is returned.
    int add(Key key, std::uint32_t parent, int cost, int limit) {
        std::size_t at = hash(key) & (slots_.size() - 1);
        for (; slots_[at].node != none; at = (at + 1) & (slots_.size() - 1)) {
            Slot& slot = slots_[at];
            if (slot.key != key) continue;
            if (slot.cost <= cost) return 0;
            slot.cost = cost;
            nodes_[slot.node].parent = parent, nodes_[slot.node].cost = cost;
            push(slot.node);
            return 0;
        }
        int state[max_team];
        for (int i = 0; i < agents_; ++i) state[i] = unpack(key, i);
        const int rest = whole_bound(state);
        if (cost + rest > limit) return cost + rest;
        slots_[at] = {key, static_cast<std::uint32_t>(nodes_.size()), cost};
        nodes_.push_back({key, parent, cost, rest, 0});
        push(slots_[at].node);
        if (nodes_.size() * 2 >= slots_.size()) rehash();
        return 0;
    }
    void push(std::uint32_t node) {
        nodes_[node].next = std::max(layer_, nodes_[node].cost + nodes_[node].rest);
        enqueue(node, nodes_[node].next);
    }
    void enqueue(std::uint32_t node, int f) {
        if (f >= static_cast<int>(buckets_.size())) buckets_.resize(f + 1);
        buckets_[f].push_back(node);
    }
    static std::size_t hash(Key key) {
        std::uint64_t z = static_cast<std::uint64_t>(key);
        if constexpr (sizeof(Key) > 8) z ^= static_cast<std::uint64_t>(key >> 64) * 0x9E3779B97F4A7C15ULL;
        z *= 0x9E3779B97F4A7C15ULL;
        z ^= z >> 32;
        return static_cast<std::size_t>(z * 0xD6E8FEB86659FD93ULL >> 20);
    }
    void rehash() {
        std::vector<Slot> old(slots_.size() * 4);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.node == none) continue;
            std::size_t at = hash(slot.key) & (slots_.size() - 1);
            while (slots_[at].node != none) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slot;
        }
    }

    void expand(std::uint32_t node) {
        children_.clear();
        const Key key = nodes_[node].key;
        int active = 0;
        for (int j = 0; j < agents_; ++j) {
            now_[j] = unpack(key, j);
            place_[j] = now_[j] == problem_->cells ? problem_->goals[j] : now_[j];
            active += now_[j] != problem_->cells;
        }
        cost_ = nodes_[node].cost;
        child_cost_ = cost_ + (makespan_ ? 1 : active);
        // Where the search has become long, successors are made some layers ahead, to expand each state less often.
        const std::size_t stored = nodes_.size();
        limit_ = std::min(problem_->bound, layer_ + (stored < 2000 ? 0 : stored < 20000 ? 1 : 3));
        next_ = never;
        for (int i = 0; i < agents_; ++i) order_[i] = i;
        if (makespan_) {
            move_makespan(0, 0);
        } else {
            split_ = split(now_);
            std::copy_n(split_.order, agents_, order_);
            int rest = 0;
            for (int at = 0; at < agents_; at += split_.block(at)) rest += split_.cost[at];
            move_sum(0, 0, cost_ + rest);
        }
        for (const Key child : children_) postpone(add(child, node, child_cost_, limit_));
        if (next_ <= problem_->bound) {
            nodes_[node].next = next_;
            enqueue(node, next_);
        } else {
            nodes_[node].next = never;
        }
    }

    // Calls use(new state, its place, whether the agent was active) for every move of the agent that meets no earlier one.
    template <typename Use>
    void for_moves(int at, Use use) {
        const int agent = order_[at], cells = problem_->cells, from = now_[agent], goal = problem_->goals[agent];
        if (from == cells) {
            if (!blocked(at, goal)) use(agent, cells, goal, 0);
            return;
        }
        if (problem_->movement.waits && !blocked(at, from)) use(agent, from, from, 1);
        for (const int to : problem_->neighbours[from]) {
            if (to < 0) break;
            if (blocked(at, to)) continue;
            use(agent, to, to, 1);
            if (commits_ && to == goal) use(agent, cells, to, 1);
        }
    }
    bool blocked(int at, int to) const {
        const int here = place_[order_[at]];
        for (int earlier = 0; earlier < at; ++earlier) {
            const int other = order_[earlier];
            if (target_[other] == to || (target_[other] == here && place_[other] == to)) return true;
        }
        return false;
    }

    void move_makespan(int at, int largest) {
        if (at == agents_) return child();
        for_moves(at, [&](int agent, int state, int place, int) {
            int need = std::max<int>(largest, problem_->distance[agent][state]);
            for (int other = 0; other < agent; ++other) need = std::max(need, pair_cost(other, after_[other], agent, state));
            if (need >= no_finish) return;
            if (child_cost_ + need > limit_) return postpone(child_cost_ + need);
            after_[agent] = state;
            target_[agent] = place;
            move_makespan(at + 1, need);
        });
    }

    // Agents move in the order of the split. `steps` is what the moves of this block cost so far, `total` a lower bound
    // of the whole: blocks before this one after their moves, this one and the later ones as before any move.
    void move_sum(int at, int steps, int total) {
        if (at == agents_) return child();
        const int start = split_.start[at], size = split_.block(start), before = split_.cost[start];
        for_moves(at, [&](int agent, int state, int place, int step) {
            after_[agent] = state;
            target_[agent] = place;
            const int block = steps + step + block_bound(start, size, at);
            if (block >= no_finish) return;
            const int bound = total + std::max(0, block - before);
            if (bound > limit_) return postpone(bound);
            const bool complete = at + 1 == start + size;
            move_sum(at + 1, complete ? 0 : steps + step, complete ? total - before + block : total);
        });
    }
    // What the block that starts at `start` still needs if its agents up to `at` have moved and the others are as before.
    int block_bound(int start, int size, int at) const {
        const int a = order_[start], moved = at - start + 1;
        if (size == 1) return problem_->distance[a][after_[a]];
        const int b = order_[start + 1];
        if (size == 2) {
            if (moved == 2) return pair_of(a, after_[a], b, after_[b]);
            return problem_->distance[a][after_[a]] + problem_->distance[b][now_[b]];
        }
        const int c = order_[start + 2];
        if (size == 4) {
            const int d = order_[start + 3];
            if (moved == 4) return quad_cost(10 - a - b - c - d, after_);
            if (moved == 3) return triple_cost(a, after_[a], b, after_[b], c, after_[c]) + problem_->distance[d][now_[d]];
            if (moved == 2) return pair_of(a, after_[a], b, after_[b]) + pair_of(c, now_[c], d, now_[d]);
            return problem_->distance[a][after_[a]] + triple_cost(b, now_[b], c, now_[c], d, now_[d]);
        }
        if (moved == 3) return triple_cost(a, after_[a], b, after_[b], c, after_[c]);
        if (moved == 2) return pair_of(a, after_[a], b, after_[b]) + problem_->distance[c][now_[c]];
        return problem_->distance[a][after_[a]] + pair_of(b, now_[b], c, now_[c]);
    }
    int pair_of(int i, int x, int j, int y) const { return i < j ? pair_cost(i, x, j, y) : pair_cost(j, y, i, x); }

    // The agents cut into blocks of at most four whose costs are known together, so that the blocks add up to much.
    struct Split {
        int order[max_team], start[max_team], cost[max_team];  // start: of the block at this position; cost: at its start
        int size[max_team];
        int block(int begin) const { return size[begin]; }
    };
    void add_block(Split& split, int& at, std::initializer_list<int> members, int cost) const {
        const int begin = at;
        split.cost[begin] = cost;
        split.size[begin] = static_cast<int>(members.size());
        for (const int agent : members) {
            split.order[at] = agent;
            split.start[at++] = begin;
        }
    }
    Split split(const int* state) const {
        Split split;
        int at = 0;
        bool used[max_team] = {};
        if (problem_->with_quads) {
            int best = 0, most = -1, cost = 0;
            for (int out = 0; out < (agents_ == 4 ? 1 : agents_); ++out) {
                const int four = quad_cost(out, state);
                const int sum = four + (agents_ == 4 ? 0 : problem_->distance[out][state[out]]);
                if (sum > most) most = sum, best = agents_ == 4 ? 4 : out, cost = four;
            }
            const int begin = at;
            for (int i = 0; i < agents_; ++i) {
                if (i == best) continue;
                used[i] = true;
                split.order[at] = i;
                split.start[at++] = begin;
            }
            split.cost[begin] = cost;
            split.size[begin] = 4;
        } else if (problem_->with_triples) {
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
        for (;;) {  // the pair that needs most beyond its members alone
            int most = 0, a = 0, b = 0;
            for (int j = 1; j < agents_; ++j) {
                for (int i = 0; i < j; ++i) {
                    if (used[i] || used[j]) continue;
                    const int excess = pair_cost(i, state[i], j, state[j]) - problem_->distance[i][state[i]] -
                                       problem_->distance[j][state[j]];
                    if (excess > most) most = excess, a = i, b = j;
                }
            }
            if (most == 0) break;
            used[a] = used[b] = true;
            add_block(split, at, {a, b}, pair_cost(a, state[a], b, state[b]));
        }
        for (int i = 0; i < agents_; ++i) {
            if (!used[i]) add_block(split, at, {i}, problem_->distance[i][state[i]]);
        }
        return split;
    }
    // A successor beyond the limit: this state is expanded again at its f.
    void postpone(int f) {
        if (f > limit_ && f < next_) next_ = f;
    }
    // Successors are looked up together, so that the memory accesses overlap.
    void child() {
        const Key key = pack(after_);
        __builtin_prefetch(&slots_[hash(key) & (slots_.size() - 1)]);
        children_.push_back(key);
    }

    const JointProblem* problem_ = nullptr;
    int agents_ = 0, bits_ = 0, layer_ = 0;
    bool makespan_ = true, commits_ = false;
    std::vector<Node> nodes_;
    std::vector<Slot> slots_;
    std::vector<Key> children_;
    std::vector<std::vector<std::uint32_t>> buckets_;
    std::uint32_t goal_ = none;
    // The expansion under way: states before and after, the cells the agents stand on before and after.
    int now_[max_team], after_[max_team], place_[max_team], target_[max_team], order_[max_team];
    int cost_ = 0, child_cost_ = 0, limit_ = 0, next_ = 0;
    Split split_;
};

JointSearch::JointSearch()
    : small_(std::make_unique<Memory<std::uint64_t>>()), large_(std::make_unique<Memory<unsigned __int128>>()) {}
JointSearch::~JointSearch() = default;

JointResult JointSearch::run(const JointProblem& problem, std::uint64_t max_nodes, std::uint64_t& nodes) {
    const int bits = problem.agents * std::bit_width(static_cast<unsigned>(problem.cells));
    used_large_ = bits > 64;
    if (bits > 128) return {};  // a joint space this large is out of reach: undecided
    return used_large_ ? large_->run(problem, max_nodes, nodes) : small_->run(problem, max_nodes, nodes);
}

void JointSearch::paths(std::vector<std::vector<int>>& paths) const {
    used_large_ ? large_->paths(paths) : small_->paths(paths);
}

}  // namespace t2t
