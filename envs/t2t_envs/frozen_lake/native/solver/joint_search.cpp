#include "solver/joint_search.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "prefetch.hpp"
#include "solver/joint_bounds.hpp"
#include "solver/joint_moves.hpp"

namespace t2t {
namespace {

constexpr std::uint32_t none = 0xffffffffu;
constexpr int known_already = -1;

}  // namespace

// A state is the packed cells of all agents. States are expanded in the order of f = cost + lower bound. An expansion makes only the
// successors that a quick bound allows at the current f. It notes the least bound of the others, and the state is expanded again at
// that f (partial expansion: Goldenberg et al., "Enhanced partial expansion A*", 2014).
template <typename Key>
class JointSearch::Memory {
public:
    JointResult run(const JointProblem& problem, std::uint64_t max_nodes, Effort& effort) {
        problem_ = &problem;
        effort_ = &effort;
        bounds_.emplace(problem);
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
                    effort.nodes += nodes_.size();
                    goal_ = node;
                    return {Status::solved, nodes_[node].cost};
                }
                if (effort.nodes + nodes_.size() >= max_nodes) {
                    effort.nodes += nodes_.size();
                    return result;
                }
                ++effort.nodes;
                if (!expand(node)) {
                    effort.nodes += nodes_.size();
                    return result;
                }
            }
        }
        effort.nodes += nodes_.size();
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
        int cost, rest, next;  // cost so far; lower bound of the rest; the f at which the node is to be expanded
    };

    struct Slot {
        Key key;
        std::uint32_t node = none;
        int cost;
    };

    struct Child {
        Key key;
        int rest;  // for the makespan: the sum of the steps that all agents still need alone
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
    // Adds all states at step 0: an agent that starts on its goal may already have arrived for good.
    void add_starts(int agent) {
        if (agent == agents_) {
            add(pack(now_), none, 0);
            return;
        }
        now_[agent] = problem_->starts[agent];
        add_starts(agent + 1);
        if (!commits_ || problem_->starts[agent] != problem_->goals[agent]) return;
        now_[agent] = problem_->cells;
        add_starts(agent + 1);
    }
    Key pack(const int* state) const {
        Key key = 0;
        for (int i = 0; i < agents_; ++i) key |= static_cast<Key>(state[i]) << (i * bits_);
        return key;
    }
    // Adds a state reached at this cost. Most states are reached several times, so it is stored even if its f is above the limit.
    void add(Key key, std::uint32_t parent, int cost) {
        std::size_t at = hash(key) & (slots_.size() - 1);
        for (; slots_[at].node != none; at = (at + 1) & (slots_.size() - 1)) {
            Slot& slot = slots_[at];
            if (slot.key != key) continue;
            if (slot.cost <= cost) return;
            slot.cost = cost;
            nodes_[slot.node].parent = parent, nodes_[slot.node].cost = cost;
            push(slot.node);
            return;
        }
        int state[max_team];
        for (int i = 0; i < agents_; ++i) state[i] = unpack(key, i);
        const int rest = bounds_->whole_bound(state);
        if (cost + rest > problem_->bound) return;
        slots_[at] = {key, static_cast<std::uint32_t>(nodes_.size()), cost};
        nodes_.push_back({key, parent, cost, rest, 0});
        push(slots_[at].node);
        if (nodes_.size() * 2 >= slots_.size()) rehash();
    }
    bool is_known(Key key, int cost) const {
        std::size_t at = hash(key) & (slots_.size() - 1);
        while (slots_[at].node != none && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
        return slots_[at].node != none && slots_[at].cost <= cost;
    }
    void push(std::uint32_t node) {
        nodes_[node].next = std::max(layer_, nodes_[node].cost + nodes_[node].rest);
        enqueue(node, nodes_[node].next);
    }
    void enqueue(std::uint32_t node, int f) {
        if (f >= static_cast<int>(buckets_.size())) buckets_.resize(f + 1);
        buckets_[f].push_back(node);
    }
    void prefetch(Key key) const { t2t::prefetch(&slots_[hash(key) & (slots_.size() - 1)]); }
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
            effort_->step();
            if (slot.node == none) continue;
            std::size_t at = hash(slot.key) & (slots_.size() - 1);
            while (slots_[at].node != none) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slot;
        }
    }

    // Returns false if there are more joint moves than fit in memory.
    bool expand(std::uint32_t node) {
        effort_->step(10);
        children_.clear();
        const Key key = nodes_[node].key;
        int active = 0;
        for (int j = 0; j < agents_; ++j) {
            now_[j] = unpack(key, j);
            active += now_[j] != problem_->cells;
        }
        const int cost = nodes_[node].cost;
        const auto child = [&](Key key, int rest = 0) {
            children_.push_back({key, rest});
            return children_.size() < most_children;
        };
        const int next = makespan_ ? moves_.within_makespan(*problem_, *bounds_, now_, bits_, cost, layer_, *effort_, child)
                                   : moves_.within_sum(*problem_, *bounds_, now_, bits_, cost, layer_, *effort_, child);
        if (children_.size() >= most_children) return false;  // `next` does not cover the children that were not made
        if (makespan_) {
            // The child added last is expanded first. The makespan says little about how near a state is to the goals, so children
            // are ordered by the sum of the remaining steps.
            in_portions([&](Child* from, Child* to) {
                const auto known = [&](const Child& one) { return is_known(one.key, cost + 1); };
                for (; from != to; ++from) from->rest = known(*from) ? known_already : from->rest;
            });
            std::erase_if(children_, [](const Child& one) { return one.rest == known_already; });
            sort_children();
        }
        in_portions([&](const Child* from, const Child* to) {
            for (const Child* one = from; one != to; ++one) prefetch(one->key);
            for (; from != to; ++from) add(from->key, node, cost + (makespan_ ? 1 : active));
        });
        if (next <= problem_->bound) {
            nodes_[node].next = next;
            enqueue(node, next);
        } else {
            nodes_[node].next = never;
        }
        return true;
    }

    // There may be millions of children, so they are handled in portions, and the work is counted in between.
    static constexpr std::ptrdiff_t portion = 1 << 14;
    template <typename Use>
    void in_portions(Use use) {
        Child* const end = children_.data() + children_.size();
        for (Child* from = children_.data(); from != end;) {
            Child* const to = from + std::min(portion, end - from);
            effort_->step(4 * (to - from));
            use(from, to);
            from = to;
        }
    }
    // Children with the most remaining steps come first; equal ones keep their order.
    void sort_children() {
        const auto more = [](const Child& a, const Child& b) { return a.rest > b.rest; };
        in_portions([&](Child* from, Child* to) { std::stable_sort(from, to, more); });
        const auto begin = children_.begin(), end = children_.end();
        for (std::ptrdiff_t sorted = portion; sorted < end - begin; sorted *= 2) {
            for (auto from = begin; end - from > sorted; from += std::min(2 * sorted, end - from)) {
                effort_->step(2 * sorted);
                std::inplace_merge(from, from + sorted, from + std::min(2 * sorted, end - from), more);
            }
        }
    }

    static constexpr std::size_t most_children = std::size_t{1} << 22;
    const JointProblem* problem_ = nullptr;
    Effort* effort_ = nullptr;
    std::optional<JointBounds> bounds_;
    int agents_ = 0, bits_ = 0, layer_ = 0;
    bool makespan_ = true, commits_ = false;
    std::vector<Node> nodes_;
    std::vector<Slot> slots_;
    std::vector<Child> children_;
    std::vector<std::vector<std::uint32_t>> buckets_;
    std::uint32_t goal_ = none;
    int now_[max_team];  // the state that is expanded
    JointMoves<Key> moves_;
};

JointSearch::JointSearch()
    : small_(std::make_unique<Memory<std::uint64_t>>()), large_(std::make_unique<Memory<WideKey>>()) {}
JointSearch::~JointSearch() = default;

JointResult JointSearch::run(const JointProblem& problem, std::uint64_t max_nodes, Effort& effort) {
    const int bits = problem.agents * std::bit_width(static_cast<unsigned>(problem.cells));
    used_large_ = bits > 64 || problem.agents > JointMoves<std::uint64_t>::max_agents;
    if (bits > 128) return {};  // a joint space this large is out of reach: undecided
    return used_large_ ? large_->run(problem, max_nodes, effort) : small_->run(problem, max_nodes, effort);
}

void JointSearch::paths(std::vector<std::vector<int>>& paths) const {
    used_large_ ? large_->paths(paths) : small_->paths(paths);
}

}  // namespace t2t
