"""The outer loop: groups of episodes, and an agent that learns from what their jobs achieved.

    OUT/run.json                    agent, families, seed, settings
    OUT/queue/, OUT/costs.jsonl     see `t2t_jobs.room`
    OUT/groups/7/episode_3/         an episode (`t2t_jobs.episode`)
    OUT/versions/2/                 the agent after two updates, with `step.json`, the figures of the second

A group is played by the newest version there is, and its jobs run while the agent learns from other groups. A step takes the
first groups whose jobs have all ended, so a slow job holds up only its own group. A group more than `lag` updates behind is left
out. If the process is killed, the same call continues everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from t2t_core.closing import close
from t2t_core.errors import T2TError
from t2t_core.store import folders, locks
from t2t_core.store.paths import SafePath
from t2t_jobs.agents.llm import LanguageModelAgent
from t2t_jobs.family import Family
from t2t_jobs.hidden import make_family
from t2t_jobs.room import POLL, Room
from t2t_jobs.training.acting import Trainee
from t2t_jobs.training.figures import StepRecord, step_record
from t2t_jobs.training.groups import Group, GroupPlan, family_of, planned
from t2t_jobs.training.learner import STATE, Learner
from t2t_jobs.training.settings import OuterSettings

KIND = "agent's training"
STEP = "step.json"


@dataclass(frozen=True)
class OuterPlan:
    """Which agent is trained on which families, and how."""

    agent: str
    families: Sequence[str]
    seed: int
    settings: OuterSettings

    def to_dict(self) -> dict[str, Any]:
        own = {"agent": self.agent, "families": list(self.families), "seed": self.seed}
        return {**own, "settings": asdict(self.settings)}


def train_agent(
    plan: OuterPlan, folder: SafePath, make_room: Callable[[SafePath], Room], say: Callable[[str], None] = lambda line: None
) -> list[StepRecord]:
    """Run every step of the plan, or continue it. Returns the figures of all steps."""
    families = {name: make_family(name) for name in plan.families}
    held_out = [name for name, family in families.items() if family.held_out]
    if held_out or not families:
        raise T2TError(
            f"no agent is trained on {', '.join(held_out)}, which is held out" if held_out else "there is no family to train on",
            where="t2t train-agent",
        )
    Trainee.parse(plan.agent)
    with locks.locked(folder):
        folders.open_manifest(folder, KIND, plan.to_dict(), "training")
        with make_room(folder) as room, closing(_Loop(plan, folder, room, families, say)) as loop:
            loop.run()
    return read_steps(folder)


class _Loop:
    def __init__(
        self, plan: OuterPlan, folder: SafePath, room: Room, families: Mapping[str, Family], say: Callable[[str], None]
    ) -> None:
        self._plan, self._folder, self._room, self._families, self._say = plan, folder, room, families, say
        self._settings, self._versions = plan.settings, folder / "versions"
        self._trainee = Trainee.parse(plan.agent)
        self._learner = Learner(self._trainee.start, self._settings, self._versions)
        self._steps = read_steps(folder)
        if not (self._versions / "0").exists():
            self._write_version(None)
        if self._steps:
            self._learner.load(len(self._steps))
        self._agents: dict[int, LanguageModelAgent] = {}
        self._gone = {number for step in self._steps for number in (*step.groups, *step.stale)}
        self._open: dict[int, Group] = {}
        self._stale: list[int] = []  # groups left out since the last step
        self._begun = 0
        while self._group_folder(self._begun).exists():  # groups that a killed loop had begun
            self._begun += 1

    @property
    def _step(self) -> int:
        return len(self._steps)

    def _group_folder(self, number: int) -> SafePath:
        return self._folder / "groups" / str(number)

    def run(self) -> None:
        for number in range(self._begun):
            if number not in self._gone:
                self._begin(number)
        while self._step < self._settings.steps:
            self._leave_out_stale()
            while len(self._open) < self._most_open():
                self._begin(self._begun)
                self._begun += 1
            ready = [number for number, group in sorted(self._open.items()) if group.through()]
            if len(ready) >= self._settings.groups:
                self._learn(ready[: self._settings.groups])
            else:
                self._room.keep_going()
                time.sleep(POLL)

    def _most_open(self) -> int:
        """How many groups should be under way; no more than the remaining steps need."""
        left = (self._settings.steps - self._step) * self._settings.groups
        return min(left, self._settings.groups + self._settings.ahead)

    def _begin(self, number: int) -> None:
        """Begin a group, or continue it with the version that its plan names."""
        folder = self._group_folder(number)
        name = family_of(number, self._plan.families, self._plan.seed)
        wish = GroupPlan(number=number, family=name, version=self._step, size=self._settings.group)
        plan = planned(folder, wish)
        group = Group(plan, folder, self._families[plan.family], self._plan.agent, self._plan.seed, self._room)
        self._open[number] = group
        if not group.played:
            group.play(self._agent(plan.version))

    def _agent(self, version: int) -> LanguageModelAgent:
        """The agent of that version. Versions that no open group needs are closed."""
        needed = {version, *(group.plan.version for group in self._open.values())}
        for other in [other for other in self._agents if other not in needed]:
            close(self._agents.pop(other))
        if version not in self._agents:
            self._agents[version] = self._trainee.at(version, self._versions, bool(self._settings.lora_rank))
        return self._agents[version]

    def _leave_out_stale(self) -> None:
        for number in [n for n, group in self._open.items() if self._step - group.plan.version > self._settings.lag]:
            self._open.pop(number).close()
            self._stale.append(number)

    def _learn(self, ready: Sequence[int]) -> None:
        groups = [self._open[number] for number in ready]
        lags = [self._step - group.plan.version for group in groups]
        turns = [turn for group in groups for turn in group.turns(self._agent(group.plan.version))]
        learnt = self._learner.update(turns)
        self._learner.version = self._step + 1
        results = [result for group in groups for result in group.results if result is not None]
        record = step_record(self._step + 1, ready, lags, self._stale, results, self._families, learnt)
        self._write_version(record)
        self._steps.append(record)
        self._stale = []
        for number in ready:
            self._open.pop(number).close()
        self._say(in_short(record))

    def _write_version(self, record: StepRecord | None) -> None:
        """Write the agent's current version, atomically. A version too old to learn from keeps only its weights."""
        number = record.step if record else 0
        with folders.building(self._versions / str(number)) as folder:
            self._learner.save(folder)
            if record:
                folders.write_json(folder / STEP, record)
        old = number - self._settings.lag - 1
        if old >= 0:
            folders.remove(self._versions / str(old) / STATE)

    def close(self) -> None:
        for group in self._open.values():
            group.close()
        for agent in self._agents.values():
            close(agent)


def in_short(record: StepRecord) -> str:
    """One line about a step."""
    score = f", hidden score {record.score:.3f}, gain {record.gain:+.3f}" if record.score is not None else ""
    stronger = f", {100 * record.stronger:.0f} % from the stronger base" if record.stronger is not None else ""
    return f"step {record.step}: reward {record.reward:.3f}, {100 * record.valid:.0f} % valid{score}{stronger}"


def read_steps(folder: SafePath) -> list[StepRecord]:
    """The figures of every finished step."""
    steps: list[StepRecord] = []
    while (path := folder / "versions" / str(len(steps) + 1) / STEP).exists():
        steps.append(folders.read_record(path, StepRecord))
    return steps
