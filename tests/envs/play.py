"""Helpers of the environments' tests: random instances (solvable or not) and joint actions, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from t2t_envs.frozen_lake.instance import Instance

# Two agents side by side whose goals are one step away: solved at once by (2, 2), a conflict by (2, 0), a fall by (1, 2).
TINY = Instance(3, holes=[(1, 0)], starts=[(0, 0), (0, 1)], goals=[(0, 1), (0, 2)], optimal_makespan=1, optimal_sum_of_costs=2)


@st.composite
def instances(draw: st.DrawFn, max_size: int = 5, max_agents: int = 4) -> Instance:
    """Small and crowded, so that falls, conflicts and arrivals all happen."""
    size = draw(st.integers(3, max_size))
    cells = draw(st.permutations([(r, c) for r in range(size) for c in range(size)]))
    agents = draw(st.integers(1, max_agents))
    holes = cells[: draw(st.integers(0, size * size // 3))]
    free = cells[len(holes) :]
    goals = draw(st.permutations(free))[:agents]
    optima = st.one_of(st.none(), st.integers(0, 6))
    return Instance(
        size,
        holes=holes,
        starts=free[:agents],
        goals=goals,
        objective=draw(st.sampled_from(["makespan", "sum_of_costs"])),
        optimal_makespan=draw(optima),
        optimal_sum_of_costs=draw(optima),
    )


def joint_actions(agents: int, max_steps: int = 12) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(st.integers(0, 4), min_size=agents, max_size=agents), min_size=1, max_size=max_steps)
