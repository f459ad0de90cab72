"""Join the submissions of many people: those that were asked the same share one board, and a twin is shown beside its set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.row_tables import MetricFigure
from t2t_core.evaluation.stats import Estimate, unpaired
from t2t_core.hookspecs import AnyTestbed
from t2t_core.store.jsonlines import canonical
from t2t_core.store.paths import SafePath
from t2t_core.text import one_line
from t2t_leaderboard import board, submission
from t2t_leaderboard.answer_pages import Answers
from t2t_leaderboard.families import family_of
from t2t_leaderboard.folder import Bench
from t2t_leaderboard.records import Board, PolicyFigures, PolicyRow
from t2t_leaderboard.schemas import BenchSettings
from t2t_leaderboard.submission import Submission


@dataclass(frozen=True)
class Question:
    """A question that several submissions were asked: their settings, the joined board and the submissions in it."""

    world: AnyTestbed
    settings: BenchSettings
    board: Board
    submissions: Sequence[Submission]

    @property
    def twin(self) -> int | None:
        """The seed of its twins, None for the frozen sets."""
        return self.settings.sets[0].twin_seed

    @property
    def said(self) -> str:
        """How it differs from other questions about the same world, in a few words; "" for the whole frozen sets as they are."""
        limit, samples, twin = self.settings.limit, self.settings.samples, self.twin
        parts = [f"twin {twin}"] if twin is not None else []
        parts += [f"the first {limit} of each column"] if limit else []
        parts += [f"{samples} answers each"] if samples > 1 else []
        parts += ["system prompt"] if self.settings.system_prompt else []
        first = self.world.prompt_formats[0]
        parts += [f"format {self.settings.prompt_format}"] if self.settings.prompt_format != first else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Contamination:
    """A model on the frozen sets and on a twin of them: the first rate of a table on both, and the difference, in percent. If
    the score is as good on the twin, it was not memorised."""

    name: str
    world: str
    table: str
    frozen: Estimate
    twin: Estimate
    seed: int

    @property
    def difference(self) -> Estimate:
        """The rate on the frozen set minus that on its twin, with a 95 % interval."""
        return unpaired(self.frozen, self.twin)


@dataclass(frozen=True)
class Joined:
    """Everything that a site shows: the questions by world, and the folders that failed the check, with what is wrong."""

    questions: Sequence[Question]
    refused: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def worlds(self) -> dict[str, list[Question]]:
        """The questions of each testbed, by its name."""
        worlds: dict[str, list[Question]] = {}
        for question in self.questions:
            worlds.setdefault(question.world.name, []).append(question)
        return worlds


def join(paths: Sequence[Path]) -> Joined:
    """Read and check every submission in these folders; a folder may also be a submission itself.

    Raises:
        T2TError: there is no submission.
    """
    folders = list(_folders(paths))
    if not folders:
        raise T2TError("there is no submission", where=", ".join(map(str, paths)), next="t2t submit makes one")
    kept: dict[bytes, list[Submission]] = {}
    refused: dict[str, Sequence[str]] = {}
    for folder in folders:
        try:
            problems, entry = submission.verify(folder).problems, submission.read(folder)
        except T2TError as error:
            refused[folder.name] = [error.what]
            continue
        if problems:
            refused[folder.name] = problems
        else:
            kept.setdefault(_key(entry), []).append(entry)
    return Joined(sorted((_question(submissions) for submissions in kept.values()), key=_order), refused)


def _folders(paths: Sequence[Path]) -> Iterator[SafePath]:
    for path in paths:
        root = SafePath.of(path)
        if not root.is_dir():
            raise T2TError("there is no such folder", where=str(path))
        if (root / submission.METADATA).exists():
            yield root
            continue
        yield from (folder for folder in root.entries() if folder.is_dir() and (folder / submission.METADATA).exists())


def _key(entry: Submission) -> bytes:
    """A key that is equal for submissions that were asked the same."""
    return canonical(dict(entry.written["settings"]))


def _order(question: Question) -> tuple[Any, ...]:
    return (question.world.name, question.twin is not None, question.settings.limit or 10**9, question.said)


def _question(submissions: Sequence[Submission]) -> Question:
    first = submissions[0]
    world, settings = first.evaluation.testbed, first.record.settings
    bench = Bench(first.folder, settings, first.written["settings"], world, first.stored)
    made = board.assembled(bench, [_row(entry) for entry in submissions], True, True)
    return Question(world, settings, made, submissions)


def _row(entry: Submission) -> PolicyFigures:
    """A submission as a row of a board; its figures were recomputed when it was checked."""
    record = entry.record
    policy = PolicyRow(
        row=entry.name,
        policy=record.policy,
        named=one_line(record.name),
        caveat=board.caveat(record.describe),
        family=family_of(record.policy, record.describe),
        sampling=entry.written["sampling"],
        answers_sha256=record.answers.sha256,
    )
    return PolicyFigures(policy=policy, tables=record.tables)


def answers(entry: Submission) -> Answers:
    """The submission's answers, for their pages."""
    recorded = entry.reader != entry.evaluation.testbed.reader
    return Answers(entry.name, entry.record.name, entry.evaluation, entry.folder / ANSWERS, recorded)


def contamination(joined: Joined) -> list[Contamination]:
    """Every model that was asked both the frozen sets and a twin in the same way, table by table."""
    estimates = []
    for frozen in (question for question in joined.questions if question.twin is None):
        for twin in (q for q in joined.worlds[frozen.world.name] if q.twin is not None and _but_sets(q) == _but_sets(frozen)):
            for entry in frozen.submissions:
                others = (other for other in twin.submissions if _asked(other) == _asked(entry))
                estimates += [c for other in others for c in _compared(entry, other, frozen, twin.twin or 0)]
    return estimates


def _but_sets(question: Question) -> dict[str, Any]:
    kept = {name: value for name, value in question.settings.written().items() if name != "sets"}
    return {**kept, "bases": [record.base for record in question.settings.sets]}


def _asked(entry: Submission) -> tuple[Any, ...]:
    return entry.record.policy, canonical(asdict(entry.evaluation.sampling))


def _compared(entry: Submission, other: Submission, question: Question, seed: int) -> Iterator[Contamination]:
    rate = next((metric.name for metric in question.world.metrics if metric.kind == "rate"), None)
    for title, table in entry.record.tables.items():
        twin = other.record.tables.get(title)
        frozen, fresh = (_estimate(each.total.get(rate or "")) if each else None for each in (table, twin))
        if frozen and fresh:
            yield Contamination(entry.record.name, question.world.name, title, frozen, fresh, seed)


def _estimate(figure: MetricFigure | None) -> Estimate | None:
    """A rate with its interval, or None if it is not known."""
    if figure is None or not isinstance(figure.low, float) or not isinstance(figure.high, float) or figure.value is None:
        return None
    return Estimate(figure.value, figure.low, figure.high)
