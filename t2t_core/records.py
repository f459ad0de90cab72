"""The frozen records that travel between plugins.

They flow one way: configuration -> instances -> tasks -> responses -> verdicts -> breakdown -> brief -> proposal ->
configuration. Nothing here knows any environment: instances and configurations are the testbed's own objects, which turn
into JSON with `to_dict()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Any


@dataclass(frozen=True)
class Task:
    """One question to a policy: the `sample`-th answer to one instance.

    `instance` is unlabelled: stored optima, flags and solutions are never shown to a policy. `seed` derives from the
    evaluation's seed, the instance id and the sample, so that a rerun asks the same question.
    """

    instance_id: str
    sample: int
    prompt: str
    instance: Any
    seed: int


@dataclass(frozen=True)
class Sampling:
    """How a language model answers. Defaults the paper does not give are our choice.

    temperature: 0 is greedy. max_tokens: at most so many response tokens. thinking: None leaves the model's default,
    True or False sets its switch where it has one.
    """

    temperature: float = 0.0
    max_tokens: int = 4096
    thinking: bool | None = None
    top_p: float = 1.0


@dataclass(frozen=True)
class Response:
    """One answer of a policy, or the error that came instead (`error` is not None; then `text` is what arrived, if anything).

    Token counts are as the policy reports them, None where it has no tokens or they are not known; `reasoning_tokens` are
    hidden ones and part of `completion_tokens`, `reasoning` their text where it was sent. `finish_reason` is "stop" (ended by
    the model, perhaps without text), "length", "refusal", "aborted" (broken off by the server, always an error) or "error".
    `seconds` is wall time, `cost_usd` None where it is not known, `model` the one that served. `detail` is what a server said
    beside its answer, a refusal's reason say. `lasting`: the error would come again, so that asking again at once is in vain.
    `earlier` are the replies to the same question that came before and were no answer, where they cost something or may have.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str = "stop"
    error: str | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    model: str | None = None
    reasoning: str | None = None
    detail: str | None = None
    lasting: bool = False
    earlier: Sequence[Response] = ()


@dataclass(frozen=True)
class Fault:
    """Where a failed check first failed: agent index, step, cell and, for conflicts, the kind and the other agent."""

    message: str
    agent: int | None = None
    step: int | None = None
    cell: tuple[int, ...] | None = None
    kind: str | None = None
    other: int | None = None


@dataclass(frozen=True)
class Verdict:
    """What a testbed says of one answer.

    checks: every strict check by name, in the testbed's order. valid: all of them hold. optimal: valid and at the stored
    optimum; None (not False) where valid but no optimum is stored. cost: of the instance's objective, None unless valid.
    costs: every cost the testbed knows, empty unless valid. gap: cost minus stored optimum, None where either is missing.
    gaps: the same for each of `costs` whose optimum is stored. faults: for failed checks, where they first failed; also, under a
    name that is no check, what is wrong with the instance itself.
    """

    checks: Mapping[str, bool]
    valid: bool
    optimal: bool | None
    cost: int | None
    costs: Mapping[str, int] = field(default_factory=dict)
    gap: int | None = None
    faults: Mapping[str, Fault] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)

    @property
    def failure(self) -> str | None:
        """The first failed check, None for a valid answer."""
        return next((name for name, passed in self.checks.items() if not passed), None)


@dataclass(frozen=True)
class Metric:
    """One figure a testbed reports. `value` maps (verdict, response) to a number, or None where it does not apply.

    kind "rate": the value is 0 or 1 and every instance counts (an instance without an answer is 0); the figure is a
    percentage with an interval. kind "mean": the mean over the answers where the value is not None.
    """

    name: str
    title: str
    kind: str
    value: Callable[[Verdict, Response], float | None]
    unit: str = ""
    higher_is_better: bool = True


@dataclass(frozen=True)
class Place:
    """Where an instance stands in the tables: one table per `table`, one column per `column`. `cell` is the finest cell,
    which curricula and breakdowns may use (for MAPF-FrozenLake: size, hole level, wait)."""

    table: str
    column: str
    cell: str = ""


