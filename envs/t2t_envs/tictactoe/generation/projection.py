"""Project: turn a designer's proposal into a configuration that the generator can fill, and name every correction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_core.projection import Settling
from t2t_core.records import Projection
from t2t_core.seeding import Stream
from t2t_core.shares import random_shares

from .configuration import BANDS, GROUP, KNOBS, BandKnobs, Configuration


def project(proposal: Mapping[str, Any] | None, previous: Configuration) -> Projection[Configuration]:
    """Enforce the constraints on a proposal: the general rules (`t2t_core.projection`), then each band's own range of p. If p_low
    is above p_high, they are swapped (our choice). Never fails, and projecting the result again changes nothing."""
    work = Settling(previous.to_dict(), KNOBS, GROUP)
    work.settle(proposal)
    for band in BANDS:
        for knob in ("p_low", "p_high"):
            p = work.values[band.name][knob]
            work.put(band.name, knob, p, min(max(p, band.low), band.high), f"clipped to the band, {band.low:g}..{band.high:g}")
        low, high = (work.values[band.name][knob] for knob in ("p_low", "p_high"))
        if low > high:
            work.put(band.name, "p_low", low, high, "p_low was above p_high: exchanged")
            work.put(band.name, "p_high", high, low, "p_low was above p_high: exchanged")
    return Projection(Configuration.from_dict(work.values), tuple(work.changes))


def random_configuration(seed: int) -> Configuration:
    """Draw shares from a flat Dirichlet, each band's range between two uniform draws from the band, and uniform mixtures (our
    choice), all rounded to 4 places."""
    stream = Stream.of(seed, "random configuration")
    knobs = []
    for band, share in zip(BANDS, random_shares(stream, len(BANDS)), strict=True):
        low, high = sorted(round(band.low + stream.uniform() * (band.high - band.low), 4) for _ in range(2))
        knobs.append(BandKnobs(share, low, high, round(stream.uniform(), 4), round(stream.uniform(), 4)))
    return Configuration(tuple(knobs))
