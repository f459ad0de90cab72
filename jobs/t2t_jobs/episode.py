"""One episode: an agent is given a family, writes a job in a workspace, submits it, and is rewarded for what the job taught a
model.

    EPISODE/run.json            family, agent, seed, and what each session ran with
    EPISODE/calls.jsonl         every turn and every call, as it happened
    EPISODE/workspace/          the files as the agent left them
    EPISODE/submissions/1/      what it submitted
    EPISODE/episode.json        how it ended, and its reward; no times, so the same episode gives the same file

An episode has two halves. In the first, the agent takes turns until a submission is valid or a budget is spent. In the second, a
worker runs the job, and nothing here waits for it: `result` is None until the job has ended. If the process is killed, both
halves continue from where they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from t2t_core.errors import T2TError
from t2t_core.hookspecs import EpisodeState, Tried
from t2t_core.records import AgentTurn, ToolCall
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_jobs.briefing import opening_files, task_text
from t2t_jobs.family import Family
from t2t_jobs.reward import DEFAULT, RewardSettings, Trained, episode_reward
from t2t_jobs.tools import Submitted, Toolbox
from t2t_jobs.transcript import Fault, Said, Submission, Transcript
from t2t_jobs.workspace import Workspace

KIND = "job episode"
RESULT = "episode.json"
CALLS = "calls.jsonl"


@dataclass(frozen=True)
class Probed:
    """What the probe says of a workspace: the job's values, if one could be read, and everything that is wrong with it."""

    values: Mapping[str, Any] | None
    faults: Sequence[T2TError] = ()


@dataclass(frozen=True)
class Done:
    """A job that has ended. `pre` holds the hidden score of every untrained base, and `post` the score after training, or None if
    the job died (`failure` says why)."""

    pre: Mapping[str, float]
    post: float | None
    cpu_seconds: float = 0.0
    failure: str = ""


class Desk(Protocol):
    """What an episode needs from the side that runs jobs (`t2t_jobs.office.Office`)."""

    def baselines(self) -> Mapping[str, float]:
        """The hidden scores of the untrained bases."""
        ...

    def probe(self, folder: SafePath) -> Probed:
        """Check the job in a folder: the job, if there is one, and everything that is wrong with it."""
        ...

    def submit(self, folder: SafePath, job: str) -> None:
        """Queue the folder's job under this name. Does nothing if the name was submitted before."""
        ...

    def done(self, job: str) -> Done | None:
        """The job's result; None until it has ended."""
        ...


@dataclass(frozen=True)
class Setup:
    """What defines an episode: its name (its job and its costs carry it too), the family, the agent and the seed.

    `past` lists earlier episodes that the agent may learn from. If `final` is True, the agent submits the best job it knows
    instead of trying something new. `allow_code` names the files of code that its job may bring."""

    name: str
    family: Family
    agent: str
    seed: int
    past: Sequence[Tried] = ()
    final: bool = False
    reward: RewardSettings = DEFAULT
    allow_code: Sequence[str] = ()

    def settings(self) -> dict[str, Any]:
        """The settings that the manifest records."""
        plain = {"name": self.name, "family": self.family.name, "agent": self.agent, "seed": self.seed, "final": self.final}
        plain |= {"allow_code": list(self.allow_code)} if self.allow_code else {}
        return {**plain, "past": len(self.past), "reward": asdict(self.reward), "budget": asdict(self.family.budget)}


@dataclass(frozen=True, kw_only=True)
class EpisodeResult:
    """`episode.json`.

    Args:
        ended: why the turns ended: "submitted", or the budget that was used up ("submissions", "turns", "tokens", "usd",
            "seconds").
        submissions: every submission, with what was wrong with it.
        valid_at: the number of the valid submission, from 1; None if none was valid.
        base, values: the valid job's base, and those of its values that differ from the start job's.
        pre, best_pre, post: hidden scores of the untrained bases, of the best of them, and of the trained model.
        failure: why the job died, if it did.
        reward: its parts before their weights, and the total.
    """

    name: str
    family: str
    agent: str
    seed: int
    final: bool
    ended: str
    turns: int
    tokens: int
    usd: float
    submissions: list[Submission]
    parsable: bool
    valid_at: int | None = None
    base: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    pre: dict[str, float] = field(default_factory=dict)
    best_pre: float | None = None
    post: float | None = None
    cpu_seconds: float = 0.0
    failure: str = ""
    reward: dict[str, float]

    @property
    def total(self) -> float:
        """The episode's reward."""
        return self.reward["total"]

    def tried(self) -> Tried:
        """What a later episode may learn from this one."""
        return Tried(self.values, self.total, self.post)


