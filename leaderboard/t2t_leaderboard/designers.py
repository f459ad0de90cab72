"""The leaderboard of designers: a row for every arm of every study, ranked only if configurations were shown to matter.

A row's figure is what a designer gained over `fixed`, the same start without any design, in percentage points per million tokens
of training and design. Controls are shown and have no rank. The rows of a study whose gate did not hold, or that has none, are
shown but not ranked: a small study that could not tell designers apart takes nothing from a larger one that could.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.report.charts import POINTS, Dots, Lane, Point
from t2t_core.report.document import Block, Charts, Column, Document, Paragraph, Row, Section, Table
from t2t_core.report.figures import Figure
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.study.comparing import ArmResult, StudyResult

PROFILE = ("cells_rewritten", "loud_over_informative", "share_near_boundary", "centre_shift", "distance_to_round_0")
CONTROLS = ("fixed", "schedule", "shuffled", "mislabelled", "comfort-zone", "too-hard")  # docs/designers.md says what each is for
_NOTE = (
    "Gain: percentage points over fixed from the same round 0, paired on the instances, 95 % interval over seeds and "
    "instances. Per million: of tokens of training and design. Every interval stands for itself; the study has the tests."
)
_OVER_WORLDS = (
    "Percentage points over fixed, 95 % intervals; –: not run there; no lever: the gate did not hold, so nothing can be said. "
    "Worlds differ in how far a design can move them: compare within a column."
)


@dataclass(frozen=True)
class Entry:
    """One arm of a study, and whether its study's gate held (None: it has none)."""

    study: StudyResult
    arm: ArmResult

    @property
    def leverage(self) -> bool | None:
        """Whether the study's gate held; None if it planned none."""
        return self.study.leverage

    @property
    def control(self) -> bool:
        """Whether this arm is what designers are compared with, and so has no rank."""
        return self.arm.designer.split(":")[0] in CONTROLS

    @property
    def per_million(self) -> Figure:
        """The gain per million tokens, with its interval."""
        millions = (self.arm.tokens + self.arm.design_tokens) / 1e6
        ends = (self.arm.gain, self.arm.gain_low, self.arm.gain_high)
        value, low, high = (None if end is None or not millions else end / millions for end in ends)
        return Figure(value, low, high, 1, 1, signed=True)


def read_studies(paths: Sequence[Path]) -> list[StudyResult]:
    """The results in study folders, each plan's once.

    Raises:
        T2TError: a folder holds no finished study, or two hold the same one.
    """
    first_of: dict[tuple[str, str, str], Path] = {}
    studies = []
    for path in paths:
        file = SafePath(path) / "study.json"
        if not file.exists():
            raise T2TError("there is no finished study", where=str(path), next="t2t sweep --plan FILE --out DIR makes one")
        study = folders.read_record(file, StudyResult)
        key = (study.world, study.start, study.plan)
        if key in first_of:
            raise T2TError("the same plan's study is here twice", where=str(path), cause=f"it is in {first_of[key]} too")
        first_of[key] = path
        studies.append(study)
    return studies


def entries(studies: Sequence[StudyResult]) -> dict[tuple[str, str], list[Entry]]:
    """World and start -> the arms that designed, the highest gain per token first; arms without a gain last."""
    tables: dict[tuple[str, str], list[Entry]] = {}
    for study in studies:
        rows = [Entry(study, arm) for arm in study.arms if arm.gain is not None]
        tables.setdefault((study.world, study.start), []).extend(rows)
    return {setting: sorted(rows, key=lambda entry: -(entry.per_million.value or 0.0)) for setting, rows in tables.items()}


def leaderboard(studies: Sequence[StudyResult]) -> Document:
    """The page: a table and a chart per world and start, then how each designer designed."""
    tables = entries(studies)
    if not any(tables.values()):
        raise T2TError("no study has an arm beside `fixed`", next='a plan needs an arm with designer = "fixed" and others')
    sections = [Section(f"{world}, start: {start}", _blocks(rows)) for (world, start), rows in tables.items() if rows]
    if len(tables) > 1:
        sections.append(Section("What each is good at", [_over_worlds(tables), Paragraph(_OVER_WORLDS, "soft")]))
    said = Paragraph("Means over design steps and seeds; t2t analyze has the formulas.", "soft")
    sections.append(Section("How they designed", [_profiles(tables), said]))
    ranked = sum(any(row.leverage for row in rows) for rows in tables.values())
    lead = f"Studies: {len(studies)}. The gate held, and designers are ranked, in {ranked} of {len(tables)} worlds and starts."
    return Document("Designers", [Paragraph(lead), Paragraph(_NOTE, "soft")], sections)


