"""Sends a run's figures to trackers (TensorBoard, W&B, ...): those of every update, every round and the closing bench, and the
designer's changes as events.

The run's folder stays the record: nothing is read back from a tracker. A tracker that fails is named and left out for the rest
of the session, because figures that nobody sees are no reason to stop a training.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from t2t_core import guard
from t2t_core.cells import numbers
from t2t_core.errors import NotReady, T2TError
from t2t_core.hookspecs import TrackedRun
from t2t_core.plugins import installed
from t2t_core.registry import Spec
from t2t_core.run.experiment import Experiment
from t2t_core.run.round_files import PROPOSED, RoundFiles
from t2t_core.run.schemas import BenchTable, Configuration, Design, Projected
from t2t_core.store import folders, jsonlines
from t2t_core.store.paths import SafePath

UPDATE, ROUND = "update", "round"
AUTO, NONE = "auto", "none"
FILE = "tracking.json"  # in the run's folder: the id under which its trackers know it
_USUAL = "tensorboard"  # what "auto" means if it is installed
_SKIPPED = ("update", "updates", "eta_seconds")  # of an update's figures, these are its step or are only for people


class Tracking:
    """The trackers of one run, or none.

    Args:
        trackers: name and tracker.
        note: called with a tracker that fails, and with the place where each one shows its figures.
    """

    def __init__(self, trackers: Sequence[tuple[str, Any]] = (), note: Callable[[str], None] = lambda text: None) -> None:
        self._waiting, self._begun, self._note = list(trackers), list[tuple[str, Any]](), note
        self._run: Callable[[], TrackedRun] | None = None

    @classmethod
    def of(cls, experiment: Experiment, note: Callable[[str], None]) -> Tracking:
        """The trackers that `report_to` names, separated by spaces.

        Raises:
            T2TError: there is no such tracker.
            NotReady: a library that it needs is not installed.
        """
        return cls([(Spec.parse(text).name, _make(text)) for text in tracker_specs(experiment.report_to)], note)

    def follow(self, folder: SafePath, settings: Mapping[str, Any]) -> None:
        """Announce whose figures come next. A tracker starts when the first figures arrive, so that a finished run starts
        none."""

        def run() -> TrackedRun:
            path = folder / FILE
            if not path.exists():
                folders.write_json(path, {"id": uuid.uuid4().hex})
            whole, here = folder.path.resolve(), Path.cwd()
            name = whole.relative_to(here) if whole.is_relative_to(here) else Path(*whole.parts[-2:])
            return TrackedRun(str(folders.read_json(path).get("id")), name.as_posix(), whole, settings)

        self._run = run

    def update(self, before: int, figures: Mapping[str, Any]) -> None:
        """The figures of one update, as its trainer reported them; `before` counts the updates of earlier rounds."""
        done = figures.get("update")
        if isinstance(done, int):
            self._figures(UPDATE, before + done, {k: v for k, v in figures.items() if k not in _SKIPPED})

    def whole_round(self, files: RoundFiles, before: int) -> None:
        """All figures of a finished round that another run has done."""
        if self:
            self.configuration(files)
            for line in jsonlines.read(files.metrics, []) if files.metrics.exists() else ():
                self.update(before, line.value)
            self.validation(files)
            if files.projection.exists():
                self.design(files)

    def configuration(self, files: RoundFiles) -> None:
        """The configuration that the round draws from."""
        if self:
            groups = files.read_configuration().items()
            shown = {f"configuration/{knob}/{group}": v for group, knobs in groups for knob, v in numbers(knobs).items()}
            self._figures(ROUND, files.index, shown)

    def validation(self, files: RoundFiles) -> None:
        """How the round's validation went: over all, and in each group."""
        if self:
            self._figures(ROUND, files.index, _rates(files.read_breakdown()))

    def design(self, files: RoundFiles) -> None:
        """The outcome of the round's design: counts, and every change as an event."""
        if self:
            design, projected = files.read_proposal(), files.read_projection()
            changes = list(_changes(files.read_configuration(), projected.configuration))
            counts = {"proposed": int(design.outcome in PROPOSED), "changes": len(changes), "corrections": len(projected.changes)}
            self._figures(ROUND, files.index, {f"design/{name}": n for name, n in {**counts, "usd": design.cost.usd}.items()})
            told = _told(design, projected, changes)
            self._each("event", files.index, f"design after round {files.index}", told)

    def bench(self, index: int, table: BenchTable | None) -> None:
        """The closing bench, at the last round."""
        for bench_set in table.sets if table else ():
            for row in bench_set.rows:
                rates = {name: rate.value for name, rate in row.rates.items()}
                self._figures(ROUND, index, {f"bench/{bench_set.name}/{name}/{row.arm}": value for name, value in rates.items()})

    def close(self) -> None:
        """Nothing more comes."""
        self._each("end", begin=False)
        self._waiting, self._begun = [], []

    def __bool__(self) -> bool:
        return bool(self._waiting or self._begun)

    def __enter__(self) -> Tracking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _figures(self, axis: str, step: int, figures: Mapping[str, Any]) -> None:
        kept = {name: float(value) for name, value in figures.items() if _is_finite(value)}
        if kept:
            self._each("figures", axis, step, kept)

    def _each(self, method: str, *arguments: Any, begin: bool = True) -> None:
        if begin:
            self._begin()
        for name, tracker in list(self._begun):
            try:
                getattr(tracker, method)(*arguments)
            except T2TError as error:
                self._begun.remove((name, tracker))
                self._note(f"no more figures go to {name}: {error.what}")

    def _begin(self) -> None:
        if not self._waiting or self._run is None:
            return
        run, waiting, self._waiting = self._run(), self._waiting, []
        for name, tracker in waiting:
            try:
                where = tracker.begin(run)
            except guard.PluginFault as error:
                self._note(f"no figures go to {name}: {error.what}")
                continue
            self._begun.append((name, tracker))
            if where:
                self._note(f"{name}: {where}")


