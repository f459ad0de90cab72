"""`t2t verify`: everything a bench folder claims, recomputed from the raw text of its answers."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from t2t_core._version import __version__
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS, LOG, NOT_ASKED, AnswerIndex
from t2t_core.evaluation.lines import read_response, read_turns, read_verdict, response_record, verdict_record
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import read_conversation
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceSet, Response
from t2t_core.store import folders, jsonlines, locks, schema
from t2t_core.store.paths import SafePath
from t2t_leaderboard import board, pages
from t2t_leaderboard.folder import Bench, Row, choose, lines, read_bench
from t2t_leaderboard.records import Board, written
from t2t_leaderboard.schemas import BoardHead, SetRecord, VerificationRecord

MOST = 20  # problems shown of one kind of check


@dataclass(frozen=True)
class Verification:
    """What a check of a folder found. If nothing is wrong and nothing is unfinished, the folder is verified.

    `unfinished`: what a process that is at work in the folder, or was killed there, has not written yet; it says nothing false
    about the answers. `partial`: rows that were not asked everything, which the board marks. `board`: the recomputed
    leaderboard, if the answers hold. `pages`: the pages that do not show it. `outdated`: the pages of an earlier layout, which
    were not compared. `moved`: the verdicts that another version of the testbed's reader gave and that differ under the present
    version, `reader`.
    """

    problems: Sequence[str]
    answers: int
    rows: int
    board: Board | None = None
    pages: Collection[str] = ()
    unfinished: Sequence[str] = ()
    partial: Sequence[str] = ()
    outdated: Collection[str] = ()
    moved: Sequence[str] = ()
    reader: int = 1

    @property
    def verified(self) -> bool:
        """Whether everything was found as it is claimed, and every answer is there."""
        return not self.problems and not self.unfinished

    def record(self) -> VerificationRecord:
        """What `verification.json` keeps of it."""
        return VerificationRecord(
            verified=self.verified,
            version=__version__,
            layout=pages.LAYOUT,
            answers=self.answers,
            rows=self.rows,
            problems=list(self.problems),
            unfinished=list(self.unfinished),
            partial=list(self.partial),
            moved=len(self.moved),
            reader=self.reader,
        )


def verify(path: Path | SafePath) -> Verification:
    """Check a bench folder: its sets, every answer, every verdict, every figure of `leaderboard.json` and, if all that holds,
    its pages in Markdown and HTML. A missing page shows nothing false and is no problem.

    Raises T2TError only if the folder cannot be read as a bench at all.
    """
    folder = SafePath.of(path)
    bench = read_bench(folder)
    sound = verify_answers(bench, *_shown(folder))
    made = sound.board
    if made is None:
        return sound
    problems, held = list(few(_board_problems(bench, made))), locks.holder(folder)
    if held:  # it is behind what was recorded before it
        sound = replace(sound, unfinished=[*sound.unfinished, *(_by(held, problem) for problem in problems)])
    else:
        sound = replace(sound, problems=[*sound.problems, *problems])
    if not sound.verified:
        return sound
    wrong, outdated = pages.page_problems(folder, made, board.empty(bench), sound.record())
    more, older = pages.answer_page_problems(bench, made, sound.record())
    wrong, outdated = wrong | more, [*outdated, *older]
    return replace(sound, problems=list(wrong.values()), pages=wrong, outdated=outdated)


def verify_answers(bench: Bench, with_reported: bool, with_answers: bool = False) -> Verification:
    """Check what needs no leaderboard (sets, answers and verdicts), and make the leaderboard that follows from them."""
    folder = bench.folder
    rows, findings = bench.rows(), _Findings(locks.holder(folder), bench.testbed.reader)
    findings.problems += set_problems(bench)
    for row in rows:
        _check_row(bench, row, findings)
    if findings.problems:
        return findings.verification(len(rows))
    return replace(findings.verification(len(rows)), board=board.build(bench, with_reported, with_answers))


@dataclass
class _Findings:
    """What has been found so far. `holder` is the process that is at work in the folder or was killed there, if any: what it has
    not written yet is unfinished, not wrong."""

    holder: str | None
    reader: int
    problems: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    answers: int = 0

    def late(self, problem: str) -> None:
        """Record something that lags behind what was recorded before it."""
        (self.unfinished if self.holder else self.problems).append(problem)

    def verification(self, rows: int) -> Verification:
        said = [_by(self.holder, text) for text in self.unfinished]
        return Verification(
            self.problems, self.answers, rows, unfinished=said, partial=self.partial, moved=self.moved, reader=self.reader
        )


def _by(holder: str | None, text: str) -> str:
    return f"not finished by {holder}: {text}"


def _check_row(bench: Bench, row: Row, findings: _Findings) -> None:
    """Check one row's answers: do they follow from their texts, and does its log have the same ones?"""
    evaluation, path = bench.evaluation(row.sampling), row.folder / ANSWERS
    if bench.prompts_sha256(row.limit) != row.record.prompts_sha256:
        findings.problems.append(f"{row.folder / 'row.json'}: the prompts are not those that this version asks")
    if not row.finished:
        if not (row.folder / LOG).is_empty():  # it is empty if the server refused the very first question
            findings.late(f"{path}: the answers of {LOG} are not in it yet")
        return
    missing: list[str] = []
    late: list[str] = []
    asked: list[int] = []
    wrong = list(few(answer_problems(evaluation, path, row.reader, missing, findings.moved)))
    if not wrong and not missing:
        wrong = list(few(_log_problems(evaluation, row, late, asked)))
    findings.problems += wrong
    for problem in few(iter(missing or late)):
        findings.late(problem)
    if not wrong and not missing:
        findings.answers += len(asked)
        if len(asked) < len(evaluation):
            name = row.label or row.policy
            findings.partial.append(f"{name}: {len(asked):,} of {len(evaluation):,} questions were asked")


