"""What a study keeps of every seed: a small file from which all of its figures follow, so that run folders may go.

    OUT/outcomes/seed_101.json    written when the arms of the gate are done, and again when all of the seed's are

An answer is one character, in the order of its set: 1 or 0 under a measure of the plan. A study folder that holds nothing but
`run.json`, `code.json` and these files gives the same `study.json` again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from t2t_core.errors import T2TError
from t2t_core.evaluation.columns import columns_of
from t2t_core.plugins import installed
from t2t_core.report.summary import Budget
from t2t_core.run.closing_bench import Values, evaluations
from t2t_core.run.experiment import Experiment
from t2t_core.store import folders, schema
from t2t_core.store.paths import SafePath
from t2t_core.study.plan import Measure, Plan, PlanFile

FOLDER, CODE = "outcomes", "code.json"
Column = Annotated[str, Meta(pattern=r"^[01]*\Z")] | list[float]  # a character an instance where all are 0 or 1
Coded = dict[str, dict[str, dict[str, Column]]]  # set -> metric -> column -> the instances' values


@dataclass(frozen=True)
class RoundOutcome:
    """A round: the updates of its training, the tokens of that and of the design that led to it, and the valid rate of its
    validation, over all and by group (None: no answers)."""

    updates: schema.Count
    tokens: schema.Count
    valid: float | None
    groups: Mapping[str, float | None]


@dataclass(frozen=True)
class Trial:
    """One arm with one seed: what it was given, its rounds, how each design ended ("used", "failed", ...), the hash of what it
    trained (of what it trained on, where nothing was trained), how it designed, and its values under the plan's measures."""

    budget: Budget
    rounds: Sequence[RoundOutcome]
    designs: Sequence[str]
    digest: str
    behaviour: Mapping[str, float | None]
    answers: Mapping[str, Values]


@dataclass(frozen=True)
class Trials:
    """Everything that was run: arm -> its trials, in the order of the plan's seeds; the untrained policy by seed; of each set
    the cell of every instance; and the hashes of the code that it was run with."""

    arms: Mapping[str, list[Trial]]
    base: list[Mapping[str, Values]]
    cells: Mapping[str, Mapping[str, str]]
    codes: list[str]


@dataclass(frozen=True)
class SeedOutcome:
    """Arms of one seed, and the untrained policy's values."""

    base: Mapping[str, Values]
    arms: Mapping[str, Trial]


@dataclass(frozen=True)
class KeptTrial:
    """A `Trial` as it stands in the file."""

    budget: Budget
    rounds: list[RoundOutcome]
    designs: list[str]
    digest: str
    behaviour: dict[str, float | None]
    answers: Coded


@dataclass(frozen=True)
class KeptSeed:
    """The file."""

    plan: schema.Sha256
    base: Coded
    arms: dict[str, KeptTrial]


@dataclass(frozen=True)
class CodeRecord:
    """`code.json`: the hash of the code of every session."""

    sha256: list[schema.Sha256]


@dataclass(frozen=True)
class MeasuredSets:
    """The plan's evaluation sets: column -> the instances' ids in their order, and every instance's cell."""

    columns: Mapping[str, Mapping[str, Sequence[str]]]
    cells: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, experiment: Experiment) -> MeasuredSets:
        """Those of a run's settings, `[evaluation]`. Raises T2TError for a set that the testbed does not have."""
        testbed = installed().testbeds.make(experiment.testbed)
        columns: dict[str, dict[str, list[str]]] = {}
        cells: dict[str, dict[str, str]] = {}
        for evaluation_set, evaluation in evaluations(experiment, testbed):
            by_column, by_id = columns.setdefault(evaluation_set.name, {}), cells.setdefault(evaluation_set.name, {})
            named = columns_of(testbed, evaluation.instances)
            for instance in evaluation.instances:
                place = testbed.place(instance)
                by_column.setdefault(named[instance.id], []).append(instance.id)
                by_id[instance.id] = testbed.cell_of(place.cell) or place.cell or place.column
        return cls(columns, cells)


def measured_rates(plan: Plan, answers: Mapping[str, Values]) -> dict[str, Values]:
    """Of everything that a bench measured, what the plan compares. Raises T2TError if it measured nothing of the kind."""
    kept: dict[str, Values] = {}
    for measure in plan.measure:
        kept.setdefault(measure.set, {})[measure.metric] = rates(answers, measure)
    return kept


