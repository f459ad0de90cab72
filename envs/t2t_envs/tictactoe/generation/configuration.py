"""The generator's configuration: for each band of the opponent's strength, how many games and of which kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hostile import as_number, shown
from t2t_core.projection import read_values
from t2t_core.records import Knob
from t2t_core.shares import apportion, check_sum

P_STEP = 1e-4  # an instance's p is a multiple of it
GROUP = "opponent band"


@dataclass(frozen=True)
class Band:
    """A range of p, the probability that the opponent's move is random. `low` belongs to it, `high` only if it is 1."""

    name: str
    low: float
    high: float

    @property
    def highest(self) -> float:
        """The highest p of an instance in this band."""
        return self.high if self.high == 1 else self.high - P_STEP


# From the weakest opponent to the strongest, so that later bands are harder.
BANDS = (Band("0.75-1", 0.75, 1.0), Band("0.5-0.75", 0.5, 0.75), Band("0.25-0.5", 0.25, 0.5), Band("0-0.25", 0.0, 0.25))
NAMES = tuple(band.name for band in BANDS)
_STEP = 0.05  # a moderate change of any knob (our choice)
KNOBS = (
    Knob("share", "of each opponent band: its share of the games; sums to 1 over the bands", 0, 1, "share", "percent",
         step=_STEP),
    Knob(
        "p_low", "of each band: the least p of its opponents, the probability that a move of theirs is a random one instead of "
        "an optimal one; within the band", 0, 1, "level", "number", harder=-1, step=_STEP,
    ),
    Knob(
        "p_high", "of each band: the greatest p of its opponents, at least p_low; p is spread evenly between the two", 0, 1,
        "level", "number", harder=-1, step=_STEP,
    ),
    Knob("first", "of each band: the share of its games in which the policy moves first", 0, 1, "mixture", "percent", harder=-1,
         step=_STEP),
    Knob("mid_game", "of each band: the share of its games that start from a random position in mid-game", 0, 1, "mixture",
         "percent", step=_STEP),
)  # fmt: skip


def band_of(p: float) -> Band:
    """The band that an opponent of this p belongs to."""
    return next(band for band in BANDS if p >= band.low)


@dataclass(frozen=True)
class BandKnobs:
    """The five numbers of one band; `KNOBS` says what they mean."""

    share: float
    p_low: float
    p_high: float
    first: float = 0.5
    mid_game: float = 0.0


@dataclass(frozen=True)
class Configuration:
    """What the generator is asked to draw. It is checked when it is made; raises T2TError on nonsense.

    Args:
        knobs: one `BandKnobs` for each of `BANDS`, in that order.
    """

    knobs: tuple[BandKnobs, ...]

    def __post_init__(self) -> None:
        knobs = tuple(self.knobs)
        if len(knobs) != len(BANDS) or not all(isinstance(k, BandKnobs) for k in knobs):
            raise T2TError(f"a configuration has one BandKnobs for each of the bands {', '.join(NAMES)}")
        checked = tuple(_checked(band, k) for band, k in zip(BANDS, knobs, strict=True))
        object.__setattr__(self, "knobs", checked)
        check_sum((k.share for k in checked), "share", "each band's share of the games")

    def __getitem__(self, band: str) -> BandKnobs:
        return self.knobs[NAMES.index(band)]

    @classmethod
    def uniform(cls, p_low: float = 0.0, p_high: float = 1.0, first: float = 0.5, mid_game: float = 0.0) -> Configuration:
        """Games whose p is spread evenly from `p_low` to `p_high`, across all bands in that range."""
        low, high = as_number(p_low), as_number(p_high)
        if low is None or high is None or not 0 <= low <= high <= 1:
            raise T2TError(f"p must go from p_low to p_high within 0..1, not from {shown(p_low)} to {shown(p_high)}")
        parts = []
        for band in BANDS:
            inside = (min(max(low, band.low), band.high), min(max(high, band.low), band.high))
            width = inside[1] - inside[0]
            share = width / (high - low) if high > low else float(band_of(low) == band)
            ends = inside if share else (band.low, band.high)
            parts.append(BandKnobs(share, *ends, first, mid_game))
        return cls(tuple(parts))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Configuration:
        """The inverse of `to_dict`. A band that is not named gets no games; a named band must give all its knobs.

        Raises:
            T2TError: an unknown band or knob, a missing one, a number out of bounds, shares that do not sum to 1.
        """
        nothing = {band.name: asdict(BandKnobs(0.0, band.low, band.high)) for band in BANDS}
        return cls(tuple(BandKnobs(**values) for values in read_values(data, NAMES, KNOBS, GROUP, nothing).values()))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Band -> knob -> number, for all bands."""
        return {name: asdict(knobs) for name, knobs in zip(NAMES, self.knobs, strict=True)}

    def counts(self, count: int) -> dict[str, int]:
        """How many of `count` games each band gets: by largest remainder, ties to the weaker opponent (our choice)."""
        return dict(zip(NAMES, apportion([k.share for k in self.knobs], count), strict=True))


def _checked(band: Band, knobs: BandKnobs) -> BandKnobs:
    numbers: dict[str, float] = {}
    for knob in KNOBS:
        value = getattr(knobs, knob.name)
        number = as_number(value)
        low, high = (band.low, band.high) if knob.name in ("p_low", "p_high") else (knob.low, knob.high)
        if number is None or not low <= number <= high:
            where = f"band {band.name}, {knob.name}"
            raise T2TError(f"{knob.name} must be a number in {low:g}..{high:g}, not {shown(value)}", where=where)
        numbers[knob.name] = number
    if numbers["p_low"] > numbers["p_high"]:
        raise T2TError(f"p_low {numbers['p_low']:g} is above p_high {numbers['p_high']:g}", where=f"band {band.name}")
    return BandKnobs(**numbers)
