"""Reads one agent's path, token by token. Nothing is dropped silently: if something between two of its cells has no known meaning
there, the answer is unparsable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from . import tokens
from .remarks import Beside, names_a_wait, of_label, repeats, waits_before
from .tokens import Cell, Label, Token

_JOINS = (tokens.ARROW, tokens.COMMA, tokens.DASH, tokens.PIPE)
_SINGLE = (tokens.ARROW, tokens.COMMA, tokens.PIPE)  # two of these have a gap between them


@dataclass
class OpenPath:
    """The path of one label, while it is read. `marks` are the step numbers beside cells, by the cell's place in the path;
    `fault` is the first thing that could not be interpreted.

    Other words end a path. After them, the line may name the last cell again, but no other cell.
    """

    label: Label
    remark: str = ""  # the label as written, with any remark in it
    before: str = ""  # the text before the label on its line
    cells: list[Cell] = field(default_factory=list)
    marks: dict[int, int] = field(default_factory=dict)
    joins: list[str] = field(default_factory=list)  # arrows, commas and the like since the last cell, on this line
    joined: bool = True  # a label, a step or an arrow came last, so a bare pair is a cell
    fault: str = ""
    _ended: bool = False  # there were words since the last cell
    _doubt: str = ""  # something without a known meaning since the last cell
    _waits: bool = False  # a remark said that the agent waits
    _instead: str = ""  # a word for waiting after an arrow, as in `-> stay at (1,0)`: the last cell must follow
    _mark: int | None = None  # the step of the next cell
    _beside: bool = False  # a cell came last, so a step number here belongs to it
    _led: bool = False  # an arrow leads to the next cell
    _arrows: bool = False  # an arrow led to one of the cells
    _behind: list[Token] = field(default_factory=list)  # the tokens since the last cell
    _again: str = ""  # a cell that is repeated without an arrow, a remark or a step number in between

    def take(self, token: Token) -> None:
        """Read one more token."""
        kind = token.kind
        if self.cells and kind not in tokens.CELLS:
            self._behind.append(token)
        beside, self._beside = self._beside, self._beside and kind == tokens.NEUTRAL
        if kind == tokens.CELL or (kind == tokens.BARE and self.joined):
            self._cell(token.value)
        elif kind in _JOINS and self._instead:
            self.refuse(f"{self._instead} is in the place of a cell")
        elif kind in _JOINS:
            self.joins.append(kind)
            self.joined = kind == tokens.ARROW or not self.cells
            self._led = self._led or (kind == tokens.ARROW and bool(self.cells))
        elif kind in (tokens.STEP, tokens.BULLET):
            self._step(token.value, beside)
        elif kind in (tokens.WAIT, tokens.WORD, tokens.LABEL):
            self._word(token)
        elif kind == tokens.STOP:
            self._ended = self._ended or bool(self.cells)
        elif kind in (tokens.NEUTRAL, tokens.FENCE) or (kind == tokens.COLON and not beside):
            pass
        elif kind == tokens.ALIGN and not self.cells:
            self.joined = True
        elif not self._ended and (self.joins or kind == tokens.RUIN):
            self.refuse(f"{_short(token.text)} is not a cell")
        else:
            self._doubt = self._doubt or _short(token.text)

    def _cell(self, cell: Cell) -> None:
        if self._ended:
            if self.cells[-1:] != [cell]:  # "... reaches (2,2)" names the last cell again
                self.refuse(f"{_text(cell)} comes after words that ended the path")
            return
        if self._instead and (cell != self.cells[-1] or len(self.joins) > self.joins.count(tokens.ARROW)):
            self.refuse(f"{self._instead} is in the place of a cell")
        elif self._doubt:
            self.refuse(f"the meaning of {self._doubt} before {_text(cell)} is unclear")
        elif len(self.joins) > 1 and any(self.joins.count(kind) > 1 for kind in _SINGLE):
            self.refuse(f"a cell is missing before {_text(cell)}")
        elif self._waits and self.cells and cell != self.cells[-1] and self.cells[-2:-1] != self.cells[-1:]:
            self.refuse(f"a wait is mentioned at {_text(self.cells[-1])}, but the cell is not repeated")
        if self._mark is not None:
            self.marks[len(self.cells)] = self._mark
        elif self.cells[-1:] == [cell] and not self._led and not self._waits:
            self._again = self._again or _text(cell)
        self._arrows = self._arrows or self._led
        self._behind.clear()
        self.cells.append(cell)
        self.joins.clear()
        self._waits = self._waits and len(self.cells) == 1  # a wait mentioned before the first cell belongs to that cell
        self.joined, self._mark, self._beside, self._led = False, None, True, False
        self._instead = ""

    def _step(self, number: int, beside: bool) -> None:
        if beside and len(self.cells) - 1 not in self.marks:
            self.marks[len(self.cells) - 1] = number
        elif self._mark is not None:
            self.refuse(f"step {self._mark} has no cell")
        else:
            self._mark, self.joined = number, True

    def _word(self, token: Token) -> None:
        if self._instead or (tokens.ARROW in self.joins and not (token.kind == tokens.WAIT and self.cells)):
            self.refuse(f"{_short(token.text)} is in the place of a cell")
        elif tokens.ARROW in self.joins:
            self._instead = _short(token.text)
        if token.kind == tokens.WAIT:
            self._waits = True
        else:
            self._ended = True

    def words(self, line: Sequence[Token]) -> None:
        """A line of words that belongs to the path's list of cells. It ends the path and may name only the last cell again."""
        self._ended = True
        self._behind += line
        for token in line:
            if token.kind == tokens.CELL:
                self._cell(token.value)

    def refuse(self, why: str) -> None:
        """Note why this is no path; the first reason stays."""
        self.fault = self.fault or why

    @property
    def origin(self) -> int:
        """The number of the first step; 0 if the steps have none."""
        return min((number - index for index, number in self.marks.items()), default=0)

    def end_line(self) -> None:
        """Begin a new line. An arrow may end one line and begin the next, so joins are not carried over."""
        self.joins.clear()
        self._beside = False

    def end(self) -> str:
        """End the path; returns the first thing that could not be interpreted, or "" if there was none."""
        if self._instead:
            self.refuse(f"{self._instead} is in the place of a cell")
        if self._again and self._arrows:  # (2,0) -> (2,1), (2,1) -> (2,2): moves, or does the agent wait?
            self.refuse(f"{self._again} is repeated without an arrow, and it is unclear whether that means a wait")
        if self.cells and Beside(self.cells).clashes(of_label(self.remark)):
            self.refuse("the remark beside the label contradicts the path or is not understood")
        if self.cells and names_a_wait(self.before) and not repeats(self.cells):
            self.refuse("a wait is mentioned before the label, but no cell is repeated")
        if self.cells and waits_before(tokens.written(self._behind)):
            self.refuse("words after the path mention a wait before its end")
        if not self.marks:
            return self.fault
        first = {number - index for index, number in self.marks.items()}
        unmarked = [index for index in range(len(self.cells)) if index not in self.marks]
        if self._mark is not None or len(first) > 1 or not first <= {0, 1}:
            self.refuse("the step numbers do not count the cells one by one")
        elif unmarked and (unmarked != [0] or first != {0}):
            self.refuse("some cells have a step number and others do not")
        return self.fault


def _text(cell: Cell) -> str:
    return f"({cell[0]},{cell[1]})"


def _short(text: str) -> str:
    return ascii(text)[:30]
