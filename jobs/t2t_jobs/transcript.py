"""An episode's log, `calls.jsonl`: what the agent said and the result of each of its calls, in order.

Each line is written before anything follows from it, so an episode that was killed continues from its last line. The agent is not
asked again for a turn that it has answered, and no job is submitted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Exchange
from t2t_core.records import AgentTurn, Response, ToolCall
from t2t_core.store import jsonlines, schema
from t2t_core.store.paths import SafePath


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something wrong with a submission, as the agent was told."""

    what: str
    where: str = ""
    cause: str = ""
    next: str = ""

    @classmethod
    def of(cls, error: T2TError) -> Fault:
        """An error as the transcript keeps it."""
        return cls(what=error.what, where=error.where, cause=error.cause, next=error.next)

    def __str__(self) -> str:
        return str(T2TError(self.what, where=self.where, cause=self.cause, next=self.next))


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A submission: its number from 1, the job's values if one could be read, what was wrong, and the id of its job if it was
    valid."""

    number: int
    values: dict[str, Any] | None = None
    faults: list[Fault] = field(default_factory=list)
    job: str | None = None

    @property
    def valid(self) -> bool:
        """Whether the submission became a job."""
        return self.job is not None


@dataclass(frozen=True, kw_only=True)
class Said:
    """A turn. `at`: seconds since the episode began. Tokens and USD are those of the answer; None if no model was asked."""

    turn: int
    at: float
    text: str
    calls: list[ToolCall]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None
    model: str | None = None


@dataclass(frozen=True, kw_only=True)
class Did:
    """The result of a call of the last turn."""

    turn: int
    at: float
    tool: str
    text: str
    failed: bool = False
    submission: Submission | None = None


class Transcript:
    """The log, opened for appending. `said` has the turns so far, and `did` the results of each turn's calls."""

    def __init__(self, path: SafePath) -> None:
        self.said: list[Said] = []
        self.did: list[list[Did]] = []
        torn: list[jsonlines.Torn] = []
        for line in jsonlines.read(path, torn) if path.exists() else ():
            self._take(line.value, f"{path}, line {line.number}")
        self._appender = jsonlines.Appender(path, torn[0] if torn else None)

    def _take(self, value: Mapping[str, Any], where: str) -> None:
        if "tool" in value:
            did = schema.check(value, Did, where)
            if did.turn != len(self.said) - 1:
                raise T2TError("a call's result stands outside its turn", where=where, cause=schema.EDITED)
            self.did[-1].append(did)
        else:
            said = schema.check(value, Said, where)
            if said.turn != len(self.said):
                raise T2TError("a turn is missing", where=where, cause=schema.EDITED)
            self.said.append(said)
            self.did.append([])

    def say(self, turn: AgentTurn, at: float) -> Said:
        """Record a turn, before any of its calls is made."""
        answer = turn.response or Response("")
        said = Said(
            turn=len(self.said),
            at=at,
            text=turn.text,
            calls=list(turn.calls),
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            usd=answer.cost_usd,
            model=answer.model,
        )
        self._appender.append(asdict(said))
        self.said.append(said)
        self.did.append([])
        return said

    def do(self, tool: str, text: str, failed: bool, submission: Submission | None, at: float) -> Did:
        """Record the result of the next call of the last turn."""
        did = Did(turn=len(self.said) - 1, at=at, tool=tool, text=text, failed=failed, submission=submission)
        self._appender.append(asdict(did))
        self.did[-1].append(did)
        return did

    @property
    def exchanges(self) -> list[Exchange]:
        """The turns as the agent sees them."""
        return [
            Exchange(AgentTurn(said.text, tuple(said.calls[: len(did)])), [result.text for result in did])
            for said, did in zip(self.said, self.did, strict=True)
        ]

    @property
    def submissions(self) -> Sequence[Submission]:
        """Every submission so far."""
        return self.submissions_before(len(self.said))

    def submissions_before(self, turn: int) -> Sequence[Submission]:
        """The submissions before that turn; turns count from 0."""
        return [did.submission for results in self.did[:turn] for did in results if did.submission is not None]

    @property
    def at(self) -> float:
        """Seconds of the episode when its last line was written."""
        lines: list[Said | Did] = [*self.said[-1:], *(self.did[-1] if self.did else [])]
        return lines[-1].at if lines else 0.0

    def close(self) -> None:
        self._appender.close()
