"""A study's plan: one file, committed before the first run, that says what will be compared and what will count as an answer.

    title = "Harder instances first"
    seeds = [101, 102, 103]
    measure = [{set = "final", metric = "valid"}]   # what is compared, the mean over all columns of these
    margin = 1.5                    # percentage points that do not matter
    preset = "tiny"
    code = "3f2a..."                # t2t sweep --plan FILE --dry-run prints it
    [experiment]                    # over the preset, as in a settings file of `t2t run`
    rounds = 8
    [arms.fixed]
    designer = "fixed"
    [arms.fixed-again]              # the same, with other chance: what no designer did
    designer = "fixed"
    replica = 1
    [arms.hard]
    designer = "schedule:{plan}/hard.json"     # {plan} is the plan's folder
    [gate]                          # without leverage nobody is ranked
    positive = "hard"
    negative = "fixed"
    at_least = 5.0
    above = 3.0
    same = ["fixed", "fixed-again"]
    [primary]
    arm = "hard"
    against = "fixed"
    [[secondary]]
    arm = "fixed-again"
    against = "fixed"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from t2t_core.errors import T2TError
from t2t_core.loop import context
from t2t_core.loop.preparation import prepare
from t2t_core.plugins import installed
from t2t_core.run.experiment import Experiment, read_toml, resolve_tables
from t2t_core.store import folders, schema
from t2t_core.store.sources import tree_hash


class PlannedArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way of designing: every arm of a seed starts from the same round 0 and sees the same chance, but for `replica`."""

    designer: str
    context: str = ""
    replica: int = 0

BASE = "base"  # the untrained policy, to whom an arm may be compared


class Measure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rate on an evaluation set."""

    set: str
    metric: str = "valid"


class Compared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One arm minus another."""

    arm: str
    against: str


class Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must hold before designers are compared, in percentage points: positive minus negative is at least `at_least` and its
    interval lies above `above`; the interval between the arms that are the `same` lies within the plan's margin."""

    positive: str
    negative: str
    at_least: float
    above: float
    same: list[str] = []


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file. `world` and `start` name a row's place in the table of designers."""

    title: str
    question: str = ""
    world: str = ""
    start: str = ""
    seeds: list[int]
    measure: list[Measure]
    margin: float
    preset: str = ""
    code: str = ""
    experiment: dict[str, Any] = {}
    arms: dict[str, PlannedArm]
    gate: Gate | None = None
    primary: Compared
    secondary: list[Compared] = []

    def gate_arms(self) -> list[str]:
        """The arms that the gate compares."""
        gate = (self.gate.positive, self.gate.negative, *self.gate.same) if self.gate else ()
        return [name for name in self.arms if name in gate]

    def compared(self) -> Iterator[tuple[str, Compared]]:
        """Every comparison with its role: "gate", "same", "primary", "secondary"."""
        if self.gate:
            yield "gate", Compared(self.gate.positive, self.gate.negative)
            if self.gate.same:
                yield "same", Compared(self.gate.same[1], self.gate.same[0])
        yield "primary", self.primary
        yield from (("secondary", comparison) for comparison in self.secondary)


@dataclass(frozen=True)
class PlanFile:
    """A plan, the hash of its file, and the experiment that its arms vary."""

    plan: Plan
    sha256: str
    experiment: Experiment

    def to_dict(self) -> dict[str, Any]:
        return {"plan": schema.plain(msgspec.to_builtins(self.plan)), "sha256": self.sha256, **self.experiment.to_dict()}


