"""The part of a spec that says how something is asked, not what: addresses, time-outs, attempts, keys. It is recorded at each
start and may change between starts; the rest identifies a row, a run or a file of answers.

A factory names those settings in an attribute `transport`: a sequence of names, or a function from the spec's argument to one
(a designer that asks a policy has the policy's).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from t2t_core.plugins import installed
from t2t_core.registry import Registry, Spec


def names(registry: Registry, spec: Spec) -> Sequence[str]:
    """The settings of that spec that are transport; none if nobody has the name."""
    if spec.name not in registry:
        return ()
    declared = getattr(registry.find(spec.name).load(), "transport", ())
    settings: Sequence[str] = declared(spec.argument) if callable(declared) else declared
    return settings


def separate(registry: Registry, spec: Spec) -> tuple[Spec, dict[str, str]]:
    """What is asked, and how."""
    how = {name: text for name, text in spec.settings.items() if name in names(registry, spec)}
    return replace(spec, settings={name: text for name, text in spec.settings.items() if name not in how}), how


def question(registry: Registry, text: str) -> str:
    """A spec as text without its transport; as it was typed where it has none."""
    asked, how = separate(registry, Spec.parse(text))
    return str(asked) if how else text


def asked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, a sweep or a file of answers without the transport of the policies and designers they name."""
    plugins = installed()
    question_settings = {name: value for name, value in settings.items() if name != "report_to"}  # a tracker changes nothing
    for name, registry in (("policy", plugins.policies), ("designer", plugins.designers)):
        if isinstance(question_settings.get(name), str):
            question_settings[name] = question(registry, question_settings[name])
    training, grid = question_settings.get("training"), question_settings.get("grid")
    if isinstance(training, Mapping) and isinstance(training.get("answers_from"), str):
        question_settings["training"] = {**training, "answers_from": question(plugins.policies, training["answers_from"])}
    if isinstance(grid, Mapping) and isinstance(grid.get("designers"), list):
        question_settings["grid"] = {**grid, "designers": [question(plugins.designers, str(spec)) for spec in grid["designers"]]}
    return question_settings
