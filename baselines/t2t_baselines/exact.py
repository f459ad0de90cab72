"""The exact solver as a policy."""

from __future__ import annotations

from t2t_core.seeding import Stream
from t2t_core.settings import integer
from t2t_envs.frozen_lake.instance import Instance
from t2t_envs.frozen_lake.solver import DEFAULT_MAX_NODES, SearchLimitError, UnsolvableError, solve

from .solver_policy import NoPlan, Paths, SolverPolicy


class Exact(SolverPolicy):
    """The exact solver on the instance's own objective, without its stored labels: 100 % valid and 100 % optimal, or the
    labels are wrong.

    It is called `cbs` after Conflict-Based Search (Sharon, Stern, Felner, Sturtevant, "Conflict-based search for optimal
    multi-agent pathfinding", Artificial Intelligence 219, 2015), which the paper's generator builds on. The search itself is
    the native core, or the Conflict-Based Search in Python if the core is not built. An instance proven infeasible or left
    undecided at `max_nodes` is an error, never a guess. Its only expected weakness is time, which grows exponentially with the
    number of agents in each other's way.
    """

    name = "cbs"
    readers = {"max_nodes": integer(1, 10**12)}

    def plan(self, instance: Instance, stream: Stream) -> Paths:
        try:
            return solve(instance, max_nodes=self.settings.get("max_nodes", DEFAULT_MAX_NODES)).paths
        except (UnsolvableError, SearchLimitError) as reason:
            raise NoPlan(reason.what) from None
