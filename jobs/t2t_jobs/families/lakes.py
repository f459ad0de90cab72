"""Families over MAPF-FrozenLake: a step policy learns by PPO to lead its agents without a collision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_jobs.family import Base, Bound, Budget, Family, HiddenEvaluation, Part

SIZES = ("3", "4", "5", "6", "7", "8", "9", "10")


def base_folder(name: str) -> Path:
    """The folder of a shipped base. `python -m t2t_jobs.families.make_bases DIR` makes the bases anew."""
    return Path(__file__).parent / "bases" / name


BASES = {
    "narrow": Base(str(base_folder("narrow")), "a network of 64 units a layer, as it was drawn: it has learnt nothing"),
    "wide": Base(str(base_folder("wide")), "128 units a layer, after some steps with two agents on 3x3 and 4x4"),
}
FIXED: Mapping[str, Any] = {
    "policy": "ppo:{checkpoint}",
    "training": {"threads": 1},
    "validation": {"set": "validation_2agents", "limit": 1, "temperature": 0.0},
}


def start() -> dict[str, Any]:
    """A job that runs, and teaches little: the smallest maps, few and careful steps, the weaker base."""
    return {
        "base": "narrow",
        "trainer": "ppo",
        "rounds": 1,
        "generation": {"samples": 256, "agents": 2, "objective": "makespan", "repeats": "allow"},
        "configuration": {
            size: {"data_ratio": float(size == "3"), "hole_ratio": 0.2, "wait_ratio": 0.5} for size in SIZES
        },
        "training": {"steps": 20_000, "lakes": 64, "horizon": 32, "epochs": 4, "learning_rate": 1e-4, "entropy": 0.01},
        "reward": {},
    }  # fmt: skip


def bounds() -> dict[str, Bound]:
    """The keys of a job that may be edited, with their bounds."""
    made = {
        "base": Bound("choice", "the untrained model that training starts from", choices=tuple(BASES)),
        "generation.samples": Bound(
            "log-range", "maps generated, which are played again and again", low=64, high=2048, whole=True
        ),  # fmt: skip
        "generation.agents": Bound("choice", "agents on each map", choices=(2, 3)),
        "training.steps": Bound("log-range", "agent steps of training in all", low=5_000, high=300_000, whole=True),
        "training.lakes": Bound("choice", "maps that are played side by side", choices=(16, 32, 64, 128)),
        "training.horizon": Bound("choice", "steps of each between two updates", choices=(16, 32, 64)),
        "training.epochs": Bound("range", "passes over what was played", low=1, high=6, whole=True),
        "training.learning_rate": Bound("log-range", "falling linearly to a tenth", low=1e-5, high=1e-1),
        "training.entropy": Bound("log-range", "weight of the entropy bonus", low=1e-4, high=1e-1),
    }
    for size in SIZES:
        share = f"share of the maps that are {size}x{size}; shares sum to 1"
        made[f"configuration.{size}.data_ratio"] = Bound("range", share, low=0.0, high=1.0)
    return made


def _family(name: str, title: str, agents: int, columns: Sequence[str], best: Mapping[str, Any], held_out: bool) -> Family:
    frozen = "validation_2agents" if agents == 2 else f"{agents}agents"
    return Family(
        name=name,
        title=title,
        testbed="mapf-frozenlake",
        description=f"Teach a small network to lead {agents} agents over frozen lakes ({', '.join(columns)}) to their goals "
        "without a collision, by PPO on maps that the job draws. Score: the mean share of maps solved over these sizes.",
        bases=BASES,
        start=start(),
        bounds=bounds(),
        fixed=FIXED,
        evaluation=HiddenEvaluation((Part(frozen, "valid", tuple(columns), 40),)),
        teacher="cbs",
        budget=Budget(conversations=2048 * 6),
        best=best,
        held_out=held_out,
    )


def _drawn_from(sizes: Sequence[str]) -> dict[str, float]:
    """Equal shares of these sizes."""
    return {f"configuration.{size}.data_ratio": 1 / len(sizes) if size in sizes else 0.0 for size in SIZES}


STRONG: Mapping[str, Any] = {
    "base": "wide", "generation.samples": 1024, "training.steps": 300_000, "training.learning_rate": 2e-3,
}  # fmt: skip


def pairs(argument: str = "", settings: Mapping[str, str] | None = None) -> Family:
    """Two agents on lakes of middling size."""
    _no_argument(argument, settings, "pairs")
    best = {**STRONG, **_drawn_from(("4", "5", "6", "7"))}
    return _family("pairs", "lead two agents over lakes of middling size", 2, ("5x5", "6x6", "7x7", "8x8"), best, False)


def far_pairs(argument: str = "", settings: Mapping[str, str] | None = None) -> Family:
    """Two agents on large lakes."""
    _no_argument(argument, settings, "far-pairs")
    best = {**STRONG, **_drawn_from(("6", "7", "8", "9"))}
    return _family("far-pairs", "lead two agents over large lakes", 2, ("8x8", "9x9", "10x10"), best, False)


def trios(argument: str = "", settings: Mapping[str, str] | None = None) -> Family:
    """Three agents on small lakes; no agent is trained on it."""
    _no_argument(argument, settings, "trios")
    best = {**STRONG, "generation.agents": 3, **_drawn_from(("3", "4", "5"))}
    return _family("trios", "lead three agents over small lakes", 3, ("3x3", "4x4", "5x5"), best, True)


def _no_argument(argument: str, settings: Mapping[str, str] | None, name: str) -> None:
    if argument or settings:
        raise T2TError(f"the family {name} takes no argument and no settings", next=f"--family {name}")
