"""A report as Markdown: for a README, an issue, a diff. Charts and folded texts are left out."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from t2t_core.report.document import Block, Divider, Document, Items, Paragraph, Row, Section, Table, TableCell
from t2t_core.report.figures import Figure
from t2t_core.text import flowing, visible

# What marks, wherever it stands (an underscore inside a word does not, a colon does in addresses and in :emoji:), and what
# begins a list or a heading at the beginning of a text.
_MARKS = re.compile(r"[\\`*{}\[\]()!|~$@]|(?<![^\W_])_|_(?![^\W_])|:(?=/|[\w+-]+:)|(?<=www)\.")
_BEGIN = re.compile(r"^(?=(?:#{1,6}|[+-])(?: |$)|[-=]+ *$)|^[0-9]{1,9}(?=[.](?: |$))")


def escape(text: str, width: int = 400) -> str:
    """Text from anybody as Markdown that shows it and does nothing else."""
    shown = _MARKS.sub(r"\\\g<0>", html.escape(visible(text, width), quote=False))
    return _BEGIN.sub(r"\g<0>\\", shown)


def _flowing(text: str) -> str:
    return escape(flowing(text), 4000)


def render(document: Document) -> str:
    """The whole document."""
    parts = [f"# {escape(document.title)}", *_blocks(document.lead)]
    for section in document.sections:
        parts += sections(section)
    return "\n\n".join(parts) + "\n"


def sections(section: Section) -> Iterator[str]:
    """The parts of a section as Markdown, the title first; nothing for a section without content."""
    blocks = list(_blocks(section.blocks))
    if blocks:
        yield f"## {escape(section.title)}"
        yield from blocks


def _blocks(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph(text, tone):
                yield f"**{_flowing(text)}**" if tone in ("strong", "good", "bad") else _flowing(text)
            case Items(texts) if texts:
                yield "\n".join(f"- {_flowing(text)}" for text in texts)
            case Table():
                yield table(block)


def table(made: Table) -> str:
    """A table with aligned columns, under its title."""
    lines = [[escape(column.title) for column in made.columns]]
    lines.append(["---" if column.words else "---:" for column in made.columns])
    for row in made.rows:
        match row:
            case Row(cells, kind):
                texts = [_cell(cell, column.total) for cell, column in zip(cells, made.columns, strict=True)]
                lines.append([f"{texts[0]} *(reported)*" if kind else texts[0], *texts[1:]])
            case Divider():
                pass  # Markdown has no line across a table; the rows below it say what they are
    widths = [max(len(line[i]) for line in lines) for i in range(len(made.columns))]
    lines[1] = ["-" * (w - len(rule) + 3) + rule[3:] for w, rule in zip(widths, lines[1], strict=True)]
    shown = ["| " + " | ".join(_aligned(c, w, k.words) for c, w, k in zip(line, widths, made.columns, strict=True)) + " |"
             for line in lines]  # fmt: skip
    return (f"**{escape(made.title)}**\n\n" if made.title else "") + "\n".join(shown)


def _aligned(text: str, width: int, words: bool) -> str:
    return text.ljust(width) if words else text.rjust(width)


def _cell(cell: TableCell, total: bool) -> str:
    match cell:
        case Figure():
            text = cell.full() + ("\\*" if cell.changed else "")
            return f"**{text}**" if total else text
        case str():
            return escape(cell)
        case _:
            return " ".join(filter(None, [escape(cell.text), escape(cell.small)]))
