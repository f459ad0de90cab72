"""Families over MAPF-FrozenLake: the toy policy learns from exact answers to go with more agents than it was taught with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.errors import T2TError
from t2t_jobs.family import Base, Bound, Budget, Family, HiddenEvaluation, Part

SIZES = ("3", "4", "5", "6", "7", "8", "9", "10")
BASES = {
    "pairs": Base("tiny:2agents", "answers well for two agents, and has never seen three"),
    "trios": Base("tiny:weak", "a short warm-up on two and three agents; half of its answers on small maps are valid"),
}
FIXED: Mapping[str, Any] = {
    "policy": "tiny:{checkpoint}",
    "training": {"answers_from": "cbs", "max_tokens": 160, "save_every": 10_000, "threads": 1},
    "validation": {"set": "validation_2agents", "limit": 1, "temperature": 0.0, "max_tokens": 160},
}


def start(agents: int) -> dict[str, Any]:
    """A job that runs, and teaches little: large maps, a careful learning rate, the base that looks better."""
    return {
        "base": "pairs",
        "trainer": "trl-sft",
        "rounds": 1,
        "generation": {"samples": 256, "agents": agents, "objective": "makespan", "repeats": "allow"},
        "configuration": {
            size: {"data_ratio": float(size == "10"), "hole_ratio": 0.2, "wait_ratio": 0.5} for size in SIZES
        },
        "training": {"epochs": 1, "batch": 32, "learning_rate": 1e-5},
    }  # fmt: skip


def bounds(agents: int) -> dict[str, Bound]:
    """What of a job may be edited."""
    made = {
        "base": Bound("choice", "the untrained model that training starts from", choices=tuple(BASES)),
        "generation.samples": Bound("log-range", "maps generated a round, each with an optimal answer", low=32, high=2048, whole=True),
        "generation.agents": Bound("choice", "agents on each map", choices=tuple(range(2, agents + 1))),
        "training.epochs": Bound("range", "passes over them", low=1, high=4, whole=True),
        "training.batch": Bound("choice", "answers an update", choices=(8, 16, 32, 64)),
        "training.learning_rate": Bound("log-range", "at first, falling to zero; 1e-3 moves this model well", low=1e-6, high=1e-2),
    }
    for size in SIZES:
        what = f"share of the maps that are {size}x{size}; shares sum to 1"
        made[f"configuration.{size}.data_ratio"] = Bound("range", what, low=0.0, high=1.0)
    return made


def _family(name: str, title: str, agents: int, columns: Sequence[str], limit: int) -> Family:
    sizes = ", ".join(columns)
    return Family(
        name=name,
        title=title,
        testbed="mapf-frozenlake",
        description=f"Teach a small model to lead {agents} agents over frozen lakes of {sizes} cells without a collision, by exact "
        "answers to maps that the job has drawn. Score: the mean share of valid answers over these sizes.",
        bases=BASES,
        start=start(agents),
        bounds=bounds(agents),
        fixed=FIXED,
        evaluation=HiddenEvaluation((Part(f"{agents}agents", "valid", tuple(columns), limit),)),
        teacher="cbs",
        budget=Budget(conversations=2048),
    )


def trios(argument: str = "", settings: Mapping[str, str] | None = None) -> Family:
    """Three agents on small maps."""
    if argument or settings:
        raise T2TError("the family three-agents takes no argument and no settings", next="--family three-agents")
    return _family("three-agents", "lead three agents over small lakes", 3, ("3x3", "4x4", "5x5"), 40)
