"""How Project corrects the joint cells that a proposal names for a size (our choice of rules).

A cell is dropped if its share or a ratio is missing, not a number or negative; otherwise its ratios are clipped to their bounds.
A cell is impossible, and dropped, if the size has no instance of it: none with so many holes, or none of the only kind (wait,
wait-free) that the cell has. A cell that mixes the kinds is clipped to the kind that exists. If repeats are forbidden, a cell is
also impossible if the size has too few forms left for it after the cells before it. The remaining shares are scaled to sum to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import fsum, isfinite
from typing import Any

from t2t_core.cells import SHARE
from t2t_core.hostile import as_number, brief_key, brief_value
from t2t_core.projection import MISSING
from t2t_core.shares import is_exact

from .configuration import CELL_KEYS, HIGHEST, RATIOS, JointCell, cell_counts, hole_count, normalised
from .forms import Count, available, capacity
from .request import Request
from .strata import Stratum

MAX_CELLS = 1000  # of a size; our choice
LEAST = 1e-12  # a cell with a smaller share of the whole is dropped; our choice

Listed = Mapping[int, JointCell]
"""Cells by their index in the list that was proposed."""
Note = Callable[[str, Any, float | None, str], None]
"""Records a change: its place in the cells ("[3].share", "" for all), the value proposed, the value used or None, and why."""


def read(proposed: object, note: Note) -> Listed:
    """The usable cells of a proposal, with their shares unchanged."""
    if not isinstance(proposed, Sequence) or isinstance(proposed, str | bytes):
        note("", brief_value(proposed), None, "not a list of cells: dropped")
        return {}
    if len(proposed) > MAX_CELLS:
        note("", float(len(proposed)), float(MAX_CELLS), "more cells than a size may have: the others are dropped")
    cells = {number: _read_cell(f"[{number}]", cell, note) for number, cell in enumerate(proposed[:MAX_CELLS])}
    usable = {number: cell for number, cell in cells.items() if cell is not None}
    if not isfinite(sum(cell.share for cell in usable.values())):
        note("", None, None, "the sum of the shares overflows: dropped")
        return {}
    return usable


def _read_cell(name: str, cell: object, note: Note) -> JointCell | None:
    if not isinstance(cell, Mapping):
        note(name, brief_value(cell), None, "not an object of a share and ratios: dropped")
        return None
    for key in cell:
        if key not in CELL_KEYS:
            note(f"{name}.{brief_key(key)}", brief_value(cell[key]), None, "unknown knob: dropped")
    numbers = {knob: as_number(cell.get(knob)) for knob in CELL_KEYS}
    missing = next((knob for knob, number in numbers.items() if number is None), None)
    if missing is not None:
        note(f"{name}.{missing}", brief_value(cell.get(missing)), None, f"{MISSING}: the cell is dropped")
        return None
    share = numbers.pop(SHARE) or 0.0
    if share <= 0:
        note(f"{name}.{SHARE}", share, None, "not above 0: the cell is dropped")
        return None
    ratios: dict[str, float] = {}
    for knob, number in numbers.items():
        ratios[knob] = min(max(number or 0.0, 0.0), HIGHEST[knob])
        if ratios[knob] != number:
            note(f"{name}.{knob}", number, ratios[knob], f"clipped to 0..{HIGHEST[knob]:g}")
    return JointCell(share, **ratios)


def fit(size: int, cells: Listed, count: int, request: Request, note: Note) -> tuple[JointCell, ...]:
    """The cells that `count` instances of this size can be drawn from, with normalised shares; empty if none is possible."""

    @cache
    def there(holes: int) -> Count:
        return available(Stratum(size, holes, request.num_agents, request.objective), request.exclude)

    total = fsum(cell.share for cell in cells.values())
    if not is_exact(total):
        note(f".{SHARE}", total, 1.0, "the shares of the cells do not sum to 1: renormalised")
    most = capacity(size, request.num_agents)
    left: dict[str, JointCell] = {}
    for number, cell in cells.items():
        name, holes = f"[{number}]", hole_count(cell.hole_ratio, size)
        if cell.share / total < LEAST:
            note(f"{name}.{SHARE}", cell.share, None, "nothing beside the other shares: the cell is dropped")
            continue
        kinds = there(holes) if holes <= most else Count(0, 0, True)
        if (fitted := _of_a_kind_there_is(cell, kinds)) is None:
            note(name, described(cell), None, f"impossible, dropped: {_lack(size, holes, request, kinds)}")
            continue
        if fitted != cell:
            reason = f"clipped: {_lack(size, holes, request, kinds)}"
            note(f"{name}.wait_ratio", cell.wait_ratio, fitted.wait_ratio, reason)
        left[name] = fitted
    if request.repeats == "forbid":
        _drop_the_short(size, left, count, there, note)
    if not left:
        note("", None, None, "no cell is possible: the hole and wait ratio of the size count")
    return normalised(list(left.values()))


def described(cell: JointCell) -> str:
    """A cell's ratios in words."""
    return ", ".join(f"{knob} {getattr(cell, knob):g}" for knob in RATIOS)


def _of_a_kind_there_is(cell: JointCell, kinds: Count) -> JointCell | None:
    """The cell without any kind that does not exist; None if nothing is left of it."""
    if kinds.wait == 0 and cell.wait_ratio > 0:
        return replace(cell, wait_ratio=0.0) if cell.wait_ratio < 1 and kinds.wait_free else None
    if kinds.wait_free == 0 and cell.wait_ratio < 1:
        return replace(cell, wait_ratio=1.0) if cell.wait_ratio > 0 and kinds.wait else None
    return cell


def _lack(size: int, holes: int, request: Request, kinds: Count) -> str:
    what = "instance" if kinds.total == 0 else "wait-free instance" if kinds.wait else "instance that requires a wait"
    return f"there is no {what} of {size}x{size} with {holes} holes and {request.num_agents} agents, {request.objective}"


def _drop_the_short(size: int, left: dict[str, JointCell], count: int, there: Callable[[int], Count], note: Note) -> None:
    """Drop the cells whose instances would repeat, the last first, until the rest can be filled without repeats."""
    while left and (short := _short(size, left, count, there)) is not None:
        cell = left.pop(short)
        holes = hole_count(cell.hole_ratio, size)
        kinds = there(holes)
        have = f"{size}x{size} with {holes} holes has {kinds.wait_free} wait-free forms and {kinds.wait} that require a wait"
        note(short, described(cell), None, f"too few forms without repeats, dropped: {have}")


def _short(size: int, left: Mapping[str, JointCell], count: int, there: Callable[[int], Count]) -> str | None:
    """The last joint cell of the first grid cell and kind with fewer forms than are asked of it."""
    asked: dict[tuple[int, bool], int] = {}
    last: dict[tuple[int, bool], str] = {}
    cells = normalised(list(left.values()))
    for (name, cell), (instances, waits) in zip(left.items(), cell_counts(cells, count), strict=True):
        holes = hole_count(cell.hole_ratio, size)
        for wait, part in ((False, instances - waits), (True, waits)):
            if part:
                asked[holes, wait] = asked.get((holes, wait), 0) + part
                last[holes, wait] = name
    for (holes, wait), number in asked.items():
        if number > (there(holes).wait if wait else there(holes).wait_free):
            return last[holes, wait]
    return None
