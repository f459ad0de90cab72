"""A job: a folder with `job.toml`, which holds the part of a run's settings that a family lets agents edit. Its values
override those of the family's start job, are checked against the bounds, and become a run of the closed loop:

base = "strong"                   # one of the family's bases
trainer = "grpo"
rounds = 2
[generation]                      # samples: instances per round; the other keys go to the world's generator
[configuration.GROUP]             # the generator's knobs in round 0, and in later rounds unless a [[round]] changes them
[[round]]                         # one for each round, in order; the last one stays in force
[round.configuration.GROUP]       # what differs from [configuration] in that round
[training]                        # passed to the trainer unchanged
[reward]                          # weights of the world's reward terms, by name
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.plugins import installed
from t2t_core.run.experiment import Experiment
from t2t_core.settings import refuse_secrets
from t2t_core.store import folders, jsonlines, schema
from t2t_core.store.paths import SafePath
from t2t_jobs.family import Family, dotted, nested, quoted, value_at, values_of

FILE = "job.toml"
MAX_BYTES = 64 << 10  # of job.toml (our choice)
MAX_DEPTH = 6  # of its tables
CODE = ("environment.py", "reward.py")
Number = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class Round:
    """An entry of `[[round]]`."""

    configuration: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobFile:
    """The keys that `job.toml` may have; the module's docstring says what each means."""

    base: str = ""
    trainer: str = ""
    rounds: Annotated[int, Meta(ge=1, le=1000)] = 1
    generation: Mapping[str, Number] = field(default_factory=dict)
    configuration: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    round: list[Round] = field(default_factory=list)
    training: Mapping[str, Number] = field(default_factory=dict)
    reward: Mapping[str, float] = field(default_factory=dict)


class Failure(T2TError):
    """What is wrong with a job, in words that its author can act on."""


@dataclass(frozen=True)
class Job:
    """A complete job, ready to run: where its file names no value, it has the family's.

    Args:
        family: the task family that it is for.
        values: nested tables in the form of `job.toml`.
        code: names of the code files beside `job.toml`.
    """

    family: Family
    values: Mapping[str, Any]
    code: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The name of the base that the training starts from."""
        return str(self.values["base"])

    @property
    def conversations(self) -> int:
        """How many conversations it plays while it trains: rounds x samples x epochs x group."""
        training, per_round = self.values["training"], self.values["generation"]["samples"]
        each = [training.get(name, 1) for name in ("epochs", "group")]
        return int(self.values.get("rounds", 1) * per_round * each[0] * each[1])

    def configurations(self) -> list[dict[str, Any]]:
        """The generator's configurations, one for each `[[round]]`; the last one stays in force."""
        first = self.values["configuration"]
        return [_over(first, entry.get("configuration", {})) for entry in self.values.get("round", ())] or [dict(first)]


def read_job(folder: Path | SafePath, family: Family, allow_code: Sequence[str] = ()) -> tuple[Job | None, list[Failure]]:
    """Read the job in a folder. Returns the job, or None if none can be read there, and everything that is wrong with it as far
    as its text shows: syntax, schema, keys that may not be edited, bounds.

    Values out of bounds are left out of the job, so that the rest of it can be checked too; so is code that is not in
    `allow_code`. Anybody may have written the folder, so no link in it is followed."""
    path = SafePath.of(folder) / FILE
    where = FILE
    if not path.exists():
        nothing = Failure(f"there is no {FILE}", where="the workspace", next=f"write {FILE}; the task says what may stand in it")
        return None, [nothing]
    try:
        data = tomllib.loads(folders.read_bytes(path, MAX_BYTES).decode())
    except RecursionError:
        return None, [Failure(f"{FILE} is no TOML", where=where, cause="it is nested too deeply")]
    except ValueError as error:
        return None, [Failure(f"{FILE} is no TOML", where=where, cause=str(error)[:300], next="mend that line")]
    except T2TError as error:
        return None, [Failure(error.what, where=where, cause=error.cause)]
    try:
        _refuse_deep(data)
        refuse_secrets(data, where)
        schema.check(data, JobFile, where, cause="")
    except T2TError as error:
        return None, [Failure(error.what, where=where, cause=error.cause, next=error.next)]
    failures = _unknown(data)
    allowed = {name: value for name, value in data.items() if name in JobFile.__annotations__}
    failures += _unbounded(allowed, family)  # this also drops those values from `allowed`, so that the rest can be tried
    values = _over(family.start, allowed)
    code = tuple(name for name in CODE if (SafePath.of(folder) / name).exists())
    failures += [_not_allowed(name) for name in code if name not in allow_code]
    return Job(family, values, tuple(name for name in code if name in allow_code)), failures


def _not_allowed(name: str) -> Failure:
    cause = "code in a job is off unless the user allows it by name (--allow-code)"
    return Failure(f"{name} may not run here", where=name, cause=cause, next="empty the job of it, or do without: say what you "
                   "want in job.toml")  # fmt: skip


def make_job(family: Family, changes: Mapping[str, Any]) -> Job:
    """The family's start job with other values at these dotted keys."""
    return Job(family, _over(family.start, nested(changes)))


