#include "solver/exhaustive.hpp"

#include <array>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "solver/effort.hpp"

namespace t2t {
namespace {

// Each agent's cell, or `done` once it has arrived on its goal for good: it then stays there and costs nothing more.
constexpr Cell done = -1;
using State = std::vector<Cell>;

std::string key_of(const State& state) {
    return {reinterpret_cast<const char*>(state.data()), state.size() * sizeof(Cell)};
}

class Search {
public:
    Search(const Problem& problem, Objective objective, bool waits, int bound, std::uint64_t max_nodes)
        : problem_(problem), objective_(objective), waits_(waits), bound_(bound), max_nodes_(max_nodes) {}

    Solution run() {
        Solution solution;
        solution.label.status = search();
        solution.label.nodes = expanded_;
        solution.label.steps = effort_.steps();
        if (solution.label.status == Status::solved) finish(solution);
        return solution;
    }

private:
    struct Node {
        State state;
        std::size_t parent;
        int cost;
        bool closed;
    };

    Status search() {
        start(0, State(problem_.starts));
        while (!open_.empty()) {
            const auto first = open_.begin();
            const int cost = first->first;
            const std::size_t node = first->second.back();
            first->second.pop_back();
            if (first->second.empty()) open_.erase(first);
            if (nodes_[node].cost != cost || nodes_[node].closed) continue;
            nodes_[node].closed = true;
            if (active(nodes_[node].state) == 0) {
                last_ = node;
                return Status::solved;
            }
            if (expanded_++ == max_nodes_) return Status::undecided;
            const State before = nodes_[node].state;
            const int step = objective_ == Objective::makespan ? 1 : active(before);
            if (cost + step <= bound_) expand(node, 0, before, before, cost + step);
        }
        return Status::infeasible;
    }
    static int active(const State& state) {
        int count = 0;
        for (const Cell cell : state) count += cell != done;
        return count;
    }
    Cell place(const State& state, std::size_t agent) const {
        return state[agent] == done ? problem_.goals[agent] : state[agent];
    }
    // Adds all start states: an agent that starts on its goal may already have arrived for good.
    void start(std::size_t agent, State state) {
        if (agent == state.size()) return add(state, std::numeric_limits<std::size_t>::max(), 0);
        start(agent + 1, state);
        if (state[agent] != problem_.goals[agent]) return;
        state[agent] = done;
        start(agent + 1, state);
    }
    void add(const State& state, std::size_t parent, int cost) {
        effort_.step(20);
        const auto [entry, fresh] = index_.try_emplace(key_of(state), nodes_.size());
        if (fresh) nodes_.push_back({state, parent, cost, false});
        Node& node = nodes_[entry->second];
        if (!fresh && node.cost <= cost) return;
        node.parent = parent;
        node.cost = cost;
        open_[cost].push_back(entry->second);
    }
    // Moves one agent after the other; `after` holds the new cells of the agents before `agent`.
    void expand(std::size_t node, std::size_t agent, const State& before, State after, int cost) {
        effort_.step(4);
        if (agent == before.size()) return add(after, node, cost);
        if (before[agent] == done) {
            if (free_of_conflicts(before, after, agent)) expand(node, agent + 1, before, after, cost);
            return;
        }
        const int size = problem_.size, row = before[agent] / size, column = before[agent] % size;
        constexpr std::array<std::pair<int, int>, 5> moves{{{0, -1}, {1, 0}, {0, 1}, {-1, 0}, {0, 0}}};
        for (int action = 0; action < (waits_ ? 5 : 4); ++action) {
            const int r = row + moves[action].first, c = column + moves[action].second;
            if (r < 0 || c < 0 || r >= size || c >= size || problem_.hole[r * size + c]) continue;
            after[agent] = static_cast<Cell>(r * size + c);
            if (!free_of_conflicts(before, after, agent)) continue;
            expand(node, agent + 1, before, after, cost);
            if (after[agent] != problem_.goals[agent] || action == 4) continue;
            after[agent] = done;
            expand(node, agent + 1, before, after, cost);
        }
    }
    bool free_of_conflicts(const State& before, const State& after, std::size_t agent) const {
        for (std::size_t other = 0; other < agent; ++other) {
            if (place(after, other) == place(after, agent)) return false;
            if (place(after, other) == place(before, agent) && place(before, other) == place(after, agent)) return false;
        }
        return true;
    }
    void finish(Solution& solution) const {
        solution.label.cost = nodes_[last_].cost;
        solution.paths.resize(problem_.starts.size());
        std::vector<std::size_t> chain;
        for (std::size_t node = last_; node < nodes_.size(); node = nodes_[node].parent) chain.push_back(node);
        for (std::size_t agent = 0; agent < solution.paths.size(); ++agent) {
            auto& path = solution.paths[agent];
            for (auto step = chain.rbegin(); step != chain.rend(); ++step) {
                path.push_back(place(nodes_[*step].state, agent));
                if (nodes_[*step].state[agent] == done) break;
            }
        }
    }

    const Problem& problem_;
    Objective objective_;
    bool waits_;
    int bound_;
    std::uint64_t max_nodes_;
    std::uint64_t expanded_ = 0;
    Effort effort_;
    std::size_t last_ = 0;
    std::vector<Node> nodes_;
    std::unordered_map<std::string, std::size_t> index_;
    std::map<int, std::vector<std::size_t>> open_;
};

}  // namespace

Solution exhaustive_search(const Problem& problem, Objective objective, bool waits, int bound, std::uint64_t max_nodes) {
    return Search(problem, objective, waits, bound, max_nodes).run();
}

Label exhaustive_label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait) {
    Label label = exhaustive_search(problem, objective, true, std::numeric_limits<int>::max(), max_nodes).label;
    if (label.status != Status::solved || !want_wait) return label;
    const Label wait_free = exhaustive_search(problem, objective, false, label.cost, max_nodes).label;
    label.steps += wait_free.steps;
    if (wait_free.status == Status::solved) label.requires_wait = Answer::no;
    if (wait_free.status == Status::infeasible) label.requires_wait = Answer::yes;
    return label;
}

}  // namespace t2t
