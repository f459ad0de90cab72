"""A small family and a pretend room of jobs, for the tests of agents: what a job scores follows from its values alone."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

from t2t_core.hookspecs import Exchange
from t2t_core.records import AgentTurn
from t2t_core.store.paths import SafePath
from t2t_jobs.episode import Done, Probed
from t2t_jobs.family import Base, Bound, Budget, Family, HiddenEvaluation, Part, value_at, values_of
from t2t_jobs.job import Failure, Job, read_job

GROUPS = {"0.75-1": (0.75, 1.0), "0.5-0.75": (0.5, 0.75), "0.25-0.5": (0.25, 0.5), "0-0.25": (0.0, 0.25)}
START: Mapping[str, Any] = {
    "base": "small",
    "trainer": "grpo",
    "rounds": 1,
    "generation": {"samples": 64},
    "configuration": {
        name: {"share": float(name == "0.75-1"), "p_low": low, "p_high": high, "first": 0.5, "mid_game": 0.0}
        for name, (low, high) in GROUPS.items()
    },
    "training": {"group": 4, "epochs": 1, "learning_rate": 1e-5},
    "reward": {"outcome": 1.0},
}
BOUNDS = {
    "base": Bound("choice", "what training starts from", choices=("small", "large")),
    "generation.samples": Bound("log-range", "games a round", low=16, high=2048, whole=True),
    "training.learning_rate": Bound("log-range", low=1e-6, high=1e-2),
    **{f'configuration."{name}".share': Bound("range", "share of the games", high=1.0) for name in GROUPS},
}
BUDGET = Budget(cpu_seconds=20, conversations=4096, submissions=3, turns=6, tokens=5000, usd=0.5, seconds=600)


def family(name: str = "pretend", budget: Budget = BUDGET, held_out: bool = False) -> Family:
    return Family(
        name=name,
        title="Draw",
        testbed="tictactoe",
        description="Teach a small model to draw.",
        bases={"small": Base("tiny:tictactoe", "the weaker one"), "large": Base("tiny:tictactoe", "the stronger one")},
        start=START,
        bounds=BOUNDS,
        fixed={"policy": "tiny:{checkpoint}", "validation": {"prompt_format": "compact"}},
        evaluation=HiddenEvaluation((Part("optimal", "draw"),)),
        teacher="minimax",
        budget=budget,
        held_out=held_out,
    )


class PretendDesk:
    """Jobs that are through `delay` questions after they were submitted; the larger base and a learning rate near 1e-3 score
    more."""

    def __init__(self, of: Family, delay: int = 0) -> None:
        self.family, self.delay = of, delay
        self.jobs: dict[str, Job] = {}
        self.asked: dict[str, int] = {}
        self.submitted: list[str] = []

    def baselines(self) -> Mapping[str, float]:
        return {"small": 0.1, "large": 0.25}

    def probe(self, folder: SafePath) -> Probed:
        job, failures = read_job(folder, self.family)
        if job is not None and not failures and job.conversations > self.family.budget.conversations:
            failures.append(Failure("the job is beyond its budget", where="job.toml, generation.samples"))
        return Probed(changed(job), failures)

    def submit(self, folder: SafePath, job: str) -> None:
        self.submitted.append(job)
        self.jobs[job] = read_job(folder, self.family)[0]

    def done(self, job: str) -> Done | None:
        self.asked[job] = self.asked.get(job, 0) + 1
        if self.asked[job] <= self.delay:
            return None
        values = self.jobs[job].values
        rate = value_at(values, "training.learning_rate")
        near = 1 - abs(log10(rate) + 3) / 4
        return Done(self.baselines(), (0.25 if values["base"] == "large" else 0.1) + 0.5 * near, cpu_seconds=5.0)


def changed(job: Job | None) -> dict[str, Any] | None:
    """A job's values as far as they differ from those it started from, and its base."""
    if job is None:
        return None
    start = job.family.start
    return {key: value for key, value in values_of(job.values).items() if key == "base" or value != value_at(start, key)}


def told(*results: str) -> Exchange:
    """A turn whose calls came to that."""
    return Exchange(AgentTurn(""), list(results))
