"""A submission: one row of a bench folder as `<date>_<name>/metadata.json` and `answers.jsonl`, made by `t2t submit`.

A check finds every answer, verdict, figure, name or setting that was changed, added, dropped or moved, and instances that are
not the suite's own. `seal` is the SHA-256 of everything else in metadata.json, which holds the SHA-256 of the answers.

No check of a folder can find that somebody wrote the answers without asking the named model; to find out, ask the model again.
Nor can it find that somebody changed a folder and then computed every hash and figure anew; for that, compare `seal` with the one
published at the time (in the commit that added the submission).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.evaluation.tables import tabulate
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.store import folders, fresh, jsonlines, paths, schema
from t2t_core.store.paths import SafePath
from t2t_leaderboard import board, rescoring
from t2t_leaderboard.folder import Row, choose, read_bench, recorded_sampling
from t2t_leaderboard.schemas import SubmissionRecord

FORMAT = 1
KIND = "submission"
METADATA = "metadata.json"
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")


@dataclass(frozen=True)
class Submission:
    """A submission, read, with its shape checked; its instances come from the suite itself. `written` is its metadata.json as
    plain JSON, which is what the seal covers."""

    folder: SafePath
    record: SubmissionRecord
    written: Mapping[str, Any]
    evaluation: Evaluation
    stored: Sequence[Sequence[Any]] = ()

    @property
    def name(self) -> str:
        """`<date>_<name>`, the name of its folder."""
        return self.folder.name

    @property
    def reader(self) -> int:
        """The version of the testbed's reader that its verdicts are of."""
        return self.record.reader


def make(bench_folder: Path, name: str, into: Path, row_name: str | None = None, day: str | None = None) -> Path:
    """Make a submission from one verified row, and return its folder.

    Raises:
        T2TError: the name is not usable, the row does not exist, the bench does not verify, a set is the user's own (nobody
            else could rescore it), or there is already such a submission.
    """
    if not NAME.fullmatch(name):
        raise T2TError(f"{ascii(name)[:80]} is not a usable name", next="use small letters, digits, dots and dashes")
    bench = read_bench(bench_folder)
    own = [record.name for record in bench.sets if record.kind == "file"]
    if own:
        raise T2TError(
            f"{own[0]} is a set of your own; a submission answers the suite's sets", next="t2t bench without --instances"
        )
    checked = rescoring.verify(bench_folder)
    if not checked.verified:
        raise T2TError(
            "the bench folder does not verify",
            where=str(bench_folder),
            cause=(*checked.problems, *checked.unfinished)[0],
            next="t2t verify",
        )
    if checked.moved:
        raise T2TError(
            f"{len(checked.moved)} verdicts are others under reader {checked.reader} of answers, the present one",
            where=str(bench_folder),
            next="run the same t2t bench again: it scores the answers again",
        )
    row = pick(bench.rows(), row_name, bench_folder)
    tables = board.measured(bench, row).tables
    if lacking := [title for title, table in tables.items() if table.incomplete]:
        raise T2TError(
            f"the row is incomplete: more than 1 % of its questions have no answer ({', '.join(lacking)})",
            where=str(row.folder),
            next="the same t2t bench asks for them again",
        )
    folder = SafePath(into) / f"{_day(day or folders.now()[:10])}_{name}"
    if folder.exists():
        raise T2TError("there is a submission of that name", where=str(folder), next="give another --name")
    answers = folders.read_bytes(row.folder / ANSWERS, paths.MAX_STREAM)
    metadata = {
        "format": FORMAT,
        "kind": KIND,
        "name": name,
        "date": folder.name[:10],
        **{key: row.written[key] for key in ("policy", "sampling", "describe")},
        "prompts_sha256": bench.prompts_sha256(),
        "settings": dict(bench.written),
        "answers": {"lines": answers.count(b"\n"), "sha256": hashlib.sha256(answers).hexdigest()},
        "tables": {title: schema.plain(table) for title, table in tables.items()},
        "sessions": folders.read_manifest(bench_folder, "bench")["sessions"],
        "reader": row.reader,
    }
    fresh.remove_leftovers_of(folder.path)
    with folders.building(folder) as whole:  # whole or nothing: half a submission could be neither checked nor made again
        folders.write_atomic(whole / ANSWERS, answers)
        folders.write_json(whole / METADATA, {**metadata, "seal": seal(metadata)})
    return folder.path


