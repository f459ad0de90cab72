"""Project: turns a designer's proposal into a configuration that the generator can fill, and names every correction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_core.hostile import as_number
from t2t_core.records import Change, Projection
from t2t_core.seeding import Stream

from .cells import GridCell
from .configuration import (
    CELLS,
    HIGHEST,
    KNOBS,
    LEVELS,
    MAX_HOLE_RATIO,
    SIZES,
    SUM_TOLERANCE,
    Configuration,
    JointCell,
    SizeKnobs,
    hole_count,
    mean_ratio,
    name_of,
    plain,
)
from .forms import Count, available, capacity
from .joint_cells import MISSING, Listed, Note, fit, read
from .request import Request

SAME = 1e-9  # ratios closer than this differ only by rounding
NAMED_SUM = 0.02  # our choice: named data ratios that sum to 1 this closely leave nothing for the sizes not named


def project(proposal: Mapping[str, Any] | None, previous: Configuration, request: Request) -> Projection[Configuration]:
    """Enforce the constraints on a proposal (our choice of rules). It never fails, and `generate` can fill its result.

    Data ratios are made non-negative and renormalised. A size that is not named keeps its hole and wait ratio; its data
    ratio becomes 0 if the named ones sum to 1 (+- 0.02), and otherwise keeps its previous value before renormalising. If all
    data ratios are zero, or the proposal is unreadable, the previous ones are kept. Hole ratios are clipped to [0, 0.5], and
    hole and wait ratios to what the size can produce for this request. Unknown sizes are dropped. NaN, infinities, non-numbers
    and data ratios whose sum overflows count as missing. Numbers are never reinterpreted (30 is not 30 %).

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
    named = work.read(proposal)
    work.set_data_ratios(named)
    work.set_hole_and_wait_ratios(named)
    return Projection(work.configuration(), tuple(work.changes))


def random_configuration(request: Request, seed: int = 0) -> Configuration:
    """A random configuration that the generator can fill for this request: data ratios from a flat Dirichlet over the sizes
    that can hold the agents, hole and wait ratios uniform over what each size can produce (our choice), rounded to 4 places."""
    stream = Stream.of(seed, "random configuration")
    sizes = [size for size in SIZES if capacity(size, request.num_agents) >= 0]
    cuts = sorted(round(stream.uniform(), 4) for _ in sizes[1:])
    shares = [round(high - low, 4) for low, high in zip([0.0, *cuts], [*cuts, 1.0], strict=True)]  # spacings: flat Dirichlet
    proposal: dict[str, dict[str, float]] = {}
    for size, share in zip(sizes, shares, strict=True):
        most = min(MAX_HOLE_RATIO, capacity(size, request.num_agents) / size**2)
        hole_ratio = round(stream.uniform() * most, 4)
        cell = GridCell(size, min(hole_count(hole_ratio, size), capacity(size, request.num_agents)), request.num_agents)
        low, high = _wait_bounds(_available(cell, request), 0, request.repeats)
        wait_ratio = round(low + stream.uniform() * (high - low), 4)
        proposal[str(size)] = {"data_ratio": share, "hole_ratio": hole_ratio, "wait_ratio": wait_ratio}
    first = Configuration((SizeKnobs(1.0), *(SizeKnobs() for _ in SIZES[1:])))
    configuration: Configuration = project(proposal, first, request).configuration
    return configuration


def _available(cell: GridCell, request: Request) -> Count:
    return available(GridCell(cell.size, cell.holes, cell.num_agents, request.objective), request.exclude)


def _wait_bounds(there: Count, count: int, repeats: str) -> tuple[float, float]:
    """The wait ratios that `count` instances of a cell with these forms can have."""
    low, high = float(there.wait_free == 0), float(there.wait > 0)
    if repeats == "forbid" and count > 0:
        low, high = max(low, (count - there.wait_free) / count), min(high, there.wait / count)
    return low, high