def show(path: Path | SafePath, verification: Verification) -> None:
    """Write the outcome and the recomputed figures (none if the answers do not hold) to the folder's Markdown and HTML. A page
    that was found to show something else is left as it is."""
    folder = SafePath.of(path)
    bench = read_bench(folder)
    made = verification.board or board.empty(bench)
    pages.write(folder, made, verification.record(), keep=verification.pages)
    pages.write_answers(bench, made, keep=verification.pages)


def few(problems: Iterator[str]) -> Iterator[str]:
    """The first problems of one kind; thousands would say no more than twenty."""
    for number, problem in enumerate(problems):
        if number == MOST:
            yield f"... and more of this kind; the first {MOST} are shown"
            return
        yield problem


def set_problems(bench: Bench) -> Iterator[str]:
    """Check whether the instances in the folder are those that it names."""
    for record, stored in zip(bench.sets, bench.stored, strict=True):
        path = bench.folder / "instances" / f"{record.name}.jsonl"
        digest = folders.sha256(path)
        if digest != record.file_sha256:  # a killed process may have written more than was asked for
            digest = hashlib.sha256(lines(stored)).hexdigest()
        if digest != record.file_sha256:
            yield f"{path}: SHA-256 {digest[:16]}..., recorded {record.file_sha256[:16]}..."
        yield from named_set_problems(bench.testbed, record, bench.settings.limit, str(path), digest)


def named_set_problems(testbed: AnyTestbed, record: SetRecord, limit: int | None, where: str, digest: str) -> Iterator[str]:
    """Check whether it is the frozen set of that name, or the twin of that seed. A user's own file cannot be compared."""
    try:
        source = named_set(testbed, record)
    except T2TError as error:
        yield f"{where}: the set cannot be loaded: {error.what}"
        return
    if source is None:
        return
    if source.sha256 != record.sha256:
        recorded = f"SHA-256 {source.sha256[:16]}..., recorded {record.sha256[:16]}..."
        yield f"{where}: the {record.kind} set {record.name} has {recorded}"
    elif hashlib.sha256(choose(testbed, source, limit).lines()).hexdigest() != digest:
        yield f"{where}: these are not the first instances of the {record.kind} set {record.name}"


