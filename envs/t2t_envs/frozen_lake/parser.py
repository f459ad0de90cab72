"""Reads paths out of what language models really write (paper section on evaluation: `parsable` means that a path can be
extracted; how it is extracted is our choice, written down here).

**Which text counts.** The last `<answer>` block; an unclosed one runs to the end. Without one, the last unbroken block of
agent lines after any `</think>`: prose breaks a block; blank lines and code fences do not, unless the block starts over.

**What is a path.** A label (`Agent 0:`, `Agent 1 -`, `**Agent 2**:`, `Agent 0 path:`, `Agent 0 (3 moves):`, bulleted or
not) and then cells, `(r,c)` or `[r, c]`, between which only arrows, commas, newlines and markup (LaTeX commands too) stand.
Bare `r,c` counts as a cell where a label or an arrow precedes it. A remark in brackets, as in `(2,1) (waits)`, is skipped,
and so are words beside a single arrow; any other word ends the path. Digits are ASCII. Two different paths for one label
make the text unreadable.

Work and memory are linear in the length of the text: every pattern is possessive or bounded, and a coordinate of many
digits is never turned into a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .instance import MAX_AGENTS, Cell

Path = tuple[Cell, ...]
Label = int | str

FAR = 1_000_000  # stands for any coordinate of more digits: beyond every grid, on either side
_DIGITS = 6

_OPEN = re.compile(r"<answer>", re.IGNORECASE | re.ASCII)
_CLOSE = re.compile(r"</answer>", re.IGNORECASE | re.ASCII)
_THINK = re.compile(r"</think>", re.IGNORECASE | re.ASCII)
_NUMBER = r"(-?+[0-9]++)"
_TOKEN = re.compile(
    rf"""
      \(\s*+{_NUMBER}\s*+,\s*+{_NUMBER}\s*+(?:\\right)?+\)
    | \[\s*+{_NUMBER}\s*+,\s*+{_NUMBER}\s*+\]
    | (?P<arrow>[-=–—~]{{0,3}}+(?:>|&gt;) | [→⇒⟶⟹➔➜➝➞] | \\(?:long)?rightarrow\b | \\to\b)
    | (?P<newline>\n)
    | (?P<fence>```[a-z]{{0,20}}+(?=\s|$))
    | (?P<skip>[(\[][^()\[\]\n0-9]{{0,40}}+[)\]] | </?[a-z][^<>\n]{{0,20}}+> | \\[a-z]{{1,20}}+
      | ^[ \t]{{0,8}}+[0-9]{{1,3}}+[.)](?=\s))
    | (?:\b(?:path|route|plan)[ ](?:for|of)[ ]|(?<!\w[ ])(?:\b|(?<=__)))agent[ \t_\#]{{0,2}}+
      (?P<label>-?+[0-9]++|[a-z](?=[ \t*]{{0,4}}+:))(?!(?!__)\w)
      (?:['’]s)?+(?:[\s*_:"`'-]{{1,6}}+(?:path|route|trajectory|plan|moves|is)\b){{0,3}}+
      (?:[ \t*_]{{0,4}}+\((?:[^()\n]{{1,60}}+|\([^()\n]{{0,20}}+\)){{0,8}}+\)(?=[ \t*_]{{0,4}}+:))?+
      (?:[ \t]{{0,4}}+-(?=[ \t]))?+
    | (?<![\w.,])(?P<row>-?+[0-9]++)[ \t]*+,[ \t]*+(?P<column>-?+[0-9]++)(?![\w.]|[ \t]*+,[ \t]*+-?[0-9])
    | (?P<word>[^\W_]++ | <- | ←)
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)

_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " "))  # typographic ones: between "Agent" and its number too

# What the documented form is made of, for the short way of reading it.
_PLAIN_CELLS: dict[str, Cell] = {f"({r},{c})": (r, c) for r in range(32) for c in range(32)}
_PLAIN_LABELS: dict[str, int] = {f"Agent {agent}": agent for agent in range(MAX_AGENTS)}


def format_answer(paths: Sequence[Sequence[Cell]]) -> str:
    """The documented answer, literally: one line per agent between answer tags."""
    lines = [f"Agent {agent}: " + " -> ".join(f"({r},{c})" for r, c in path) for agent, path in enumerate(paths)]
    return "\n".join(["<answer>", *lines, "</answer>"])


def parse_answer(text: str) -> Mapping[Label, Path] | None:
    """The paths by label, in the order in which their labels first appear; None where the text is not parsable.

    Labels are as written, 0 or not: which ones belong to an instance is the verifier's business. A label that is no
    ordinary number (`-1`, `A`, one of many digits) is kept as text.
    """
    opening = -1
    for match in _OPEN.finditer(text):
        opening = match.end()
    if opening >= 0:
        closing = _CLOSE.search(text, opening)
        body = text[opening : closing.start()] if closing else text[opening:]
        return _plain(body) or _only_block(body)
    start = 0
    for match in _THINK.finditer(text):
        start = match.end()
    body = text[start:]
    if plain := _plain(body):
        return plain
    blocks = _read(body)
    return _unambiguous(blocks[-1]) if blocks else None


