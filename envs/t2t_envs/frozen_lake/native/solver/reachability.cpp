#include "solver/reachability.hpp"

#include <bit>

namespace t2t {
namespace {

// Every joint move splits into chains of agents that end in an empty cell and closed cycles of agents. A chain can be moved one
// agent after another, from its head. On a grid a cycle has an even length of at least 4, so up to five agents can only turn
// around a square of four cells. Hence single moves and such turns reach exactly the states that joint moves reach, with far fewer
// successors. Both are reversible, so the goals are out of reach as soon as the search from either end has no state left.
class Side {
public:
    Side(const std::vector<std::array<std::int16_t, 4>>& neighbours, const std::vector<int>& from, const std::vector<int>& to,
         Effort& effort)
        : effort_(effort), neighbours_(neighbours), agents_(static_cast<int>(from.size())),
          bits_(std::bit_width(static_cast<unsigned>(neighbours.size()))), slots_(1024, empty) {
        for (const int goal : to) distances_.push_back(distances_to(goal));
        add(from.data());
    }
    std::size_t size() const { return count_; }
    bool contains(std::uint64_t key) const { return slots_[slot_of(key)] == key; }

    // Expands the state nearest to the other end. Returns false if none is left. Sets `met` when the two ends meet.
    bool step(const Side& other, bool& met) {
        effort_.step(4);
        while (lowest_ < open_.size() && open_[lowest_].empty()) ++lowest_;
        if (lowest_ == open_.size()) return false;
        const std::uint64_t key = open_[lowest_].back();
        open_[lowest_].pop_back();
        if (other.contains(key)) met = true;
        int state[max_reachability_team];
        for (int i = 0; i < agents_; ++i) state[i] = static_cast<int>(key >> (i * bits_)) & ((1 << bits_) - 1);
        for (int i = 0; i < agents_; ++i) {
            const int from = state[i];
            for (const int to : neighbours_[from]) {
                if (to < 0) break;
                if (agent_on(state, to) >= 0) continue;
                state[i] = to;
                add(state);
            }
            state[i] = from;
        }
        if (agents_ >= 4) turn(state);
        return true;
    }

private:
    static constexpr std::uint64_t empty = ~std::uint64_t{0};

    std::vector<int> distances_to(int goal) const {
        std::vector<int> distances(neighbours_.size(), static_cast<int>(neighbours_.size())), queue{goal};
        distances[goal] = 0;
        for (std::size_t head = 0; head < queue.size(); ++head) {
            for (const int to : neighbours_[queue[head]]) {
                if (to < 0) break;
                if (to == goal || distances[to] < static_cast<int>(neighbours_.size())) continue;
                distances[to] = distances[queue[head]] + 1;
                queue.push_back(to);
            }
        }
        return distances;
    }
    int agent_on(const int* state, int cell) const {
        for (int i = 0; i < agents_; ++i) {
            if (state[i] == cell) return i;
        }
        return -1;
    }
    // Adds the states in which four agents on a square of four cells have turned around it, in either direction.
    void turn(int* state) {
        for (int a = 0; a < agents_; ++a) {
            for (const int second : neighbours_[state[a]]) {
                if (second < 0) break;
                const int b = agent_on(state, second);
                if (b < 0) continue;
                for (const int third : neighbours_[second]) {
                    if (third < 0) break;
                    const int c = agent_on(state, third);
                    if (c < 0 || c == a) continue;
                    for (const int fourth : neighbours_[third]) {
                        if (fourth < 0) break;
                        const int d = agent_on(state, fourth);
                        if (d < 0 || d == b || !adjacent(fourth, state[a])) continue;
                        const int first = state[a];
                        state[a] = second, state[b] = third, state[c] = fourth, state[d] = first;
                        add(state);
                        state[a] = first, state[b] = second, state[c] = third, state[d] = fourth;
                    }
                }
            }
        }
    }
    bool adjacent(int a, int b) const {
        for (const int to : neighbours_[a]) {
            if (to == b) return true;
        }
        return false;
    }
    std::size_t slot_of(std::uint64_t key) const {
        std::uint64_t z = key * 0x9E3779B97F4A7C15ULL;
        z ^= z >> 32;
        std::size_t slot = static_cast<std::size_t>(z * 0xD6E8FEB86659FD93ULL >> 20) & (slots_.size() - 1);
        while (slots_[slot] != empty && slots_[slot] != key) slot = (slot + 1) & (slots_.size() - 1);
        return slot;
    }
    void add(const int* state) {
        effort_.step(4);
        std::uint64_t key = 0;
        std::size_t rest = 0;
        for (int i = 0; i < agents_; ++i) {
            key |= static_cast<std::uint64_t>(state[i]) << (i * bits_);
            rest += distances_[i][state[i]];
        }
        const std::size_t slot = slot_of(key);
        if (slots_[slot] == key) return;
        slots_[slot] = key;
        ++count_;
        if (rest >= open_.size()) open_.resize(rest + 1);
        open_[rest].push_back(key);
        lowest_ = std::min(lowest_, rest);
        if (count_ * 2 > slots_.size()) grow();
    }
    void grow() {
        std::vector<std::uint64_t> old(slots_.size() * 4, empty);
        old.swap(slots_);
        for (const std::uint64_t key : old) {
            effort_.step();
            if (key != empty) slots_[slot_of(key)] = key;
        }
    }

    Effort& effort_;
    const std::vector<std::array<std::int16_t, 4>>& neighbours_;
    int agents_, bits_;
    std::vector<std::vector<int>> distances_;
    std::vector<std::uint64_t> slots_;
    std::vector<std::vector<std::uint64_t>> open_;
    std::size_t count_ = 0, lowest_ = 0;
};

}  // namespace

Status reachability(const std::vector<std::array<std::int16_t, 4>>& neighbours, const std::vector<int>& starts,
                    const std::vector<int>& goals, Effort& effort) {
    if (starts.size() > max_reachability_team) return Status::undecided;
    Side forward(neighbours, starts, goals, effort), backward(neighbours, goals, starts, effort);
    Status status = Status::undecided;
    const auto stored = [&] { return effort.nodes + forward.size() + backward.size(); };
    for (bool met = false; status == Status::undecided && stored() < effort.max_nodes;) {
        if (!forward.step(backward, met) || !backward.step(forward, met)) status = Status::infeasible;
        if (met) status = Status::solved;
    }
    effort.nodes = stored();
    return status;
}

}  // namespace t2t