def named_set(testbed: AnyTestbed, record: SetRecord) -> InstanceSet | None:
    """The suite's own set that a record names; None for a user's file."""
    if record.kind == "file":
        return None
    if record.kind == "twin" and record.twin_seed is not None:
        return testbed.twin(record.base, record.twin_seed)
    return testbed.load_set(record.base)


def answer_problems(evaluation: Evaluation, path: SafePath, reader: int, missing: list[str], moved: list[str]) -> Iterator[str]:
    """The problems of an export: answers that are foreign, doubled or out of order, and verdicts that do not follow from the
    text. Missing answers go into `missing`. If another version of the testbed's reader gave the verdicts, the verdicts that
    differ now are no problem: they go into `moved`."""
    every = ((i.id, sample) for i in evaluation.instances for sample in range(evaluation.samples))
    asked = {name: index for index, name in enumerate(every)}
    seen: set[tuple[Any, Any]] = set()
    before, disordered = -1, False
    try:
        for line in jsonlines.read(path):
            where = f"{path}, line {line.number}"
            name = (str(line.value.get("instance")), line.value.get("sample"))
            shown = f"{name[0][:80]!a}, sample {ascii(name[1])[:20]}"
            if type(name[1]) is not int or name not in asked:
                yield f"{where}: an answer to {shown}, which is not in the set"
                continue
            if name in seen:
                yield f"{where}: a second answer to {shown}"
                continue
            seen.add(name)
            disordered, before = disordered or asked[name] < before, asked[name]
            _, messages = read_conversation(evaluation, asked[name], line.value, where)
            verdict = verdict_record(evaluation.verdict(asked[name], messages))
            if line.value.get("verdict") == verdict:
                continue
            if reader != evaluation.testbed.reader:
                recorded = verdict_record(read_verdict(line.value, where))
                moved.append(f"{where}: {shown}, by reader {reader}: {'; '.join(differences(recorded, verdict))}")
            else:
                yield f"{where}: the recorded verdict on {shown} does not follow from the text: {_differing(line.value, verdict)}"
    except T2TError as error:
        yield f"{error.where or path}: {error.what}{': ' * bool(error.cause)}{error.cause}"
        return
    lacking = [name for name in asked if name not in seen]
    for instance, sample in lacking[:MOST]:
        missing.append(f"{path}: no answer to {instance!r}, sample {sample} ({len(lacking)} are missing)")
    if disordered:
        yield f"{path}: the answers are not in the order of the instances"


