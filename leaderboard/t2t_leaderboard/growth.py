"""How a bench folder grows: from two instances per column to ten, or from one answer per instance to four.

Its `limit` and `samples` are the most that was ever asked for. A process may be killed at any write, so the order matters: first
the rows remember up to which limit they were asked, then the instances are written, then the settings that mention them, and
last the rows get a line for each question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from t2t_core.evaluation.answers import ANSWERS, LOG, AnswerIndex
from t2t_core.evaluation.export import export
from t2t_core.store import folders, jsonlines, schema
from t2t_core.store.paths import SafePath
from t2t_leaderboard.folder import KIND, Bench, SelectedSet, read_bench
from t2t_leaderboard.schemas import BenchSettings

Plan = Callable[[int | None, int], tuple[BenchSettings, Sequence[SelectedSet]]]

_GROWS = ("limit", "samples")
_OF_A_SET = ("file_sha256", "instances")  # what a set's record says about the chosen instances


def question(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as written, without those that may grow."""
    sets = [{name: value for name, value in record.items() if name not in _OF_A_SET} for record in settings["sets"]]
    return {**{name: value for name, value in settings.items() if name not in _GROWS}, "sets": sets}


def larger(a: int | None, b: int | None) -> int | None:
    """The larger of two limits; None means no limit."""
    return None if a is None or b is None else max(a, b)


def grow(folder: SafePath, plan: Plan, limit: int | None, samples: int, reader: int) -> None:
    """Make the folder of a bench, or grow it to what is asked for.

    Args:
        folder: new, empty, or a bench folder.
        plan: the bench's settings and instances for a limit and a number of samples.
        limit, samples: what is asked for now.
        reader: the version of the testbed's reader of answers.

    Raises:
        T2TError: the folder holds another bench.
    """
    manifest = folder / folders.MANIFEST
    if not manifest.exists():
        settings, sets = plan(limit, samples)
        folders.open_manifest(folder, KIND, settings.written(), "bench", question, {"reader": reader})
        _write_instances(folder, sets)
        return
    written = folders.read_manifest(folder, KIND)["settings"]
    there = schema.check(written, BenchSettings, str(manifest))
    settings, sets = plan(larger(there.limit, limit), max(there.samples, samples))
    folders.same_settings(question(written), question(settings.written()), manifest, "bench")
    if settings.limit != there.limit:
        _remember(folder)
    _write_instances(folder, sets)
    folders.open_manifest(folder, KIND, settings.written(), "bench", question, {"reader": reader})


def _write_instances(folder: SafePath, sets: Sequence[SelectedSet]) -> None:
    for selected in sets:
        path = folder / "instances" / f"{selected.source.name}.jsonl"
        if not path.exists() or folders.sha256(path) != selected.record().file_sha256:
            folders.write_atomic(path, selected.lines())


def _remember(folder: SafePath) -> None:
    """Rows written by an earlier version do not say up to which limit they were asked."""
    for row in read_bench(folder).rows() if (folder / "rows").exists() else ():
        if "limit" not in row.written:
            folders.write_json(row.folder / "row.json", {**row.written, "limit": row.limit})


def level(bench: Bench) -> None:
    """Give every row's answers a line for each question of the folder, with a mark for questions that the row was not asked, and
    a verdict by the testbed's present reader."""
    for row in (r for r in bench.rows() if r.finished and (r.folder / LOG).exists()):
        evaluation, present = bench.evaluation(row.sampling), bench.testbed.reader
        if row.reader != present or sum(1 for _ in jsonlines.read(row.folder / ANSWERS)) != len(evaluation):
            ids = [instance.id for instance in evaluation.instances]
            with closing(AnswerIndex(row.folder / LOG, ids, evaluation.samples, evaluation.testbed.turns)) as log:
                export(evaluation, log, row.folder / ANSWERS)
        if row.reader != present:  # last: after a kill, the new verdicts still agree with the present reader
            folders.write_json(row.folder / "row.json", {**row.written, "limit": row.limit, "reader": present})
