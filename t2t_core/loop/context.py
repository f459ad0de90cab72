"""The designer's context: modules by name, in the order asked for, between a task statement and the format of the answer.

`F,G,H:no_round_0,T:bookkeeping` names modules with their options, and `V6` stands for such a list. Each module renders its own
section from the state of the round, so a change of one fact changes one section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, ContextModule, RoundState
from t2t_core.records import ConfigurationRecord, Knob, Request
from t2t_core.registry import Registry, Spec

_SETTING = re.compile(r"[a-z][a-z0-9_]*=.*", re.DOTALL)
_MAX_MODULES = 50


@dataclass(frozen=True)
class NamedModule:
    """A context module, with the text that named it, e.g. "H:no_round_0"."""

    spec: str
    module: ContextModule


@dataclass(frozen=True)
class Section:
    """What one module rendered: the text for people and large models, and its compact form."""

    spec: str
    title: str
    text: str
    compact: str


def modules(text: str, registry: Registry) -> list[NamedModule]:
    """The modules that `text` names, with variants expanded.

    Raises:
        T2TError: an unknown module, or one named twice.
    """
    loaded: list[NamedModule] = []
    waiting = _split(text)
    while waiting:
        spec = waiting.pop(0)
        made = registry.make(spec)
        if isinstance(made, str):
            waiting = _split(made) + waiting
        else:
            loaded.append(NamedModule(spec, made))
        if len(loaded) + len(waiting) > _MAX_MODULES:
            raise T2TError(f"the context {text[:80]!r} names more than {_MAX_MODULES} modules", where="--context")
    names = [Spec.parse(named.spec).name for named in loaded]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise T2TError(f"the context names the module {twice} twice", where=f"--context {text}")
    return loaded


def _split(text: str) -> list[str]:
    """`F:examples=3,short=no,G` -> ["F:examples=3,short=no", "G"]: a key=value belongs to the module before it."""
    specs: list[str] = []
    for piece in (p.strip() for p in text.split(",")):
        if specs and _SETTING.fullmatch(piece):
            specs[-1] += ("," if ":" in specs[-1] else ":") + piece
        elif piece:
            specs.append(piece)
    return specs


def sections(named: Sequence[NamedModule], state: RoundState) -> list[Section]:
    """The sections for this state, in order. A module that returns nothing has no section."""
    rendered = []
    for item in named:
        text, compact = item.module.render(state, False), item.module.render(state, True)
        if text or compact:
            rendered.append(Section(item.spec, item.module.title, text or "", compact or ""))
    return rendered


def prompt(named: Sequence[NamedModule], state: RoundState, previous: ConfigurationRecord, request: Request) -> str:
    """The whole brief as text: the task statement (always included; the wording is our choice), the context, and the format of
    the answer."""
    parts = [_statement(state.testbed, previous, request)]
    parts += [f"## {section.title}\n{section.text}" for section in sections(named, state) if section.text]
    parts.append(_answer_format(previous, [item.module for item in named]))
    return "\n\n".join(parts) + "\n"


def compact(named: Sequence[NamedModule], state: RoundState) -> tuple[str, ...]:
    """The context's sections in their compact form."""
    return tuple(section.compact for section in sections(named, state) if section.compact)


def _statement(testbed: AnyTestbed, previous: ConfigurationRecord, request: Request) -> str:
    knobs = [f"- {knob.name}: {knob.description} ({_bounds(knob)})" for knob in testbed.knobs(request)]
    return "\n".join(
        [
            f"You design the training environment of a policy for this task: {testbed.title}.",
            "Training goes in rounds. Each round draws training instances from a generator, trains the policy on them and",
            "validates it. You now set the generator's configuration for the next round, so that the policy learns the most.",
            "You never write single instances.",
            "",
            "## What you may set",
            *knobs,
            "",
            "## The configuration in force",
            readable(previous.to_dict()),
        ]
    )


def _bounds(knob: Knob) -> str:
    """The values a knob may take, as written in a configuration: a percentage is a number from 0 to 1 there."""
    unit = f" {knob.unit}" if knob.unit and knob.form != "percent" else ""
    return f"{knob.low:g} to {knob.high:g}{unit}{', whole numbers' if knob.form == 'whole' else ''}"


def _answer_format(previous: ConfigurationRecord, active: Sequence[ContextModule]) -> str:
    wishes = [str(wish) for module in active if (wish := getattr(module, "request", None))]
    return "\n".join(
        [
            "## Your answer",
            "You may think first. End with exactly one JSON object in the form of the configuration in force; nothing after it.",
            "A value beyond its bounds is clipped.",
            *wishes,
        ]
    )


def readable(configuration: Any) -> str:
    """A configuration as JSON in a prompt: numbers to three decimals (our choice; a knob needs no more)."""

    def rounded(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: rounded(item) for key, item in value.items()}
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return round(value, 3) if isinstance(value, float) else value

    return json.dumps(rounded(configuration))
