"""A study as a page: its gate and comparisons against the margin, every seed of every arm, and the way there."""

from __future__ import annotations

from pathlib import Path

from t2t_core.report.arm_curves import curves, require_finished, seeds_chart
from t2t_core.report.charts import POINTS, Dots, Lane, Point
from t2t_core.report.document import Block, Charts, Document, Paragraph, Section
from t2t_core.report.figures import Figure
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.study.comparing import StudyResult
from t2t_core.study.study_document import ROLES, study_document


def study_page(path: Path | SafePath) -> Document:
    """The page of a finished study's folder. Raises T2TError if it is none."""
    folder = SafePath.of(path)
    result = folders.read_record(require_finished(folder, "study.json", "study"), StudyResult)
    made = study_document(result)
    lanes = [
        Lane(f"{d.arm} - {d.against}", [Point(Figure(d.value, d.low, d.high, 1, 1, signed=True), says=ROLES[d.role])], number)
        for number, d in enumerate(result.differences)
    ]
    margin = f"The margin within which a difference does not matter: {result.margin:g} points to either side of zero."
    drawn: list[Block] = [
        Charts([Dots("comparisons: percentage points, 95 % intervals", {"": lanes}, POINTS)]),
        Paragraph(margin, "soft"),
    ]
    scores = seeds_chart("score, %: a dot per seed, a bar at the mean", {arm.arm: arm.scores for arm in result.arms})
    sections = [Section("Comparisons at a glance", drawn), *made.sections, Section("Every seed", [Charts([scores])])]
    return Document(made.title, made.lead, [*sections, *curves(folder, [arm.arm for arm in result.arms])])
