"""What a sweep came to, and how it reads: its arms over seeds, and their paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from t2t_core.report.charts import POINTS, Dots, Lane, Point
from t2t_core.report.document import Block, Charts, Column, Document, Paragraph, Row, Section, Table, spaced
from t2t_core.report.figures import Figure, points, share
from t2t_core.report.summary import Budget

BASE = "base"  # the arm that is not trained
_GIVEN = ("samples", "updates", "tokens", "design_tokens")


@dataclass(frozen=True)
class OverSeeds:
    """A share in every seed, their mean and its 95 % t interval (None for one seed)."""

    values: Sequence[float]
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ArmResult:
    """One arm over its seeds: final validation and bench rates, what it was given, and how many designs failed."""

    arm: str
    seeds: Sequence[int]
    figures: Mapping[str, OverSeeds]
    budget: Budget
    designs_failed: int


@dataclass(frozen=True)
class QuotedArm:
    """What a publication printed of its own arm that `arm` is named after, as percentages; it says so in its own `words`."""

    arm: str
    words: str
    source: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class SweepDifference:
    """An arm minus another on one set, as shares: pooled over seeds, paired on the instances; `seeds` has each seed's mean."""

    arm: str
    against: str
    set: str
    metric: str
    value: float
    low: float | None
    high: float | None
    df: float
    seeds: Sequence[float]


@dataclass(frozen=True)
class SweepResult:
    """`sweep.json`."""

    arms: Sequence[ArmResult]
    differences: Sequence[SweepDifference]
    unequal: Sequence[str]
    quoted: Sequence[QuotedArm] = ()


def sweep_document(result: SweepResult) -> Document:
    """The document of a sweep."""
    warnings = [Paragraph(f"UNEQUAL BUDGETS, the arms do not compare: {line}", "bad") for line in result.unequal]
    notes = [Paragraph("Percent; 95 % t interval over seeds.", "soft")]
    for source in dict.fromkeys(quoted.source for quoted in result.quoted):
        notes.append(Paragraph(f"Printed: {source}, by its own policy on its own instances, and of one run.", "soft"))
    sections = [Section("Arms", [*_arms(result.arms, result.quoted), *notes])]
    if result.differences:
        note = "Percentage points, paired on the instances; 95 % interval over seeds and instances, each comparison for itself."
        charts = Charts(_single(difference_charts(result.differences)))
        sections.append(Section("Differences", [_differences(result.differences), Paragraph(note, "soft"), charts]))
    return Document("Sweep", warnings, sections)


def _arms(arms: Sequence[ArmResult], quoted: Sequence[QuotedArm]) -> list[Block]:
    names = list(dict.fromkeys(name for arm in reversed(arms) for name in arm.figures))
    columns = [Column("arm", words=True), Column("seeds"), *(Column(name, total=True) for name in names)]
    rates = []
    for arm in arms:
        measured = (share(arm.figures[n]) if n in arm.figures else Figure(None) for n in names)
        rates.append(Row([arm.arm, str(len(arm.seeds)), *measured]))
        for printed in (quote for quote in quoted if quote.arm == arm.arm):
            figures = (Figure(printed.figures.get(n)) for n in names)
            rates.append(Row([f"printed: {printed.words}", Figure(None), *figures], "quoted"))
    given = [
        Row([a.arm, *(f"{asdict(a.budget)[k]:,}" if a.arm != BASE else Figure(None) for k in _GIVEN), str(a.designs_failed)])
        for a in arms
    ]
    budgets = [Column("arm", words=True), *(Column(spaced(k)) for k in _GIVEN), Column("failed designs")]
    return [Table(columns, rates), Table(budgets, given, "What each arm was given, over its seeds")]


def _differences(differences: Sequence[SweepDifference]) -> Table:
    """A row for every two arms, a column for every set and metric."""
    cells: dict[tuple[str, str], dict[str, Figure]] = {}
    for d in differences:
        cells.setdefault((d.arm, d.against), {})[f"{d.set} {d.metric}"] = points(d.value, d.low, d.high)
    names = list(dict.fromkeys(name for row in cells.values() for name in row))
    rows = [Row([f"{arm} - {against}", *(row.get(n, Figure(None)) for n in names)]) for (arm, against), row in cells.items()]
    return Table([Column("difference", words=True), *(Column(name, total=True) for name in names)], rows)


def _single(charts: Mapping[str, Dots]) -> list[Dots]:
    """A chart for each panel, as there is room for on a page; one where nothing differs is left out."""
    return [
        Dots(f"{panel}, minus {against}", {"": lanes}, POINTS)
        for against, chart in charts.items()
        for panel, lanes in chart.panels.items()
        if any(point.figure.value for lane in lanes for point in lane.points)
    ]


def difference_charts(differences: Sequence[SweepDifference]) -> dict[str, Dots]:
    """The paired differences as charts, one for each arm that the others are compared with."""
    panels: dict[str, dict[str, list[Lane]]] = {}
    for d in differences:
        lanes = panels.setdefault(d.against, {}).setdefault(f"{d.set} {d.metric}", [])
        lanes.append(Lane(d.arm, [Point(points(d.value, d.low, d.high))], len(lanes)))
    title = "minus {}: percentage points, 95 % intervals over seeds and instances"
    return {against: Dots(title.format(against), rows, POINTS) for against, rows in panels.items()}
