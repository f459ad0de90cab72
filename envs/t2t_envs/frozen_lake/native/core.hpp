// The exact solver for maps of up to W words. If wait-free paths at the lower bound fit together, they are optimal; otherwise
// agents that collide are merged into teams and planned jointly (independence detection, Standley 2010).
#pragma once
#include <numeric>
#include <optional>
#include <vector>

#include "solver/solver.hpp"
#include "solver/team_search.hpp"

namespace t2t {

template <int W>
class Core {
public:
    explicit Core(Method method) : method_(method), search_(method) {}

    Label label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait) {
        Label label;
        if (!begin(problem, objective, max_nodes)) {
            label.status = Status::infeasible;
            return label;
        }
        if (!one_team() && fits(lower_)) {
            label = {Status::solved, lower_, Answer::no};
        } else if (count_ == 2) {
            label_pair(label, want_wait);
        } else {
            label_teams(label, want_wait);
        }
        note_effort(label);
        if (!want_wait) label.requires_wait = Answer::undecided;
        if (label.status != Status::solved) label.cost = -1;
        return label;
    }

    Solution solve(const Problem& problem, Objective objective, std::uint64_t max_nodes) {
        Solution solution;
        Label& label = solution.label;
        if (!begin(problem, objective, max_nodes)) {
            label.status = Status::infeasible;
            return solution;
        }
        if (!one_team() && fits(lower_)) {
            label = {Status::solved, lower_, Answer::no};
        } else {
            find_optimum(label);
        }
        note_effort(label);
        label.requires_wait = Answer::undecided;
        if (label.status != Status::solved) {
            label.cost = -1;
            return solution;
        }
        for (int i = 0; i < count_; ++i) {
            auto& path = solution.paths.emplace_back();
            for (const int square : paths_[i]) path.push_back(grid_->cell_of(square));
        }
        return solution;
    }

private:
    struct Team {
        std::vector<int> members;
        int cost = 0;          // a lower bound of its cost without the others; its optimum once planned with waits allowed
        bool planned = false;  // its paths are in paths_ (single agents are planned last, around the teams)
    };

    // Computes the distances and the lower bound. Returns false if some agent cannot reach its goal.
    bool begin(const Problem& problem, Objective objective, std::uint64_t max_nodes) {
        grid_.emplace(problem);
        objective_ = objective;
        effort_ = Effort(max_nodes);
        count_ = problem.num_agents();
        if (static_cast<int>(agents_.size()) < count_) agents_.resize(count_), paths_.resize(count_);
        lower_ = 0;
        for (int i = 0; i < count_; ++i) {
            Agent<W>& agent = agents_[i];
            agent.start = grid_->square_of(problem.starts[i]);
            agent.goal = grid_->square_of(problem.goals[i]);
            agent.to_goal.reset(*grid_, agent.goal, grid_->free);
            agent.distance = agent.to_goal.distance(agent.start);
            if (agent.distance == unreachable) return false;
            lower_ = objective == Objective::makespan ? std::max(lower_, agent.distance) : lower_ + agent.distance;
        }
        searching_ = false;
        return true;
    }
    void note_effort(Label& label) const { label.nodes = effort_.nodes, label.steps = effort_.steps(); }
    bool one_team() const { return method_ != Method::fast && count_ >= 3; }
    TeamSearch<W>& search() {
        if (!searching_) search_.reset(*grid_, agents_, count_, objective_, effort_);
        searching_ = true;
        return search_;
    }

    // Whether planning one agent after another finds wait-free paths at the lower bound, or within a larger makespan.
    bool fits(int budget) {
        order_.resize(count_);
        std::iota(order_.begin(), order_.end(), 0);
        if (objective_ == Objective::makespan) {  // agents with the least slack first
            std::stable_sort(order_.begin(), order_.end(),
                             [this](int a, int b) { return agents_[a].distance > agents_[b].distance; });
        }
        fixed_.clear();
        return place_singles(budget, false) < 0;
    }