def rates(answers: Mapping[str, Values], measure: Measure) -> dict[str, dict[str, float]]:
    """Column -> instance -> value under one measure."""
    try:
        return answers[measure.set][measure.metric]
    except KeyError:
        known = ", ".join(f"{name} ({', '.join(metrics)})" for name, metrics in answers.items())
        raise T2TError(f"nothing measures {measure.metric} on {measure.set}", where="the plan's measure", cause=known) from None


# --- on disk


def seed_file(folder: SafePath, seed: int) -> SafePath:
    """The file that holds what there is of one seed."""
    return folder / FOLDER / f"seed_{seed}.json"


def write_seed(folder: SafePath, file: PlanFile, seed: int, outcome: SeedOutcome) -> None:
    """Keep what there is of one seed."""
    arms = {name: KeptTrial(**{**vars(trial), "answers": _coded(trial.answers)}) for name, trial in outcome.arms.items()}
    folders.make_folder(folder / FOLDER)
    folders.write_json(seed_file(folder, seed), KeptSeed(file.sha256, _coded(outcome.base), arms))


def read_seed(folder: SafePath, file: PlanFile, seed: int, sets: MeasuredSets, names: Collection[str]) -> SeedOutcome:
    """What is kept of those arms: the inverse of `write_seed`.

    Raises:
        T2TError: the file is of another plan, lacks an arm, or is not what was written.
    """
    path = seed_file(folder, seed)
    kept = _read(file, path)
    missing = [name for name in names if name not in kept.arms]
    if missing:
        raise T2TError(f"there is no arm {missing[0]}", where=str(path), cause=schema.EDITED)
    arms = {}
    for name in names:
        trial = kept.arms[name]
        answers = _decoded(trial.answers, sets, path)
        arms[name] = Trial(trial.budget, trial.rounds, trial.designs, trial.digest, trial.behaviour, answers)
    return SeedOutcome(_decoded(kept.base, sets, path), arms)


def _read(file: PlanFile, path: SafePath) -> KeptSeed:
    kept = folders.read_record(path, KeptSeed)
    if kept.plan != file.sha256:
        raise T2TError("these are outcomes of another plan", where=str(path), next="take the plan that they were run by")
    strange = [name for name in kept.arms if name not in file.plan.arms]
    if strange:
        raise T2TError(f"the plan has no arm {ascii(strange[0])[:60]}", where=str(path), cause=schema.EDITED)
    return kept


def kept_seeds(file: PlanFile, folder: SafePath, names: Collection[str]) -> list[int]:
    """The plan's seeds of which those arms are kept."""
    there = [seed for seed in file.plan.seeds if seed_file(folder, seed).exists()]
    return [seed for seed in there if set(names) <= _read(file, seed_file(folder, seed)).arms.keys()]


def read_trials(file: PlanFile, folder: SafePath, codes: list[str], names: Collection[str]) -> Trials:
    """Those arms of all seeds from what is kept. Raises T2TError if one is missing."""
    sets = MeasuredSets.of(file.experiment)
    seeds = [read_seed(folder, file, seed, sets, names) for seed in file.plan.seeds]
    arms = {name: [seed.arms[name] for seed in seeds] for name in names}
    return Trials(arms, [seed.base for seed in seeds], sets.cells, codes)


def _coded(answers: Mapping[str, Values]) -> Coded:
    return {
        name: {metric: {c: _column(list(by_id.values())) for c, by_id in columns.items()} for metric, columns in metrics.items()}
        for name, metrics in answers.items()
    }


def _column(values: list[float]) -> Column:
    return "".join(f"{value:.0f}" for value in values) if all(value in (0, 1) for value in values) else values


def _decoded(coded: Coded, sets: MeasuredSets, path: SafePath) -> dict[str, Values]:
    answers: dict[str, Values] = {}
    for name, metrics in coded.items():
        where, known = f"{path}, {ascii(name)[:60]}", sets.columns.get(name, {})
        for metric, columns in metrics.items():
            if {c: len(values) for c, values in columns.items()} != {c: len(ids) for c, ids in known.items()}:
                raise T2TError("the answers are not those to the set", where=where, cause=schema.EDITED)
            answers.setdefault(name, {})[metric] = {
                column: dict(zip(ids, map(float, columns[column]), strict=True)) for column, ids in known.items()
            }
    return answers


def code_hashes(folder: SafePath) -> list[str]:
    """The hashes of the code of every session. Raises T2TError if `code.json` does not hold such."""
    path = folder / CODE
    return folders.read_record(path, CodeRecord).sha256 if path.exists() else []
