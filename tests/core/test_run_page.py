"""The page of a run: curves with designs as events, heat maps of what changed, words beside edits, failures, examples, costs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.records import Proposal, TrainingResult
from t2t_core.report import html
from t2t_core.report.document import Beside, Charts, Document, Example, Table, Words
from t2t_core.report.learning import learning_charts
from t2t_core.report.run_page import page_document
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter

pytestmark = pytest.mark.usefixtures("lake_plugins")
UPDATES = 6
SETTINGS = {"testbed": "lake", "policy": "repeater", "generation": {"samples": 10}, "validation": {"set": "validation"}}


class Telling:
    def train(self, job: Any) -> TrainingResult:
        for update in range(1, UPDATES + 1):
            at = update + 10 * job.round_index
            figures = {"reward": at / 100, "entropy": 1 / at, "kl": 0.01 * at, "novel": -at}
            job.progress({"update": update, "updates": UPDATES, **figures})
        return TrainingResult(job.checkpoint, {}, 80, UPDATES, 1000)


class Speaking:
    """Says what it does; one of its two edits lies beyond the bounds and is corrected."""

    def propose(self, brief: Any) -> Proposal:
        proposed = brief.previous.to_dict()
        proposed["3"]["hole_ratio"], proposed["4"]["wait_ratio"] = 0.9, 0.25
        return Proposal("raw reply", proposed, "Lakes of size 3 need more holes.")


@pytest.fixture
def document(tmp_path: Path) -> Iterator[Document]:
    installed().trainers.add("telling-curves", lambda argument, settings: Telling())
    installed().designers.add("speaking", lambda argument, settings: Speaking())
    experiment = Experiment.from_dict(SETTINGS | {"trainer": "telling-curves", "designer": "speaking", "rounds": 3})
    run_experiment(experiment, tmp_path / "run", Reporter(), with_control=True)
    yield page_document(tmp_path / "run")
    del installed().trainers.entries["telling-curves"], installed().designers.entries["speaking"]


def section(document: Document, title: str) -> Any:
    return next(candidate for candidate in document.sections if candidate.title.startswith(title))


def charts(made: Any) -> dict[str, Any]:
    return {chart.title: chart for block in made.blocks if isinstance(block, Charts) for chart in block.charts}


def test_every_figure_of_training_is_a_curve_over_the_whole_run_with_its_designs(document: Document) -> None:
    first, more = charts(section(document, "Learning curves")), charts(section(document, "More learning curves"))
    assert [*first, *more] == [f"{name}, mean per update" for name in ("reward", "entropy", "kl", "novel")] and len(more) == 1
    reward = first["reward, mean per update"]
    assert [series.name for series in reward.series] == ["designed", "control"]
    assert [f.value for f in reward.series[0].points] == [round(u / 100 + r / 10, 9) for r in range(3) for u in range(1, 7)]
    assert [(event.at, event.name) for event in reward.events] == [(5, "design 0"), (11, "design 1")]
    assert "design 1" in html.render(document)


def test_a_long_run_is_shown_by_the_means_of_neighbours() -> None:
    lines = [{"update": n, "reward": float(n)} for n in range(1000)]
    ((chart,), others) = learning_charts({"designed": [(0, lines), (1, lines)]}, [0])
    assert not others and chart.title == "reward, mean per 17 updates"
    assert len(chart.positions) == len(chart.series[0].points) <= 120
    assert chart.series[0].points[0].value == 8.0 and chart.events[0].at == 999 // 17


def test_configurations_are_heat_maps_that_mark_what_changed(document: Document) -> None:
    (beside,) = [block for block in section(document, "Configurations").blocks if isinstance(block, Beside)]
    tables = {part[0].title: part[0] for part in beside.parts if isinstance(part[0], Table)}
    assert list(tables) == ["data ratio", "hole ratio", "wait ratio"]
    row = next(row for row in tables["hole ratio"].rows if row.cells[0] == "3")
    _, start, changed, after = row.cells
    assert not start.changed and changed.changed and changed.heat == 1.0 and changed.text() == "50.0 %"
    assert changed.note == f"{50 - start.value:+.1f}" and not after.changed and not after.note
    assert re.search(r'class="h10 changed"[^>]*>50\.0 %<small>\+', html.render(document))


def test_the_designers_words_stand_beside_its_edits_and_their_corrections(document: Document) -> None:
    made = section(document, "Design after round 0")
    (beside,) = [block for block in made.blocks if isinstance(block, Beside)]
    words, (edits, corrected) = beside.parts
    assert "Lakes of size 3 need more holes." in [getattr(block, "text", "") for block in words]
    assert [row.cells[0] for row in edits.rows] == ["3 hole ratio", "4 wait ratio"]
    assert edits.rows[1].cells[2].text() == "25.0 %"
    assert corrected.title == "Corrected by Project" and "0.9" in str(corrected.rows[0]) and "0.5" in str(corrected.rows[0])
    assert {"What the designer saw", "Its reply"} <= {getattr(block, "title", "") for block in made.blocks}


def test_failures_stand_by_round_and_by_group_and_examples_are_there(document: Document) -> None:
    made = section(document, "Failures")
    by_round, by_group = charts(made).values()
    assert [name for name, _ in by_round.rows] == ["round 0", "round 1", "round 2"] and by_group.order == ["valid", "right"]
    assert {name: sum(parts.values()) for name, parts in by_group.rows} == {"3": 6, "4": 6}
    examples = [block for block in section(document, "Examples from round 2").blocks if isinstance(block, Example)]
    assert {entry.judged for entry in examples} == {"optimal", "not valid, fails: right"}
    assert any("another number" in text for entry in examples for _, text in entry.said)


def test_costs_stand_round_by_round(document: Document) -> None:
    table = next(block for block in section(document, "Costs").blocks if isinstance(block, Table))
    assert [row.cells[:5] for row in table.rows] == [[str(n), "10", "80", "6", "1,000"] for n in range(3)]
    assert not any(isinstance(cell, Words) for row in table.rows for cell in row.cells)


def test_what_is_no_run_has_no_report_and_an_unfinished_sweep_says_so(tmp_path: Path) -> None:
    for kind, says in (("bench", "no page for a 'bench'"), (7, "no page for a 7"), ("sweep", "the sweep is not finished")):
        (tmp_path / "run.json").write_text(json.dumps({"format": 1, "kind": kind}))
        result = CliRunner().invoke(cli, ["report", str(tmp_path)])
        assert isinstance(result.exception, T2TError) and says in str(result.exception)
    (tmp_path / "leaderboard.html").write_text("a page")
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "kind": "bench"}))
    error = CliRunner().invoke(cli, ["report", str(tmp_path)]).exception
    assert isinstance(error, T2TError) and f"open {tmp_path}/leaderboard.html" in error.next


def test_a_run_without_training_and_designs_has_a_page_too(tmp_path: Path) -> None:
    experiment = Experiment.from_dict(SETTINGS | {"trainer": "none", "designer": "fixed", "rounds": 1})
    run_experiment(experiment, tmp_path, Reporter())
    titles = [item.title for item in page_document(tmp_path).sections]
    assert "Learning curves" not in titles and "Configurations" in titles
    assert not any(title.startswith("Design after") for title in titles)
