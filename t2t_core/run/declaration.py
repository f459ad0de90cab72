"""What a run's testbed declares, stored as `testbed.json` in the run's folder. Reports and analyses rely on it, even if the
testbed is not installed or has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Knob, Request
from t2t_core.registry import Spec
from t2t_core.run.experiment import Experiment
from t2t_core.store import folders
from t2t_core.store.paths import SafePath

FILE = "testbed.json"


@dataclass(frozen=True, kw_only=True)
class DeclaredMetric:
    """A metric as reports show it: its name in files, its title, "rate" or "mean", its unit, and which direction is better."""

    name: str
    title: str
    kind: str
    unit: str
    higher_is_better: bool


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """`testbed.json`; the fields are those of `hookspecs.Testbed`."""

    name: str
    title: str = ""
    group: str = "group"
    groups: list[str] = field(default_factory=list)
    groups_rise: bool = False
    knobs: list[Knob] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    metrics: list[DeclaredMetric] = field(default_factory=list)
    rubric: dict[str, float] = field(default_factory=dict)
    reward_range: list[float] = field(default_factory=list)
    length_term: bool = False
    sameness: str = ""
    reader: int = 1
    observed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, testbed: AnyTestbed, request: Request) -> Declaration:
        """What the testbed declares for a run with that request."""
        names = ("name", "title", "kind", "unit", "higher_is_better")
        return cls(
            name=testbed.name,
            title=testbed.title,
            group=testbed.group,
            groups=list(testbed.groups),
            groups_rise=testbed.groups_rise,
            knobs=list(testbed.knobs(request)),
            checks=list(testbed.checks),
            metrics=[DeclaredMetric(**{name: getattr(metric, name) for name in names}) for metric in testbed.metrics],
            rubric=dict(testbed.rubric),
            reward_range=list(testbed.reward_range),
            length_term=testbed.length_term,
            sameness=testbed.sameness,
            reader=testbed.reader,
            observed=dict(testbed.observed),
        )

    def knob(self, name: str) -> Knob | None:
        """The knob of that name, None if it is not declared."""
        return next((knob for knob in self.knobs if knob.name == name), None)

    def in_order(self, names: Sequence[str]) -> list[str]:
        """These knobs with the share first; as they stand where no share is declared."""
        shares = [knob.name for knob in self.knobs if knob.role == "share"]
        return sorted(names, key=lambda name: name not in shares)


def read_declaration(folder: SafePath, experiment: Experiment) -> Declaration:
    """What the folder says. For a run older than this file, what the testbed says today; if that is not installed either, only
    its name."""
    if (folder / FILE).exists():
        return folders.read_record(folder / FILE, Declaration)
    if Spec.parse(experiment.testbed).name not in installed().testbeds:
        return Declaration(name=experiment.testbed)
    testbed = installed().testbeds.make(experiment.testbed)
    options = {**experiment.generation, "exclude": frozenset()}  # excluded instances have no effect on the knobs
    return Declaration.of(testbed, testbed.request(options.pop("samples", 1), **options))