    // Plans the agents of order_ one after another around fixed_ and each other, on shortest paths (sum of costs) or within the
    // budget (makespan). An agent that finds no path moves to the front of the order, a few times. Returns -1 if all agents
    // found a path, otherwise the agent that did not; others_ then holds the paths around which it was planned.
    int place_singles(int budget, bool waits) {
        for (int attempt = 0;; ++attempt) {
            others_ = fixed_;
            std::size_t at = 0;
            while (at < order_.size() && place_single(order_[at], budget, waits)) others_.push_back(&paths_[order_[at++]]);
            if (at == order_.size()) return -1;
            if (at == 0 || attempt > static_cast<int>(order_.size())) return order_[at];
            std::rotate(order_.begin(), order_.begin() + at, order_.begin() + at + 1);
        }
    }
    bool place_single(int i, int budget, bool waits) {
        Agent<W>& agent = agents_[i];
        if (objective_ == Objective::sum_of_costs) {
            return single_.plan(*grid_, agent, agent.distance, false, others_, paths_[i], effort_);
        }
        if (waits) return single_.plan(*grid_, agent, budget, true, others_, paths_[i], effort_);
        int arrival = agent.distance;
        while (arrival <= SingleSearch<W>::last_visit(agent.goal, others_)) arrival += 2;
        for (; arrival <= budget; arrival += 2) {
            if (single_.plan(*grid_, agent, arrival, false, others_, paths_[i], effort_)) return true;
        }
        return false;
    }

    void label_pair(Label& label, bool want_wait) {
        const bool sum = objective_ == Objective::sum_of_costs;
        TeamSearch<W>& search = this->search();
        if (search.within(0, 1, lower_, false)) {
            label = {Status::solved, lower_, Answer::no};
            return;
        }
        // At the lower bound of the sum of costs nobody can wait. For the makespan, a solution with waits may still fit there.
        // Otherwise the budget grows until a solution fits.
        if (!sum && search.within(0, 1, lower_, true)) {
            label = {Status::solved, lower_, Answer::yes};
            return;
        }
        const JointResult optimum = search.pair(0, 1, nullptr, nullptr);
        label.status = optimum.status;
        label.cost = optimum.cost;
        if (label.status != Status::solved || !want_wait) return;
        // By parity (as on a chessboard), an agent that never waits needs an even number of steps beyond its distance.
        const bool odd = sum && (label.cost - lower_) % 2 != 0;
        label.requires_wait = odd || !search.within(0, 1, label.cost, false) ? Answer::yes : Answer::no;
    }

    void label_teams(Label& label, bool want_wait) {
        find_optimum(label);
        if (label.status != Status::solved || !want_wait) return;
        if (!waits_somewhere()) {
            label.requires_wait = Answer::no;
            return;
        }
        for (Team& team : teams_) team.planned = false;
        const Status status = coordinate(false);
        label.requires_wait = status == Status::solved ? Answer::no
                              : status == Status::infeasible ? Answer::yes : Answer::undecided;
    }
    bool waits_somewhere() const {
        for (int i = 0; i < count_; ++i) {
            for (std::size_t step = 1; step < paths_[i].size(); ++step) {
                if (paths_[i][step] == paths_[i][step - 1]) return true;
            }
        }
        return false;
    }

    // Finds the optimum with waits allowed, and leaves an optimal solution in paths_.
    void find_optimum(Label& label) {
        first_teams();
        budget_ = lower_;
        label.status = coordinate(true);
        label.cost = budget_;
        if (objective_ == Objective::makespan) return;
        label.cost = 0;
        for (const Team& team : teams_) label.cost += team.cost;
    }
    void first_teams() {
        teams_.clear();
        for (int i = 0; i < count_; ++i) teams_.push_back({{i}, agents_[i].distance, false});
        while (one_team() && teams_.size() > 1) merge(0, 1);
    }

