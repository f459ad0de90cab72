// Optimal solutions of a team of agents that cannot be planned separately: pairs by PairSearch, larger teams by JointSearch.
#pragma once
#include <initializer_list>
#include <vector>

#include "solver/excess.hpp"
#include "solver/joint_search.hpp"
#include "solver/pair_search.hpp"
#include "solver/reachability.hpp"
#include "solver/solver.hpp"
#include "solver/team_table.hpp"

namespace t2t {

constexpr int unlimited = 1 << 28;  // a bound above every cost

template <int W>
class TeamSearch {
public:
    explicit TeamSearch(Method method) : first_stage_(method == Method::fours ? 2 : method == Method::triples ? 1 : 0),
                                         last_stage_(method == Method::pairs ? 0 : 2) {}

    void reset(const Grid<W>& grid, std::vector<Agent<W>>& agents, int count, Objective objective, Effort& effort) {
        grid_ = &grid, agents_ = &agents, objective_ = objective, effort_ = &effort;
        for (int i = 0; i < count; ++i) {
            from_start_[i].reset(grid, agents[i].start, grid.free);
            std::fill_n(pair_optimum_ + i * max_team, count, JointResult{});
            std::fill_n(pair_searched_ + i * max_team, count, false);
        }
    }

    // The cost of the members if they ignore each other.
    int alone(const std::vector<int>& team) const {
        int sum = 0, largest = 0;
        for (const int i : team) {
            sum += agent(i).distance;
            largest = std::max(largest, agent(i).distance);
        }
        return objective_ == Objective::makespan ? largest : sum;
    }

    // The optimum of two agents alone, with waits allowed, and their paths if they are asked for and there is a solution.
    JointResult pair(int i, int j, Path* path_i, Path* path_j) {
        if (i > j) return pair(j, i, path_j, path_i);
        JointResult& known = pair_optimum_[i * max_team + j];
        if (!pair_searched_[i * max_team + j]) known = search_pair(i, j);
        pair_searched_[i * max_team + j] = true;
        if (known.status == Status::solved && path_i != nullptr) {
            if (within(i, j, known.cost, true)) {
                pair_search_.paths(*path_i, *path_j);
            }
        }
        return known;
    }
    // Whether two agents alone have a solution of at most this cost. `pair_paths` then returns it.
    bool within(int i, int j, int budget, bool waits) {
        return pair_search_.within(*grid_, agent(i), agent(j), objective_, budget, waits, *effort_);
    }
    void pair_paths(Path& path_i, Path& path_j) { pair_search_.paths(path_i, path_j); }

    // The optimum of three or more agents, known to be at least `lower`, and one optimal solution.
    JointResult optimum(const std::vector<int>& team, int lower, std::vector<Path>& paths) {
        lower = std::max(lower, pair_bound(team));
        if (lower >= unreachable) return {Status::infeasible, -1};
        const Movement movement{objective_, true};
        can_finish_ = cannot_finish_ = false;
        stage_ = first_stage_;
        // A bound keeps the tables small and the search short; it is raised until a solution fits.
        for (int surplus = first_surplus;; surplus += (surplus + 1) / 2) {
            const int bound = surplus > last_surplus ? unlimited : lower + surplus;
            const JointResult result = joint(team, movement, bound, paths);
            if (result.status != Status::infeasible || cannot_finish_ || bound == unlimited) return result;
            lower = bound + 1;
        }
    }