@dataclass(frozen=True)
class InstanceSet:
    """A named list of instances. `name` and `sha256` (of the file's bytes, or of the canonical JSON lines) identify it;
    `kind` is "evaluation", "validation", "twin" or "file"; `notes` are facts a report must show (shortfalls, reuse)."""

    name: str
    kind: str
    sha256: str
    instances: Sequence[Any]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Option:
    """An option a testbed adds to commands, e.g. `--agents 3,4,5`; `parse` turns its text into a value, T2TError if it cannot."""

    name: str
    help: str
    default: str
    parse: Callable[[str], Any]


@dataclass(frozen=True)
class Knob:
    """One number of a configuration that a designer may set, with its bounds, in the field's own terms."""

    name: str
    description: str
    low: float
    high: float


@dataclass(frozen=True)
class Change:
    """One correction Project made to a proposal: which knob, from what, to what, and why."""

    knob: str
    proposed: Json
    used: Json
    reason: str


@dataclass(frozen=True)
class Projection:
    """A configuration that satisfies every constraint, and what was changed to get there."""

    configuration: Any
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Scored:
    """One answered (or failed) instance of an evaluation: what was asked, what came, what it is worth."""

    instance: Any
    sample: int
    response: Response
    verdict: Verdict


@dataclass(frozen=True)
class Round:
    """What happened in one finished round, as facts: configurations and breakdowns are JSON (the testbed's `to_dict`).
    `summary` is the designer's own explanation of this round's configuration, None where it gave none."""

    index: int
    configuration: Mapping[str, Json]
    breakdown: Mapping[str, Json]
    summary: str | None = None


@dataclass(frozen=True)
class RoundState:
    """Everything a context module may render. The last of `rounds` is the one just validated; `examples` are scored
    failures; `bookkeeping` and `training` are plain facts about the run."""

    testbed: Any
    rounds: Sequence[Round]
    examples: Sequence[Scored] = ()
    bookkeeping: Mapping[str, Json] = field(default_factory=dict)
    training: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Brief:
    """What a designer gets: the whole prompt as text (task statement and context) and the same facts as records.

    `compact` are the context's sections in their compact form, for policies too small to read prose. `policy` makes the
    run's own policy with a checkpoint: `brief.policy(brief.checkpoint)` is the current one, `brief.policy(brief.base)` the
    untrained one; None outside a run. A designer that words its own prompt tells it to `shown` before it asks, so that the prompt
    is on record even where no answer ever comes.
    """

    text: str
    state: RoundState
    previous: Any
    request: Any
    seed: int
    checkpoint: Path | None = None
    base: Path | None = None
    compact: Sequence[str] = ()
    policy: Callable[[Path | None], Any] | None = None
    shown: Callable[[str], None] = lambda prompt: None


@dataclass(frozen=True)
class Proposal:
    """What a designer returns. `raw` is its reply word for word, `parsed` the configuration it proposes as JSON (None where
    none could be read), `notes` what its reader mended, `responses` every call it made, failed ones included."""

    raw: str
    parsed: Mapping[str, Json] | None
    summary: str | None = None
    notes: Sequence[str] = ()
    prompt: str | None = None
    responses: Sequence[Response] = ()


@dataclass(frozen=True)
class TrainingJob:
    """What a trainer gets: the checkpoint it starts from, instances, the testbed (prompt, verifier, reward), its settings,
    the folder for its new checkpoint and a seed. `resume_from` is the trainer state of the round before, where kept."""

    checkpoint: Path | None
    instances: Sequence[Any]
    testbed: Any
    settings: Mapping[str, Json]
    folder: Path
    seed: int
    round_index: int = 0
    resume_from: Path | None = None
    progress: Callable[[Mapping[str, Json]], None] | None = None


@dataclass(frozen=True)
class TrainingResult:
    """The new checkpoint (the old one where nothing was trained), figures of the round, and what it consumed."""

    checkpoint: Path | None
    metrics: Mapping[str, Json] = field(default_factory=dict)
    samples: int = 0
    updates: int = 0
    tokens: int = 0
