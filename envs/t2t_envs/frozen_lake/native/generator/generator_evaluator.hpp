// Draws one candidate instance and labels it. All of it uses scratch memory that is allocated once per thread.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "solver/bitboard.hpp"
#include "solver/effort.hpp"
#include "generator/generator.hpp"
#include "solver/reachability.hpp"
#include "solver/solvable.hpp"
#include "solver/solver.hpp"
#include "generator/stream.hpp"

namespace t2t {

// rejected: the candidate is not an instance (an agent starts on its goal or cannot reach it, or there is no solution).
enum class Kind : std::uint8_t { wait_free = 0, wait = 1, rejected = 2, undecided = 3 };

class Evaluator {
public:
    virtual ~Evaluator() = default;
    // Draws candidate `index`: holes, then start and goal for each agent, all uniform. Returns its label.
    virtual Kind draw(const Stream& cell_stream, std::uint64_t index) = 0;
    // Draws the same candidate, but only proves whether it is solvable: `wait_free` then stands for a solvable candidate of either
    // kind. Optima that come out of the proof are known afterwards.
    virtual Kind draw_solvable(const Stream& cell_stream, std::uint64_t index) = 0;
    // Gives all later candidates these holes, so that only starts and goals are drawn.
    virtual void give_holes(const std::vector<std::uint8_t>& hole) = 0;
    // The optimum of an objective for the last instance, or -1 if it is not known.
    virtual int known_optimum(Objective objective) const = 0;
    virtual void read_cells(std::vector<std::uint8_t>& hole, std::int32_t* starts, std::int32_t* goals) const = 0;
    // Reads the last instance; with `both`, also the other objective's optimum. Returns false if that one is undecided.
    virtual bool read(LabelledInstance& out, bool both) = 0;
    // For enumeration: fixes the holes, so that `label` can label agents on them.
    virtual void set_holes(const std::vector<Cell>& holes) = 0;
    virtual bool connected(Cell start, Cell goal) const = 0;
    virtual Kind label(const std::vector<Cell>& starts, const std::vector<Cell>& goals) = 0;
    // Steps of work on the last candidate (see Effort).
    virtual std::uint64_t steps() const = 0;
};

std::unique_ptr<Evaluator> make_evaluator(const GridCell& cell);

template <int W>
class BoardEvaluator final : public Evaluator {
public:
    explicit BoardEvaluator(const GridCell& cell)
        : cell_(cell), n_(cell.size), stride_(cell.size + 1), cells_(n_ * n_), agents_(cell.agents),
          bit_(cells_), cell_of_(n_ * stride_), routes_(cell.agents), order_(cell.agents),
          occupied_(cells_ + patience + 2), reach_(cells_ + patience + 2) {
        for (int c = 0; c < cells_; ++c) {
            bit_[c] = c + c / n_;
            cell_of_[bit_[c]] = static_cast<Cell>(c);
            grid_.set(bit_[c]);
        }
        for (auto& route : routes_) {
            route.own.resize(cells_ + 1);
            route.path.resize(cells_ + patience + 2);
        }
        problem_.size = n_;
        problem_.hole.resize(cells_);
        problem_.starts.resize(agents_);
        problem_.goals.resize(agents_);
    }

    Kind draw(const Stream& cell_stream, std::uint64_t index) override {
        return draw_candidate(cell_stream, index) ? label() : Kind::rejected;
    }
    Kind draw_solvable(const Stream& cell_stream, std::uint64_t index) override {
        return draw_candidate(cell_stream, index) ? prove_solvable() : Kind::rejected;
    }
    void give_holes(const std::vector<std::uint8_t>& hole) override {
        given_holes_ = true;
        given_ = grid_;
        for (int c = 0; c < cells_; ++c) {
            if (hole[c]) given_.clear(bit_[c]);
        }
    }
    int known_optimum(Objective objective) const override { return cost_[static_cast<int>(objective)]; }
    void read_cells(std::vector<std::uint8_t>& hole, std::int32_t* starts, std::int32_t* goals) const override {
        hole.resize(cells_);
        for (int c = 0; c < cells_; ++c) hole[c] = !free_.test(bit_[c]);
        for (int i = 0; i < agents_; ++i) {
            starts[i] = cell_of_[routes_[i].start];
            goals[i] = cell_of_[routes_[i].goal];
        }
    }
    // Draws holes, starts and goals. Returns false if an agent starts on its goal or cannot reach it.
    bool draw_candidate(const Stream& cell_stream, std::uint64_t index) {
        Stream stream = cell_stream.fork(index);
        steps_ = 0;
        spend(50 + 10 * agents_);
        if (given_holes_) {
            free_ = given_;
        } else {
            draw_holes(stream);
        }
        Board<W> starts = free_, goals = free_;
        for (int i = 0; i < agents_; ++i) {
            Route& route = routes_[i];
            route.start = draw_from(starts, stream);
            route.goal = draw_from(goals, stream);
            if (route.start == route.goal) return false;
            route.length = spread(route.start, route.goal, route.own);
            if (route.length < 0) return false;
            route.levels = route.own.data();
        }
        return true;
    }