    // A solution of at most `bound` in which nobody waits before arriving for good. infeasible: there is none.
    JointResult wait_free(const std::vector<int>& team, int bound, std::vector<Path>& paths) {
        const bool sum = objective_ == Objective::sum_of_costs;
        const int surplus = bound - alone(team);
        // By parity (as on a chessboard), an agent that never waits needs an even number of steps beyond its distance.
        if (sum && surplus % 2 != 0) return {Status::infeasible, -1};
        if (pair_bound(team) > bound) return {Status::infeasible, -1};
        for (std::size_t b = 1; b < team.size(); ++b) {
            for (std::size_t a = 0; a < b; ++a) {
                const int budget = sum ? agent(team[a]).distance + agent(team[b]).distance + surplus : bound;
                if (!within(team[a], team[b], budget, false)) return {Status::infeasible, -1};
            }
        }
        can_finish_ = true;
        stage_ = first_stage_;
        return joint(team, {objective_, false}, bound, paths);
    }

private:
    static constexpr int first_surplus = 3, last_surplus = 24, pair_surplus = 6;

    Agent<W>& agent(int i) { return (*agents_)[i]; }
    const Agent<W>& agent(int i) const { return (*agents_)[i]; }

    JointResult search_pair(int i, int j) {
        const std::vector<int> team{i, j};
        const int lower = alone(team);
        for (int budget = lower; budget <= lower + pair_surplus; ++budget) {
            if (within(i, j, budget, true)) return {Status::solved, budget};
        }
        std::vector<Path> paths;
        stage_ = first_stage_;
        return joint(team, {objective_, true}, unlimited, paths);
    }
    // A lower bound of a team's optimum from its pairs. Callers of `joint` must ask for it first: if a pair were searched while the
    // tables of a team are being made, its own tables would overwrite them.
    int pair_bound(const std::vector<int>& team) {
        int excess[max_team * (max_team - 1) / 2], largest = 0;
        for (int b = 1; b < static_cast<int>(team.size()); ++b) {
            for (int a = 0; a < b; ++a) {
                const JointResult both = pair(team[a], team[b], nullptr, nullptr);
                if (both.status == Status::infeasible) return unreachable;
                const int cost = both.status == Status::solved ? both.cost : 0;
                largest = std::max(largest, cost);
                excess[JointProblem::pair_number(a, b)] =
                    std::max(0, cost - agent(team[a]).distance - agent(team[b]).distance);
            }
        }
        if (objective_ == Objective::makespan) return largest;
        return alone(team) + excess_bound(excess, static_cast<int>(team.size()));
    }

    // The most that the members at these places of the team can cost in a solution within the bound.
    int left_for(const std::vector<int>& team, int bound, std::initializer_list<int> places) {
        if (bound >= unlimited) return unlimited;
        if (objective_ == Objective::makespan) return bound;
        others_.clear();
        for (int a = 0; a < static_cast<int>(team.size()); ++a) {
            if (std::find(places.begin(), places.end(), a) == places.end()) others_.push_back(team[a]);
        }
        return others_.empty() ? bound : bound - pair_bound(others_);
    }
    // The squares that an agent can be on if its own path has at most this length.
    Board<W> domain(int i, int length) {
        Board<W> squares = Board<W>::bit(agent(i).start) | Board<W>::bit(agent(i).goal);
        Balls<W>&from = from_start_[i], &to = agent(i).to_goal;
        for (int radius = 0; radius <= length; ++radius) {
            squares |= from.ring(radius) & to.ball(length - radius);
            if (from.complete(radius)) break;
        }
        return squares;
    }

