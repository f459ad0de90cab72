"""The charts of every report, as data that draws itself: lines, dots with intervals, a scatter, a bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from t2t_core.report import svg
from t2t_core.report.figures import Figure
from t2t_core.text import visible

_LABEL = 23  # characters of a name beside a mark
_FAULTS = (1, 3, 5, 0, 4, 7, 6, 2)  # the colours of what went wrong, neighbours far apart
_FEW = 4  # series whose intervals can be told apart
_MANY = 40  # points on a line beyond which their dots are small
Place = Callable[[float], float]  # from a value to where it is drawn


class Chart(Protocol):
    """Anything with a title that draws itself, without colours of its own (`svg.standalone` gives it some)."""

    @property
    def title(self) -> str:
        """What it shows, as text above it."""
        ...

    def svg(self) -> str:
        """The chart as one <svg> element; colours come from the page's style."""
        ...


@dataclass(frozen=True)
class Axis:
    """What an axis spans, in the unit in which its figures are shown. An end that is None fits the figures, zero included."""

    low: float | None = 0.0
    high: float | None = None
    unit: str = ""
    signed: bool = False

    def span(self, figures: Sequence[Figure]) -> tuple[float, float]:
        """The ends, always apart from each other; a little beyond the figures where an end fits them."""
        values = [v for f in figures for v in (f.value, f.low, f.high) if v is not None]
        low = min([0.0, *values]) if self.low is None else self.low
        high = max([0.0, *values]) if self.high is None else self.high
        margin = 0.05 * (high - low) or 0.5
        return (low - margin if self.low is None else low), (high + margin if self.high is None or high <= low else high)

    def label(self, value: float) -> str:
        """A tick as text, with its unit and, if signed, its sign."""
        text = f"{value:+g}" if self.signed and value else f"{value:g}"
        return f"${text}" if self.unit == "$" else f"{text}{self.unit}"


PERCENT = Axis(0.0, 100.0, " %")
POINTS = Axis(None, None, signed=True)


@dataclass(frozen=True)
class Series:
    """A named line: a figure per position, None if there is none. `colour` None: figures that others measured, in grey."""

    name: str
    points: Sequence[Figure | None]
    colour: int | None


@dataclass(frozen=True)
class Event:
    """Something that happened at a place along the axis: a dotted line from top to bottom, named at its head."""

    at: int
    name: str


@dataclass(frozen=True)
class Lines:
    """A line per series over named positions, with the intervals that the figures have. Lines are told apart by colour, mark and
    dashes, and each is named at its end; the intervals of many would hide each other and are left out. A `wide` one takes the
    whole width of a page."""

    title: str
    positions: Sequence[str]
    series: Sequence[Series]
    axis: Axis = PERCENT
    events: Sequence[Event] = ()
    wide: bool = False

    def svg(self) -> str:
        left, right, top = 46.0, 844.0 if self.wide else 424.0, 26.0 if self.events else 14.0
        bottom = top + max(256.0, 14.0 * len(self.series))
        low, high = self.axis.span([f for s in self.series for f in s.points if f is not None])
        step = (right - left) / max(1, len(self.positions) - 1)

        def height(value: float) -> float:
            return bottom - (min(max(value, low), high) - low) * (bottom - top) / (high - low)

        marks = []
        for tick in svg.ticks(low, high, 5):
            y = height(tick)
            marks += [svg.line(left, y, right, y, "grid"), svg.text(left - 6, y + 4, self.axis.label(tick), "end", "axis")]
        every = max(1, math.ceil(len(self.positions) / 12))
        for i, name in enumerate(self.positions[::every]):
            marks.append(svg.text(left + i * every * step, bottom + 18, visible(name, 8), "middle", "axis"))
        for number, event in enumerate(self.events):
            x = left + event.at * step
            marks.append(svg.line(x, top, x, bottom, "event"))
            if number % math.ceil(len(self.events) / 6) == 0:
                marks.append(svg.text(x, top - 8, visible(event.name, 12), "middle", "axis"))
        ends: list[tuple[float, float, Series]] = []
        order = sorted(self.series, key=lambda s: s.colour is not None)
        for number, series in enumerate(order):
            points = [(left + i * step, f) for i, f in enumerate(series.points) if f is not None and f.value is not None]
            covering = min(len(order) - 1 - number, 3)  # an equal line drawn later leaves the edges of this one to see
            few = len(order) <= _FEW
            marks += _line(series, number, points, height, 2 + (1.2 if few else 0.5) * covering, few)
            if points:
                ends.append((points[-1][0], height(points[-1][1].value or 0.0), series))
        for y, (x, end, series) in zip(svg.apart([y for _, y, _ in ends], 14.0, top, bottom), ends, strict=True):
            marks.append(svg.line(x + 5, end, right + 8, y, "leader"))
            marks.append(svg.text(right + 10, y + 4, visible(series.name, _LABEL), "start", svg.tone(series.colour)))
        return svg.drawing(right + 192, bottom + 26, self.title, marks)


