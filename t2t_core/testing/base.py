"""What the checks share."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from t2t_core.conversation import judge, opening, play
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, RoundState
from t2t_core.loop.design_step import round_state
from t2t_core.records import Message, Response, Round, Scored, Task
from t2t_core.run.experiment import Experiment
from t2t_core.seeding import key


class CheckFailed(T2TError, AssertionError):
    """A plugin breaks its contract."""


def require(holds: object, what: str, *, cause: str = "", next: str = "") -> None:
    """Raise CheckFailed, with `what` is wrong, unless `holds`."""
    if not holds:
        raise CheckFailed(what, cause=cause, next=next)


@contextmanager
def calling(what: str, allowed: type[BaseException] | tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    """An exception other than `allowed` inside the block is the plugin's fault."""
    try:
        yield
    except CheckFailed:
        raise
    except allowed:
        pass
    except Exception as error:
        name = type(error).__name__
        raise CheckFailed(f"{what} raised {name}: {str(error)[:300]}", cause="see the exception above") from error


def as_json(value: Any, what: str) -> str:
    """`value` as JSON text. Raises CheckFailed if it is none, or holds NaN."""
    try:
        return json.dumps(value, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise CheckFailed(
            f"{what} is not JSON: {error}", next="return plain dicts, lists, text, finite numbers, booleans and None"
        ) from None


def lines_of(instances: Sequence[Any]) -> list[str]:
    """Each instance as its JSON text. Raises CheckFailed if one is none."""
    return [as_json(i.to_dict(), "instance.to_dict()") for i in instances]


def finite(value: Any) -> bool:
    """Whether it is a finite number; booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def short(value: Any) -> str:
    """A printable form of at most 120 characters."""
    text = ascii(value)
    return text if len(text) <= 120 else text[:117] + "..."


def some_instances(testbed: AnyTestbed, count: int = 12, seed: int = 0) -> Sequence[Any]:
    """Instances drawn from a random configuration of the testbed."""
    request = testbed.request(count)
    return list(testbed.generate(testbed.random_configuration(request, seed), request, seed))


def tasks_for(testbed: AnyTestbed, instances: Sequence[Any], samples: int = 1) -> list[Task]:
    """The questions with which an evaluation would open."""
    return [
        Task(i.id, sample, first[-1].content, testbed.unlabelled(i), key(0, "check", i.id, sample), first, 0, testbed.tools)
        for i in instances
        for first in [opening(testbed, i, testbed.prompt_formats[0])]
        for sample in range(samples)
    ]


def _unanswered(testbed: AnyTestbed, instance: Any) -> Scored:
    messages = play(testbed, instance, testbed.prompt_formats[0], lambda seen: Message("assistant", "no answer"))
    return Scored(instance, 0, Response("no answer"), judge(testbed, instance, messages), messages)


def some_state(testbed: AnyTestbed, rounds: int = 2) -> RoundState:
    """The state after so many rounds, in which every answer failed."""
    instances = some_instances(testbed)
    scored = [_unanswered(testbed, i) for i in instances]
    breakdown = testbed.breakdown(scored)
    request = testbed.request(len(instances))
    experiment = Experiment(
        testbed.name, "none", rounds=rounds + 1, generation={"samples": len(instances)}, training={"epochs": 1}
    )
    places = [testbed.place(instance) for instance in instances]
    counts = {"groups": 1, "answers": 4, "reward": 0.0, "advantage": 0.0, "dead": 1.0, "valid": 0.0, "tokens": 40}
    trained = {"cells": {testbed.cell_of(p.cell) or p.group: {"group": p.group, **counts, "first_failures": {}} for p in places}}
    history = [
        Round(index, testbed.random_configuration(request, index).to_dict(), breakdown, "because" if index else None, trained)
        for index in range(rounds)
    ]
    return round_state(testbed, None, experiment, request, history, scored[:2])


def facts_of(state: RoundState) -> str:
    """Everything in a state that a plugin might change by accident."""
    rounds = [[r.index, r.configuration, r.breakdown, r.summary, r.training] for r in state.rounds]
    return as_json([rounds, dict(state.bookkeeping), dict(state.training)], "the state")


def is_texts(value: Any) -> bool:
    """Whether it is a sequence of texts; a text is none."""
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, str) for v in value)


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """The value, which must be a mapping; CheckFailed otherwise."""
    require(isinstance(value, Mapping), f"{what} is {type(value).__name__}, not a mapping")
    result: Mapping[str, Any] = value
    return result
