"""Project: turns a designer's proposal into a configuration that the generator can fill, and names every correction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_core.cells import CELLS
from t2t_core.hostile import brief_value
from t2t_core.projection import MISSING, Settling, Values
from t2t_core.records import Projection
from t2t_core.seeding import Stream
from t2t_core.shares import random_shares

from .configuration import (
    GROUP,
    KNOBS,
    MAX_HOLE_RATIO,
    RATIOS,
    SIZES,
    Configuration,
    JointCell,
    SizeKnobs,
    hole_count,
    mean_ratio,
)
from .forms import Count, available, capacity
from .joint_cells import Listed, Note, fit, read
from .request import Request
from .strata import Stratum

SAME = 1e-9  # ratios closer than this differ only by rounding


def project(proposal: Mapping[str, Any] | None, previous: Configuration, request: Request) -> Projection[Configuration]:
    """Enforce the constraints on a proposal (our choice of rules). It never fails, and `generate` can fill its result.

    The general rules come first (`t2t_core.projection.Settling`): shares, bounds, and what is missing or unknown. Then the data
    ratios of sizes that cannot hold the agents are lowered, and hole and wait ratios are clipped to what the size can produce
    for this request.

    A size may also name `cells` (see `joint_cells` for the rules); its hole and wait ratio are then their means. A size whose
    cells are all impossible falls back on the two ratios. A size that names a ratio but no cells loses its earlier cells.

    Args:
        proposal: any JSON value. An object from size ("3".."10") to an object of the three ratios, and cells, is usable.
        previous: the configuration in force.
        request: count, agents, objective, exclusions and repeats that the result is for.

    Returns:
        The configuration and the changes. The configuration is a fixed point: projecting it again changes nothing.
    """
    work = _Projector(previous, request)
    work.settle(proposal)
    return Projection(work.configuration(), tuple(work.changes))


def random_configuration(request: Request, seed: int = 0) -> Configuration:
    """A random configuration that the generator can fill for this request: data ratios from a flat Dirichlet over the sizes
    that can hold the agents, hole and wait ratios uniform over what each size can produce (our choice), rounded to 4 places."""
    stream = Stream.of(seed, "random configuration")
    sizes = [size for size in SIZES if capacity(size, request.num_agents) >= 0]
    proposal: Values = {}
    for size, share in zip(sizes, random_shares(stream, len(sizes)), strict=True):
        most = min(MAX_HOLE_RATIO, capacity(size, request.num_agents) / size**2)
        hole_ratio = round(stream.uniform() * most, 4)
        stratum = Stratum(size, min(hole_count(hole_ratio, size), capacity(size, request.num_agents)), request.num_agents)
        low, high = _wait_bounds(_available(stratum, request), 0, request.repeats)
        wait_ratio = round(low + stream.uniform() * (high - low), 4)
        proposal[str(size)] = {"data_ratio": share, "hole_ratio": hole_ratio, "wait_ratio": wait_ratio}
    first = Configuration((SizeKnobs(1.0), *(SizeKnobs() for _ in SIZES[1:])))
    configuration: Configuration = project(proposal, first, request).configuration
    return configuration


def _available(stratum: Stratum, request: Request) -> Count:
    return available(Stratum(stratum.size, stratum.holes, stratum.num_agents, request.objective), request.exclude)


def _wait_bounds(there: Count, count: int, repeats: str) -> tuple[float, float]:
    """The wait ratios that `count` instances of a stratum with these forms can have."""
    low, high = float(there.wait_free == 0), float(there.wait > 0)
    if repeats == "forbid" and count > 0:
        low, high = max(low, (count - there.wait_free) / count), min(high, there.wait / count)
    return low, high


class _Projector(Settling):
    """The general rules, and those of this generator: what a size can hold and produce, and its joint cells."""

    def __init__(self, previous: Configuration, request: Request) -> None:
        super().__init__(previous.to_dict(), KNOBS, GROUP)
        self.request = request
        self.proposed_cells: dict[str, Listed] = {str(n): dict(enumerate(previous[n].cells)) for n in SIZES}
        self.cells: dict[str, tuple[JointCell, ...]] = {str(n): () for n in SIZES}

    def configuration(self) -> Configuration:
        return Configuration(tuple(SizeKnobs(**self.values[str(n)], cells=self.cells[str(n)]) for n in SIZES))

    def settle(self, proposal: object) -> None:
        named = self.read(proposal)
        self.set_shares(named)
        self._fit_to_what_there_is()
        self._set_ratios(named)

    def read_group(self, size: str, knobs: Mapping[Any, Any]) -> dict[str, float]:
        self.drop_unknown(size, knobs, (CELLS,))
        numbers = self.usable(knobs)
        if CELLS in knobs:
            self.proposed_cells[size] = read(knobs[CELLS], self._note(size))
        elif any(name in numbers for name in RATIOS):
            self.proposed_cells[size] = {}
        for name in RATIOS:
            if name not in numbers and not self.proposed_cells[size]:
                self.keep(size, name, knobs)
            elif name not in numbers and name in knobs:
                self.note(f"{size}.{name}", brief_value(knobs[name]), None, f"{MISSING}: its cells count")
        return numbers

    def _note(self, size: str) -> Note:
        """The function with which the cells of a size record a change."""
        return lambda what, proposed, used, reason: self.note(f"{size}.{CELLS}{what}", proposed, used, reason)

    def _fit_to_what_there_is(self) -> None:
        """Lower the data ratios of sizes that cannot hold the agents or have too few forms, and give the rest to others."""
        most = {str(size): self._most(size) for size in SIZES}
        counts = {str(size): count for size, count in self.configuration().counts(self.request.count).items()}
        cramped = {s for s in most if counts[s] > most[s] or (most[s] == 0 and self.values[s]["data_ratio"] > 0)}
        if not cramped:
            return
        if sum(most.values()) < self.request.count:
            self.note("data_ratio", None, None, "no configuration can fill this request: see its agents, count and exclusions")
            return
        before = {size: self.values[size]["data_ratio"] for size in most}
        counts = {size: min(count, most[size]) for size, count in counts.items()}
        while missing := self.request.count - sum(counts.values()):
            room = {size for size in most if counts[size] < most[size]}
            weights = {size: before[size] for size in room if before[size] > 0} or dict.fromkeys(room, 1.0)
            whole = sum(weights.values())
            for size, weight in sorted(weights.items(), key=lambda item: (-item[1], int(item[0]))):
                extra = min(most[size] - counts[size], max(1, round(missing * weight / whole)))
                counts[size] += min(extra, self.request.count - sum(counts.values()))
        for size, count in counts.items():
            used = count / self.request.count
            if used != before[size]:
                reason = f"at most {most[size]} instances can be made" if size in cramped else "takes over from another size"
                self.note(f"{size}.data_ratio", before[size], used, reason)
            self.values[size]["data_ratio"] = used

    def _most(self, size: int) -> int:
        """The most instances of a size that the request allows, whatever the hole and wait ratio."""
        need = self.request.count if self.request.repeats == "forbid" else 1
        best = 0
        for holes in range(capacity(size, self.request.num_agents) + 1):
            best = max(best, self._there(size, holes).total)
            if best >= need:
                return self.request.count
        return best

    def _there(self, size: int, holes: int) -> Count:
        return _available(Stratum(size, holes, self.request.num_agents), self.request)

    # --- hole and wait ratios
    def _set_ratios(self, named: Values) -> None:
        counts = self.configuration().counts(self.request.count)
        for size in SIZES:
            if self._set_cells(size, counts[size], named.get(str(size), {})):
                continue
            self.clip(str(size), named.get(str(size), {}))
            self._clip_holes(size, counts[size])
            self._clip_wait(size, counts[size])

    def _set_cells(self, size: int, count: int, proposed: Mapping[str, float]) -> bool:
        """Draw the size from those of its joint cells that are possible; False if there are none."""
        key = str(size)
        cells = self.proposed_cells[key]
        self.cells[key] = fit(size, cells, count, self.request, self._note(key)) if cells else ()
        for knob in RATIOS if self.cells[key] else ():
            mean = mean_ratio(self.cells[key], knob)
            if abs(proposed.get(knob, mean) - mean) > SAME:
                self.note(f"{key}.{knob}", proposed[knob], mean, "the mean of its cells")
            self.values[key][knob] = mean
        return bool(self.cells[key])

    def _holes(self, size: int) -> int:
        """The hole count that `generate` would use."""
        return min(hole_count(self.values[str(size)]["hole_ratio"], size), capacity(size, self.request.num_agents))

    def _clip_holes(self, size: int, count: int) -> None:
        target = hole_count(self.values[str(size)]["hole_ratio"], size)
        need = max(1, count) if self.request.repeats == "forbid" else 1
        by_distance = sorted(range(capacity(size, self.request.num_agents) + 1), key=lambda h: (abs(h - target), h))
        best = next((holes for holes in by_distance if self._there(size, holes).total >= need), None)
        if best is None or best == target:
            return
        ratio = min(MAX_HOLE_RATIO, best / size**2)
        self.note(f"{size}.hole_ratio", self.values[str(size)]["hole_ratio"], ratio, _reason(self.request, size, "hole counts"))
        self.values[str(size)]["hole_ratio"] = ratio

    def _clip_wait(self, size: int, count: int) -> None:
        holes = self._holes(size)
        there = self._there(size, holes) if holes >= 0 else Count(0, 0, True)
        if there.total == 0:
            return
        low, high = _wait_bounds(there, count, self.request.repeats)
        ratio = self.values[str(size)]["wait_ratio"]
        clipped = min(max(ratio, low), high)
        if clipped != ratio:
            reason = _reason(self.request, size, f"wait ratios at {holes} holes")
            self.note(f"{size}.wait_ratio", ratio, clipped, reason)
            self.values[str(size)]["wait_ratio"] = clipped


def _reason(request: Request, size: int, what: str) -> str:
    return f"clipped to the {what} that {size}x{size} can produce for {request.num_agents} agents, {request.objective}"
