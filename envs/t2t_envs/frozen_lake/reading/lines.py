"""Turns lines of tokens into blocks of paths: by agent, with a path after each label, or by step, with every agent's cell after
each number.

A block is a run of lines that hold paths. Other words end it. Blank lines, rules and code fences do not, unless a label comes
again after them. Between answer tags nothing ends a block, but cells without an agent make it unparsable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import tables, tokens
from .blocks import Block, Steps, Unplaceable
from .paths import OpenPath
from .remarks import names_a_wait, puts_columns_first, repeats
from .tokens import Label, Path, Token

_LEADING = (tokens.DASH, tokens.ARROW, tokens.COMMA)
_LINKS = (*_LEADING, tokens.COLON, tokens.PIPE, tokens.STEP, tokens.BULLET, tokens.ALIGN)
_PATH = ("path", "route", "trajectory", "sequence")
_WHICH = ("final", "optimal", "shortest", "planned", "full", "complete", "revised", "corrected", "updated", "new")
_WORDS = {tokens.WORD, tokens.NEUTRAL, tokens.WAIT, tokens.LABEL}
_EMPTY = {tokens.FENCE, tokens.DASH, tokens.COMMA, tokens.COLON, tokens.STOP}
_GOES_ON = (*tokens.CELLS, tokens.STEP, tokens.BULLET, tokens.NUMBER, tokens.SCRAP, tokens.RUIN, tokens.WAIT)

_REPEATS = re.compile(r"[(\[]?[x×*^]?[ ]?[0-9]{1,4}[ ]?[x×]?[)\]]?", re.IGNORECASE)  # on a line of its own: "x2", "(2)"

_SHORT, _ENOUGH = 8, 1000  # the most tokens of a line that is kept as a note on an agent, and the most characters of its notes


class LineReader:
    """Reads lines one after the other; `close` returns the blocks."""

    def __init__(self, tagged: bool) -> None:
        self._tagged = tagged
        self._blocks: list[Block] = []
        self._open: OpenPath | None = None
        self._before = (False, False)  # `_broken` and `_loose` when the path was opened
        self._steps: Steps | None = None
        self._table: list[list[Token]] = []
        self._heading: Label | None = None  # the agent of the last heading: a "Path:" below belongs to it
        self._wait = ""  # words between the tags that mention a wait
        self._step_in_words = ""  # a step between the tags that is written in words, so that no row can be read from it
        self._said_of_agent = ""
        self._orphan = ""  # cells without an agent
        self._broken = False  # there were words since the last line with paths, so the next path starts a new block
        self._loose = False  # there was a blank line, a rule or a fence since the last line with paths
        self._adjacent = False  # the previous line belonged to the open path
        self._list = False  # no line of the open path has had two cells yet

    def text(self, text: str) -> None:
        """Read a text line by line."""
        for line in tokens.lines(text):
            self._line(line)

    def paths(self, paths: Sequence[tuple[Label, Path]], fault: str = "", origin: int = 0) -> None:
        """Add paths that were read elsewhere, as if they were one line; their steps count from `origin`."""
        self._end()
        self._block([label for label, _ in paths]).add(paths, fault, origin)

    def close(self) -> list[Block]:
        self._end()
        if self._blocks and self._orphan:
            self._blocks[-1].add([], self._orphan)
        if self._blocks and self._wait and not any(repeats(path) for _, path in self._blocks[-1].paths):
            self._blocks[-1].add([], f"{ascii(self._wait)[:40]} mentions a wait, but no cell is repeated")
        return self._blocks if self._tagged else _joined(self._blocks)

    # --- one line

    def _line(self, line: list[Token]) -> None:
        kinds = {token.kind for token in line}
        if tokens.PIPE in kinds:
            self._table.append(line)
            return
        self._end_table()
        self._note(line, kinds)
        if kinds <= _EMPTY:
            self._loose, self._adjacent = True, False
        elif self._is_step(line, kinds):
            self._step_line(line)
        elif starts := _openings(line):
            self._label_line(line, starts)
        elif (start := _path_of_heading(line)) and self._heading is not None:
            self._label_line([tokens.Token(tokens.LABEL, self._heading, "path"), *line[start:]], [0])
            if self._open is not None:
                self._open.before += self._said_of_agent
        elif self._goes_on(line, kinds):
            self._feed(line)
        else:
            self._prose(line)

    def _note(self, line: Sequence[Token], kinds: set[str]) -> None:
        """Keep a short line under an agent's heading as a note on the agent, such as "Wait: 1" above "Path: ..."."""
        if tokens.LABEL in kinds:
            self._said_of_agent = ""
        elif kinds & {tokens.COLON, tokens.DASH} and len(line) <= _SHORT and len(self._said_of_agent) < _ENOUGH:
            self._said_of_agent += f" {tokens.written(line)}"

    def _is_step(self, line: Sequence[Token], kinds: set[str]) -> bool:
        """Whether the line is the row of a step, or its heading, and not a single cell that continues the open path."""
        if _first(line).kind != tokens.STEP or tokens.WORD in kinds:
            return False
        path, cells = self._open, _cells(line)
        return path is None or tokens.LABEL in kinds or cells > 1 or (cells == 0 and bool(path.cells) and not path.marks)

    def _step_line(self, line: Sequence[Token]) -> None:
        number = int(_first(line).value)
        self._end_path()
        if self._steps is None or number < self._steps.last:
            self._end_steps()
            self._steps = Steps()
        self._steps.row(number)
        self._steps.take(line[1 + line.index(_first(line)) :])
        self._loose = False

    def _label_line(self, line: Sequence[Token], starts: Sequence[int]) -> None:
        segments = [line[start:end] for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
        if self._steps is not None:
            if all(_cells(segment) == 1 and all(t.kind != tokens.ARROW for t in segment) for segment in segments):
                self._steps.take(line)
                return
            self._end_steps()
        before = line[: starts[0]]
        if self._open is not None and _cells(before):
            self._feed(before)
        self._end_path()
        self._broken = self._broken or any(token.kind in _WORDS for token in before)
        for segment in segments:
            self._end_path()
            path = OpenPath(segment[0].value, segment[0].text, tokens.written(before))
            self._open, self._before, before = path, (self._broken, self._loose), []
            self._broken = self._loose = False
            self._heading = segment[0].value
            self._feed(segment[1:])
            self._list = _cells(segment) < 2

    def _goes_on(self, line: Sequence[Token], kinds: set[str]) -> bool:
        """Whether this line continues the open path: it holds no words, or an arrow leads to it."""
        if self._open is None or _first(line).kind not in (*_GOES_ON, tokens.ARROW):
            return False
        led = line[0].kind == tokens.ARROW or (self._open.joined and bool(self._open.cells))
        return led or not kinds & {tokens.WORD, tokens.LABEL}

    def _feed(self, line: Sequence[Token]) -> None:
        path = self._open
        if path is not None:
            for token in line:
                path.take(token)
            path.end_line()
            self._adjacent, self._list = True, self._list and _cells(line) < 2

    def _prose(self, line: Sequence[Token]) -> None:
        kinds = {token.kind for token in line}
        said = tokens.written(line)
        if self._tagged and (names_a_wait(said) or (self._adjacent and _REPEATS.fullmatch(said))):
            self._wait = self._wait or said
        if self._tagged and puts_columns_first(said):
            self._orphan = self._orphan or "the cells are said to be written in another order"
        if self._tagged and _cells(line) and _first(line).kind == tokens.STEP:
            self._step_in_words = self._step_in_words or said
        if self._tagged and tokens.LABEL in kinds and _joins_a_cell(line):
            self._orphan = self._orphan or f"a path follows {ascii(said)[:30]}, whose meaning is unclear"
        if not kinds & {*_WORDS, *tokens.CELLS, tokens.RUIN, tokens.STEP}:
            self._loose = True
            return
        if _first(line).kind == tokens.LABEL:
            self._heading = _first(line).value
        elif self._open is not None and self._open.cells and self._adjacent and self._list:
            self._open.words(line)
            self._broken = True
            return
        if self._tagged and kinds & set(tokens.CELLS):
            if not kinds & _WORDS:
                self._orphan = self._orphan or f"{next(t.text for t in line if t.kind in tokens.CELLS)[:20]} has no agent"
            elif self._open is not None and self._adjacent and _joins_a_cell(line):
                self._open.fault = self._open.fault or "the path continues in the middle of other words"
        self._end_path()
        if not self._tagged:
            self._end_steps()
        self._broken = True

    # --- ends

    def _end(self) -> None:
        self._end_table()
        self._end_path()
        self._end_steps()

    def _end_path(self) -> None:
        path, self._open, self._adjacent = self._open, None, False
        if path is None:
            return
        since = self._broken, self._loose
        self._broken, self._loose = self._before
        if path.cells or path.fault:
            self._block([path.label]).add([(path.label, tuple(path.cells))], path.end(), path.origin)
        self._broken, self._loose = self._broken or since[0], self._loose or since[1]

    def _end_steps(self) -> None:
        steps, self._steps = self._steps, None
        if steps is None or not steps.tell_paths:
            return
        if not self._tagged and steps.rows[0][0] != 0:
            return  # outside the tags, this may be prose about later steps
        self._broken = True
        try:
            if self._step_in_words:
                raise Unplaceable(f"{ascii(self._step_in_words)[:40]} is not a readable row of a step")
            paths = steps.paths()
        except Unplaceable as error:
            self._block([]).add([], str(error))
        else:
            self._block([label for label, _ in paths]).add(paths)

    def _end_table(self) -> None:
        rows, self._table = self._table, []
        if not rows:
            return
        if self._open is not None and not self._open.cells and not any(t.kind == tokens.LABEL for row in rows for t in row):
            self._table_of_one(rows)
            return
        self._end_path()
        try:
            paths = tables.read(rows)
        except Unplaceable as error:
            self._block([]).add([], str(error))
            return
        if paths:
            self._block([label for label, _ in paths]).add(paths)
        else:
            self._prose([token for row in rows for token in row if token.kind != tokens.PIPE])

    def _table_of_one(self, rows: Sequence[Sequence[Token]]) -> None:
        """Read a table under an agent's heading, with a row for each step."""
        path, began, header = self._open, False, [""]
        for row in rows:
            began = began or _cells(row) > 0
            if not began:
                header.append(tokens.written(row))
            elif {t.kind for t in row} - {tokens.PIPE, tokens.DASH, tokens.COLON}:
                steps = (tokens.NUMBER, tokens.STEP)
                self._feed([t._replace(kind=tokens.STEP) if t.kind in steps else t for t in row if t.kind != tokens.PIPE])
        if path is not None:
            path.before += " ".join(header)

    def _block(self, labels: Sequence[Label]) -> Block:
        """The block that paths of these labels belong to."""
        again = self._loose and bool(self._blocks) and bool(self._blocks[-1].labels & set(labels))
        if not self._blocks or (not self._tagged and (self._broken or again)):
            self._blocks.append(Block())
        self._broken = self._loose = False
        return self._blocks[-1]


def _joined(blocks: Sequence[Block]) -> list[Block]:
    """Join successive blocks of different agents, because an answer may comment on each agent's path between them."""
    joined: list[Block] = []
    for block in blocks:
        if joined and block.labels and joined[-1].labels and not joined[-1].labels & block.labels:
            joined[-1].add(block.paths, block.fault, max(block.origins, default=0))
        else:
            joined.append(block)
    return joined


def _path_of_heading(line: Sequence[Token]) -> int:
    """The index after "Path:" on a line that gives the path of the agent in the heading above; 0 on any other line."""
    index = 0
    while index < len(line) and line[index].kind in (*_LEADING, tokens.BULLET):
        index += 1
    if index < len(line) and line[index].text.lower() in _WHICH:
        index += 1
    if [token.kind for token in line[index : index + 2]] != [tokens.WORD, tokens.COLON] or line[index].text.lower() not in _PATH:
        return 0
    rest = [token.kind for token in line[index + 2 :] if token.kind not in _LINKS]
    return index + 2 if not rest or rest[0] in (*tokens.CELLS, tokens.RUIN) else 0


def _first(line: Sequence[Token]) -> Token:
    return next((token for token in line if token.kind not in _LEADING), line[0])


def _cells(line: Sequence[Token]) -> int:
    return sum(token.kind in tokens.CELLS for token in line)


def _openings(line: Sequence[Token]) -> list[int]:
    """The indices of the labels that a path follows, on the line or, after a heading, below it."""
    starts = []
    for start, token in enumerate(line):
        if token.kind != tokens.LABEL:
            continue
        end = next((i for i in range(start + 1, len(line)) if line[i].kind not in _LINKS), len(line))
        if end < len(line) and line[end].kind == tokens.NEUTRAL:
            opens = _starts_with_words(line[end:])
        elif end < len(line):
            opens = line[end].kind in (*tokens.CELLS, tokens.RUIN) or _counts_cells(line[end : end + 3])
        else:
            heading = all(t.kind in (*_LEADING, tokens.BULLET) for t in line[:start])
            opens = heading or any(t.kind == tokens.COLON for t in line[start:])
        if opens:
            starts.append(start)
    return starts


def _starts_with_words(line: Sequence[Token]) -> bool:
    """Whether a path follows words such as "start". It must have an arrow: "start (2,0), goal (1,2)" is not a path."""
    kinds = [token.kind for token in line if token.kind not in (tokens.NEUTRAL, tokens.COLON)]
    return len(kinds) > 1 and kinds[0] in tokens.CELLS and kinds[1] == tokens.ARROW


def _counts_cells(line: Sequence[Token]) -> bool:
    """Whether a number multiplies a cell: `2x(2,0)`, `2*(2,0)`, `2 x (2,0)`."""
    counts = [token for token in line if token.text.lower() not in ("x", "×")]
    return len(counts) > 1 and counts[0].kind in (tokens.SCRAP, tokens.NUMBER) and counts[1].kind in tokens.CELLS


def _joins_a_cell(line: Sequence[Token]) -> bool:
    """Whether an arrow comes directly before or after a cell."""
    kinds = [token.kind for token in line]
    return any(tokens.ARROW in pair and not set(tokens.CELLS).isdisjoint(pair) for pair in zip(kinds, kinds[1:], strict=False))