def read_plan(path: Path) -> PlanFile:
    """The plan in a TOML file, checked: every name is known, every comparison is between its arms, and every arm can be made.

    Raises:
        T2TError: what is wrong, and where.
    """
    data = _placed(read_toml(path), str(path.parent))
    try:
        plan = msgspec.convert(data, Plan)
    except msgspec.ValidationError as error:
        raise T2TError(schema.fault(error), where=str(path)) from None
    _check(plan, str(path))
    experiment = resolve_tables(plan.preset, plan.experiment, f"{path}, [experiment]")
    for name, arm in plan.arms.items():
        where = f"{path}, [arms.{name}]"
        try:
            installed().designers.make(arm.designer)
            context.modules(arm.context or experiment.context, installed().contexts)
        except T2TError as error:
            raise T2TError(error.what, where=f"{where} {error.where or ''}".strip(), cause=error.cause, next=error.next) from None
    prepare(experiment, dry=True)
    return PlanFile(plan, folders.sha256(path), experiment)


def entered(file: PlanFile, designer: str, seeds: int | None = None) -> PlanFile:
    """The plan reduced to its gate, its control and one designer of the user's, on its first `seeds` seeds. Raises T2TError if
    the plan has no arm `fixed`, or fewer seeds."""
    plan = file.plan
    control = next((name for name, arm in plan.arms.items() if arm.designer == "fixed" and not arm.replica), None)
    if control is None:
        raise T2TError("the plan has no arm whose designer is fixed", cause="an entry's gain is measured against it")
    if seeds is not None and seeds > len(plan.seeds):
        raise T2TError(f"the plan has {len(plan.seeds)} seeds, not {seeds}")
    installed().designers.make(designer)
    kept = {control, *plan.gate_arms()}
    arms = {name: arm for name, arm in plan.arms.items() if name in kept} | {"entry": PlannedArm(designer)}
    seeded = plan.seeds[:seeds] if seeds else plan.seeds
    own = msgspec.structs.replace(plan, arms=arms, seeds=seeded, primary=Compared("entry", control), secondary=[])
    return PlanFile(own, file.sha256, file.experiment)


def _placed(value: Any, folder: str) -> Any:
    """The plan's texts with its own folder in place of {plan}."""
    if isinstance(value, Mapping):
        return {name: _placed(item, folder) for name, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, folder) for item in value]
    return value.replace("{plan}", folder) if isinstance(value, str) else value


def _check(plan: Plan, where: str) -> None:
    if not plan.seeds or len(set(plan.seeds)) < len(plan.seeds) or min(plan.seeds) < 0:
        raise T2TError("seeds must be different whole numbers, at least one", where=where)
    if not plan.measure:
        raise T2TError("the plan measures nothing", where=where, next='measure = [{set = "...", metric = "valid"}]')
    if not 0 < plan.margin <= 100:
        raise T2TError(f"margin must lie in 0..100 points, not {plan.margin:g}", where=where)
    if plan.gate and len(plan.gate.same) not in (0, 2):
        raise T2TError("the gate's `same` names two arms", where=where)
    for name in plan.arms:
        if name == BASE or not name.replace("-", "").replace("_", "").isalnum():
            raise T2TError(f"an arm cannot be called {ascii(name)[:60]}", where=where, cause="letters, digits, - and _; not base")
    seen = set()
    for role, comparison in plan.compared():
        for arm in (comparison.arm, comparison.against):
            if arm not in plan.arms and arm != BASE:
                known = "arms: " + ", ".join(plan.arms)
                raise T2TError(f"there is no arm {ascii(arm)[:60]}", where=f"{where}, {role}", cause=known)
        if comparison.arm == comparison.against or (role, comparison) in seen:
            raise T2TError(f"{comparison.arm} against {comparison.against} compares nothing new", where=f"{where}, {role}")
        seen.add((role, comparison))


def code_hash() -> str:
    """A hash of the source of the suite and of every package that brings plugins: what a plan's runs depend on beside it."""
    tops = {"t2t_core"}
    for registry in vars(installed()).values():
        if hasattr(registry, "entries"):
            tops |= {entry.plugin.partition(".")[0] for entry in registry.entries.values()}
    packages = {top: find_spec(top) for top in tops if top.isidentifier()}
    return tree_hash({top: list(spec.submodule_search_locations or ()) for top, spec in packages.items() if spec})
