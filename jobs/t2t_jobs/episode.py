"""One episode: an agent is given a family, writes a job in a workspace, submits it, and is rewarded by what the job taught a
model.

    EPISODE/run.json            family, agent, seed, and what each session ran with
    EPISODE/calls.jsonl         every turn and every call, as it happened
    EPISODE/workspace/          the files as the agent left them
    EPISODE/submissions/1/      what it submitted
    EPISODE/episode.json        how it ended, and its reward; holds nothing that depends on when

It has two halves. In the first the agent takes turns until a submission is valid or a budget is spent; in the second its job runs
somewhere, and nobody waits here: `result` is None until it is through. Both go on where they were killed.
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
    """What a look at a workspace came to: the job's values where one could be read, and everything that is wrong with it."""

    values: Mapping[str, Any] | None
    faults: Sequence[T2TError] = ()


@dataclass(frozen=True)
class Done:
    """A job that is through: `post` is the hidden score after training, None if it died (`failure` says of what), `pre` that
    of every untrained base."""

    pre: Mapping[str, float]
    post: float | None
    cpu_seconds: float = 0.0
    failure: str = ""


class Desk(Protocol):
    """What an episode asks of the room of jobs (`t2t_jobs.office.Office`)."""

    def baselines(self) -> Mapping[str, float]:
        """The hidden scores of the untrained bases."""
        ...

    def probe(self, folder: SafePath) -> Probed: ...

    def submit(self, folder: SafePath, job: str) -> None:
        """Queue the job in a folder under that name; the same name again changes nothing."""
        ...

    def done(self, job: str) -> Done | None:
        """What the job came to, None while it is not through."""
        ...


@dataclass(frozen=True)
class Setup:
    """What an episode is: its name (of its job, of its costs), who acts, for which family, by which chance.

    `past` are earlier episodes the agent may learn from, `final` that it tries nothing any more; `allow_code` names the files of
    code that its job may bring."""

    name: str
    family: Family
    agent: str
    seed: int
    past: Sequence[Tried] = ()
    final: bool = False
    reward: RewardSettings = DEFAULT
    allow_code: Sequence[str] = ()

    def settings(self) -> dict[str, Any]:
        """For the manifest."""
        plain = {"name": self.name, "family": self.family.name, "agent": self.agent, "seed": self.seed, "final": self.final}
        plain |= {"allow_code": list(self.allow_code)} if self.allow_code else {}
        return {**plain, "past": len(self.past), "reward": asdict(self.reward), "budget": asdict(self.family.budget)}


@dataclass(frozen=True, kw_only=True)
class EpisodeResult:
    """`episode.json`.

    Args:
        ended: why there were no more turns: "submitted", or what was used up ("submissions", "turns", "tokens", "usd",
            "seconds").
        submissions: every one, with what was wrong with it.
        valid_at: which of them was valid, None if none was.
        base, values: of the valid job, as far as its values differ from the one it started from.
        pre, best_pre, post: hidden scores of the untrained bases, the best of them, and of the trained model.
        failure: of a job that died.
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
        return self.reward["total"]

    def tried(self) -> Tried:
        """What a later episode may learn of it."""
        return Tried(self.values, self.total, self.post)


Charge = Callable[[str, int, int, float], None]


def _free(call: str, prompt: int, completion: int, usd: float) -> None:
    """Charges nobody."""


class Episode:
    """An episode under way in its folder.

    Args:
        folder: of this episode; the caller holds a lock on it or on one above it.
        setup: what it is.
        desk: the jobs' side.
        charge: told of every answer that was asked for: its name, tokens in and out, USD; the same name twice counts once.
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
        """The workspace as the log left it; what was said last and not done yet is done."""
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
        """Why the agent has no more turns; None while it has."""
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
        """Asked and answered so far."""
        return sum(map(_tokens, self._log.said))

    @property
    def usd(self) -> float:
        return sum(said.usd or 0.0 for said in self._log.said)

    @property
    def usd_left(self) -> float:
        return max(0.0, self.setup.family.budget.usd - self.usd)

    @property
    def turns(self) -> Sequence[Said]:
        """What the agent said so far."""
        return self._log.said

    def state(self, turn: int | None = None) -> EpisodeState:
        """What the agent sees, or saw before one of its turns."""
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
        """Do what the agent says.

        Raises:
            BudgetSpent: a budget beyond the episode's own is spent; what was said is recorded, and the episode goes on with more.
            T2TError: the agent could not be asked. Nothing is recorded, so the same episode asks it again.
        """
        if turn.response is not None and turn.response.error:
            raise T2TError("the agent could not be asked", where=f"agent {self.setup.agent}", cause=turn.response.error,
                           next="the same command goes on from here")  # fmt: skip
        said = self._log.say(turn, self._at())
        self._charge_for(said.turn)
        self._do(said.calls)

    def stop(self, why: str) -> None:
        """No more turns, since so much of the budget is left that no further one fits."""
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
                return  # whatever the agent said after that
            made: list[Submission] = []
            box = Toolbox(self._workspace, self._desk.baselines, lambda made=made: self._submit(made))  # type: ignore[misc]
            result = box.run(call)
            self._log.do(call.name, result.text, result.failed, made[0] if made else None, self._at())

    def _submit(self, made: list[Submission]) -> Submitted:
        number = len(self._log.submissions) + 1
        folder = self.folder / f"submissions/{number}"
        folders.remove_folder(folder)  # of a process that was killed before it could say so
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
        """How it ended, written to `episode.json`; None while the job is not through."""
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
    """What the agent is told of its submission."""
    if not faults:
        return "The job is valid and is queued. The episode ends here."
    told = "\n".join(f"{number}. {fault}" for number, fault in enumerate(faults, 1))
    what = "1 thing is wrong with the job" if len(faults) == 1 else f"{len(faults)} things are wrong with the job"
    return f"{what}; {left} submission{'s' * (left != 1)} left.\n{told}"
