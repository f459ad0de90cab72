"""A group: episodes of one family and one hidden evaluation, played by one version of the agent and compared with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2t_core.seeding import Stream, key
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_jobs.agents.llm import LanguageModelAgent
from t2t_jobs.episode import EpisodeResult, Setup
from t2t_jobs.family import Family
from t2t_jobs.playing import play
from t2t_jobs.room import Room, close_all
from t2t_jobs.training.advantages import advantages
from t2t_jobs.training.learner import Spoken

PLAN = "group.json"


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """`groups/7/group.json`."""

    number: int
    family: str
    version: int
    size: int


class Group:
    """A group under way in its folder."""

    def __init__(self, plan: GroupPlan, folder: SafePath, family: Family, spec: str, seed: int, room: Room) -> None:
        self.plan = plan
        self.episodes = [
            room.begin(folder / f"episode_{index}", _setup(plan, index, family, spec, seed), f"{seed}-group-{plan.number}")
            for index in range(plan.size)
        ]
        self.results: list[EpisodeResult | None] = [None] * plan.size

    def play(self, agent: LanguageModelAgent) -> None:
        """Play all turns of all episodes."""
        play([episode for episode in self.episodes if episode.over is None], agent)

    @property
    def played(self) -> bool:
        """Whether every episode has had its last turn; its job may still run."""
        return all(episode.over is not None for episode in self.episodes)

    def through(self) -> bool:
        """Whether every job has ended."""
        for index, episode in enumerate(self.episodes):
            if self.results[index] is None:
                self.results[index] = episode.result()
        return all(result is not None for result in self.results)

    def rewards(self) -> list[float]:
        """The reward of every episode, once all have ended."""
        return [result.total for result in self.results if result is not None]

    def turns(self, agent: LanguageModelAgent) -> list[Spoken]:
        """Every turn of the group, with its episode's advantage; empty if all episodes earned the same."""
        spoken = []
        for episode, advantage in zip(self.episodes, advantages(self.rewards()), strict=True):
            for said in episode.turns if advantage else ():
                state = episode.state(said.turn)
                sampling = agent.sampling_of(state)
                ended = said.completion_tokens is None or said.completion_tokens < sampling.max_tokens
                spoken.append(Spoken(agent.messages(state), said.text, ended, self.plan.version, advantage, sampling.temperature))
        return spoken

    def close(self) -> None:
        close_all(self.episodes)


def _setup(plan: GroupPlan, index: int, family: Family, spec: str, seed: int) -> Setup:
    return Setup(f"g{plan.number}-{index}", family, f"{spec}@{plan.version}", key(seed, "episode", plan.number, index) >> 11)


def family_of(number: int, families: Sequence[str], seed: int) -> str:
    """The family of a group. Each block of `len(families)` groups has every family once, in an order drawn for the block."""
    block = list(families)
    Stream.of(seed, "families", number // len(block)).shuffle(block)
    return block[number % len(block)]


def planned(folder: SafePath, plan: GroupPlan) -> GroupPlan:
    """The plan in the group's folder; if there is none, `plan` is written there."""
    if not (folder / PLAN).exists():
        folders.write_json(folder / PLAN, plan)
    return folders.read_record(folder / PLAN, GroupPlan)