Charge = Callable[[str, int, int, float], None]


def _free(call: str, prompt: int, completion: int, usd: float) -> None:
    """Records no costs."""


class Episode:
    """An episode under way in its folder.

    Args:
        folder: this episode's folder; the caller holds a lock on it or on a folder above it.
        setup: what defines the episode.
        desk: the side that probes and runs jobs.
        charge: called for every answer with its name, tokens in and out, and USD. It must count a repeated name once.
    """

    def __init__(self, folder: SafePath, setup: Setup, desk: Desk, charge: Charge = _free) -> None:
        self.folder, self.setup, self._desk, self._charge = folder, setup, desk, charge
        folders.open_manifest(folder, KIND, setup.settings(), "episode")
        self._log = Transcript(folder / CALLS)
        self._spent = self._log.at
        self._began = time.monotonic()
        self._workspace = Workspace(folder / "workspace", opening_files(setup.family, setup.allow_code))
        self._task = task_text(setup.family, setup.allow_code)
        self._stopped: str | None = None
        self._replay()

    def _replay(self) -> None:
        """Restore the workspace from the log, and make the calls of the last turn that had not been made yet."""
        box = Toolbox(self._workspace, dict, lambda: Submitted("", False, False))
        for said, did in zip(self._log.said, self._log.did, strict=True):
            for call, _ in zip(said.calls, did, strict=False):
                if call.name in ("write_file", "edit_file"):
                    box.run(call)
        for said in self._log.said:
            self._charge_for(said.turn)
        if self._log.said:
            self._do(self._log.said[-1].calls[len(self._log.did[-1]) :])

    # --- the first half: turns

    @property
    def over(self) -> str | None:
        """Why the agent has no more turns; None while it has some."""
        budget, submissions = self.setup.family.budget, self._log.submissions
        if submissions and submissions[-1].valid:
            return "submitted"
        spent = {
            "submissions": len(submissions) >= budget.submissions,
            "turns": len(self._log.said) >= budget.turns,
            "tokens": self.tokens >= budget.tokens,
            "usd": self.usd >= budget.usd and self.usd > 0,
            "seconds": self._at() >= budget.seconds,
        }
        return self._stopped or next((name for name, is_spent in spent.items() if is_spent), None)

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens so far."""
        return sum(map(_tokens, self._log.said))

    @property
    def usd(self) -> float:
        """What the agent's answers have cost so far, in USD."""
        return sum(said.usd or 0.0 for said in self._log.said)

    @property
    def usd_left(self) -> float:
        """What is left of the family's budget, in USD."""
        return max(0.0, self.setup.family.budget.usd - self.usd)

    @property
    def turns(self) -> Sequence[Said]:
        """The agent's turns so far."""
        return self._log.said

    def state(self, turn: int | None = None) -> EpisodeState:
        """What the agent sees now, or what it saw before the given turn."""
        at = len(self._log.said) if turn is None else turn
        budget, submissions = self.setup.family.budget, self._log.submissions_before(at)
        return EpisodeState(
            self.setup.family,
            self._task,
            self._log.exchanges[:at],
            submissions[-1].faults if submissions else (),
            budget.submissions - len(submissions),
            max(0, budget.tokens - sum(map(_tokens, self._log.said[:at]))),
            budget.turns - at,
            self.setup.past,
            self.setup.seed,
            self.setup.final,
        )

    def take(self, turn: AgentTurn) -> None:
        """Record a turn of the agent, and make its calls.

        Raises:
            BudgetSpent: a budget beyond the episode's own is spent. The turn is recorded, and the episode continues once there is
                more money.
            T2TError: the agent could not be asked. Nothing is recorded, so the same episode asks it again.
        """
        if turn.response is not None and turn.response.error:
            raise T2TError("the agent could not be asked", where=f"agent {self.setup.agent}", cause=turn.response.error,
                           next="the same command continues from here")  # fmt: skip
        said = self._log.say(turn, self._at())
        self._charge_for(said.turn)
        self._do(said.calls)

    def stop(self, why: str) -> None:
        """End the turns, since what is left of the budget `why` does not cover another one."""
        self._stopped = why

    def _at(self) -> float:
        return round(self._spent + time.monotonic() - self._began, 3)

    def _charge_for(self, turn: int) -> None:
        said = self._log.said[turn]
        if said.prompt_tokens is not None or said.completion_tokens is not None or said.usd is not None:
            name = f"{self.setup.name}/turn-{turn}"
            self._charge(name, said.prompt_tokens or 0, said.completion_tokens or 0, said.usd or 0.0)

    def _do(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            if self._log.submissions and self.over in ("submitted", "submissions"):
                return  # the episode is over: drop any further calls of this turn
            made: list[Submission] = []
            box = Toolbox(self._workspace, self._desk.baselines, lambda made=made: self._submit(made))  # type: ignore[misc]
            result = box.run(call)
            self._log.do(call.name, result.text, result.failed, made[0] if made else None, self._at())

    def _submit(self, made: list[Submission]) -> Submitted:
        number = len(self._log.submissions) + 1
        folder = self.folder / f"submissions/{number}"
        folders.remove_folder(folder)  # left by a process that was killed before it could record the submission
        for path, text in self._workspace.files.items():
            folders.write_atomic(folder / path, text)
        probed = self._desk.probe(folder)
        faults = [Fault.of(fault) for fault in probed.faults]
        values = dict(probed.values) if probed.values is not None else None
        job = f"{self.setup.name}-{number}" if values is not None and not faults else None
        if job:
            self._desk.submit(folder, job)
        made.append(Submission(number=number, values=values, faults=faults, job=job))
        left = self.setup.family.budget.submissions - number
        return Submitted(_verdict(faults, left), job is not None, values is not None)

    # --- the second half: the job

    def result(self) -> EpisodeResult | None:
        """How the episode ended, also written to `episode.json`; None until its job has ended."""
        if (self.folder / RESULT).exists():
            return folders.read_record(self.folder / RESULT, EpisodeResult)
        ended, submissions = self.over, list(self._log.submissions)
        if ended is None:
            return None
        valid = next((submission for submission in submissions if submission.valid), None)
        done = self._desk.done(valid.job) if valid and valid.job else None
        if valid and done is None:
            return None
        made = self._result(ended, submissions, valid, done)
        folders.write_json(self.folder / RESULT, made)
        return made

    def _result(self, ended: str, submissions: list[Submission], valid: Submission | None, done: Done | None) -> EpisodeResult:
        setup, parsable = self.setup, any(submission.values is not None for submission in submissions)
        best = max(done.pre.values()) if done and done.pre else None
        trained = None
        if done and done.post is not None and best is not None:
            trained = Trained(done.post, best, done.cpu_seconds, setup.family.budget.cpu_seconds)
        reward = episode_reward(valid.number if valid else None, trained, parsable=parsable, settings=setup.reward)
        values = valid.values if valid and valid.values else {}
        return EpisodeResult(
            name=setup.name, family=setup.family.name, agent=setup.agent, seed=setup.seed, final=setup.final,
            ended=ended, turns=len(self._log.said), tokens=self.tokens, usd=self.usd, submissions=submissions,
            parsable=parsable, valid_at=valid.number if valid else None,
            base=str(values["base"]) if "base" in values else None,
            values=values,
            pre=dict(done.pre) if done else {}, best_pre=best, post=done.post if done else None,
            cpu_seconds=done.cpu_seconds if done else 0.0, failure=done.failure if done else "",
            reward=reward.to_dict(),
        )  # fmt: skip

    def close(self) -> None:
        self._log.close()


def _tokens(said: Said) -> int:
    return (said.prompt_tokens or 0) + (said.completion_tokens or 0)


def _verdict(faults: Sequence[Fault], left: int) -> str:
    """What the agent is told about its submission."""
    if not faults:
        return "The job is valid and is queued. The episode ends here."
    told = "\n".join(f"{number}. {fault}" for number, fault in enumerate(faults, 1))
    what = "1 thing is wrong with the job" if len(faults) == 1 else f"{len(faults)} things are wrong with the job"
    return f"{what}; {left} submission{'s' * (left != 1)} left.\n{told}"