def tracker_specs(report_to: str) -> list[str]:
    """The trackers that a setting names: "auto" is TensorBoard if it is installed, "none" is no tracker."""
    named: list[str] = []
    for text in report_to.split():
        if text == AUTO:
            named += [_USUAL] if _USUAL in installed().trackers and find_spec(_USUAL) else []
        elif text != NONE:
            named.append(text)
    return list(dict.fromkeys(named))


def check(report_to: str) -> None:
    """Raise T2TError if a setting names an unknown tracker."""
    for text in tracker_specs(report_to):
        installed().trackers.find(Spec.parse(text).name)


def _make(text: str) -> Any:
    entry = installed().trackers.find(Spec.parse(text).name)
    lacking = entry.lacking()
    if lacking:
        raise NotReady(
            f"the tracker {entry.name} needs {', '.join(lacking)}, which is not installed here",
            where=f"report_to = {text}",
            next=f"pip install {' '.join(lacking)}, or report_to=none",
        )
    return installed().trackers.make(text)


def _rates(breakdown: Mapping[str, Any]) -> dict[str, float]:
    """The shares of valid and of optimal answers, over all and in each group that was asked."""
    rows = {"/all": breakdown["total"], **{f"/{name}": row for name, row in breakdown["groups"].items()}}
    return {
        f"{name}{suffix}": row[name] / row["answers"]
        for suffix, row in rows.items()
        for name in ("valid", "optimal")
        if row["answers"]
    }


def _changes(before: Configuration, after: Configuration) -> Iterator[str]:
    """Every knob that differs, as a line."""
    for group, knobs in after.items():
        earlier = before.get(group, {})
        for knob in [knob for knob in knobs if knobs[knob] != earlier.get(knob)]:
            yield f"- {knob} of {group}: {_shown(earlier.get(knob))} → {_shown(knobs[knob])}"


def _told(design: Design, projected: Projected, changes: Sequence[str]) -> str:
    """A design as Markdown: the designer, the outcome, what changed, what was corrected, and the designer's own explanation."""
    corrected = [f"- corrected {c.knob}: {_shown(c.proposed)} → {_shown(c.used)} ({c.reason})" for c in projected.changes]
    notes = [f"- {note}" for note in ([projected.note] if projected.note else []) + design.notes]
    said = [f"> {line}" for line in (design.summary or "").splitlines()]
    parts = ("\n".join(lines) for lines in (changes or ["- nothing changed"], corrected, notes, said))
    return "\n\n".join(filter(None, (f"{design.designer}: {design.outcome}", *parts)))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} joint cells"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
