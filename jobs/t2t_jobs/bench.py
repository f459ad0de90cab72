"""Compares agents: every agent on every family, over the same hidden evaluations, with the same allowance of tries before them.

    OUT/run.json                             agents, families, seeds, how many episodes
    OUT/queue/, OUT/costs.jsonl              see `room`
    OUT/seed_0/0-AGENT/FAMILY/try_3/         a try; tries run one after another, and each sees the ones before it
    OUT/seed_0/0-AGENT/FAMILY/final_3/       an episode that counts: the agent submits the best job it knows
    OUT/bench.json                           the figures

Each final episode of a family and seed has its own hidden evaluation, which is the same for all agents.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from t2t_core.closing import close
from t2t_core.plugins import installed
from t2t_core.seeding import key
from t2t_core.store import folders, locks
from t2t_core.store.paths import SafePath
from t2t_jobs.episode import Episode, EpisodeResult, Setup
from t2t_jobs.family import Family
from t2t_jobs.hidden import make_family
from t2t_jobs.playing import play
from t2t_jobs.room import POLL, Room, close_all

KIND = "bench of agents"
RESULT = "bench.json"


@dataclass(frozen=True)
class BenchPlan:
    """What is compared. For each agent, family and seed there are up to `tries` episodes to learn from, until their jobs have
    taken `cpu_seconds` together (None: no limit), and then `episodes` that count."""

    agents: Sequence[str]
    families: Sequence[str]
    episodes: int
    tries: int = 0
    seeds: Sequence[int] = (0,)
    cpu_seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, list | tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One agent on one family with one seed: figures of its final episodes, and what all of its episodes cost."""

    agent: str
    family: str
    held_out: bool
    seed: int
    rewards: list[float]
    scores: list[float | None]
    gains: list[float | None]
    valid: int
    jobs: int
    cpu_seconds: float
    tokens: int
    usd: float


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """`bench.json`."""

    agents: list[str]
    families: list[str]
    entries: list[Entry] = field(default_factory=list)


def run_bench(
    plan: BenchPlan, folder: SafePath, make_room: Callable[[SafePath], Room], say: Callable[[str], None] = lambda line: None
) -> BenchResult:
    """Run everything that the plan names, or continue it."""
    with locks.locked(folder):
        folders.open_manifest(folder, KIND, plan.to_dict(), "bench")
        agents = {spec: installed().agents.make(spec) for spec in plan.agents}
        families = {name: make_family(name) for name in plan.families}
        try:
            with make_room(folder) as room:
                lanes = [
                    Lane(plan, number, spec, agents[spec], family, seed, room)
                    for seed in plan.seeds
                    for number, spec in enumerate(plan.agents)
                    for family in families.values()
                ]
                _run(lanes, room, say)
        finally:
            for agent in agents.values():
                close(agent)
        result = BenchResult(agents=list(plan.agents), families=list(plan.families), entries=[lane.entry() for lane in lanes])
        folders.write_json(folder / RESULT, result)
        return result


def _run(lanes: Sequence[Lane], room: Room, say: Callable[[str], None]) -> None:
    going = list(lanes)
    try:
        while going:
            ended = [line for lane in going for line in lane.advance()]
            for line in ended:
                say(line)
            going = [lane for lane in going if not lane.done]
            if going and not ended:
                room.keep_going()
                time.sleep(POLL)
    finally:
        for lane in lanes:
            close_all(lane.open)


class Lane:
    """One agent on one family with one seed: its tries one after another, then its final episodes at the same time."""

    def __init__(self, plan: BenchPlan, number: int, spec: str, agent: Any, family: Family, seed: int, room: Room) -> None:
        self._plan, self._spec, self._agent, self._family, self._seed, self._room = plan, spec, agent, family, seed, room
        slug = re.sub(r"[^A-Za-z0-9]+", "-", spec).strip("-")[:30]
        self._folder = room.folder / f"seed_{seed}" / f"{number}-{slug}" / family.name
        self._name = f"{seed}-{number}-{family.name}"
        self.tries: list[EpisodeResult] = []
        self.final: dict[int, EpisodeResult] = {}
        self.open: list[Episode] = []

    @property
    def done(self) -> bool:
        return len(self.final) == self._plan.episodes

    def advance(self) -> Iterator[str]:
        """Open the episodes that may begin, and collect those that have ended. Yields a line for each one that ended."""
        if not self.open and not self.done:
            self.open = list(self._next())
            play([episode for episode in self.open if episode.over is None], self._agent, self._room.usd_left)
        for episode in list(self.open):
            result = episode.result()
            if result is None:
                continue
            self.open.remove(episode)
            episode.close()
            self._take(episode, result)
            yield f"{self._spec} on {self._family.name}, {episode.folder.name}: reward {result.total:.3f}"

    def _next(self) -> Iterator[Episode]:
        spent, limit = sum(result.cpu_seconds for result in self.tries), self._plan.cpu_seconds
        if len(self.tries) < self._plan.tries and (limit is None or spent < limit):
            yield self._episode("try", len(self.tries))
        else:
            yield from (self._episode("final", number) for number in range(self._plan.episodes))

    def _episode(self, kind: str, number: int) -> Episode:
        past = tuple(result.tried() for result in self.tries)
        seed = key(self._seed, "bench", self._family.name, kind, number) >> 11
        setup = Setup(f"{self._name}-{kind}-{number}", self._family, self._spec, seed, past, final=kind == "final")
        return self._room.begin(self._folder / f"{kind}_{number}", setup, f"{self._seed}-{self._family.name}-{kind}-{number}")

    def _take(self, episode: Episode, result: EpisodeResult) -> None:
        kind, _, number = episode.folder.name.partition("_")
        if kind == "try":
            self.tries.append(result)
        else:
            self.final[int(number)] = result

    def entry(self) -> Entry:
        """The figures, once every episode has ended."""
        counted = [self.final[number] for number in sorted(self.final)]
        every = [*self.tries, *counted]
        return Entry(
            agent=self._spec,
            family=self._family.name,
            held_out=self._family.held_out,
            seed=self._seed,
            rewards=[result.total for result in counted],
            scores=[result.post for result in counted],
            gains=[gain_of(result) for result in counted],
            valid=sum(result.valid_at is not None for result in counted),
            jobs=sum(result.valid_at is not None for result in every),
            cpu_seconds=round(sum(result.cpu_seconds for result in every), 1),
            tokens=sum(result.tokens for result in every),
            usd=sum(result.usd for result in every),
        )


def gain_of(result: EpisodeResult) -> float | None:
    """The trained model's score minus that of the best untrained base; None if the job trained no model."""
    return None if result.post is None or result.best_pre is None else result.post - result.best_pre


def by_agent(result: BenchResult) -> Mapping[str, list[Entry]]:
    """The entries of each agent."""
    return {agent: [entry for entry in result.entries if entry.agent == agent] for agent in result.agents}
