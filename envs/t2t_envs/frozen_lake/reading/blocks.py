"""The results of reading a text: blocks of paths, and rows of steps that become paths."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import tokens
from .remarks import Beside, of_label
from .tokens import Cell, Label, Path, Token

_NEVER = (tokens.ARROW, tokens.SCRAP, tokens.RUIN, tokens.NUMBER)  # not allowed in a row of a step


class Unplaceable(Exception):
    """The text contains something that the reader cannot interpret. The message says what."""


@dataclass
class Block:
    """The paths of one run of lines, in the order of the text, and the first thing that could not be interpreted."""

    paths: list[tuple[Label, Path]] = field(default_factory=list)
    fault: str = ""
    origins: set[int] = field(default_factory=set)  # the numbers at which the agents' steps begin; 0 if the steps have no numbers

    @property
    def labels(self) -> set[Label]:
        """The agents' labels."""
        return {label for label, _ in self.paths}

    def add(self, paths: Sequence[tuple[Label, Path]], fault: str = "", origin: int = 0) -> None:
        """`origin` is the number of the first step. It must be the same for all agents: an agent that begins later would have to
        wait first."""
        self.paths += paths
        if paths:
            self.origins.add(origin)
        self.fault = self.fault or fault or ("the agents' steps begin at different numbers" if len(self.origins) > 1 else "")


class Steps:
    """Rows with one step each and a cell for every agent. Cells without labels belong to the agents in order."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[Label, Cell]]] = []
        self._fault = ""
        self._named = False
        self._waits: set[tuple[int, Label | None]] = set()  # the rows that mention a wait, and its agent if the row names one

    @property
    def tell_paths(self) -> bool:
        """Whether there are several steps, and either labels or several agents. Single cells without labels belong to nobody."""
        return any(row for _, row in self.rows[1:]) and (self._named or any(len(row) > 1 for _, row in self.rows))

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.rows[-1][0]

    def row(self, number: int) -> None:
        """Begin the row of this step, unless it is begun already."""
        if not self.rows or number != self.last:
            self.rows.append((number, {}))

    def take(self, line: Sequence[Token]) -> None:
        """Add the cells on a line, each to the label before it."""
        last: Label | None = None
        row, label, named = self.rows[-1][1], None, any(token.kind == tokens.LABEL for token in line)
        self._named = self._named or named
        for token in line:
            if token.kind == tokens.LABEL:
                label = last = token.value
                if Beside(()).clashes(of_label(token.text)):
                    self._fault = self._fault or "the remark beside a label in the row of a step is not understood"
            elif token.kind in tokens.CELLS:
                key: Label | None = label if named else len(row)
                if key is None or key in row:
                    self._fault = self._fault or f"{token.text[:20]} at step {self.last} has no agent, or its agent has two cells"
                else:
                    row[key], label, last = token.value, None, key
            elif token.kind == tokens.WAIT:
                self._waits.add((len(self.rows) - 1, last))
            elif token.kind in _NEVER or (token.kind == tokens.WORD and Beside(()).clashes(token.text)):
                self._fault = self._fault or f"{ascii(token.text)[:20]} does not belong in the row of a step"

    def paths(self) -> list[tuple[Label, Path]]:
        """The agents' paths. Raises Unplaceable if steps are missing, or if an agent is missing between two of its cells."""
        if self._fault:
            raise Unplaceable(self._fault)
        counted([number for number, _ in self.rows])
        cells_of: dict[Label, list[Cell]] = {}
        for index, (number, row) in enumerate(self.rows):
            for label, cell in row.items():
                if len(cells_of.setdefault(label, [])) != index:
                    raise Unplaceable(f"agent {label} has no cell before step {number}")
                cells_of[label].append(cell)
        for index, waiting in self._waits:
            paths = cells_of.values() if waiting is None else [cells_of.get(waiting, [])]
            if not any(stays(cells, index) for cells in paths):
                raise Unplaceable(f"row {index + 1} mentions a wait, but no cell is repeated there")
        return [(label, tuple(cells)) for label, cells in cells_of.items()]


def stays(cells: Sequence[Cell], index: int) -> bool:
    """Whether the cell at this index is repeated directly before or after it, or the path has ended by then."""
    if index >= len(cells) - 1:
        return True
    return cells[index] in (cells[index + 1], cells[index - 1] if index else None)


def counted(numbers: Sequence[int]) -> None:
    """Raise Unplaceable if the step numbers do not count up from 0 or 1."""
    if numbers and (numbers[0] not in (0, 1) or list(numbers) != list(range(numbers[0], numbers[0] + len(numbers)))):
        raise Unplaceable("the step numbers do not count up from 0 or 1")


def without_recaps(blocks: Sequence[Block]) -> list[Block]:
    """The blocks without those that only repeat a part of the one before: "Agent 0: (2,0) -> (1,2)" after the paths, one move
    for a check, a table from t=1 on.

    A recap has only cells of the paths before, in their order, and is no plan by itself: it leaves out a path's beginning, its
    end, or cells between two that are no neighbours. A path that only lost its waits is a plan, and no recap.
    """
    kept: list[Block] = []
    whole: dict[Label, Path] = {}
    places: dict[Label, dict[Cell, list[int]]] = {}
    for block in blocks:
        if kept and not block.fault and not kept[-1].fault and _repeats_a_part(block, whole, places):
            continue
        kept.append(block)
        whole, places = dict(block.paths), {}
        for label, path in whole.items():
            places[label] = {}
            for place, cell in enumerate(path):
                places[label].setdefault(cell, []).append(place)
    return kept


def _repeats_a_part(block: Block, whole: Mapping[Label, Path], places: Mapping[Label, Mapping[Cell, Sequence[int]]]) -> bool:
    complete = True
    for label, path in block.paths:
        if label not in whole:
            return False
        place = -1
        for cell in path:
            later = places[label].get(cell, ())
            index = bisect_right(later, place)
            if index == len(later):
                return False
            place = later[index]
        jumps = any(abs(r - s) + abs(c - d) > 1 for (r, c), (s, d) in zip(path, path[1:], strict=False))
        complete = complete and not jumps and path[0] == whole[label][0] and path[-1] == whole[label][-1]
    return bool(block.paths) and not complete
