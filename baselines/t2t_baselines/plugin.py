"""What this room brings through the door."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_policies(registry: Registry) -> None:
    registry.add("cbs", "t2t_baselines.exact:Exact", "the exact solver, optimal in the instance's own objective")
    registry.add("prioritized", "t2t_baselines.prioritized:Prioritized", "prioritised planning in a few random orders")
    registry.add("pibt", "t2t_baselines.pibt:Pibt", "priority inheritance with backtracking")
    registry.add("independent", "t2t_baselines.independent:Independent", "shortest paths that ignore the other agents")
    registry.add("random", "t2t_baselines.random_walk:RandomWalk", "random legal walk")