def pick(rows: list[Row], name: str | None, where: Path) -> Row:
    """The row of that name or policy, or the only one if none is named."""
    finished = [row for row in rows if row.finished]
    matching = [row for row in finished if name in (None, row.name, row.policy, row.label or None)]
    if len(matching) != 1:
        raise T2TError(
            "which row?" if matching else f"there is no finished row {ascii(name)[:80] if name else ''}".rstrip(),
            where=str(where),
            cause="rows: " + (", ".join(row.name for row in finished) or "none"),
            next="name one: --row for t2t submit, DIR/rows/ROW for t2t compare",
        )
    return matching[0]


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise T2TError(f"{ascii(text)[:40]} is not a date", next="write it as 2026-07-31") from None


def seal(metadata: Mapping[str, Any]) -> str:
    """The hash of everything in metadata.json except the seal itself."""
    return hashlib.sha256(jsonlines.canonical({k: v for k, v in metadata.items() if k != "seal"})).hexdigest()


def read(submission: Path | SafePath) -> Submission:
    """Read a submission from its folder. Raises T2TError if it does not have the shape of one."""
    folder = SafePath.of(submission)
    path = folder / METADATA
    written = folders.read_json(path)
    if written.get("format") != FORMAT or written.get("kind") != KIND:
        raise T2TError(f"not a submission of format {FORMAT}", where=str(path), cause="another version of the suite wrote it")
    record = schema.check(written, SubmissionRecord, str(path))
    settings = record.settings
    testbed: AnyTestbed = installed().testbeds.make(settings.testbed)
    stored: list[Sequence[Any]] = []
    for stored_set in settings.sets:
        source = rescoring.named_set(testbed, stored_set)
        if source is None:
            raise T2TError(f"{ascii(stored_set.name)} is a set of somebody's own", where=str(path))
        stored.append(choose(testbed, source, settings.limit).instances)
    instances = [instance for of_set in stored for instance in of_set]
    sampling = recorded_sampling(written["sampling"], path)
    form, seed, system = settings.prompt_format, settings.seed, settings.system_prompt
    asked = Evaluation(testbed, instances, settings.samples, sampling, form, seed, system)
    return Submission(folder, record, written, asked, stored)


def verify(path: Path | SafePath) -> rescoring.Verification:
    """Recompute everything a submission claims, from its answers and the suite's own instances."""
    submission = read(path)
    missing: list[str] = []
    moved: list[str] = []
    answers = submission.folder / ANSWERS
    checked = rescoring.answer_problems(submission.evaluation, answers, submission.reader, missing, moved)
    mismatches = [*rescoring.few(checked), *rescoring.few(iter(missing))]
    problems = [*_shape_problems(submission), *_set_problems(submission)]
    problems += mismatches or _figure_problems(submission)
    evaluation = submission.evaluation
    return rescoring.Verification(problems, len(evaluation), 1, moved=moved, reader=evaluation.testbed.reader)


def _shape_problems(submission: Submission) -> Iterator[str]:
    folder, record = submission.folder, submission.record
    path = folder / METADATA
    for entry in folder.entries():
        if entry.name not in (METADATA, ANSWERS):
            yield f"{folder}: {ascii(entry.name)[:80]} does not belong here"
    name = f"{record.date}_{record.name}"
    called = folder.path.resolve().name
    if called != name or not NAME.fullmatch(record.name):
        yield f"{path}: it calls itself {ascii(name)[:100]}, the folder is {ascii(called)[:100]}"
    if record.seal != seal(submission.written):
        yield f"{path}: something in it was changed after it was sealed (the model's name, a setting, a count, a figure)"
    answers = folder / ANSWERS
    if folders.sha256(answers) != record.answers.sha256:
        yield f"{answers}: not the answers that were sealed"
    if len(submission.evaluation) != record.answers.lines:
        yield f"{path}: {record.answers.lines} answers claimed, {len(submission.evaluation)} asked"
    if submission.evaluation.prompts_sha256() != record.prompts_sha256:
        yield f"{path}: the prompts are not those that this version asks"


def _set_problems(submission: Submission) -> Iterator[str]:
    settings, testbed = submission.record.settings, submission.evaluation.testbed
    for record in settings.sets:
        where = str(submission.folder / METADATA)
        yield from rescoring.named_set_problems(testbed, record, settings.limit, where, record.file_sha256)


def _figure_problems(submission: Submission) -> list[str]:
    evaluation = submission.evaluation
    answers = scored(evaluation, submission.folder / ANSWERS, submission.reader != evaluation.testbed.reader)
    tables = tabulate(evaluation.testbed, answers, evaluation.samples)
    made = jsonlines.loads(jsonlines.dumps({title: schema.plain(table) for title, table in tables.items()}))
    stored = submission.written["tables"]
    changes = rescoring.differences(stored, rescoring.as_early(stored, made), "tables")
    return [f"{submission.folder / METADATA}: {difference}" for difference in rescoring.few(changes)]