    // Plans every team at its own optimum (sum of costs) or within budget_ (makespan; raised if a team needs more), and merges
    // teams that collide, until all paths fit together. Infeasible: some team has no plan, so the whole problem has none.
    // Without waits, each team's cost and budget_ are the optimum found before, and the plan must attain them.
    Status coordinate(bool waits) {
        for (;;) {
            fixed_.clear();
            order_.clear();
            const int before = budget_;
            for (Team& team : teams_) {
                if (team.members.size() == 1) {
                    order_.push_back(team.members[0]);
                    continue;
                }
                if (!team.planned) {
                    if (effort_.spent()) return Status::undecided;
                    const Status status = waits ? plan(team) : plan_wait_free(team);
                    if (status != Status::solved) return status;
                    team.planned = true;
                }
            }
            if (budget_ > before) {
                if (fits_after_all()) return Status::solved;
                continue;
            }
            if (merge_colliding_teams()) continue;
            for (const Team& team : teams_) {
                if (team.members.size() == 1) continue;
                for (const int i : team.members) fixed_.push_back(&paths_[i]);
            }
            const int stuck = place_singles(budget_, waits);
            if (stuck < 0) return Status::solved;
            merge(team_of(stuck), team_of(blocker_of(stuck)));
        }
    }
    // After the makespan was raised, wait-free paths planned one by one may fit together, so that no team is needed.
    bool fits_after_all() {
        if (one_team()) return false;
        kept_paths_ = paths_;
        if (fits(budget_)) return true;
        paths_ = kept_paths_;
        return false;
    }
    Status plan(Team& team) {
        JointResult result;
        if (team.members.size() == 2) {
            const int i = team.members[0], j = team.members[1];
            result = search().pair(i, j, &paths_[i], &paths_[j]);
        } else {
            result = search().optimum(team.members, objective_ == Objective::makespan ? budget_ : team.cost, team_paths_);
            keep(team, result);
        }
        if (result.status != Status::solved) return result.status;
        team.cost = result.cost;
        if (objective_ == Objective::makespan) budget_ = std::max(budget_, result.cost);
        return Status::solved;
    }
    Status plan_wait_free(Team& team) {
        const int bound = objective_ == Objective::makespan ? budget_ : team.cost;
        if (team.members.size() == 2) {
            const int i = team.members[0], j = team.members[1];
            if (!search().within(i, j, bound, false)) return Status::infeasible;
            search().pair_paths(paths_[i], paths_[j]);
            return Status::solved;
        }
        const JointResult result = search().wait_free(team.members, bound, team_paths_);
        keep(team, result);
        return result.status;
    }
    void keep(const Team& team, const JointResult& result) {
        if (result.status != Status::solved) return;
        for (std::size_t a = 0; a < team.members.size(); ++a) paths_[team.members[a]] = team_paths_[a];
    }

    bool merge_colliding_teams() {
        for (std::size_t b = 1; b < teams_.size(); ++b) {
            for (std::size_t a = 0; a < b; ++a) {
                if (teams_[a].members.size() == 1 || teams_[b].members.size() == 1) continue;
                for (const int i : teams_[a].members) {
                    for (const int j : teams_[b].members) {
                        if (collision(paths_[i], paths_[j]) < 0) continue;
                        merge(a, b);
                        return true;
                    }
                }
            }
        }
        return false;
    }
    // The first step at which two paths meet, or -1 if they never do.
    static int collision(const Path& a, const Path& b) {
        const int steps = static_cast<int>(std::max(a.size(), b.size()));
        for (int step = 0; step < steps; ++step) {
            const int here_a = square_at(a, step), here_b = square_at(b, step);
            if (here_a == here_b) return step;
            if (square_at(a, step + 1) == here_b && square_at(b, step + 1) == here_a) return step;
        }
        return -1;
    }
    // The agent that a stuck agent would collide with first on its shortest path.
    int blocker_of(int stuck) {
        Path path;
        const std::vector<const Path*> met = others_;
        single_.plan(*grid_, agents_[stuck], agents_[stuck].distance, false, {}, path, effort_);
        int first = -1, blocker = -1;
        for (int i = 0; i < count_; ++i) {
            if (i == stuck || std::find(met.begin(), met.end(), &paths_[i]) == met.end()) continue;
            const int step = collision(path, paths_[i]);
            if (step >= 0 && (first < 0 || step < first)) first = step, blocker = i;
        }
        return blocker;
    }
    std::size_t team_of(int agent) const {
        std::size_t at = 0;
        while (std::find(teams_[at].members.begin(), teams_[at].members.end(), agent) == teams_[at].members.end()) ++at;
        return at;
    }
    void merge(std::size_t a, std::size_t b) {
        if (a > b) std::swap(a, b);
        Team& team = teams_[a];
        team.members.insert(team.members.end(), teams_[b].members.begin(), teams_[b].members.end());
        std::sort(team.members.begin(), team.members.end());
        team.cost += teams_[b].cost;
        team.planned = false;
        teams_.erase(teams_.begin() + static_cast<std::ptrdiff_t>(b));
    }

    Method method_;
    std::optional<Grid<W>> grid_;
    Objective objective_ = Objective::makespan;
    Effort effort_;
    int count_ = 0, lower_ = 0, budget_ = 0;
    bool searching_ = false;
    std::vector<Agent<W>> agents_;
    std::vector<Path> paths_, team_paths_, kept_paths_;
    std::vector<int> order_;
    std::vector<const Path*> fixed_, others_;
    std::vector<Team> teams_;
    SingleSearch<W> single_;
    TeamSearch<W> search_;
};

}  // namespace t2t
