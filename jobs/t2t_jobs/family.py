"""A task family: what a job agent should teach a small model, from which bases and within which bounds, and how it is scored.

A family is a plugin (kind `families`). It names a world and some of its options, two or more untrained bases of different
strength, a start job, the keys of that job that may be edited and their bounds, a budget, and a hidden evaluation. For every
episode the evaluation is drawn anew, as a twin of frozen sets.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from typing import Any, Literal

from t2t_core.errors import T2TError
from t2t_core.evaluation.questions import Evaluation
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Sampling
from t2t_core.run.sets import protected
from t2t_core.seeding import Stream, key

Value = str | int | float


@dataclass(frozen=True)
class Base:
    """An untrained model that a job may start from: a checkpoint as a run's settings name it ("tiny:NAME", a folder, a
    model's id), and what the agent is told about it."""

    checkpoint: str
    description: str


@dataclass(frozen=True)
class Bound:
    """What one value of a job may be.

    Args:
        kind: "choice": one of `choices`; "range": `low`..`high`, both included; "log-range": the same, searched on a log scale.
        description: what the value means, for the agent.
        whole: whether only whole numbers are allowed.
    """

    kind: Literal["choice", "range", "log-range"]
    description: str = ""
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    def fault(self, value: Any) -> str | None:
        """What is wrong with a value, in words; None if nothing is."""
        if self.kind == "choice":
            same = any(value == choice and type(value) is type(choice) for choice in self.choices)
            return None if same else f"must be one of {', '.join(map(str, self.choices))}, not {ascii(value)[:60]}"
        number = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high:  # refuses NaN and infinities too
            return f"must be {self.words()}, not {ascii(value)[:60]}"
        return None

    def words(self) -> str:
        """The bound in words: "a whole number in 1..32"."""
        if self.kind == "choice":
            return f"one of {', '.join(map(str, self.choices))}"
        return f"a {'whole ' if self.whole else ''}number in {self.low:g}..{self.high:g}"

    def draw(self, stream: Stream) -> Value:
        """Draw a value within the bound, uniformly; for a "log-range", uniformly in its logarithm."""
        if self.kind == "choice":
            return stream.choice(self.choices)
        if self.kind == "log-range":
            value = 10 ** (log10(self.low) + stream.uniform() * (log10(self.high) - log10(self.low)))
            value = min(max(float(f"{value:.3g}"), self.low), self.high)
        elif self.whole:
            return int(self.low) + stream.below(int(self.high - self.low) + 1)
        else:
            value = min(max(float(f"{self.low + stream.uniform() * (self.high - self.low):.3g}"), self.low), self.high)
        return round(value) if self.whole else value


@dataclass(frozen=True)
class Budget:
    """The hard limits of an episode, and of its job.

    Args:
        cpu_seconds: for the job, including its hidden evaluation; a job that takes more is killed.
        conversations: how many the job may play while it trains: rounds x samples x epochs x group.
        submissions: in one episode, including the first (our choice: two retries).
        turns, tokens, usd, seconds: for the agent, in one episode.
    """

    cpu_seconds: float = 20.0
    conversations: int = 8192
    submissions: int = 3
    turns: int = 30
    tokens: int = 60_000
    usd: float = 1.0
    seconds: float = 3600.0


@dataclass(frozen=True)
class Part:
    """A part of a hidden evaluation: a twin of a frozen set, and the rate that counts on it.

    Args:
        set: the frozen set's name.
        metric: one of the testbed's rates, as a share in 0..1.
        columns: columns of the testbed's tables, e.g. the hard half of a set; empty means all.
        limit: the most instances of each column.
    """

    set: str
    metric: str
    columns: tuple[str, ...] = ()
    limit: int = 50