class _Projector:
    """Holds the configuration while the rules are applied to it one by one."""

    def __init__(self, previous: Configuration, request: Request) -> None:
        self.previous, self.request = previous, request
        self.ratios = {str(n): {name: getattr(previous[n], name) for name in KNOBS} for n in SIZES}
        self.proposed_cells: dict[str, Listed] = {str(n): dict(enumerate(previous[n].cells)) for n in SIZES}
        self.cells: dict[str, tuple[JointCell, ...]] = {str(n): () for n in SIZES}
        self.changes: list[Change] = []

    def configuration(self) -> Configuration:
        return Configuration(tuple(SizeKnobs(**self.ratios[str(n)], cells=self.cells[str(n)]) for n in SIZES))

    def change(self, knob: str, proposed: Any, used: float | None, reason: str) -> None:
        self.changes.append(Change(knob, proposed, used, reason))

    # --- reading
    def read(self, proposal: object) -> dict[str, dict[str, float]]:
        """The usable numbers of a proposal: size -> knob -> number."""
        if not isinstance(proposal, Mapping):
            self.change("proposal", plain(proposal), None, "not an object from size to ratios: the previous one is kept")
            return {}
        named: dict[str, dict[str, float]] = {}
        for name, knobs in proposal.items():
            if not isinstance(name, str) or name not in self.ratios:
                self.change(name_of(name), plain(knobs), None, "unknown size: dropped")
            elif not isinstance(knobs, Mapping):
                self.change(name, plain(knobs), None, "not an object of ratios: counts as not named")
            else:
                named[name] = self._read_size(name, knobs)
        return named

    def _read_size(self, size: str, knobs: Mapping[Any, Any]) -> dict[str, float]:
        for name in knobs:
            if name not in KNOBS and name != CELLS:
                self.change(f"{size}.{name_of(name)}", plain(knobs[name]), None, "unknown ratio: dropped")
        numbers = {name: number for name in KNOBS if (number := as_number(knobs.get(name))) is not None}
        if CELLS in knobs:
            self.proposed_cells[size] = read(knobs[CELLS], self._note(size))
        elif any(name in numbers for name in LEVELS):
            self.proposed_cells[size] = {}
        for name in LEVELS:
            if name not in numbers and not self.proposed_cells[size]:
                self.change(f"{size}.{name}", plain(knobs.get(name)), self.ratios[size][name], f"{MISSING}: kept")
            elif name not in numbers and name in knobs:
                self.change(f"{size}.{name}", plain(knobs[name]), None, f"{MISSING}: its cells count")
        return numbers

    def _note(self, size: str) -> Note:
        """The function with which the cells of a size record a change."""
        return lambda what, proposed, used, reason: self.change(f"{size}.{CELLS}{what}", proposed, used, reason)

    # --- data ratios
    def set_data_ratios(self, named: dict[str, dict[str, float]]) -> None:
        ratios = self._proposed_data_ratios(named)
        total = sum(ratios.values())
        if total == 0:
            if ratios:
                self.change("data_ratio", 0.0, None, "all data ratios are zero: the previous ones are kept")
            ratios = {size: self.ratios[size]["data_ratio"] for size in self.ratios}
            total = sum(ratios.values())
        self._normalise(ratios, total)
        self._fit_to_what_there_is()

    def _proposed_data_ratios(self, named: dict[str, dict[str, float]]) -> dict[str, float]:
        """The ratios of all sizes before renormalising; empty if the proposal named none."""
        ratios = {size: numbers["data_ratio"] for size, numbers in named.items() if "data_ratio" in numbers}
        if sum(max(0.0, ratio) for ratio in ratios.values()) == float("inf"):
            self.change("data_ratio", None, None, "the sum overflows: they count as missing")
            ratios = {}
        for size, ratio in ratios.items():
            if ratio < 0:
                self.change(f"{size}.data_ratio", ratio, 0.0, "negative: set to 0")
                ratios[size] = 0.0
        if not ratios:
            for size in named:
                self.change(f"{size}.data_ratio", None, self.ratios[size]["data_ratio"], f"{MISSING}: kept")
            return {}
        complete = round(abs(sum(ratios.values()) - 1), 9) <= NAMED_SUM  # in floats 1.02 - 1 is a little more than 0.02
        for size in self.ratios:
            if size not in ratios:
                before = self.ratios[size]["data_ratio"]
                ratios[size] = 0.0 if complete else before
                reason = "the named data ratios sum to 1: set to 0" if complete else "not named: kept before renormalising"
                if before > 0 or size in named:
                    self.change(f"{size}.data_ratio", None, ratios[size], reason)
        return ratios

    def _normalise(self, ratios: dict[str, float], total: float) -> None:
        exact = abs(total - 1) <= SUM_TOLERANCE / 10
        if not exact:
            self.change("data_ratio", total, 1.0, "the data ratios do not sum to 1: renormalised")
        for size, ratio in ratios.items():
            self.ratios[size]["data_ratio"] = ratio if exact else ratio / total

    def _fit_to_what_there_is(self) -> None:
        """Lower the data ratios of sizes that cannot hold the agents or have too few forms, and give the rest to others."""
        most = {str(size): self._most(size) for size in SIZES}
        counts = {str(size): count for size, count in self.configuration().counts(self.request.count).items()}
        cramped = {s for s in most if counts[s] > most[s] or (most[s] == 0 and self.ratios[s]["data_ratio"] > 0)}
        if not cramped:
            return
        if sum(most.values()) < self.request.count:
            self.change("data_ratio", None, None, "no configuration can fill this request: see its agents, count and exclusions")
            return
        before = {size: self.ratios[size]["data_ratio"] for size in most}
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
                self.change(f"{size}.data_ratio", before[size], used, reason)
            self.ratios[size]["data_ratio"] = used

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
        return _available(GridCell(size, holes, self.request.num_agents), self.request)

    # --- hole and wait ratios
    def set_hole_and_wait_ratios(self, named: dict[str, dict[str, float]]) -> None:
        counts = self.configuration().counts(self.request.count)
        for size in SIZES:
            if self._set_cells(size, counts[size], named.get(str(size), {})):
                continue
            for knob in LEVELS:
                ratio = named.get(str(size), {}).get(knob, self.ratios[str(size)][knob])
                clipped = min(max(ratio, 0.0), HIGHEST[knob])
                if clipped != ratio:
                    self.change(f"{size}.{knob}", ratio, clipped, f"clipped to 0..{HIGHEST[knob]:g}")
                self.ratios[str(size)][knob] = clipped
            self._clip_holes(size, counts[size])
            self._clip_wait(size, counts[size])

    def _set_cells(self, size: int, count: int, proposed: Mapping[str, float]) -> bool:
        """Draw the size from those of its joint cells that are possible; False if there are none."""
        key = str(size)
        cells = self.proposed_cells[key]
        self.cells[key] = fit(size, cells, count, self.request, self._note(key)) if cells else ()
        for knob in LEVELS if self.cells[key] else ():
            mean = mean_ratio(self.cells[key], knob)
            if abs(proposed.get(knob, mean) - mean) > SAME:
                self.change(f"{key}.{knob}", proposed[knob], mean, "the mean of its cells")
            self.ratios[key][knob] = mean
        return bool(self.cells[key])

    def _holes(self, size: int) -> int:
        """The hole count that `generate` would use."""
        return min(hole_count(self.ratios[str(size)]["hole_ratio"], size), capacity(size, self.request.num_agents))

    def _clip_holes(self, size: int, count: int) -> None:
        target = hole_count(self.ratios[str(size)]["hole_ratio"], size)
        need = max(1, count) if self.request.repeats == "forbid" else 1
        by_distance = sorted(range(capacity(size, self.request.num_agents) + 1), key=lambda h: (abs(h - target), h))
        best = next((holes for holes in by_distance if self._there(size, holes).total >= need), None)
        if best is None or best == target:
            return
        ratio = min(MAX_HOLE_RATIO, best / size**2)
        self.change(f"{size}.hole_ratio", self.ratios[str(size)]["hole_ratio"], ratio, _reason(self.request, size, "hole counts"))
        self.ratios[str(size)]["hole_ratio"] = ratio

    def _clip_wait(self, size: int, count: int) -> None:
        holes = self._holes(size)
        there = self._there(size, holes) if holes >= 0 else Count(0, 0, True)
        if there.total == 0:
            return
        low, high = _wait_bounds(there, count, self.request.repeats)
        ratio = self.ratios[str(size)]["wait_ratio"]
        clipped = min(max(ratio, low), high)
        if clipped != ratio:
            reason = _reason(self.request, size, f"wait ratios at {holes} holes")
            self.change(f"{size}.wait_ratio", ratio, clipped, reason)
            self.ratios[str(size)]["wait_ratio"] = clipped


def _reason(request: Request, size: int, what: str) -> str:
    return f"clipped to the {what} that {size}x{size} can produce for {request.num_agents} agents, {request.objective}"