def _line(
    series: Series, number: int, points: Sequence[tuple[float, Figure]], height: Place, width: float, intervals: bool
) -> Iterator[str]:
    name, quoted = svg.tone(series.colour), series.colour is None
    dashes = 1 + number % 3 if series.colour is None else series.colour // svg.COLOURS
    yield svg.path([(x, height(f.value or 0.0)) for x, f in points], name, 1 if quoted else width, dashes)
    for x, figure in points:
        if intervals and not quoted and figure.low is not None and figure.high is not None:
            yield svg.line(x, height(figure.low), x, height(figure.high), name, 1.2)
        hover = f"{series.name[:60]}: {figure.full()}"
        radius = (3 if len(points) < _MANY else 1.5) if not quoted else 2
        yield svg.shape(number if series.colour is None else series.colour, x, height(figure.value or 0.0), name, hover, radius)


@dataclass(frozen=True)
class Point:
    """A figure in a lane; `hollow` tells a second kind of figures from the first, `says` what it is."""

    figure: Figure
    hollow: bool = False
    says: str = ""


@dataclass(frozen=True)
class Lane:
    """A row of dots: its name ("" if it goes with the one above it), its points, and a bar at their mean, if any."""

    name: str
    points: Sequence[Point]
    colour: int | None
    mean: float | None = None