def _differing(record: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    stored = record.get("verdict")
    if not isinstance(stored, dict):
        return "there is none"
    return "; ".join(differences(stored, dict(verdict)))


def _log_problems(evaluation: Evaluation, row: Row, late: list[str], asked: list[int]) -> Iterator[str]:
    """Check whether the export says what the log says. What merely lags behind goes into `late`, and the questions that were
    asked into `asked`."""
    log_path, path = row.folder / LOG, row.folder / ANSWERS
    if not log_path.exists():
        yield f"{log_path}: the log is missing"
        return
    try:
        ids = [instance.id for instance in evaluation.instances]
        with closing(AnswerIndex(log_path, ids, evaluation.samples, evaluation.testbed.turns)) as log:
            late += (f"{log_path}: {note}" for note in log.notes)
            for index, line in enumerate(jsonlines.read(path)):
                response = read_response(line.value, str(path))
                if response != NOT_ASKED:
                    asked.append(index)
                if problem := _unlike(evaluation, log, index, line, response, path, late):
                    yield problem
    except T2TError as error:
        yield f"{error.where or log_path}: {error.what}"


def _unlike(
    evaluation: Evaluation,
    log: AnswerIndex,
    index: int,
    line: jsonlines.Line,
    response: Response,
    path: SafePath,
    late: list[str],
) -> str | None:
    """How an exported answer differs from the log's last one; None if it does not. If it agrees with an earlier answer, or the
    question had not been asked then, the export is only late."""
    where, logged = f"{path}, line {line.number}", log.response(index)
    if logged is None:
        return None if response.error else f"{where}: an answer that {LOG} does not have"
    if response_record(logged) != {name: line.value.get(name) for name in response_record(response)}:
        once = map(response_record, (NOT_ASKED, *log.superseded(index)))
        if response_record(replace(response, earlier=())) not in once:
            return f"{where}: the answer is not the one in {LOG}"
        late.append(f"{where}: {LOG} has a later answer")
    elif evaluation.testbed.turns > 1 and _said(log.turns(index)) != _said(read_turns(line.value, str(path))):
        return f"{where}: the conversation is not the one in {LOG}"
    return None


def _said(turns: Sequence[tuple[Response, Any]]) -> list[Any]:
    """The part of a conversation that an export keeps; how long an answer took is not in it, for example."""
    return [(response_record(response), replies) for response, replies in turns]


def _board_problems(bench: Bench, made: Board) -> Iterator[str]:
    """Check whether `leaderboard.json` shows the recomputed figures and nothing else."""
    path = bench.folder / "leaderboard.json"
    try:
        stored = folders.read_json(path)
        head = schema.check(stored, BoardHead, str(path))
    except T2TError as error:
        yield f"{path}: {error.what}"
        return
    fresh = jsonlines.loads(jsonlines.dumps(written(made)))
    if head.format == 1:  # from earlier versions, which wrote fewer figures
        fresh = {**as_early(stored, fresh), "format": 1}
    changes = differences(stored, fresh)
    yield from (f"{path}: {difference}" for difference in few(changes))


_LATER = ("repeated", "family", "answer_pages")  # figures that earlier versions did not write


def as_early(stored: Any, made: Any) -> Any:
    """The recomputed figures without those that an earlier version did not write yet: what is not claimed cannot be false."""
    if isinstance(stored, dict) and isinstance(made, dict):
        kept = {name: value for name, value in made.items() if name in stored or name not in _LATER}
        return {name: as_early(stored.get(name), value) for name, value in kept.items()}
    if isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        return [as_early(a, b) for a, b in zip(stored, made, strict=True)]
    return made


def _shown(folder: SafePath) -> tuple[bool, bool]:
    """Whether the leaderboard on disk has reported rows, and whether it links to pages of answers."""
    try:
        head = folders.read_record(folder / "leaderboard.json", BoardHead)
    except T2TError:  # missing or damaged: the problems already say what is wrong with it
        return True, False
    return head.reported, head.answer_pages


def differences(stored: Any, made: Any, at: str = "") -> Iterator[str]:
    """The places where two JSON values differ, field by field."""
    if isinstance(stored, dict) and isinstance(made, dict):
        for name in [*made, *(n for n in stored if n not in made)]:
            field = f"{at}.{ascii(name)[1:-1][:60]}" if at else ascii(name)[1:-1][:60]
            if name not in made or name not in stored:
                yield f"{field} {'is missing' if name in made else 'should not be there'}"
            else:
                yield from differences(stored[name], made[name], field)
    elif isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        for index, (a, b) in enumerate(zip(stored, made, strict=True)):
            label = b.get("policy") or b.get("title") or index if isinstance(b, dict) else index
            yield from differences(a, b, f"{at}[{label}]")
    elif stored != made or type(stored) is not type(made) and not {type(stored), type(made)} <= {int, float}:
        yield f"{at}: {ascii(stored)[:80]} there, {ascii(made)[:80]} recomputed"