def document(values: Mapping[str, Any]) -> str:
    """Nested tables as the text of a `job.toml`."""
    lines, tables = [], []
    for name, value in values.items():
        if isinstance(value, Mapping) or (isinstance(value, list) and value and isinstance(value[0], Mapping)):
            tables.append((name, value))
        else:
            lines.append(f"{dotted([name])} = {_toml(value)}")
    for name, value in tables:
        for entry in value if isinstance(value, list) else [value]:
            lines += _table((name,), entry, listed=isinstance(value, list))
    return "\n".join(lines) + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any], listed: bool = False) -> list[str]:
    plain = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
    opening = f"[[{dotted(path)}]]" if listed else f"[{dotted(path)}]"
    lines = ["", opening, *(f"{dotted([name])} = {_toml(value)}" for name, value in plain.items())] if plain or listed else []
    for name, value in table.items():
        if isinstance(value, Mapping):
            lines += _table((*path, name), value)
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else jsonlines.dumps(value)  # TOML reads JSON's numbers


def to_experiment(job: Job, seed: int, folder: SafePath | None = None, hidden: Path | None = None) -> Experiment:
    """The job as a run's settings. If its rounds differ, their schedule is written to `folder`; without a folder, the first
    round's configuration stays in force. No instance in the file `hidden` is ever drawn for training."""
    values, steps = job.values, job.configurations()
    fixed = {name: dict(table) if isinstance(table, Mapping) else table for name, table in job.family.fixed.items()}
    designer = "fixed"
    if len(steps) > 1 and folder is not None:
        folders.write_atomic(folder / "rounds.json", jsonlines.dumps(steps[1:]))
        designer = f"schedule:{(folder / 'rounds.json').path}"
    training = {**fixed.pop("training", {}), **values["training"]}
    data = {
        **fixed,
        "testbed": job.family.testbed,
        "checkpoint": job.family.bases[job.base].checkpoint,
        "trainer": values["trainer"],
        "designer": designer,
        "context": "F",
        "rounds": values.get("rounds", 1),
        "seed": seed,
        "generation": dict(values["generation"]),
        "configuration": steps[0],
        "training": training,
        "reward": dict(values.get("reward", {})),
        "evaluation": {"instances": str(hidden)} if hidden else {},
    }
    return Experiment.from_dict(data, FILE)


def require_ready(family: Family) -> None:
    """Raise T2TError (mostly NotReady) if this machine lacks something that the family's jobs need, such as torch."""
    run = to_experiment(make_job(family, {}), 0)
    ready = getattr(installed().trainers.make(run.trainer), "ready", None)
    if ready is not None:
        ready(TrainingOrder(run.start(), family.world(), run.training, run.samples, run.rounds))


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested tables; values of `above` override those of `below`."""
    made = {name: _over(value, {}) if isinstance(value, Mapping) else value for name, value in below.items()}
    for name, value in above.items():
        under = made.get(name)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        made[name] = _over(under, value) if both else value  # type: ignore[arg-type]
    return made


def _refuse_deep(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise T2TError(f"tables are nested deeper than {MAX_DEPTH}")
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inside:
        _refuse_deep(item, depth + 1)


def _unknown(data: Mapping[str, Any]) -> list[Failure]:
    known = list(JobFile.__annotations__)
    return [
        Failure(f"a job has no {ascii(name)[1:-1][:60]}", where=FILE, cause=f"it has {', '.join(known)}", next="leave it out")
        for name in data
        if name not in known
    ]


def _unbounded(data: dict[str, Any], family: Family) -> list[Failure]:
    """Failures for values that may not be edited or are out of bounds. These values are removed from `data`."""
    entries = data.get("round", [])
    tables = {name: value for name, value in data.items() if name != "round"}
    kept, failures = _within(tables, family, "")
    rounds = []
    for number, entry in enumerate(entries):
        fine, faults = _within(entry, family, f"round {number}, ")
        rounds.append(fine)
        failures += faults
    most = kept.get("rounds", family.start.get("rounds", 1))
    if len(rounds) > most:
        what = f"{len(rounds)} tables [[round]] for {most} round{'s' * (most > 1)}"
        failures.append(Failure(what, where=FILE, next="leave some out, or raise rounds"))
    data.clear()
    data.update(kept)
    if rounds:
        data["round"] = rounds[:most]
    return failures


def _within(tables: Mapping[str, Any], family: Family, prefix: str) -> tuple[dict[str, Any], list[Failure]]:
    """The values that are allowed, and what is wrong with the others."""
    kept, failures = {}, []
    for name, value in values_of(tables).items():
        bound, where = family.bounds.get(name), f"{FILE}, {prefix}{name}"
        if bound is None and value == value_at(family.start, name):
            continue  # it repeats the start job's value, which changes nothing
        if bound is None:
            same = [known for known in family.bounds if known.partition(".")[0] == name.partition(".")[0]]
            cause = f"of this table may be edited: {', '.join(same)}" if same else f"editable: {', '.join(family.bounds)}"
            failures.append(Failure(f"{name} may not be edited", where=where, cause=cause[:600], next="leave it out"))
        elif fault := bound.fault(value):
            failures.append(Failure(f"{name} {fault}", where=where, next=f"write {bound.words()}"))
        else:
            kept[name] = value
    return nested(kept), failures


def copy_job(source: Path | SafePath, target: SafePath) -> None:
    """Copy the job's files, and nothing else, to a new folder, so that what runs is exactly what was submitted."""
    with folders.building(target) as made:
        for name in (FILE, *CODE):
            if (SafePath.of(source) / name).exists():
                folders.write_atomic(made / name, folders.read_bytes(SafePath.of(source) / name, MAX_BYTES))