@dataclass(frozen=True)
class HiddenEvaluation:
    """The score is the mean of the parts' rates, each the unweighted mean over its columns (our choice); answers are greedy."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Example:
    """A development example: what the model is asked, and a good answer."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class Family:
    """A task family; see the module's docstring.

    Args:
        name, title, description: for people and for agents; the description says what to teach and how it is scored.
        testbed: the world, as `t2t plugins` lists it.
        bases: name in a job -> base.
        start: the complete job that an episode starts from; a job's file overrides its values.
        bounds: dotted key of a job's value ("training.learning_rate", 'configuration."0-0.25".share') -> its bound. A key
            without a bound may not be edited.
        fixed: the rest of every job's run, as tables of a run's settings (policy, validation, limits).
        evaluation: how the hidden score is measured.
        teacher: the policy whose answers the development examples show.
        budget: see `Budget`.
        best: the changes that the best known job makes to the start job, for the table of families; no agent sees them.
        held_out: whether the family only tests generalisation, so that no agent is trained on it.
    """

    name: str
    title: str
    testbed: str
    description: str
    bases: Mapping[str, Base]
    start: Mapping[str, Any]
    bounds: Mapping[str, Bound]
    fixed: Mapping[str, Any]
    evaluation: HiddenEvaluation
    teacher: str
    budget: Budget = field(default_factory=Budget)
    best: Mapping[str, Any] = field(default_factory=dict)
    held_out: bool = False

    def __post_init__(self) -> None:
        if len(self.bases) < 2:
            raise T2TError("a family needs two or more bases", where=f"family {self.name}")
        outside = [key for key, bound in self.bounds.items() if bound.fault(value_at(self.start, key))]
        if outside:
            raise T2TError(f"the job to start from is out of bounds at {outside[0]}", where=f"family {self.name}")

    def world(self) -> AnyTestbed:
        """Make the family's testbed."""
        testbed: AnyTestbed = installed().testbeds.make(self.testbed)
        return testbed

    def examples(self, count: int = 3) -> list[Example]:
        """Development examples: the first question about instances drawn the way the start job draws them, and the teacher's
        answer. None is from a frozen set, and every agent gets the same ones."""
        testbed = self.world()
        options = {name: value for name, value in self.start["generation"].items() if name != "samples"}
        request = testbed.request(count, **options, exclude=protected(testbed))
        first = testbed.read_configuration(self.start["configuration"])
        instances = testbed.generate(first, request, key(0, "development examples", self.name) >> 1)
        teacher = installed().policies.make(self.teacher)
        form = self.fixed.get("validation", {}).get("prompt_format", "")
        evaluation = Evaluation(testbed, list(instances), 1, Sampling(), form)
        tasks = [evaluation.task(index) for index in range(count)]
        answers = dict(teacher.respond(tasks, evaluation.sampling))
        return [Example(task.prompt, answers[index].text) for index, task in enumerate(tasks)]


def path_of(dotted: str) -> tuple[str, ...]:
    """The names in a dotted key, as TOML reads it: 'configuration."0-0.25".share' has three."""
    names: list[str] = []
    try:
        table: Any = tomllib.loads(f"{dotted} = 0")
    except ValueError:
        raise T2TError(f"{ascii(dotted)[:80]} is no key of a job") from None
    while isinstance(table, dict):
        (name, table) = next(iter(table.items()))
        names.append(name)
    return tuple(names)


def dotted(path: Sequence[str]) -> str:
    """The inverse of `path_of`. Names that TOML requires quotes for are quoted."""
    return ".".join(name if _bare(name) else quoted(name) for name in path)


def quoted(text: str) -> str:
    """A text as a TOML string. JSON's escapes are TOML's too, except those of lone surrogates; these are left unescaped here."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _bare(name: str) -> bool:
    return bool(name) and name.isascii() and all(c.isalnum() or c in "_-" for c in name)


def value_at(data: Mapping[str, Any], key: str) -> Any:
    """The value at a dotted key; None if there is none."""
    value: Any = data
    for name in path_of(key):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def values_of(data: Mapping[str, Any], above: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every value of nested tables by its dotted key, in order."""
    values: dict[str, Any] = {}
    for name, value in data.items():
        path = (*above, name)
        values |= values_of(value, path) if isinstance(value, Mapping) else {dotted(path): value}
    return values


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `values_of`."""
    tables: dict[str, Any] = {}
    for key_, value in values.items():
        *above, last = path_of(key_)
        table = tables
        for name in above:
            table = table.setdefault(name, {})
        table[last] = value
    return tables
