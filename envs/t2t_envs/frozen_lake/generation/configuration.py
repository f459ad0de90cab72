"""The generator's configuration: per map size a data ratio, a hole ratio and a wait ratio, and the counts they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import floor, isfinite
from typing import Any

from t2t_core.errors import T2TError

from ..instance import _show

SIZES = tuple(range(3, 11))
MAX_HOLE_RATIO = 0.5  # paper: "the hardest setting our benchmark generator can produce"
SUM_TOLERANCE = 1e-6  # our choice: data ratios must sum to 1 this closely


@dataclass(frozen=True)
class SizeKnobs:
    """The three numbers of one map size (paper section on the generator).

    Args:
        data_ratio: share of the sampled instances, 0..1; sums to 1 over the sizes.
        hole_ratio: share of the cells that are holes, 0..0.5.
        wait_ratio: share of the instances that require a wait, 0..1.
    """

    data_ratio: float = 0.0
    hole_ratio: float = 0.0
    wait_ratio: float = 0.0


KNOBS = tuple(field.name for field in fields(SizeKnobs))
HIGHEST = SizeKnobs(1.0, MAX_HOLE_RATIO, 1.0)


def as_ratio(value: object) -> float | None:
    """A finite number as float; None for everything else (booleans, text, NaN, infinities, integers beyond any float)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


@dataclass(frozen=True)
class Configuration:
    """What the generator is asked to draw, for sizes 3..10. Checked when it is made; T2TError on nonsense.

    Args:
        knobs: one `SizeKnobs` per size 3..10, in that order.
    """

    knobs: tuple[SizeKnobs, ...]

    def __post_init__(self) -> None:
        knobs = tuple(self.knobs)
        if len(knobs) != len(SIZES) or not all(isinstance(k, SizeKnobs) for k in knobs):
            raise T2TError(f"a configuration has one SizeKnobs for each of the sizes {SIZES[0]}..{SIZES[-1]}")
        checked = tuple(
            SizeKnobs(**{name: _checked(getattr(k, name), size, name) for name in KNOBS})
            for size, k in zip(SIZES, knobs, strict=True)
        )
        object.__setattr__(self, "knobs", checked)
        total = sum(k.data_ratio for k in checked)
        if abs(total - 1) > SUM_TOLERANCE:
            raise T2TError(
                f"the data ratios sum to {total:.6g}, not 1",
                where="data_ratio",
                cause="data_ratio is each size's share of the instances",
                next="scale them so that they sum to 1",
            )

    def __getitem__(self, size: int) -> SizeKnobs:
        return self.knobs[SIZES.index(size)]

    @classmethod
    def uniform(cls, hole_ratio: float = 0.2, wait_ratio: float = 0.5) -> Configuration:
        """The same share, hole ratio and wait ratio for every size."""
        return cls(tuple(SizeKnobs(1 / len(SIZES), hole_ratio, wait_ratio) for _ in SIZES))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """The inverse of `to_dict`. A size that is not named gets data ratio 0; a size that is named names all three.

        Raises:
            T2TError: an unknown size or knob, a missing one, a number out of bounds, data ratios that do not sum to 1.
        """
        if not isinstance(data, Mapping):
            raise T2TError(f"a configuration is a JSON object from size to ratios, not {_show(data)}")
        known = {str(size) for size in SIZES}
        for name, knobs in data.items():
            if not isinstance(name, str) or name not in known:
                raise T2TError(f"unknown map size {_show(name)}", cause=f'sizes are "{SIZES[0]}" to "{SIZES[-1]}"')
            if not isinstance(knobs, Mapping):
                raise T2TError(f"size {name} must be a JSON object, not {_show(knobs)}", where=f"size {name}")
            odd = [k for k in knobs if k not in KNOBS] or [k for k in KNOBS if k not in knobs]
            if odd:
                problem = "is missing" if odd[0] in KNOBS else "is unknown"
                raise T2TError(f"{_show(odd[0])} {problem}", where=f"size {name}", cause="each size has " + ", ".join(KNOBS))
        return cls(tuple(SizeKnobs(**data[str(size)]) if str(size) in data else SizeKnobs() for size in SIZES))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Size as text -> data_ratio, hole_ratio, wait_ratio, for all sizes 3..10."""
        return {str(size): asdict(knobs) for size, knobs in zip(SIZES, self.knobs, strict=True)}

    def counts(self, count: int) -> dict[int, int]:
        """How many of `count` instances each size gets: by largest remainder, ties to the smaller size (our choice)."""
        return split([k.data_ratio for k in self.knobs], count)


def split(ratios: list[float], count: int) -> dict[int, int]:
    """`count` over the sizes in proportion to `ratios` by largest remainder, ties (within 1e-9) to the smaller size."""
    total = sum(ratios)
    quotas = [ratio / total * count for ratio in ratios]
    counts = [floor(quota + 1e-9) for quota in quotas]
    by_remainder = sorted(range(len(ratios)), key=lambda i: (-round(quotas[i] - counts[i], 9), i))
    for i in by_remainder[: count - sum(counts)]:
        counts[i] += 1
    return dict(zip(SIZES, counts, strict=True))


def hole_count(hole_ratio: float, size: int) -> int:
    """floor(ratio * N^2 + 1/2), before the cap at what the size can hold (our choice)."""
    return floor(hole_ratio * size * size + 0.5)


def wait_count(wait_ratio: float, count: int) -> int:
    """How many of a size's `count` instances require a wait: floor(ratio * count + 1/2) (our choice)."""
    return min(floor(wait_ratio * count + 0.5), count)


def _checked(value: object, size: int, name: str) -> float:
    number = as_ratio(value)
    high = getattr(HIGHEST, name)
    if number is None or not 0 <= number <= high:
        raise T2TError(f"{name} must be a number in 0..{high:g}, not {_show(value)}", where=f"size {size}, {name}")
    return number
