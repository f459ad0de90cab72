"""Pages of a row's answers, one per table: every answer with its verdict, its text and an animation, by column.

A page depends only on the answers and the testbed. The board links to it, and `t2t verify` compares it with the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.evaluation.answers import NOT_ASKED
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.report import html
from t2t_core.report.document import Block, Document, Filter, Folded, Paragraph, Section
from t2t_core.report.document import Links as Leads
from t2t_core.report.examples import example
from t2t_core.store.paths import SafePath
from t2t_leaderboard.named_rows import Links
from t2t_leaderboard.records import Board, BoardTable

FOLDER = "answers"
MOST = 5000  # the most answers that one page shows, and for which a bench writes pages by default
_FILTERS = (("column", "column"), ("verdict", "verdict"), ("failure", "first failed check"))


@dataclass(frozen=True)
class Answers:
    """The answers of one row: its name, what was asked, the file, and whether to use the recorded verdicts."""

    row: str
    label: str
    evaluation: Evaluation
    path: SafePath
    as_recorded: bool = False


def name_of(row: str, table: int) -> str:
    """The file name of the page of a row's answers in the given table."""
    return f"{FOLDER}/{row}.{table}.html"


def links_of(board: Board) -> Links:
    """The pages that a board links to; none if its folder has none."""
    if not board.answer_pages:
        return {}
    rows = [(row.policy.row, number) for number, table in enumerate(board.tables) for row in table.measured]
    return {(row, number): name_of(row, number) for row, number in rows}


def pages(answers: Answers, tables: Sequence[BoardTable], back: str) -> Iterator[tuple[str, str]]:
    """Yield each page of a row as its file name and its HTML. `tables` are the board's, `back` is the link to the board."""
    for number, table in enumerate(tables):
        document = answers_document(answers, table.title, table.columns, back)
        if document.sections:
            yield name_of(answers.row, number), html.render(document)


def answers_document(answers: Answers, table: str, columns: Sequence[str], back: str) -> Document:
    """A row's answers in one table, with a section for each column."""
    evaluation = answers.evaluation
    testbed, sections, left = evaluation.testbed, {column: list[Block]() for column in columns}, MOST
    first: Any = None
    for number, answer in enumerate(scored(evaluation, answers.path, answers.as_recorded), 1):
        place = testbed.place(answer.instance)
        if place.table != table or place.column not in sections or answer.response == NOT_ASKED:
            continue
        first = answer.instance if first is None else first
        if left > 0:
            where = f"line {number} of answers.jsonl"
            sections[place.column].append(example(testbed, answer, evaluation.prompt_format, evaluation.samples, where))
        left -= 1
    lead: list[Block] = [Leads([("the leaderboard", back)]), Paragraph(f"Every answer to {table}, as it came.", "soft")]
    if left < 0:
        told = f"The first {MOST:,} of {MOST - left:,}; t2t show --answer answers.jsonl shows the others."
        lead.append(Paragraph(told, "strong"))
    if first is not None:
        opening = evaluation.testbed.prompt(testbed.unlabelled(first), evaluation.prompt_format)
        lead.append(Folded(f"What was asked, of {first.id}", opening))
    filters = [Filter(facet, title) for facet, title in _FILTERS]
    made = [Section(column, blocks, {"column": column}) for column, blocks in sections.items()]
    return Document(f"{answers.label}: {table}", lead, made if first is not None else [], filters)
