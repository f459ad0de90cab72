"""The generator's configuration: per map size a data ratio, a hole ratio and a wait ratio, and the counts they stand for.

The two ratios are set independently, so a size has one hole count and mixes both kinds of instances at it. A curriculum that
chooses among (hole ratio, wait ratio) pairs names them as joint cells, and the ratios are then the cells' means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor, fsum
from typing import Any

from t2t_core.cells import CELLS, SHARE
from t2t_core.errors import T2TError
from t2t_core.hostile import as_number, shown
from t2t_core.records import Knob
from t2t_core.shares import apportion, check_sum, is_exact, round_quotas

SIZES = tuple(range(3, 11))
MAX_HOLE_RATIO = 0.5  # paper: "the hardest setting our benchmark generator can produce"
MAX_SHARE = 1e9  # of a cell before shares are normalised, so that their sum cannot overflow

GROUP = "map size"
_STEP = 0.05  # a moderate change of a ratio (our choice)
KNOBS = (
    Knob("data_ratio", "of each map size 3..10: its share of the training instances; sums to 1 over the sizes", 0, 1, "share",
         "percent", step=_STEP),
    Knob("hole_ratio", "of each map size: the share of its cells that are holes", 0, MAX_HOLE_RATIO, "level", "percent", harder=1,
         step=_STEP),
    Knob("wait_ratio", "of each map size: the share of its instances whose every optimal solution waits", 0, 1, "mixture",
         "percent", harder=1, step=_STEP),
)  # fmt: skip
NAMES = tuple(knob.name for knob in KNOBS)
RATIOS = NAMES[1:]  # of a size, and of each of its joint cells
CELL_KEYS = (SHARE, *RATIOS)
HIGHEST = {knob.name: float(knob.high) for knob in KNOBS}


@dataclass(frozen=True)
class JointCell:
    """One choice of both ratios at once (our choice of form).

    Args:
        share: of the size's instances; the shares of a size are normalised to sum to 1.
        hole_ratio, wait_ratio: the same ratios as a size has, for the instances of this cell.
    """

    share: float
    hole_ratio: float
    wait_ratio: float


@dataclass(frozen=True)
class SizeKnobs:
    """The three numbers of one map size (paper section on the generator), and its joint cells if it has any.

    Args:
        data_ratio: share of the sampled instances, 0..1; sums to 1 over the sizes.
        hole_ratio: share of the cells that are holes, 0..0.5.
        wait_ratio: share of the instances that require a wait, 0..1.
        cells: if given, the size is drawn from these cells, and a configuration sets the two ratios to their means.
    """

    data_ratio: float = 0.0
    hole_ratio: float = 0.0
    wait_ratio: float = 0.0
    cells: tuple[JointCell, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name, and "cells" if there are any."""
        numbers: dict[str, Any] = {name: getattr(self, name) for name in NAMES}
        return numbers | {CELLS: [asdict(cell) for cell in self.cells]} if self.cells else numbers

    def drawn(self) -> tuple[JointCell, ...]:
        """The cells that the size is drawn from: its joint cells, or else one cell with its ratios."""
        return self.cells or (JointCell(1.0, self.hole_ratio, self.wait_ratio),)