def _blocks(rows: Sequence[Entry]) -> list[Block]:
    ranked, others = [row for row in rows if row.leverage], [row for row in rows if not row.leverage]
    return [*(_part(ranked, held=True) if ranked else []), *(_part(others, held=False) if others else [])]


def _part(rows: Sequence[Entry], held: bool) -> list[Block]:
    blocks: list[Block] = [] if held else [Paragraph(_unranked(rows), "bad")]
    blocks += [Paragraph(f"Gate: {text}.", "soft") for text in dict.fromkeys(_gate(row.study) for row in rows) if text]
    blocks.append(_table(rows, held))
    lanes = [Lane(row.arm.arm, [Point(_gain(row.arm))], number) for number, row in enumerate(rows)]
    return [*blocks, Charts([Dots("minus fixed: percentage points, 95 % intervals", {"": lanes}, POINTS)])]


def _gate(study: StudyResult) -> str:
    """What the gate compared, and whether it held."""
    tested = [d for d in study.differences if d.role in ("gate", "same")]
    return "; ".join(f"{d.arm} minus {d.against} {Figure(d.value, d.low, d.high, 1, 1, signed=True).full()}" for d in tested)


def _gain(arm: ArmResult) -> Figure:
    return Figure(arm.gain, arm.gain_low, arm.gain_high, 1, 1, signed=True)


def _unranked(rows: Sequence[Entry]) -> str:
    if any(row.leverage is False for row in rows):
        return "No leverage at this budget: the gate did not hold, so the rows stand in no order of merit."
    return "No gate was planned, so nobody knows whether configurations matter here: the rows stand in no order of merit."


def _name(row: Entry) -> str:
    designer = row.arm.designer
    if designer.startswith("schedule:"):
        designer = "given"
    return row.arm.arm if row.arm.arm == designer else f"{row.arm.arm} ({designer})"


def _table(rows: Sequence[Entry], held: bool) -> Table:
    costs = ("tokens", "design tokens", "design USD")
    titles = ("seeds", "gain per million", "gain", "score", "worst quarter", "forgetting", *costs)
    figures_of = [Column(title, total=title == "gain per million") for title in titles]
    columns = [Column("designer", words=True), *([Column("rank")] if held else []), *figures_of]
    made, ranks = [], count(1)
    for row in rows:
        arm, rank = row.arm, "control" if row.control else str(next(ranks))
        figures = [
            row.per_million,
            _gain(arm),
            Figure(arm.mean, arm.low, arm.high, 1, 1),
            Figure(arm.worst_quarter, digits=1),
            Figure(arm.forgetting, digits=1),
            Figure(arm.tokens, digits=0),
            Figure(arm.design_tokens, digits=0),
            Figure(arm.design_usd, digits=4),
        ]
        made.append(Row([_name(row), *([rank] if held else []), str(len(row.study.seeds)), *figures]))
    return Table(columns, made)


def _over_worlds(tables: dict[tuple[str, str], list[Entry]]) -> Table:
    """A designer's gains over the worlds and starts, those of the widest profile first. Controls that stand for one plan alone,
    its schedules, are left out."""
    gains: dict[str, dict[tuple[str, str], Figure | str]] = {}
    for setting, rows in tables.items():
        for row in rows:
            if row.arm.designer.startswith("schedule:"):
                continue
            known = gains.setdefault(row.arm.designer, {})
            if row.leverage:
                known[setting] = _gain(row.arm)
            else:
                known.setdefault(setting, "no lever")
    columns = [Column("designer", words=True), *(Column(f"{world}, {start}") for world, start in tables)]
    order = sorted(gains, key=lambda designer: -len(gains[designer]))
    return Table(columns, [Row([designer, *(gains[designer].get(setting, "–") for setting in tables)]) for designer in order])


def _profiles(tables: dict[tuple[str, str], list[Entry]]) -> Table:
    columns = [Column("designer", words=True), Column("world", words=True), *(Column(name.replace("_", " ")) for name in PROFILE)]
    rows = [
        Row([_name(row), f"{world}, {start}", *(Figure(row.arm.behaviour.get(name), digits=2) for name in PROFILE)])
        for (world, start), profiles in tables.items()
        for row in profiles
    ]
    return Table(columns, rows)
