"""What a testbed is: everything particular to a task, declared in one place."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from t2t_core.breakdown import break_down
from t2t_core.records import (
    Cell,
    ConfigurationT,
    InstanceRecord,
    InstanceSet,
    Knob,
    Message,
    Metric,
    Option,
    Place,
    Projection,
    Scored,
    Tool,
    Verdict,
)

InstanceT = TypeVar("InstanceT", bound=InstanceRecord)
RequestT = TypeVar("RequestT")


class Testbed(Protocol[InstanceT, ConfigurationT, RequestT]):
    """Everything particular to a task, declared: the core, the plugins and the leaderboard have no special case for any
    testbed.

        registry.add("guessing", "my_plugin.guessing:make", "finding a number")

    Subclass it with the types of its instances, configurations and requests, and inherit the defaults below. Instances have
    `id` and `to_dict()`; configurations have `to_dict()`, {group: {knob: number}}; requests are what `request` returned.
    `t2t_core.testing.check_testbed` checks all of it, and docs "Write a testbed" builds a small one.
    """

    # --- words
    name: str
    title: str
    guideline: str
    """Task-level advice to a designer that is valid in any round (context module G)."""
    group: str
    """What the knobs control, in the field's own words ("span of the numbers")."""
    sameness: str = "as they stand"
    """In which respect two instances of equal `identity` are the same ("up to mirroring")."""

    # --- what is measured
    metrics: Sequence[Metric]
    checks: Sequence[str]
    """The names of the strict checks of a verdict, in their order."""
    reader: int = 1
    """The version of how answers are read and judged; raise it whenever a verdict may change."""

    # --- what is asked
    prompt_formats: Sequence[str]
    """How a question can be worded; the first is the default."""
    memoryless: Collection[str] = ()
    """The formats whose messages are self-contained: the policy then sees the latest message alone."""
    turns: int = 1
    """The most messages of the policy per conversation; 1 is a one-shot task."""
    tools: Sequence[Tool] = ()

    # --- what an answer earns
    rubric: Mapping[str, float]
    """The weights of the reward's terms by name; a run may change them under [reward]."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest reward under these weights."""
    length_term: bool = False
    """Whether the paper's length reward and its adaptive weights apply to this task."""

    # --- what a designer sets
    groups: Sequence[str]
    """The groups of every configuration, in order."""
    groups_rise: bool = False
    """Whether later groups are harder, so that schedules and a capability boundary make sense."""
    remedies: Mapping[str, Mapping[str, int]] = MappingProxyType({})
    """For a failed check, which level knobs teach against it: 1 to raise, -1 to lower."""
    joint_cells: bool = False
    """Whether a group of a configuration may hold `cells`: [{"share": s, level knob: value, ...}, ...]."""

    # --- what it brings
    preset: str = ""
    """The preset of `t2t run --testbed NAME` if no other is given."""
    baselines: Sequence[str] = ()
    """The policies that `t2t bench` measures if none is named. A policy that cannot run here is left out, with the reason."""
    commands: Mapping[str, str] = MappingProxyType({})
    """Its own versions of `generate`, `show` and `solve`: command -> "module:click command"."""
    file_formats: Mapping[str, str] = MappingProxyType({})
    """The formats that others use for its instances: name -> "module:object", a `t2t_core.store.formats.FileFormat`."""
    observed: Mapping[str, str] = MappingProxyType({})
    """What a publication reports that designers did on it, by the number of `t2t analyze` that measures it."""
    constants: Mapping[str, Any] = MappingProxyType({})
    """What no setting changes (of its reward, say), for `t2t run --dry-run`."""

    def options(self) -> Sequence[Option]:
        """The options it adds to `t2t bench` and to a run's evaluation."""
        return ()

    # --- configuration of the generator
    def knobs(self, request: RequestT) -> Sequence[Knob]:
        """What a designer sets for every group, in order; exactly one has the role "share"."""
        ...

    def cells(self, request: RequestT) -> Sequence[Cell]:
        """The cells that a curriculum may choose between, in order; none if it can only choose between groups."""
        return ()

    def cell_of(self, cell: str) -> str | None:
        """The name in `cells` that `place(...).cell` falls into; None for none."""
        return cell or None

    def request(self, count: int, **options: Any) -> RequestT:
        """The order for the generator: how many instances, for training unless told otherwise. Every testbed knows the option
        `exclude`, a frozenset of identities never to draw; without it, no instance of `protected_sets` is drawn."""
        ...

    def read_configuration(self, data: Mapping[str, Any]) -> ConfigurationT:
        """The inverse of `to_dict`, strict. Raises T2TError for anything else, shares that do not sum to 1 included."""
        ...
    def random_configuration(self, request: RequestT, seed: int) -> ConfigurationT:
        """A configuration that `generate` can fill for this request; the same for the same seed."""
        ...
    def project(
        self, proposal: Mapping[str, Any] | None, previous: ConfigurationT, request: RequestT
    ) -> Projection[ConfigurationT]:
        """Enforce the constraints. Never fails, and `generate` can fill whatever it returns."""
        ...

    def group_of(self, text: str) -> str | None:
        """The group that a designer means by this key ("nearby" for "near"); None if it is not clear."""
        return text if text in self.groups else None

    # --- instances
    def generate(self, configuration: ConfigurationT, request: RequestT, seed: int) -> Sequence[InstanceT]:
        """As many instances as the request wants, the same for the same seed. The sequence may carry `report`, an object with
        `to_dict()`: JSON facts of what was drawn, which a run keeps in generation.json."""
        ...

    def read_instance(self, data: Mapping[str, Any]) -> InstanceT:
        """The inverse of an instance's `to_dict`. Raises T2TError for anything else."""
        ...
    def unlabelled(self, instance: InstanceT) -> InstanceT:
        """The instance as a policy sees it: without stored optima, flags and solutions."""
        ...
    def identity(self, instance: InstanceT) -> bytes:
        """Equal for two instances exactly if they are the same task up to the testbed's own symmetries."""
        ...

    def place(self, instance: InstanceT) -> Place:
        """Where the instance is counted: its table and column on a board, its cell and its group."""
        ...
    def set_names(self, options: Mapping[str, Any]) -> Sequence[str]:
        """The evaluation sets that these options select, e.g. `--spans near,far` -> ("near", "far")."""
        ...

    def load_set(self, name: str) -> InstanceSet:
        """A named evaluation or validation set. Raises T2TError, with the known names, for another."""
        ...
    def protected_sets(self) -> Sequence[str]:
        """The evaluation and validation sets whose instances must never be trained on."""
        ...

    def twin(self, name: str, seed: int) -> InstanceSet:
        """A fresh set of the same distribution as the named one."""
        ...

    def shared(self, instances: Sequence[InstanceT], others: Sequence[InstanceT]) -> Mapping[str, int]:
        """What training instances have in common with those of a set kept for measuring, short of being the same:
        {what: count}."""
        return {}

    def reported(self, set_name: str, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Rows that a publication printed for this set: {"policy", "source", "note", "cells": {column: {metric: {"value"}}},
        "total": {metric: {"value"}}}, percent for rates."""
        return ()

    def reported_arms(self, set_name: str) -> Sequence[Mapping[str, Any]]:
        """What a publication printed of its ablations on this set, to stand beside the arms of a sweep: {"designer" or "context":
        as `t2t sweep` calls it, "arm": in the publication's words, "source", "total": {metric: percent for rates}}."""
        return ()

    # --- question, answer, worth
    def prompt(self, instance: InstanceT, format: str) -> str:
        """The environment's first message."""
        ...

    def reply(self, instance: InstanceT, messages: Sequence[Message], format: str) -> Sequence[Message]:
        """The environment's answer to the last of `messages`, which holds all that was said after the opening and ends with
        the policy; nothing if the conversation is over. A function of its arguments alone, chance included: it draws from
        the instance's own seed and the state that the messages led to."""
        return ()

    def rollout(self, instance: InstanceT, number: int) -> InstanceT:
        """The instance as the `number`-th rollout of a group plays it while training. It is the same for all of them, so that
        they differ by the policy's play alone; a testbed may give each its own chance where a study asks what that is worth."""
        return instance

    def verify(self, instance: InstanceT, answer: Any, format: str = "") -> Verdict:
        """The verdict of an answer: its text where `turns` is 1, else all the messages after the opening. `format` is the
        prompt format in which it was asked, "" if that is not known."""
        ...

    def plan(self, instance: InstanceT, answer: Any) -> Hashable | None:
        """What an answer proposes, equal for answers that propose the same whatever they say around it; None if nothing can be
        read. With several answers to an instance, the majority is counted by it. Unless told otherwise: the words of the
        answer, or of the policy's messages, however they are spaced."""
        said = [answer] if isinstance(answer, str) else [message.content for message in answer if message.role == "assistant"]
        words = tuple(" ".join(text.split()) for text in said)
        return words if any(words) else None

    def picture(self, instance: InstanceT, answer: Any, format: str = "") -> str:
        """An answer as one <svg> element, moving where something moves, for the pages that show answers; "" if it draws none.
        `answer` is what `verify` gets."""
        return ""

    def reward_terms(self, instance: InstanceT, verdict: Verdict) -> Mapping[str, float]:
        """The terms of the reward by name, those of `rubric`; the reward is their weighted sum."""
        ...

    def breakdown(self, scored: Sequence[Scored]) -> Mapping[str, Any]:
        """How an evaluation failed, as JSON facts (counts, never interpretations):

        {"total": counts, "groups": {group: counts}, "cells": {cell: counts}} with counts = {"answers": n, "valid": n,
        "optimal": n, "first_failures": {check: n}, "failures": {check: n}, ...}. An answer counts under its first failed
        check in `first_failures` (checks in the testbed's order, zeros kept) and under every failed one in `failures`. More
        keys may stand beside these."""
        return break_down(scored, self.checks, lambda answer: self.place(answer.instance), self.groups)


AnyTestbed = Testbed[Any, Any, Any]
