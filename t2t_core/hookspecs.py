"""Every door of the suite, on one page.

A plugin is a module named by an entry point of the group `t2t`. It implements any of the seven hooks below, each of which
gets a registry and adds names to it:

    # setup.cfg of your distribution                     # my_plugin.py
    [options.entry_points]                               from t2t_core.hookspecs import hookimpl
    t2t =                                                @hookimpl
        my_plugin = my_plugin                            def register_designers(registry):
                                                             registry.add("mine", "my_plugin:make", "what it does")

A target is a callable, or "module:attribute", which is imported only when somebody asks for the name. The built-ins come
through the same door. A name is addressed as `name`, `name:argument` or `name:argument,key=value,...`; the factory gets
the argument (text, "" where there is none) and the settings (text by key).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    from t2t_core.records import (
        Brief,
        InstanceSet,
        Knob,
        Metric,
        Option,
        Place,
        Projection,
        Proposal,
        Response,
        RoundState,
        Sampling,
        Scored,
        Task,
        TrainingJob,
        TrainingResult,
        Verdict,
    )
    from t2t_core.registry import Registry

hookspec = pluggy.HookspecMarker("t2t")
hookimpl = pluggy.HookimplMarker("t2t")


class Policy(Protocol):
    """A batch of prompts in, a batch of responses out. Solvers, local models and endpoints all look the same.

    registry.add("stay", "my_plugin:Stay", "never moves")
    class Stay:
        def __init__(self, argument, settings): ...
        def respond(self, tasks, sampling):
            for position, task in enumerate(tasks):
                yield position, Response(text=...)

    A factory with the attribute `shared_settings`, e.g. ("base_url", "concurrency"), gets the options of that name of
    `t2t bench` as settings. A policy whose answers cost money has a method `spend_at_most(usd)`, called before each `respond`
    under a budget: it sends nothing that could go beyond it, and raises `BudgetSpent` where nothing more fits.
    """

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        """Yield (position in `tasks`, response) as answers come, in any order, every position exactly once. A failed
        request is a Response with `error`; an exception ends the whole evaluation (T2TError for what a user can mend)."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Facts for the record, as JSON: at least `deterministic` (same task, same answer) and `batch_size` (how many tasks
        it likes at once, None: all); models add their name, versions, prices. A `caveat` (a few words, "toy policy") stands
        beside the policy's name on every board. Never a key."""
        ...


class Designer(Protocol):
    """Reads the brief of a round, proposes the next configuration of the generator. Any LLM policy can be one (`llm:...`).
    One with an attribute `settings` (name -> value) has them printed by `t2t run --dry-run`.

    registry.add("shy", lambda argument, settings: Shy(), "proposes what is already there")
    class Shy:
        def propose(self, brief):
            return Proposal(raw="", parsed=brief.previous.to_dict())
    """

    def propose(self, brief: Brief) -> Proposal: ...


class ContextModule(Protocol):
    """The state of the rounds in, a section of the designer's context out, or None where it has nothing to say.

    With `compact` the section is a few lines of plain words and whole percents, for a policy too small to read prose. A
    factory may also return text such as "F,G,H:no_round_0": its name then stands for those modules (V1..V6 are made so).
    A module that wants something of the answer has an attribute `request`, one sentence added to the answer's format; one with an
    attribute `settings` (name -> value) has them printed by `t2t run --dry-run`.

    registry.add("W", lambda argument, settings: Weather(), "the weather")
    class Weather:
        title = "Weather"
        def render(self, state, compact):
            return "sunny"
    """

    title: str

    def render(self, state: RoundState, compact: bool) -> str | None: ...


class Trainer(Protocol):
    """A policy's checkpoint, instances and a reward in; a new checkpoint and its metrics out. Knows nothing of designers.

    Settings stand in a run's configuration under [training]. Five attributes are optional: `defaults` (setting -> value) and
    `constants` (name -> value, what no setting changes), which `t2t run --dry-run` prints; `facts` (name -> text: the algorithm,
    the reward), which the context T:full tells; `check(settings)`, which raises T2TError for settings that `train` would refuse;
    and `ready()`, which raises T2TError where something it needs is not installed. Both are called before a run begins.

    registry.add("none", lambda argument, settings: NoTrainer(), "evaluate and design only")
    class NoTrainer:
        def train(self, job):
            return TrainingResult(checkpoint=job.checkpoint)
    """

    def train(self, job: TrainingJob) -> TrainingResult: ...