    JointResult joint(const std::vector<int>& team, Movement movement, int bound, std::vector<Path>& paths) {
        if (!state_problem(team, movement, bound)) return {};
        const bool triples =
            team.size() >= 3 && team.size() <= max_table_team && problem_.cells <= max_triple_cells;
        const std::uint64_t cells = problem_.cells;
        const bool quads = triples && team.size() >= 4 && problem_.cells <= max_quad_cells;
        // How long to search before better tables pay off: building them takes about as long as expanding this many states.
        // (An expansion for the makespan is quicker; on large maps the tables are worth more than they cost.)
        const std::uint64_t pace = objective_ == Objective::makespan ? 2 : 1;
        const std::uint64_t patience[] = {pace * std::min<std::uint64_t>(500 + cells * cells * cells * team.size() / 100, 10'000),
                                          pace * (6000 + cells * cells * cells * 3 / (team.size() == 4 ? 8 : 2)), 0};
        JointResult result;
        for (;; ++stage_) {
            if (stage_ >= 1 && !can_finish_ && team.size() >= 3) {
                const Status status = reach(team);
                can_finish_ = status == Status::solved;
                cannot_finish_ = status == Status::infeasible;
                if (cannot_finish_) return {Status::infeasible, -1};
            }
            if (triples && stage_ >= 1 && !problem_.with_triples && !add_triples(team, movement, bound)) return {};
            if (quads && stage_ >= 2 && !add_quads(team, movement, bound)) return {};
            const bool last = stage_ >= last_stage_ || (stage_ == 1 && !quads) || team.size() == 2;
            const std::uint64_t limit = effort_->nodes + patience[stage_];
            result = joint_search_.run(problem_, last ? effort_->max_nodes : std::min(limit, effort_->max_nodes), *effort_);
            if (last || result.status != Status::undecided || effort_->spent()) break;
        }
        if (result.status != Status::solved) return result;
        joint_search_.paths(cells_);
        paths.resize(team.size());
        for (std::size_t a = 0; a < team.size(); ++a) {
            paths[a].clear();
            for (const int cell : cells_[a]) paths[a].push_back(index_.square[cell]);
        }
        return result;
    }
    // Numbers the cells and fills the tables. Returns false if they would not fit.
    bool state_problem(const std::vector<int>& team, Movement movement, int bound) {
        const int agents = static_cast<int>(team.size());
        Board<W> all;
        for (int a = 0; a < agents; ++a) {
            domains_[a] = domain(team[a], left_for(team, bound, {a}));
            all |= domains_[a];
        }
        number(all, index_, problem_.neighbours);
        problem_.cells = index_.cells();
        const std::size_t table = static_cast<std::size_t>(index_.cells() + 1) * (index_.cells() + 1);
        if (table * agents * (agents - 1) / 2 > max_table_entries) return false;
        problem_.with_triples = problem_.with_quads = false;
        problem_.agents = agents, problem_.movement = movement, problem_.bound = bound;
        problem_.starts.resize(agents), problem_.goals.resize(agents), problem_.distance.resize(agents);
        for (int a = 0; a < agents; ++a) fill_agent(a, agent(team[a]), domains_[a], movement);
        for (int b = 1; b < agents; ++b) {
            for (int a = 0; a < b; ++a) {
                const int limit = left_for(team, bound, {a, b});
                auto& costs = problem_.pair[JointProblem::pair_number(a, b)];
                const bool whole = builder_.build(*grid_, member(team, a), member(team, b), index_, movement,
                                                  std::min<int>(limit, no_finish - 1), costs, *effort_);
                if (!whole && limit >= no_finish) return false;
            }
        }
        return true;
    }
    Member<W> member(const std::vector<int>& team, int place) {
        return {&agent(team[place]), domains_[place], &from_start_[team[place]]};
    }
    bool add_quads(const std::vector<int>& team, Movement movement, int bound) {
        problem_.with_quads = true;
        const bool sum = objective_ == Objective::sum_of_costs;
        for (int out = 0; out < (team.size() == 4 ? 1 : max_table_team); ++out) {
            std::array<Member<W>, 4> members;
            for (int a = 0, n = 0; n < 4; ++a) {
                if (a != out || team.size() == 4) members[n++] = member(team, a);
            }
            int limit = no_finish - 1;
            if (bound < unlimited) limit = std::min(limit, sum && team.size() == 5 ? bound - agent(team[out]).distance : bound);
            const bool whole = quads_.build(*grid_, members, index_, movement, limit, problem_.quad[out], *effort_);
            if (!whole && bound >= unlimited) return false;
        }
        return true;
    }
    bool add_triples(const std::vector<int>& team, Movement movement, int bound) {
        problem_.with_triples = true;
        for (int c = 2; c < static_cast<int>(team.size()); ++c) {
            for (int b = 1; b < c; ++b) {
                for (int a = 0; a < b; ++a) {
                    const int limit = std::min<int>(left_for(team, bound, {a, b, c}), no_finish - 1);
                    const bool whole =
                        triples_.build(*grid_, {member(team, a), member(team, b), member(team, c)}, index_, movement, limit,
                                       problem_.triple[JointProblem::triple_number(a, b, c)], *effort_);
                    if (!whole && bound >= unlimited) return false;
                }
            }
        }
        return true;
    }
    void number(const Board<W>& all, SquareIndex& index, std::vector<std::array<std::int16_t, 4>>& neighbours) const {
        index.of_square.assign(grid_->squares(), -1);
        index.square.clear();
        all.for_each([&](int square) {
            index.of_square[square] = static_cast<std::int16_t>(index.square.size());
            index.square.push_back(static_cast<std::int16_t>(square));
        });
        neighbours.assign(index.cells(), {-1, -1, -1, -1});
        for (int cell = 0; cell < index.cells(); ++cell) {
            int n = 0;
            (grid_->neighbours(index.square[cell]) & all).for_each([&](int to) {
                neighbours[cell][n++] = index.of_square[to];
            });
        }
    }
    void fill_agent(int a, Agent<W>& agent, const Board<W>& domain, Movement movement) {
        problem_.starts[a] = index_.of_square[agent.start];
        problem_.goals[a] = index_.of_square[agent.goal];
        auto& distance = problem_.distance[a];
        distance.assign(index_.cells() + 1, no_finish);
        for (int radius = 0;; ++radius) {
            (agent.to_goal.ring(radius) & domain).for_each([&](int square) {
                distance[index_.of_square[square]] = static_cast<std::uint16_t>(radius);
            });
            if (agent.to_goal.complete(radius)) break;
        }
        distance[index_.done()] = 0;
        // On the goal without having arrived for good, the agent needs a move away and back, or at least one wait (the pair tables
        // use the same lower bound).
        if (movement.commits()) distance[problem_.goals[a]] = movement.waits ? 1 : 2;
    }
    Status reach(const std::vector<int>& team) {
        Board<W> all;
        std::vector<int> starts, goals;
        for (const int i : team) all |= agent(i).to_goal.ball(unreachable);
        SquareIndex index;
        std::vector<std::array<std::int16_t, 4>> neighbours;
        number(all, index, neighbours);
        for (const int i : team) {
            starts.push_back(index.of_square[agent(i).start]);
            goals.push_back(index.of_square[agent(i).goal]);
        }
        return reachability(neighbours, starts, goals, *effort_);
    }

    static constexpr int max_triple_cells = 100, max_quad_cells = 48;
    static constexpr std::size_t max_table_entries = std::size_t{1} << 26;
    const Grid<W>* grid_ = nullptr;
    std::vector<Agent<W>>* agents_ = nullptr;
    Objective objective_ = Objective::makespan;
    Effort* effort_ = nullptr;
    std::array<Balls<W>, max_team> from_start_;
    // For the current team: what has been proven, and which tables its searches have needed (0: pairs, 1: triples, 2: fours).
    bool can_finish_ = false, cannot_finish_ = false;
    const int first_stage_, last_stage_;
    int stage_ = 0;
    JointResult pair_optimum_[max_team * max_team];
    bool pair_searched_[max_team * max_team] = {};
    PairSearch<W> pair_search_;
    PairTableBuilder<W> builder_;
    TeamTableBuilder<W, 3> triples_;
    TeamTableBuilder<W, 4> quads_;
    std::array<Board<W>, max_team> domains_;
    SquareIndex index_;
    JointProblem problem_;
    std::vector<int> others_;
    JointSearch joint_search_;
    std::vector<std::vector<int>> cells_;
};

}  // namespace t2t