@dataclass(frozen=True)
class Dots:
    """Figures as dots with their intervals, a lane for each thing: panels side by side on one axis, with the same lanes."""

    title: str
    panels: Mapping[str, Sequence[Lane]]
    axis: Axis = PERCENT
    legend: Sequence[tuple[str, int]] = field(default=())

    def svg(self) -> str:
        lanes = next(iter(self.panels.values()), ())
        label, width, gap = 186.0, 380.0 if len(self.panels) < 2 else 150.0, 30.0
        step = 22.0 if all(lane.name for lane in lanes) else 13.0
        top = 30.0 if any(self.panels) else 10.0
        bottom = top + step * len(lanes) + 4
        low, high = self.axis.span([p.figure for lanes in self.panels.values() for lane in lanes for p in lane.points])
        heights = [top + 2 + step * (i + 0.5) for i in range(len(lanes))]
        marks = [_name(lane, label - 10, y) for lane, y in zip(lanes, heights, strict=True) if lane.name]
        for number, (heading, own) in enumerate(self.panels.items()):
            left = label + number * (width + gap)

            def across(value: float, left: float = left) -> float:
                return left + (value - low) * width / (high - low)

            for tick in svg.ticks(low, high, 5 if len(self.panels) < 2 else 3):
                x, grid = across(tick), "grid zero" if tick == 0 and low < 0 else "grid"
                marks += [svg.line(x, top, x, bottom, grid), svg.text(x, bottom + 14, self.axis.label(tick), "middle", "axis")]
            marks.append(svg.text(left, 16, visible(heading, 28)))
            for lane, y in zip(own, heights, strict=True):
                marks += _lane(lane, y, across)
        for number, (name, colour) in enumerate(self.legend):
            x, y = label - 90 + (number % 2) * 240, bottom + 36 + 16 * (number // 2)
            marks += [svg.dot(x, y - 4, svg.tone(colour), name), svg.text(x + 10, y, visible(name, 40))]
        height = bottom + 22 + (16 * math.ceil(len(self.legend) / 2) + 8 if self.legend else 0)
        return svg.drawing(label + len(self.panels) * (width + gap), height, self.title, marks)


def _name(lane: Lane, x: float, y: float) -> str:
    return svg.text(x, y + 4, visible(lane.name, _LABEL), "end", "faint" if lane.colour is None else "")


def _lane(lane: Lane, y: float, across: Place) -> Iterator[str]:
    name = svg.tone(lane.colour)
    crowded = len(lane.points) > 2
    for point in lane.points:
        figure = point.figure
        if figure.value is None:
            continue
        if not crowded and figure.low is not None and figure.high is not None:
            yield svg.line(across(figure.low), y, across(figure.high), y, name, 2)
        says = ": ".join(filter(None, [lane.name[:60], point.says, figure.full()]))
        kind = " hollow" if point.hollow else " many" if crowded else ""
        yield svg.dot(across(figure.value), y, name + kind, says, 2.6 if crowded else 4.5)
    if lane.mean is not None:
        yield svg.line(across(lane.mean), y - 5, across(lane.mean), y + 5, name, 2.5)


@dataclass(frozen=True)
class Spot:
    """A thing in a scatter: where it lies across (above zero), and its figure."""

    name: str
    across: float
    figure: Figure
    colour: int | None


@dataclass(frozen=True)
class Scatter:
    """Figures against what they cost, the latter in USD on a logarithmic axis."""

    title: str
    spots: Sequence[Spot]
    axis: Axis = PERCENT

    def svg(self) -> str:
        left, right, top, bottom = 46.0, 560.0, 14.0, 250.0
        low, high = self.axis.span([spot.figure for spot in self.spots])
        powers = [math.log10(spot.across) for spot in self.spots]
        first = math.floor(min(powers, default=0.0) - 0.1)
        last = max(first + 1, math.ceil(max(powers, default=0.0) + 0.1))

        def height(value: float) -> float:
            return bottom - (value - low) * (bottom - top) / (high - low)

        marks = []
        for tick in svg.ticks(low, high, 5):
            y = height(tick)
            marks += [svg.line(left, y, right, y, "grid"), svg.text(left - 6, y + 4, self.axis.label(tick), "end", "axis")]
        for power in range(first, last + 1):
            x = left + (power - first) / (last - first) * (right - left)
            price = f"${10.0**power:.{max(0, -power)}f}"
            marks += [svg.line(x, top, x, bottom, "grid"), svg.text(x, bottom + 18, price, "middle", "axis")]
        for spot, exponent in zip(self.spots, powers, strict=True):
            marks += _spot(spot, left + (exponent - first) / (last - first) * (right - left), height, (left + right) / 2)
        return svg.drawing(590, 290, self.title, marks)


def _spot(spot: Spot, x: float, height: Place, middle: float) -> Iterator[str]:
    name, figure, label = svg.tone(spot.colour), spot.figure, visible(spot.name, _LABEL)
    if figure.value is None:
        return
    if figure.low is not None and figure.high is not None:
        yield svg.line(x, height(figure.low), x, height(figure.high), name, 1.5)
    yield svg.dot(x, height(figure.value), name, f"{label}: {figure.full()} at ${spot.across:.5f} an answer")
    side = -1 if x > middle else 1
    yield svg.text(x + 10 * side, height(figure.value) + 4, label, "start" if side > 0 else "end", name)


@dataclass(frozen=True)
class Stacks:
    """What became of many things, a bar for each row: (name, {part: count}). `order` names the parts from left to right, the
    first of them fine; a legend says which is which, and the counts stand in a table beside it."""

    title: str
    rows: Sequence[tuple[str, Mapping[str, int]]]
    order: Sequence[str]

    def svg(self) -> str:
        left, right, top, step = 186.0, 566.0, 10.0, 20.0
        marks: list[str] = []
        for number, (name, parts) in enumerate(self.rows):
            y, x, whole = top + step * number, left, max(1, sum(parts.values()))
            marks.append(svg.text(left - 10, y + 11, visible(name, _LABEL), "end"))
            for index, part in enumerate(self.order):
                width = (right - left) * parts.get(part, 0) / whole
                if width:
                    hover = f"{name[:60]}: {part[:40]} {parts[part]:,} of {whole:,}"
                    marks.append(svg.box(x, max(0.4, width - 1), 14, _part(index), hover, y))
                x += width
        bottom = top + step * len(self.rows) + 8
        for index, part in enumerate(self.order):
            x, y = left - 90 + (index % 3) * 165, bottom + 12 + 17 * (index // 3)
            marks += [svg.box(x, 10, 10, _part(index), part, y - 9), svg.text(x + 15, y, visible(part, 22))]
        return svg.drawing(596, bottom + 20 + 17 * math.ceil(len(self.order) / 3), self.title, marks)


def _part(index: int) -> str:
    return "fine" if index == 0 else f"c{_FAULTS[(index - 1) % len(_FAULTS)]}"