    bool read(LabelledInstance& out, bool both) override {
        fill_problem();
        out.holes.clear();
        for (int c = 0; c < cells_; ++c) {
            if (problem_.hole[c]) out.holes.push_back(static_cast<Cell>(c));
        }
        out.starts = problem_.starts;
        out.goals = problem_.goals;
        const int other = 1 - static_cast<int>(cell_.objective);
        if (both && cost_[other] < 0) {
            const Label label = solver_.label(problem_, static_cast<Objective>(other), cell_.max_nodes, false);
            spend(label.steps);
            if (label.status != Status::solved) return false;
            cost_[other] = label.cost;
        }
        out.cost[1 - other] = cost_[1 - other];
        out.cost[other] = both ? cost_[other] : -1;
        out.requires_wait = wait_;
        return true;
    }

    void set_holes(const std::vector<Cell>& holes) override {
        free_ = grid_;
        for (const Cell hole : holes) free_.clear(bit_[hole]);
        levels_from_.resize(cells_);
        distance_.assign(static_cast<std::size_t>(cells_) * cells_, -1);
        for (int goal = 0; goal < cells_; ++goal) {
            if (!free_.test(bit_[goal])) continue;
            levels_from_[goal].resize(cells_ + 1);
            spread(-1, bit_[goal], levels_from_[goal]);
            for (int d = 0; levels_from_[goal][d].any(); ++d) {
                for (int start = 0; start < cells_; ++start) {
                    if (levels_from_[goal][d].test(bit_[start])) distance_[start * cells_ + goal] = d;
                }
            }
        }
    }
    std::uint64_t steps() const override { return steps_; }
    bool connected(Cell start, Cell goal) const override { return distance_[start * cells_ + goal] > 0; }

    Kind label(const std::vector<Cell>& starts, const std::vector<Cell>& goals) override {
        for (int i = 0; i < agents_; ++i) {
            routes_[i].start = bit_[starts[i]];
            routes_[i].goal = bit_[goals[i]];
            routes_[i].length = distance_[starts[i] * cells_ + goals[i]];
            routes_[i].levels = levels_from_[goals[i]].data();
        }
        return label();
    }

private:
    // One agent: `levels[d]` holds the cells at distance d from its goal, `length` is the distance of its start.
    struct Route {
        int start = 0, goal = 0, length = 0, arrival = 0;  // `arrival` is that of the path planned last
        const Board<W>* levels = nullptr;
        std::vector<Board<W>> own;
        std::vector<int> path;
    };

    void spend(std::uint64_t steps) {
        steps_ += steps;
        pace_.step(static_cast<std::int64_t>(steps));
    }
    // Floyd's algorithm: a uniform subset of `holes` cells with the same number of draws.
    void draw_holes(Stream& stream) {
        free_ = grid_;
        for (int j = cells_ - cell_.holes; j < cells_; ++j) {
            const int bit = bit_[stream.below(j + 1)];
            free_.clear(free_.test(bit) ? bit : bit_[j]);
        }
    }
    int draw_from(Board<W>& left, Stream& stream) {
        int bit;
        do bit = bit_[stream.below(cells_)];
        while (!left.test(bit));
        left.clear(bit);
        return bit;
    }

    // Computes the levels of distance around `goal`. Stops at `start` and returns its distance, or returns -1 once everything is
    // flooded; the last level is then empty.
    int spread(int start, int goal, std::vector<Board<W>>& levels) const {
        Board<W> unseen = free_, level = Board<W>::bit(goal);
        for (int d = 0;; ++d) {
            levels[d] = level;
            if (start >= 0 && level.test(start)) return d;
            if (!level.any()) return -1;
            unseen = unseen.without(level);
            level = level.neighbours(stride_) & unseen;
        }
    }

