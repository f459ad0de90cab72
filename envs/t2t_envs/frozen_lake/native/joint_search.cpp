#include "joint_search.hpp"

#include <bit>
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
        slots_.assign(1024, none);
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
            add(now_, none, 0, problem_->bound);
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
    int rest_of(const int* state, int i, int j, int k) const {
        int other[2], n = 0;
        for (int a = 0; a < agents_; ++a) {
            if (a != i && a != j && a != k) other[n++] = a;
        }
        if (n == 0) return 0;
        if (n == 1) return problem_->distance[other[0]][state[other[0]]];
        return pair_cost(other[0], state[other[0]], other[1], state[other[1]]);
    }

    // A state reached at this cost. It is stored if its f is within `limit`; returns its f.
    int add(const int* state, std::uint32_t parent, int cost, int limit) {
        Key key = 0;
        for (int i = 0; i < agents_; ++i) key |= static_cast<Key>(state[i]) << (i * bits_);
        std::size_t slot = hash(key) & (slots_.size() - 1);
        for (; slots_[slot] != none; slot = (slot + 1) & (slots_.size() - 1)) {
            Node& node = nodes_[slots_[slot]];
            if (node.key != key) continue;
            if (node.cost <= cost) return 0;
            node.parent = parent, node.cost = cost;
            push(slots_[slot]);
            return 0;
        }
        const int rest = whole_bound(state);
        if (cost + rest > limit) return cost + rest;
        slots_[slot] = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({key, parent, cost, rest, 0});
        push(slots_[slot]);
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
        slots_.assign(slots_.size() * 4, none);
        for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
            std::size_t slot = hash(nodes_[node].key) & (slots_.size() - 1);
            while (slots_[slot] != none) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = node;
        }
    }

    void expand(std::uint32_t node) {
        parent_ = node;
        const Key key = nodes_[node].key;
        active_ = 0;
        base_ = nodes_[node].cost;
        for (int j = 0; j < agents_; ++j) {
            now_[j] = unpack(key, j);
            place_[j] = now_[j] == problem_->cells ? problem_->goals[j] : now_[j];
            active_ += now_[j] != problem_->cells;
            after_[j] = now_[j];
            own_[j] = problem_->distance[j][now_[j]];
            base_ += own_[j];
            for (int i = 0; i < j; ++i) {
                total_[JointProblem::pair_number(i, j)] = static_cast<std::int16_t>(pair_cost(i, now_[i], j, now_[j]));
            }
        }
        child_cost_ = nodes_[node].cost + (makespan_ ? 1 : active_);
        // Where the search has become long, successors are made some layers ahead, to expand each state less often.
        const std::size_t stored = nodes_.size();
        limit_ = std::min(problem_->bound, layer_ + (stored < 1000 ? 0 : stored < 8000 ? 2 : 8));
        early_ = stored < 8000;
        next_ = never;
        if (makespan_) {
            move_makespan(0, 0);
        } else {
            move_sum(0, base_);
        }
        if (next_ <= problem_->bound) {
            nodes_[node].next = next_;
            enqueue(node, next_);
        } else {
            nodes_[node].next = never;
        }
    }

    // Calls use(new state, its place, whether the agent was active) for every move of the agent that meets no earlier one.
    template <typename Use>
    void for_moves(int agent, Use use) {
        const int cells = problem_->cells, from = now_[agent], goal = problem_->goals[agent];
        if (from == cells) {
            if (!blocked(agent, goal)) use(cells, goal, 0);
            return;
        }
        if (problem_->movement.waits && !blocked(agent, from)) use(from, from, 1);
        for (const int to : problem_->neighbours[from]) {
            if (to < 0) break;
            if (blocked(agent, to)) continue;
            use(to, to, 1);
            if (commits_ && to == goal) use(cells, to, 1);
        }
    }
    bool blocked(int agent, int to) const {
        for (int other = 0; other < agent; ++other) {
            if (target_[other] == to || (target_[other] == place_[agent] && place_[other] == to)) return true;
        }
        return false;
    }

    void move_makespan(int agent, int largest) {
        if (agent == agents_) return child();
        for_moves(agent, [&](int state, int place, int) {
            int need = std::max<int>(largest, problem_->distance[agent][state]);
            for (int other = 0; other < agent; ++other) need = std::max(need, pair_cost(other, after_[other], agent, state));
            if (need >= no_finish) return;
            if (child_cost_ + need > limit_) return postpone(child_cost_ + need);
            after_[agent] = state;
            target_[agent] = place;
            move_makespan(agent + 1, need);
        });
    }

    // `sum` is the cost so far plus what every agent alone still needs: after its move for those before `agent`, before
    // it for the others. The pairs add to that what they need beyond.
    void move_sum(int agent, int sum) {
        if (agent == agents_) return child();
        const int old_own = own_[agent];
        std::int16_t old_total[max_team];
        for (int other = 0; other < agents_; ++other) old_total[other] = pair_total(agent, other);
        for_moves(agent, [&](int state, int place, int step) {
            const int own = step + problem_->distance[agent][state];
            const int new_sum = sum + own - old_own;
            if (own >= no_finish) return;
            if (new_sum > limit_) return postpone(new_sum);
            own_[agent] = own;
            moved_[agent] = step;
            for (int other = 0; other < agent; ++other) {
                pair_total(agent, other) =
                    static_cast<std::int16_t>(pair_cost(other, after_[other], agent, state) + step + moved_[other]);
            }
            after_[agent] = state;
            target_[agent] = place;
            if (early_ && agent + 1 < agents_) {
                const int bound = sum_bound(new_sum);
                if (bound > limit_) return postpone(bound);
            }
            move_sum(agent + 1, new_sum);
        });
        own_[agent] = old_own;
        for (int other = 0; other < agents_; ++other) pair_total(agent, other) = old_total[other];
    }
    std::int16_t& pair_total(int i, int j) {
        if (i == j) return unused_;
        return total_[i < j ? JointProblem::pair_number(i, j) : JointProblem::pair_number(j, i)];
    }
    int sum_bound(int sum) const {
        int excess[max_team * (max_team - 1) / 2];
        for (int j = 1, p = 0; j < agents_; ++j) {
            for (int i = 0; i < j; ++i, ++p) {
                if (total_[p] >= no_finish) return never;
                excess[p] = std::max(0, total_[p] - own_[i] - own_[j]);
            }
        }
        return sum + excess_bound(excess, agents_);
    }
    // A successor beyond the limit: this state is expanded again at its f.
    void postpone(int f) {
        if (f > limit_ && f < next_) next_ = f;
    }
    void child() { postpone(add(after_, parent_, child_cost_, limit_)); }

    const JointProblem* problem_ = nullptr;
    int agents_ = 0, bits_ = 0, layer_ = 0;
    bool makespan_ = true, commits_ = false;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> slots_;
    std::vector<std::vector<std::uint32_t>> buckets_;
    std::uint32_t goal_ = none;
    // The expansion under way: before, after, and the squares on which the agents stand before and after.
    std::uint32_t parent_ = none;
    int now_[max_team], after_[max_team], place_[max_team], target_[max_team], own_[max_team], moved_[max_team];
    std::int16_t total_[max_team * (max_team - 1) / 2], unused_ = 0;
    int active_ = 0, base_ = 0, child_cost_ = 0, limit_ = 0, next_ = 0;
    bool early_ = true;
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
