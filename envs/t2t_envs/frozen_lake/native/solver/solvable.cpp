#include "solver/solvable.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "generator/stream.hpp"

namespace t2t {
namespace {

constexpr int most_agents = 16, nowhere = -1;
constexpr std::int32_t unreached = 1 << 28;
using Joint = std::array<std::int32_t, most_agents>;

// The first `count` agents of an order must go to these cells.
struct Constraint {
    int count = 0;
    Joint cells{};
};

struct Node {
    Joint cells;
    std::array<std::int8_t, most_agents> order;  // who chooses first
    std::array<int, most_agents> urgency;        // grows while an agent is not on its goal
    std::deque<Constraint> constraints;          // not yet tried
};

}  // namespace

struct LaCAM::Search {
    Status run(const Crossing& crossing, std::uint64_t max_tries, Effort& effort) {
        crossing_ = crossing;
        agents_ = crossing.agents;
        const std::size_t cells = static_cast<std::size_t>(crossing.size) * crossing.size;
        occupant_.assign(cells, nowhere);
        next_occupant_.assign(cells, nowhere);
        distance_.resize(agents_);
        for (int i = 0; i < agents_; ++i) {
            measure(crossing.goals[i], distance_[i]);
            effort.step(static_cast<std::int64_t>(cells));
            if (distance_[i][crossing.starts[i]] >= unreached) return Status::infeasible;
        }
        nodes_.clear(), known_.clear(), open_.clear();
        Joint start, goal;
        start.fill(nowhere), goal.fill(nowhere);
        std::copy_n(crossing.starts, agents_, start.begin());
        std::copy_n(crossing.goals, agents_, goal.begin());
        add(start, nullptr);
        std::uint64_t tries = 0;
        while (!open_.empty()) {
            Node& node = nodes_[open_.back()];
            if (node.cells == goal) return Status::solved;
            if (node.constraints.empty()) {
                open_.pop_back();
                continue;
            }
            if (tries++ == max_tries) return Status::undecided;
            const Constraint constraint = node.constraints.front();
            node.constraints.pop_front();
            grow(node, constraint);
            effort.step(20 * agents_);
            Joint next;
            if (!successor(node, constraint, next)) continue;
            const auto found = known_.find(key_of(next));
            if (found == known_.end()) {
                add(next, &node);
            } else {
                open_.push_back(found->second);
            }
        }
        return Status::infeasible;
    }

private:
    void measure(int goal, std::vector<std::int32_t>& distance) {
        distance.assign(occupant_.size(), unreached);
        queue_.assign(1, goal);
        distance[goal] = 0;
        for (std::size_t head = 0; head < queue_.size(); ++head) {
            for_neighbours(queue_[head], [&](std::int32_t to) {
                if (distance[to] < unreached) return;
                distance[to] = distance[queue_[head]] + 1;
                queue_.push_back(to);
            });
        }
    }
    template <typename Visit>
    void for_neighbours(std::int32_t cell, Visit visit) const {
        const int n = crossing_.size, column = cell % n;
        if (column > 0 && !crossing_.hole[cell - 1]) visit(cell - 1);
        if (column + 1 < n && !crossing_.hole[cell + 1]) visit(cell + 1);
        if (cell >= n && !crossing_.hole[cell - n]) visit(cell - n);
        if (cell + n < n * n && !crossing_.hole[cell + n]) visit(cell + n);
    }
    std::string key_of(const Joint& cells) const {
        return {reinterpret_cast<const char*>(cells.data()), agents_ * sizeof cells[0]};
    }
    void add(const Joint& cells, const Node* parent) {
        Node node;
        node.cells = cells;
        for (int i = 0; i < agents_; ++i) {
            const bool home = cells[i] == crossing_.goals[i];
            node.urgency[i] = home ? 0 : parent ? parent->urgency[i] + 1 : 0;
            node.order[i] = static_cast<std::int8_t>(i);
        }
        std::stable_sort(node.order.begin(), node.order.begin() + agents_, [&](int a, int b) {
            if (node.urgency[a] != node.urgency[b]) return node.urgency[a] > node.urgency[b];
            return parent == nullptr && distance_[a][cells[a]] > distance_[b][cells[b]];
        });
        node.constraints.emplace_back();
        known_.emplace(key_of(cells), nodes_.size());
        open_.push_back(nodes_.size());
        nodes_.push_back(std::move(node));
    }
    // Adds the constraints that also fix where the next agent of the order goes.
    void grow(Node& node, const Constraint& constraint) {
        if (constraint.count == agents_) return;
        const std::int32_t here = node.cells[node.order[constraint.count]];
        const auto go = [&](std::int32_t to) {
            node.constraints.push_back(constraint);
            Constraint& longer = node.constraints.back();
            longer.cells[longer.count++] = to;
        };
        for_neighbours(here, go);
        go(here);
    }

