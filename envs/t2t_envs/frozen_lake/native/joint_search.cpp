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
        add_starts(0);
        JointResult result;
        for (layer_ = 0; layer_ < static_cast<int>(buckets_.size()); ++layer_) {
            while (!buckets_[layer_].empty()) {
                const std::uint32_t node = buckets_[layer_].back();
                buckets_[layer_].pop_back();
                if (nodes_[node].next != layer_) continue;
                if (is_goal(node)) return finish(node);
                if (nodes + nodes_.size() >= max_nodes) {
                    nodes += nodes_.size();
                    return result;
                }
                ++nodes;
                expand(node);
                if (goal_ != none) {
                    nodes += nodes_.size();
                    return finish(goal_);
                }
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
        int cost, next, made;  // next: the f to expand it at; made: successors up to this f are there already
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
    JointResult finish(std::uint32_t node) {
        goal_ = node;
        return {Status::solved, nodes_[node].cost};
    }

    // All states at step 0: an agent that starts on its goal may have arrived already.
    void add_starts(int agent) {
        if (agent == agents_) {
            const int f = whole_bound(now_);
            if (f <= problem_->bound) add(now_, none, 0, f);
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

    void add(const int* state, std::uint32_t parent, int cost, int f) {
        Key key = 0;
        for (int i = 0; i < agents_; ++i) key |= static_cast<Key>(state[i]) << (i * bits_);
        if (nodes_.size() * 2 >= slots_.size()) rehash();
        std::size_t slot = hash(key) & (slots_.size() - 1);
        for (; slots_[slot] != none; slot = (slot + 1) & (slots_.size() - 1)) {
            Node& node = nodes_[slots_[slot]];
            if (node.key != key) continue;
            if (node.cost <= cost) return;
            node.parent = parent, node.cost = cost;
            return push(slots_[slot], f);
        }
        slots_[slot] = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({key, parent, cost, 0, -1});
        push(slots_[slot], f);
    }
    void push(std::uint32_t node, int f) {
        nodes_[node].next = f;
        nodes_[node].made = -1;
        enqueue(node, f);
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
        made_ = nodes_[node].made;
        next_ = never;
        if (makespan_) {
            move_makespan(0, 0);
        } else {
            move_sum(0, base_);
        }
        nodes_[node].made = layer_;
        if (next_ <= problem_->bound && goal_ == none) {
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
        if (agent == agents_) return child(child_cost_ + largest);
        for_moves(agent, [&](int state, int place, int) {
            int need = std::max<int>(largest, problem_->distance[agent][state]);
            for (int other = 0; other < agent; ++other) need = std::max(need, pair_cost(other, after_[other], agent, state));
            if (need >= no_finish) return;
            if (child_cost_ + need > layer_) return postpone(child_cost_ + need);
            after_[agent] = state;
            target_[agent] = place;
            move_makespan(agent + 1, need);
        });
    }

    // `sum` is the cost so far plus what every agent alone still needs: after its move for those before `agent`, before
    // it for the others. The pairs add to that what they need beyond.
    void move_sum(int agent, int sum) {
        if (agent == agents_) return child(sum_bound(sum));
        const int old_own = own_[agent];
        std::int16_t old_total[max_team];
        for (int other = 0; other < agents_; ++other) old_total[other] = pair_total(agent, other);
        for_moves(agent, [&](int state, int place, int step) {
            const int own = step + problem_->distance[agent][state];
            const int new_sum = sum + own - old_own;
            if (own >= no_finish) return;
            if (new_sum > layer_) return postpone(new_sum);
            own_[agent] = own;
            moved_[agent] = step;
            for (int other = 0; other < agent; ++other) {
                pair_total(agent, other) =
                    static_cast<std::int16_t>(pair_cost(other, after_[other], agent, state) + step + moved_[other]);
            }
            after_[agent] = state;
            target_[agent] = place;
            const int bound = sum_bound(new_sum);
            if (bound > layer_) return postpone(bound);
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
    void postpone(int f) {
        if (f < next_) next_ = f;
    }
    // A successor whose bound is at most the layer's f. Bounds never fall along a path, so it is exactly that f, or the
    // successor was made by an earlier expansion.
    void child(int f) {
        if (f > layer_) return postpone(f);
        if (f <= made_) return;
        add(after_, parent_, child_cost_, layer_);
        for (int i = 0; i < agents_; ++i) {
            if (after_[i] != (commits_ ? problem_->cells : problem_->goals[i])) return;
        }
        goal_ = find(after_);
    }
    std::uint32_t find(const int* state) const {
        Key key = 0;
        for (int i = 0; i < agents_; ++i) key |= static_cast<Key>(state[i]) << (i * bits_);
        std::size_t slot = hash(key) & (slots_.size() - 1);
        while (nodes_[slots_[slot]].key != key) slot = (slot + 1) & (slots_.size() - 1);
        return slots_[slot];
    }

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
    int active_ = 0, base_ = 0, child_cost_ = 0, made_ = 0, next_ = 0;
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