@dataclass(frozen=True)
class Configuration:
    """What the generator is to draw, for sizes 3..10. The constructor checks it and raises T2TError on invalid values.

    Args:
        knobs: one `SizeKnobs` per size 3..10, in that order.
    """

    knobs: tuple[SizeKnobs, ...]

    def __post_init__(self) -> None:
        knobs = tuple(self.knobs)
        if len(knobs) != len(SIZES) or not all(isinstance(k, SizeKnobs) for k in knobs):
            raise T2TError(f"a configuration has one SizeKnobs for each of the sizes {SIZES[0]}..{SIZES[-1]}")
        checked = tuple(_checked(size, k) for size, k in zip(SIZES, knobs, strict=True))
        object.__setattr__(self, "knobs", checked)
        check_sum((k.data_ratio for k in checked), "data_ratio", "each size's share of the instances")

    def __getitem__(self, size: int) -> SizeKnobs:
        return self.knobs[SIZES.index(size)]

    @classmethod
    def uniform(cls, hole_ratio: float = 0.2, wait_ratio: float = 0.5) -> Configuration:
        """The same share, hole ratio and wait ratio for every size."""
        return cls(tuple(SizeKnobs(1 / len(SIZES), hole_ratio, wait_ratio) for _ in SIZES))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """The inverse of `to_dict`. A size that is not named gets data ratio 0. A named size needs all three numbers, or its
        data ratio and `cells`; with cells the other two numbers are ignored, and become the cells' means.

        Raises:
            T2TError: an unknown size or knob, a missing one, a number out of bounds, data ratios that do not sum to 1.
        """
        if not isinstance(data, Mapping):
            raise T2TError(f"a configuration is a JSON object from size to ratios, not {shown(data)}")
        known = {str(size) for size in SIZES}
        for name in data:
            if not isinstance(name, str) or name not in known:
                raise T2TError(f"unknown {GROUP} {shown(name)}", cause=f'sizes are "{SIZES[0]}" to "{SIZES[-1]}"')
        return cls(tuple(_read(str(size), data[str(size)]) if str(size) in data else SizeKnobs() for size in SIZES))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Size as text -> data_ratio, hole_ratio, wait_ratio and the cells, if a size has any; for all sizes 3..10."""
        return {str(size): knobs.to_dict() for size, knobs in zip(SIZES, self.knobs, strict=True)}

    def counts(self, count: int) -> dict[int, int]:
        """How many of `count` instances each size gets: by largest remainder, ties to the smaller size (our choice)."""
        return split([k.data_ratio for k in self.knobs], count)


def split(ratios: Sequence[float], count: int) -> dict[int, int]:
    """Split `count` over the sizes in proportion to `ratios` by largest remainder; ties (within 1e-9) go to the smaller size."""
    return dict(zip(SIZES, apportion(ratios, count), strict=True))


def cell_counts(cells: Sequence[JointCell], count: int) -> list[tuple[int, int]]:
    """How many of a size's `count` instances each cell gets, and how many of those require a wait: (instances, waits).

    Both are split by largest remainder over the cells, ties to the earlier cell: first the instances, by the shares; then
    floor(sum of wait ratio * instances + 1/2) wait instances, by wait ratio * instances (our choice).
    """
    counts = apportion([cell.share for cell in cells], count)
    quotas = [cell.wait_ratio * n for cell, n in zip(cells, counts, strict=True)]
    waits = round_quotas(quotas, min(floor(fsum(quotas) + 0.5), count))
    return list(zip(counts, waits, strict=True))


def hole_count(hole_ratio: float, size: int) -> int:
    """floor(ratio * N^2 + 1/2), before the cap at what the size can hold (our choice)."""
    return floor(hole_ratio * size * size + 0.5)


def normalised(cells: Sequence[JointCell]) -> tuple[JointCell, ...]:
    """The cells with their shares scaled to sum to 1; unchanged if they already do."""
    total = fsum(cell.share for cell in cells)
    if is_exact(total):
        return tuple(cells)
    return tuple(JointCell(cell.share / total, cell.hole_ratio, cell.wait_ratio) for cell in cells)


def mean_ratio(cells: Sequence[JointCell], name: str) -> float:
    """The mean of a ratio over cells, weighted by their shares, to twelve places."""
    values = [getattr(cell, name) for cell in cells]
    mean = fsum(cell.share * value for cell, value in zip(cells, values, strict=True)) / fsum(cell.share for cell in cells)
    return float(min(max(round(mean, 12), min(values)), max(values)))  # rounding must not push the mean outside their range


def _read(size: str, data: object) -> SizeKnobs:
    """The knobs of one size from JSON; their values are checked when the configuration is made."""
    where = f"size {size}"
    knobs = _object(data, where, where)
    if knobs.get(CELLS, []) == []:
        numbers = {name: value for name, value in knobs.items() if name != CELLS}
        _refuse_keys(numbers, NAMES, NAMES, where, "each size has " + ", ".join(NAMES))
        return SizeKnobs(**numbers)
    _refuse_keys(knobs, (*NAMES, CELLS), NAMES[:1], where, f"a size with cells has {NAMES[0]} and {CELLS}")
    listed = knobs[CELLS]
    if not isinstance(listed, list):
        raise T2TError(f"{CELLS} must be a list of objects, not {shown(listed)}", where=where)
    cells = [_object(cell, f"cell {number}", where) for number, cell in enumerate(listed)]
    for number, cell in enumerate(cells):
        _refuse_keys(cell, CELL_KEYS, CELL_KEYS, f"{where}, cell {number}", "each cell has " + ", ".join(CELL_KEYS))
    return SizeKnobs(knobs[NAMES[0]], cells=tuple(JointCell(**cell) for cell in cells))


def _object(value: object, what: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise T2TError(f"{what} must be a JSON object, not {shown(value)}", where=where)
    return value


def _refuse_keys(given: Iterable[object], known: Sequence[str], needed: Sequence[str], where: str, cause: str) -> None:
    """T2TError for the first key that is unknown, else for the first that is missing."""
    names = list(given)
    odd = [k for k in names if k not in known] or [k for k in needed if k not in names]
    if odd:
        raise T2TError(f"{shown(odd[0])} {'is missing' if odd[0] in known else 'is unknown'}", where=where, cause=cause)


def _checked(size: int, knobs: SizeKnobs) -> SizeKnobs:
    """The knobs with cells normalised and the ratios set to their means. Raises T2TError if a number is out of bounds."""
    where = f"size {size}"
    data_ratio = _number(knobs.data_ratio, NAMES[0], HIGHEST[NAMES[0]], where)
    if not knobs.cells:
        hole_ratio, wait_ratio = (_number(getattr(knobs, name), name, HIGHEST[name], where) for name in RATIOS)
        return SizeKnobs(data_ratio, hole_ratio, wait_ratio)
    if not isinstance(knobs.cells, tuple) or not all(isinstance(cell, JointCell) for cell in knobs.cells):
        raise T2TError(f"{CELLS} must be a tuple of JointCell", where=where)
    read = [_checked_cell(cell, f"{where}, cell {number}") for number, cell in enumerate(knobs.cells)]
    if not any(cell.share for cell in read):
        raise T2TError("the shares of the cells are all zero", where=where)
    cells = normalised(read)
    hole_ratio, wait_ratio = (mean_ratio(cells, name) for name in RATIOS)
    return SizeKnobs(data_ratio, hole_ratio, wait_ratio, cells)


def _checked_cell(cell: JointCell, where: str) -> JointCell:
    hole_ratio, wait_ratio = (_number(getattr(cell, name), name, HIGHEST[name], where) for name in RATIOS)
    return JointCell(_number(cell.share, SHARE, MAX_SHARE, where), hole_ratio, wait_ratio)


def _number(value: object, name: str, high: float, where: str) -> float:
    number = as_number(value)
    if number is None or not 0 <= number <= high:
        raise T2TError(f"{name} must be a number in 0..{high:g}, not {shown(value)}", where=f"{where}, {name}")
    return number