    // PIBT (Okumura et al. 2022) for the agents that are not constrained. Returns false if it finds no joint move.
    bool successor(const Node& node, const Constraint& constraint, Joint& next) {
        now_ = &node.cells, next_ = &next;
        next.fill(nowhere);
        for (int i = 0; i < agents_; ++i) occupant_[node.cells[i]] = i;
        bool fits = true;
        for (int place = 0; place < constraint.count && fits; ++place) {
            const int agent = node.order[place];
            fits = free_for(agent, constraint.cells[place]);
            if (fits) take(agent, constraint.cells[place]);
        }
        for (int place = 0; place < agents_ && fits; ++place) {
            const int agent = node.order[place];
            fits = next[agent] != nowhere || plan(agent);
        }
        for (int i = 0; i < agents_; ++i) {
            occupant_[node.cells[i]] = nowhere;
            if (next[i] != nowhere) next_occupant_[next[i]] = nowhere;
        }
        return fits;
    }
    bool free_for(int agent, std::int32_t to) const {
        if (next_occupant_[to] != nowhere) return false;
        const int other = occupant_[to];
        return other == nowhere || other == agent || (*next_)[other] != (*now_)[agent];
    }
    void take(int agent, std::int32_t to) {
        (*next_)[agent] = to;
        next_occupant_[to] = agent;
    }
    bool plan(int agent) {
        std::int32_t choices[5];
        int count = 0;
        const std::int32_t here = (*now_)[agent];
        for_neighbours(here, [&](std::int32_t to) { choices[count++] = to; });
        choices[count++] = here;
        // Nearer cells first; among equals, empty cells first, and then in the order of a hash, so that no pattern repeats for ever.
        const auto rank = [&](std::int32_t to) {
            return static_cast<std::uint64_t>(distance_[agent][to]) << 9 | (std::uint64_t{occupant_[to] != nowhere} << 8) |
                   (mix64(to * 31 + agent + nodes_.size()) & 0xff);
        };
        const auto nearer = [&](std::int32_t a, std::int32_t b) { return rank(a) < rank(b); };
        for (int c = 0; c < count; ++c) {
            std::iter_swap(choices + c, std::min_element(choices + c, choices + count, nearer));
            const std::int32_t to = choices[c];
            if (!free_for(agent, to)) continue;
            take(agent, to);
            const int other = occupant_[to];
            if (other == nowhere || other == agent || (*next_)[other] != nowhere || plan(other)) return true;
            if (next_occupant_[to] == agent) next_occupant_[to] = nowhere;  // unless `other` stayed there
        }
        take(agent, here);
        return false;
    }

    Crossing crossing_;
    int agents_ = 0;
    std::vector<std::vector<std::int32_t>> distance_;
    std::vector<std::int32_t> queue_;
    std::deque<Node> nodes_;  // a deque, so that nodes keep their addresses
    std::unordered_map<std::string, std::size_t> known_;
    std::vector<std::size_t> open_;
    std::vector<int> occupant_, next_occupant_;  // per cell the agent on it before and after the move that is being made
    const Joint* now_ = nullptr;
    Joint* next_ = nullptr;
};

LaCAM::LaCAM() : search_(std::make_unique<Search>()) {}
LaCAM::~LaCAM() = default;

Status LaCAM::run(const Crossing& crossing, std::uint64_t max_tries, Effort& effort) {
    return search_->run(crossing, max_tries, effort);
}

}  // namespace t2t
