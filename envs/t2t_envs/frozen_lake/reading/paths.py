"""One agent's path, token by token. What stands between two of its cells and has no meaning there makes the answer unparsable:
nothing is dropped in silence."""

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
    """The path of one label, while it is read. `marks` are the step numbers that stood beside cells, by the cell's place;
    `fault` is the first thing that could not be placed.

    A path ends where other words begin; what follows them on its line may name the last cell again and no other.
    """

    label: Label
    remark: str = ""  # what stood with the label
    before: str = ""  # and what before it, on its line
    cells: list[Cell] = field(default_factory=list)
    marks: dict[int, int] = field(default_factory=dict)
    joins: list[str] = field(default_factory=list)  # since the last cell, on this line
    joined: bool = True  # a label, a step or an arrow came last, so that a bare pair is a cell
    fault: str = ""
    _ended: bool = False  # words came since the last cell
    _doubt: str = ""  # what has no meaning in a path came since the last cell
    _waits: bool = False  # a remark said that the agent waits
    _instead: str = ""  # a word for waiting behind an arrow: `-> stay at (1,0)` repeats the last cell, or there is none
    _mark: int | None = None  # the step of the next cell
    _beside: bool = False  # a cell came last, so that a step's number is its own
    _led: bool = False  # an arrow leads to the next cell
    _arrows: bool = False  # an arrow led to one of the cells
    _behind: list[Token] = field(default_factory=list)  # what was written since the last cell
    _again: str = ""  # a cell that stands twice, with neither an arrow nor a remark nor a step's number between

    def take(self, token: Token) -> None:
        """Read one more token."""
        kind = token.kind
        if self.cells and kind not in tokens.CELLS:
            self._behind.append(token)
        beside, self._beside = self._beside, self._beside and kind == tokens.NEUTRAL
        if kind == tokens.CELL or (kind == tokens.BARE and self.joined):
            self._cell(token.value)
        elif kind in _JOINS and self._instead:
            self.refuse(f"{self._instead} stands where a cell should")
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
            self.refuse(f"{_short(token.text)} is no cell")
        else:
            self._doubt = self._doubt or _short(token.text)

    def _cell(self, cell: Cell) -> None:
        if self._ended:
            if self.cells[-1:] != [cell]:  # "... reaches (2,2)" names once more where the path has ended
                self.refuse(f"{_text(cell)} stands behind words that ended the path")
            return
        if self._instead and (cell != self.cells[-1] or len(self.joins) > self.joins.count(tokens.ARROW)):
            self.refuse(f"{self._instead} stands where a cell should")
        elif self._doubt:
            self.refuse(f"{self._doubt} stands before {_text(cell)}")
        elif len(self.joins) > 1 and any(self.joins.count(kind) > 1 for kind in _SINGLE):
            self.refuse(f"a cell is missing before {_text(cell)}")
        elif self._waits and self.cells and cell != self.cells[-1] and self.cells[-2:-1] != self.cells[-1:]:
            self.refuse(f"a wait is named at {_text(self.cells[-1])} and no cell stands twice")
        if self._mark is not None:
            self.marks[len(self.cells)] = self._mark
        elif self.cells[-1:] == [cell] and not self._led and not self._waits:
            self._again = self._again or _text(cell)
        self._arrows = self._arrows or self._led
        self._behind.clear()
        self.cells.append(cell)
        self.joins.clear()
        self._waits = self._waits and len(self.cells) == 1  # a wait that is named before the first cell is at that cell
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
            self.refuse(f"{_short(token.text)} stands where a cell should")
        elif tokens.ARROW in self.joins:
            self._instead = _short(token.text)
        if token.kind == tokens.WAIT:
            self._waits = True
        else:
            self._ended = True

    def words(self, line: Sequence[Token]) -> None:
        """A line of words that belongs to the path, for it is one of its list: they end it, and name no other cell."""
        self._ended = True
        self._behind += line
        for token in line:
            if token.kind == tokens.CELL:
                self._cell(token.value)

    def refuse(self, why: str) -> None:
        self.fault = self.fault or why

    @property
    def origin(self) -> int:
        """The number of the first step; 0 if the steps have none."""
        return min((number - place for place, number in self.marks.items()), default=0)

    def end_line(self) -> None:
        """A new line begins: an arrow may end one and begin the next."""
        self.joins.clear()
        self._beside = False

    def end(self) -> str:
        """What could not be placed, now that the path has ended; "" if everything was."""
        if self._instead:
            self.refuse(f"{self._instead} stands where a cell should")
        if self._again and self._arrows:  # (2,0) -> (2,1), (2,1) -> (2,2): moves, or does the agent wait?
            self.refuse(f"{self._again} stands twice between arrows")
        if self.cells and Beside(self.cells).clashes(of_label(self.remark)):
            self.refuse("the remark with the label says what the path does not")
        if self.cells and names_a_wait(self.before) and not repeats(self.cells):
            self.refuse("a wait is named before the label and no cell stands twice")
        if self.cells and waits_before(tokens.written(self._behind)):
            self.refuse("a wait is named behind the path")
        if not self.marks:
            return self.fault
        first = {number - place for place, number in self.marks.items()}
        unmarked = [place for place in range(len(self.cells)) if place not in self.marks]
        if self._mark is not None or len(first) > 1 or not first <= {0, 1}:
            self.refuse("the numbers of the steps do not count the cells")
        elif unmarked and (unmarked != [0] or first != {0}):
            self.refuse("some cells have the number of a step, and others none")
        return self.fault


def _text(cell: Cell) -> str:
    return f"({cell[0]},{cell[1]})"


def _short(text: str) -> str:
    return ascii(text)[:30]