class Testbed(Protocol):
    """Everything that is particular to a task; t2t_core has no special case for any.

        registry.add("mapf-frozenlake", "t2t_envs.frozen_lake.testbed:make", "multi-agent path finding on frozen lakes")

    Instances have `id` and `to_dict()`; configurations have `to_dict()`; requests are what `request` returned. `group` is what
    the knobs are set for, in the field's own words ("map size"). Two methods are optional. `shared(instances, others) -> {what:
    count}`, what training instances share with those of a set kept for measuring, short of being the same ones. And
    `group_of(text) -> name | None`, the group that a designer means by a key ("3x3" for "3"); without it only the names
    themselves are understood. One attribute is: `constants` (name -> value, of its reward say), which `t2t run --dry-run` prints.
    """

    name: str
    title: str
    group: str
    metrics: Sequence[Metric]
    prompt_formats: Sequence[str]
    guideline: str

    def options(self) -> Sequence[Option]:
        """The options it adds to `t2t bench` and `t2t run`."""
        ...

    # --- configuration of the generator
    def knobs(self, request: Any) -> Sequence[Knob]: ...
    def request(self, count: int, **options: Any) -> Any:
        """What is wanted of the generator: how many instances, for training unless told otherwise. Unless the options name
        exclusions of their own, no instance of `protected_sets` is drawn."""
        ...

    def read_configuration(self, data: Mapping[str, Any]) -> Any: ...
    def random_configuration(self, request: Any, seed: int) -> Any: ...
    def project(self, proposal: Mapping[str, Any] | None, previous: Any, request: Any) -> Projection:
        """Enforce the constraints. Never fails; whatever it passes, `generate` can fill."""
        ...

    # --- instances
    def generate(self, configuration: Any, request: Any, seed: int) -> Sequence[Any]: ...
    def read_instance(self, data: Mapping[str, Any]) -> Any: ...
    def unlabelled(self, instance: Any) -> Any: ...
    def place(self, instance: Any) -> Place: ...
    def set_names(self, options: Mapping[str, Any]) -> Sequence[str]:
        """The evaluation sets that these options select, e.g. `--agents 3,4` -> ("3agents", "4agents")."""
        ...

    def load_set(self, name: str) -> InstanceSet: ...
    def protected_sets(self) -> Sequence[str]:
        """The evaluation and validation sets whose instances must never be trained on."""
        ...

    def twin(self, name: str, seed: int) -> InstanceSet:
        """A fresh set of the same distribution as the named one."""
        ...

    # --- question, answer, worth
    def prompt(self, instance: Any, format: str) -> str: ...
    def next_message(self, instance: Any, transcript: Sequence[str]) -> str | None:
        """The environment's next message where the task is played in turns; None ends it (always, where it is one-shot)."""
        ...

    def verify(self, instance: Any, text: str) -> Verdict: ...
    def reward(self, instance: Any, verdict: Verdict) -> float:
        """The accuracy reward of an answer, in [0, 1]."""
        ...

    def breakdown(self, scored: Sequence[Scored]) -> Mapping[str, Any]:
        """How an evaluation failed, as JSON facts (counts, never interpretations):

        {"total": counts, "groups": {group: counts}, "cells": {cell: counts}} with counts = {"answers": n, "valid": n,
        "optimal": n, "first_failures": {check: n}, "failures": {check: n}, ...}. A group is what the knobs of a
        configuration are set for (map size "3".."10"; the keys of `Configuration.to_dict()`), a cell is `place(...).cell`;
        an answer counts under its first failed check in `first_failures` (checks in the testbed's order, zeros kept) and
        under every failed one in `failures`. More keys may stand beside these."""
        ...


class Hooks:
    """The seven hooks. Implement any of them; each gets the registry of its kind."""

    @hookspec
    def register_testbeds(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Testbed`."""

    @hookspec
    def register_policies(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Policy`."""

    @hookspec
    def register_designers(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Designer`."""

    @hookspec
    def register_contexts(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `ContextModule`."""

    @hookspec
    def register_trainers(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Trainer`."""

    @hookspec
    def register_commands(self, registry: Registry) -> None:
        """registry.add("hello", "my_plugin.cli:hello", "one line for `t2t --help`"); the target is a click command."""

    @hookspec
    def register_presets(self, registry: Registry) -> None:
        """registry.add("tiny", path-returning factory, summary): a configuration file of `t2t run`."""
