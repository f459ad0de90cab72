"""What a task family is: what a job agent is to teach a small model, from which bases, within which bounds, and its measure.

A family is a plugin (kind `families`): a world with some of its options, two or more untrained bases of different strength, a
job to start from, what of it may be edited and between which bounds, a budget, and a hidden evaluation that is drawn again, as a
twin of frozen sets, for every episode.
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
    """An untrained model a job may start from: a checkpoint as a run's configuration names it ("tiny:NAME", a folder, a model's
    id), and what the agent is told of it."""

    checkpoint: str
    description: str


@dataclass(frozen=True)
class Bound:
    """What one value of a job may be.

    Args:
        kind: "choice" of `choices`; "range" `low`..`high`, both included; "log-range": the same, searched by its logarithm.
        description: what the value means, for the agent.
        whole: whole numbers alone.
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
        if not number or not self.low <= value <= self.high:  # which no NaN is, nor any infinity
            return f"must be {self.words()}, not {ascii(value)[:60]}"
        return None

    def words(self) -> str:
        """The bound in words: "a whole number in 1..32"."""
        if self.kind == "choice":
            return f"one of {', '.join(map(str, self.choices))}"
        return f"a {'whole ' if self.whole else ''}number in {self.low:g}..{self.high:g}"

    def draw(self, stream: Stream) -> Value:
        """A value that is within the bound: evenly, or evenly in its logarithm."""
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
        cpu_seconds: of the job, its hidden evaluation included; the job that takes more dies.
        conversations: that the job may play while it trains: rounds x samples x passes x group.
        submissions: of one episode, the first included (our choice: two retries).
        turns, tokens, usd, seconds: of the agent, in one episode.
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
        metric: one of the testbed's rates; its share, 0..1.
        columns: of the testbed's tables, e.g. the hard half of a set; none: all of them.
        limit: at most so many instances of each column.
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
    """See the module's text.

    Args:
        name, title, description: for people and for agents; the description says what is to be taught and how it is scored.
        testbed: the world, as `t2t plugins` lists it.
        bases: name in a job -> base.
        start: the job that an episode starts from, complete; a job's file is laid over it.
        bounds: dotted key of a job's value ("training.learning_rate", 'configuration."0-0.25".share') -> its bound. What has
            no bound may not be edited.
        fixed: what every job's run has besides, as tables of a run's configuration (policy, validation, limits).
        evaluation: what the hidden score is.
        teacher: the policy whose answers the development examples show.
        budget: see `Budget`.
        best: what the best job that is known changes of the one to start from, for the table of families; no agent sees it.
        held_out: whether it only probes generalisation, and trains no agent.
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
        """The testbed, made."""
        testbed: AnyTestbed = installed().testbeds.make(self.testbed)
        return testbed

    def examples(self, count: int = 3) -> list[Example]:
        """Development examples: the first question of instances drawn as a job draws them, and the teacher's answer to it. None
        of a frozen set; the same for everybody."""
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
    """The names of a dotted key as TOML reads it: 'configuration."0-0.25".share' has three."""
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
    """The inverse of `path_of`: names that TOML wants in quotes stand in quotes."""
    return ".".join(name if _bare(name) else quoted(name) for name in path)


def quoted(text: str) -> str:
    """A text as TOML writes it. (JSON's escapes are TOML's too, but for halves of surrogates, which stand as they are here.)"""
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