    // Whether a quick search finds shortest paths without conflict: they are optimal for both objectives, and nobody waits.
    bool is_easy() {
        cost_[0] = cost_[1] = 0;
        for (const Route& route : routes_) {
            cost_[0] = std::max(cost_[0], route.length);
            cost_[1] += route.length;
        }
        wait_ = false;
        for (int first = 0; first < agents_; ++first) {
            if (shortest_paths_agree(first)) return true;
        }
        return false;
    }
    Kind label() { return is_easy() ? Kind::wait_free : search(); }

    // Notes an optimum if the paths just planned take no longer than the agents would need alone.
    void note_costs() {
        int longest = 0, latest = 0, sum = 0, arrivals = 0;
        for (const Route& route : routes_) {
            longest = std::max(longest, route.length), latest = std::max(latest, route.arrival);
            sum += route.length, arrivals += route.arrival;
        }
        cost_[0] = latest == longest ? longest : -1;
        cost_[1] = arrivals == sum ? sum : -1;
    }
    // A solution of any cost is a proof. If the quick planner finds none, the solver decides.
    Kind prove_solvable() {
        horizon_ = patience;
        for (const Route& route : routes_) horizon_ = std::max(horizon_, route.length + patience);
        for (int first = 0; first < agents_; ++first) {
            if (!waiting_paths_agree(first)) continue;
            note_costs();
            return Kind::wait_free;
        }
        cost_[0] = cost_[1] = -1;
        fill_problem();
        const Status status = decide_solvable();
        return status == Status::solved ? Kind::wait_free : status == Status::infeasible ? Kind::rejected : Kind::undecided;
    }
    // For a few agents, the solver can also prove that there is no solution. For many agents, a search for any solution comes
    // first. The solver then gets a limited try, because it can detect that a few of them block each other for good.
    Status decide_solvable() {
        if (agents_ <= max_reachability_team) return decide_by_solver(cell_.max_nodes);
        Status status = decide_by_lacam(quick_tries);
        if (status == Status::undecided) status = decide_by_solver(std::min(cell_.max_nodes, solver_nodes));
        return status == Status::undecided ? decide_by_lacam(all_tries) : status;
    }
    Status decide_by_solver(std::uint64_t max_nodes) {
        const Label label = solver_.label(problem_, Objective::makespan, max_nodes, false);
        spend(label.steps);
        cost_[0] = label.cost;
        return label.status;
    }
    Status decide_by_lacam(std::uint64_t max_tries) {
        std::int32_t starts[16], goals[16];
        std::copy_n(problem_.starts.begin(), agents_, starts);
        std::copy_n(problem_.goals.begin(), agents_, goals);
        Effort effort;
        const Status status = lacam_.run({n_, problem_.hole.data(), agents_, starts, goals}, max_tries, effort);
        spend(effort.steps());
        return status;
    }

    // Plans the agents one after the other, starting with agent `first`, each on a shortest path around those before it.
    bool shortest_paths_agree(int first) {
        horizon_ = cost_[0];
        std::fill_n(occupied_.begin(), horizon_ + 1, Board<W>{});
        for (int planned = 0; planned < agents_; ++planned) {
            order_[planned] = (first + planned) % agents_;
            if (!plan(planned)) return false;
        }
        return true;
    }

    // The same, but agents may wait; each arrives as early as it can within the horizon.
    bool waiting_paths_agree(int first) {
        std::fill_n(occupied_.begin(), horizon_ + 1, Board<W>{});
        for (int planned = 0; planned < agents_; ++planned) {
            order_[planned] = (first + planned) % agents_;
            if (!plan_waiting(planned)) return false;
        }
        return true;
    }
    bool plan_waiting(int planned) {
        spend(horizon_ / 2);
        Route& route = routes_[order_[planned]];
        arrival_ = 0;
        int earliest = horizon_ + 1;  // the goal is free from this step on
        while (earliest > 0 && !occupied_[earliest - 1].test(route.goal)) --earliest;
        reach_[0] = Board<W>::bit(route.start);
        for (int t = 0; t < earliest || !reach_[t].test(route.goal); ++t) {
            if (t >= horizon_) return false;
            Board<W> next = ((reach_[t].neighbours(stride_) | reach_[t]) & free_).without(occupied_[t + 1]);
            for (int j = 0; j < planned; ++j) forbid_swap(routes_[order_[j]], t, next);
            if (!next.any()) return false;
            reach_[t + 1] = next;
            arrival_ = t + 1;
        }
        trace(route, planned, arrival_, true);
        occupy(route, arrival_);
        return true;
    }