def _plain(body: str) -> dict[Label, Path] | None:
    """The documented form, read by looking up whole cells; None where anything at all deviates from it."""
    paths: dict[Label, Path] = {}
    for line in body.strip().split("\n"):
        name, _, rest = line.partition(": ")
        try:
            label = _PLAIN_LABELS[name]
            path = tuple([_PLAIN_CELLS[cell] for cell in rest.split(" -> ")])
        except KeyError:
            return None
        if label in paths:
            return None
        paths[label] = path
    return paths


def _only_block(body: str) -> dict[Label, Path] | None:
    """All paths between answer tags, whatever stands between them."""
    return _unambiguous([pair for block in _read(body) for pair in block])


def _unambiguous(pairs: Sequence[tuple[Label, list[Cell]]]) -> dict[Label, Path] | None:
    paths: dict[Label, Path] = {}
    for label, cells in pairs:
        path = tuple(cells)
        if paths.setdefault(label, path) != path:
            return None
    return paths or None


class _Reader:
    """Turns tokens into blocks of (label, cells). One instance reads one text."""

    def __init__(self) -> None:
        self.blocks: list[list[tuple[Label, list[Cell]]]] = []
        self.labels: set[Label] = set()  # of the last block
        self.pending: Label | None = None  # a label that waits for its first cell
        self.cells: list[Cell] | None = None  # the path being read
        self.arrows = self.words = 0  # since the last cell or label
        self.joined = False  # a label or an arrow came last, so a bare pair is a cell
        self.line_open = False  # a token came on this line
        self.agent_line = False  # a path began on this line: what follows it is a remark, not prose
        self.mark: int | None = None  # how many cells the path had before a line that starts with a cell
        self.broken = False  # prose since the last agent line: the next path starts a new block
        self.loose = False  # a blank line or a fence since then

    def label(self, label: Label) -> None:
        self.pending, self.cells, self.mark = label, None, None
        self.arrows = self.words = 0
        self.joined = self.line_open = True

    def cell(self, cell: Cell) -> None:
        if self.pending is not None:
            self._begin(self.pending)
        elif self.words and self.arrows != 1:
            self.cells = None
        if self.cells is None:
            self.broken = self.broken or not self.agent_line
        else:
            if self.cells and not self.line_open and not self.arrows:
                self.mark = len(self.cells)
            self.cells.append(cell)
        self.arrows = self.words = 0
        self.joined, self.line_open = False, True

    def _begin(self, label: Label) -> None:
        if self.broken or not self.blocks or (self.loose and label in self.labels):
            self.blocks.append([])
            self.labels = set()
        self.broken = self.loose = False
        self.agent_line = True
        self.pending, self.cells = None, []
        self.labels.add(label)
        self.blocks[-1].append((label, self.cells))

    def arrow(self) -> None:
        self.arrows += 1
        self.joined = self.line_open = True

    def word(self) -> None:
        if self.mark is not None and self.cells is not None:  # "(1,1) is a hole" under a path is prose
            del self.cells[self.mark :]
        if self.pending is not None or not self.line_open or self.mark is not None:  # so is "Agent 0 starts at (2,0)"
            self.pending = self.cells = self.mark = None
            self.broken = self.broken or not self.agent_line
        self.words += 1
        self.joined, self.line_open = False, True

    def newline(self) -> None:
        self.loose = self.loose or not self.line_open
        self.line_open = self.agent_line = False
        self.mark = None

    def fence(self) -> None:
        self.loose = self.line_open = True


def _read(text: str) -> list[list[tuple[Label, list[Cell]]]]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = text.translate(_SPACES)
    reader = _Reader()
    kind: str | None = ""
    for match in _TOKEN.finditer(text):
        before, kind = kind, match.lastgroup
        if kind == "word":
            if before != "word":  # one word says as much as many
                reader.word()
        elif kind is None:  # a cell in brackets: its groups have no names
            row, column = (match[1], match[2]) if match[1] is not None else (match[3], match[4])
            reader.cell((_coordinate(row), _coordinate(column)))
        elif kind == "arrow":
            reader.arrow()
        elif kind == "column":
            if reader.joined:
                reader.cell((_coordinate(match["row"]), _coordinate(match["column"])))
            else:
                reader.word()
        elif kind == "label":
            reader.label(_label(match["label"]))
        elif kind == "newline":
            reader.newline()
        elif kind == "fence":
            reader.fence()
    return reader.blocks


def _coordinate(digits: str) -> int:
    if len(digits) <= _DIGITS:
        return int(digits)
    negative = digits.startswith("-")
    significant = digits.lstrip("-0")
    if len(significant) > _DIGITS:
        return -FAR if negative else FAR
    return int(significant or "0") * (-1 if negative else 1)


def _label(text: str) -> Label:
    if text.isdecimal():
        significant = text.lstrip("0")
        return int(significant or "0") if len(significant) <= _DIGITS else significant
    return text.lower()
