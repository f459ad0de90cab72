"""A small family and a pretend pool for jobs, for the tests of agents: a job's score depends only on its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log10
from pathlib import Path
from typing import Any

from t2t_core.hookspecs import Exchange
from t2t_core.plugins import installed
from t2t_core.records import AgentTurn
from t2t_core.store.paths import SafePath
from t2t_jobs.episode import Done, Probed
from t2t_jobs.family import Base, Bound, Budget, Family, HiddenEvaluation, Part, value_at
from t2t_jobs.hidden import make_family
from t2t_jobs.job import Failure, Job, read_job
from t2t_jobs.office import changes_of
from t2t_jobs.queue import JobResult, Order, Queue

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
    "reward": {"win": 1.0},
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
        return Probed(changes_of(job) if job else None, failures)

    def submit(self, folder: SafePath, job: str) -> None:
        self.submitted.append(job)
        self.jobs[job] = read_job(folder, self.family)[0]

    def done(self, job: str) -> Done | None:
        self.asked[job] = self.asked.get(job, 0) + 1
        if self.asked[job] <= self.delay:
            return None
        return Done(self.baselines(), score_of(self.jobs[job]), cpu_seconds=5.0)


def told(*results: str) -> Exchange:
    """A turn whose calls had these results."""
    return Exchange(AgentTurn(""), list(results))


class PretendPool:
    """Does every waiting job of a queue at once; a job's score depends only on its values. `fails` names jobs that die."""

    def __init__(
        self, fails: Callable[[str], bool] = lambda job: False, holds: Callable[[str], bool] = lambda job: False
    ) -> None:
        self.fails, self.holds, self.done = fails, holds, list[str]()

    def start(self, queue: Path) -> None:
        place = Queue(queue)
        place.requeue_dead()
        held = []
        while claim := place.claim("pretend"):
            if self.holds(claim.order.id):
                held.append(claim)
                continue
            self.done.append(claim.order.id)
            place.finish(claim, self._result(place, claim.order))
        for claim in held:
            place.give_back(claim)

    def _result(self, place: Queue, order: Order) -> JobResult:
        job, _ = read_job(place.job_folder(order.id), make_family(order.family))
        pre = {"small": 0.1, "large": 0.25}
        dead = self.fails(order.id)
        return JobResult(
            job_id=order.id, family=order.family, episode=order.episode, succeeded=not dead, base=job.base, pre=pre,
            post=None if dead else score_of(job), failure="it died" if dead else "", cpu_seconds=2.0,
        )  # fmt: skip

    def stop(self) -> None:
        pass


def score_of(job: Job) -> float:
    """The larger base and a learning rate near 1e-3 score more."""
    near = 1 - abs(log10(value_at(job.values, "training.learning_rate")) + 3) / 4
    return (0.25 if job.values["base"] == "large" else 0.1) + 0.5 * near


def register(pool: Any = None, *, families: Sequence[str] = ("pretend", "other"), held_out: str = "kept") -> Any:
    """Put pretend families and the pool "pretend" into the registries; a fixture takes them out again."""
    plugins, pool = installed(), pool or PretendPool()
    for name in families:
        plugins.families.add(name, lambda argument, settings, name=name: family(name), "a family for tests")
    plugins.families.add(held_out, lambda argument, settings: family(held_out, held_out=True), "a family for tests")
    plugins.pools.add("pretend", lambda argument, settings: pool, "a pool for tests")
    return pool