    bool plan(int planned) {
        Route& route = routes_[order_[planned]];
        const int length = route.length;
        reach_[0] = Board<W>::bit(route.start);
        for (int t = 0; t < length; ++t) {
            Board<W> next = (reach_[t].neighbours(stride_) & route.levels[length - t - 1]).without(occupied_[t + 1]);
            for (int j = 0; j < planned; ++j) forbid_swap(routes_[order_[j]], t, next);
            if (!next.any()) return false;
            reach_[t + 1] = next;
        }
        for (int t = length + 1; t <= horizon_; ++t) {
            if (occupied_[t].test(route.goal)) return false;
        }
        trace(route, planned, length, false);
        occupy(route, length);
        return true;
    }

    // Marks where a planned agent is at each step. Writes whole words, because they are read again very soon.
    void occupy(const Route& route, int arrival) {
        for (int t = 0; t < arrival; ++t) occupied_[t] |= Board<W>::bit(route.path[t]);
        const Board<W> goal = Board<W>::bit(route.goal);
        for (int t = arrival; t <= horizon_; ++t) occupied_[t] |= goal;
    }

    // Removes from `next` the cell that `other` leaves for a cell of reach_[t], unless it can be entered from elsewhere.
    void forbid_swap(const Route& other, int t, Board<W>& next) const {
        if (t >= other.arrival) return;
        const int from = other.path[t], to = other.path[t + 1];
        if (!next.test(from) || !reach_[t].test(to)) return;
        Board<W> others = Board<W>::bit(from).neighbours(stride_) & reach_[t];
        others.clear(to);
        if (!others.any()) next.clear(from);
    }

    void trace(Route& route, int planned, int arrival, bool waits) {
        route.arrival = arrival;
        int at = route.path[arrival] = route.goal;
        for (int t = arrival - 1; t >= 0; --t) {
            Board<W> before = Board<W>::bit(at).neighbours(stride_) & reach_[t];
            if (waits && reach_[t].test(at)) before.set(at);
            for (int j = 0; j < planned; ++j) {
                const Route& other = routes_[order_[j]];
                if (t < other.arrival && other.path[t] == at) before.clear(other.path[t + 1]);
            }
            at = route.path[t] = before.lowest();
        }
    }

    Kind search() {
        fill_problem();
        const Label label = solver_.label(problem_, cell_.objective, cell_.max_nodes, true);
        spend(label.steps);
        cost_[0] = cost_[1] = -1;
        if (label.status == Status::infeasible) return Kind::rejected;
        if (label.status == Status::undecided || label.requires_wait == Answer::undecided) return Kind::undecided;
        cost_[static_cast<int>(cell_.objective)] = label.cost;
        wait_ = label.requires_wait == Answer::yes;
        return wait_ ? Kind::wait : Kind::wait_free;
    }

    void fill_problem() {
        for (int c = 0; c < cells_; ++c) problem_.hole[c] = !free_.test(bit_[c]);
        for (int i = 0; i < agents_; ++i) {
            problem_.starts[i] = cell_of_[routes_[i].start];
            problem_.goals[i] = cell_of_[routes_[i].goal];
        }
    }

    GridCell cell_;
    int n_, stride_, cells_, agents_;
    std::vector<int> bit_;
    std::vector<Cell> cell_of_;
    Board<W> grid_, free_, given_;
    bool given_holes_ = false;
    std::vector<Route> routes_;
    std::vector<int> order_;
    std::vector<Board<W>> occupied_, reach_;
    static constexpr std::uint64_t quick_tries = 500, solver_nodes = 1'000, all_tries = 10'000;
    static constexpr int patience = 24;  // for a quick proof, agents may arrive this much later than alone
    int horizon_ = 0, arrival_ = 0;
    int cost_[2] = {-1, -1};
    bool wait_ = false;
    std::vector<std::vector<Board<W>>> levels_from_;
    std::vector<int> distance_;
    Problem problem_;
    Solver solver_;
    LaCAM lacam_;
    std::uint64_t steps_ = 0;
    Effort pace_;
};

}  // namespace t2t
