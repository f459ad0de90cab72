"""A bench folder's Markdown and HTML: the board and the pages of its answers. They are written here, and `t2t verify` compares
them with the answers. A page that shows something else is left as it is, unless an earlier version with another layout wrote it:
such a page is written anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.report import html, markdown
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_leaderboard import answer_pages
from t2t_leaderboard.board_document import board_document
from t2t_leaderboard.folder import Bench
from t2t_leaderboard.records import Board
from t2t_leaderboard.schemas import VerificationRecord

PAGES: Mapping[str, Callable[[Board, VerificationRecord | None], str]] = {
    "leaderboard.md": lambda board, verification: markdown.render(board_document(board, verification)),
    "leaderboard.html": lambda board, verification: html.render(
        board_document(board, verification, answer_pages.links_of(board))
    ),
}
LAYOUT = 5  # raised whenever the same figures give other pages; pages without a number have layout 1
VERIFICATION = "verification.json"
_AROUND = 20  # characters shown before the first difference
_SHOWN = 80
_ANEW = "the same t2t bench writes it anew; so does t2t verify, once it is deleted"


def write(folder: SafePath, board: Board, verification: VerificationRecord | None, keep: Collection[str] = ()) -> None:
    """Write `leaderboard.md` and `leaderboard.html` (except those in `keep`) and, if there is a verification, its JSON file."""
    if verification is not None:
        folders.write_json(folder / VERIFICATION, verification)
    for name, render in PAGES.items():
        if name not in keep:
            folders.write_atomic(folder / name, render(board, verification))


def write_answers(bench: Bench, board: Board, keep: Collection[str] = ()) -> None:
    """Write the pages of the rows' answers if the board links to any."""
    for name, page in _answers(bench, board):
        if name not in keep:
            folders.write_atomic(bench.folder / name, page)


def _answers(bench: Bench, board: Board) -> Iterator[tuple[str, str]]:
    """Yield every page of answers that the board links to, as its name and its content."""
    if not board.answer_pages:
        return
    labels = {row.policy.row: row.label for table in board.tables for row in table.measured}
    for row in (row for row in bench.rows() if row.name in labels):
        recorded = row.reader != bench.testbed.reader
        answers = answer_pages.Answers(row.name, labels[row.name], bench.evaluation(row.sampling), row.folder / ANSWERS, recorded)
        yield from answer_pages.pages(answers, board.tables, "../leaderboard.html")


def answer_page_problems(bench: Bench, board: Board, fresh: VerificationRecord) -> tuple[dict[str, str], list[str]]:
    """What `page_problems` returns, for the pages of answers."""
    before = _before(bench.folder, fresh) or fresh
    problems: dict[str, str] = {}
    outdated: list[str] = []
    for name, expected in _answers(bench, board):
        path = bench.folder / name
        if not path.exists():
            continue
        shown = _shown(path, problems, name)
        if shown is None or shown == expected:
            continue
        if before.layout < LAYOUT:
            outdated.append(name)
        else:
            problems[name] = _changed(path, before, fresh, shown, expected)
    return problems, outdated


def _shown(path: SafePath, problems: dict[str, str], name: str) -> str | None:
    try:
        return folders.read_bytes(path).decode("utf-8", "backslashreplace")
    except T2TError as error:
        problems[name] = f"{path}: it cannot be read: {error.cause or error.what}"
        return None


def _changed(path: SafePath, before: VerificationRecord, fresh: VerificationRecord, shown: str, expected: str) -> str:
    if before.version != fresh.version:
        return (
            f"{path}: written by t2t-core {before.version}, says {VERIFICATION}, which may lay it out another way than "
            f"this {fresh.version}: whether it was changed since, only that version can tell; {_ANEW}"
        )
    return f"{path}: {_difference(shown, expected)}; changed, or left by a bench that was stopped; {_ANEW}"


def page_problems(folder: SafePath, board: Board, empty: Board, fresh: VerificationRecord) -> tuple[dict[str, str], list[str]]:
    """What is wrong with the pages that exist, by file: a page must show `board` under a status that the suite can have written.
    Also returns the pages of an earlier layout: nobody can compare them, so they must be written anew.

    The possible statuses are `fresh` (found now), the one found before (verification.json; if it was a fault, the page may be
    `empty`) and none yet. Another version of the suite may use its own layout: such a page is neither called changed nor vouched
    for.
    """
    before = _before(folder, fresh) or fresh
    problems: dict[str, str] = {}
    outdated: list[str] = []
    for name, render in PAGES.items():
        path = folder / name
        if not path.exists():
            continue
        shown = _shown(path, problems, name)
        if shown is None:
            continue
        expected = [render(board, status) for status in (before, fresh, None)]
        if shown in expected or (not before.verified and shown == render(empty, before)):
            continue
        if before.layout < LAYOUT:
            outdated.append(name)
        else:
            problems[name] = _changed(path, before, fresh, shown, expected[0])
    return problems, outdated


def _before(folder: SafePath, fresh: VerificationRecord) -> VerificationRecord | None:
    """The last outcome on record, if it is plausible: verified as now (perhaps by another version, or under another reader of
    answers), or not verified."""
    try:
        record = folders.read_record(folder / VERIFICATION, VerificationRecord)
    except T2TError:  # missing or damaged; t2t verify writes it anew
        return None
    failed = not record.verified and (record.problems or record.unfinished)
    now = replace(fresh, version=record.version, layout=record.layout, moved=record.moved, reader=record.reader)
    return record if failed or record == now else None


def _difference(shown: str, expected: str) -> str:
    """The first line that differs, with the text around the difference."""
    there, made = shown.split("\n"), expected.split("\n")
    number = next((n for n, pair in enumerate(zip(there, made, strict=False)) if pair[0] != pair[1]), min(len(there), len(made)))
    a, b = (lines[number] if number < len(lines) else "" for lines in (there, made))
    at = max(0, next((n for n, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b))) - _AROUND)
    return f"line {number + 1}: {ascii(a[at : at + _SHOWN])} there, {ascii(b[at : at + _SHOWN])} from the answers"
