"""What trackers receive from a run, shown with one that writes it down: every update, round and design, and the bench; and what
happens if a tracker fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from t2t_core.errors import NotReady, T2TError
from t2t_core.loop.preparation import prepare
from t2t_core.loop.rounds import Loop
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.records import TrainingResult
from t2t_core.run import tracking
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter

pytestmark = pytest.mark.usefixtures("lake_plugins")
EXPERIMENT = Experiment.from_dict(
    {
        "testbed": "lake",
        "policy": "repeater",
        "trainer": "counting",
        "designer": "rule",
        "rounds": 2,
        "report_to": "notebook",
        "generation": {"samples": 20, "agents": 2},
        "validation": {"set": "validation", "limit": 4},
        "evaluation": {"limit": 2},
    }
)


class Notebook:
    """Writes down what it gets; `fails` names the method that does not work."""

    def __init__(self, pages: list[tuple[Any, ...]], fails: str = "", error: Exception | None = None) -> None:
        self.pages, self.fails, self.error = pages, fails, error

    def _add(self, *page: Any) -> None:
        if page[0] == self.fails:
            raise self.error or OSError("no more paper")
        self.pages.append(page)

    def begin(self, run: Any) -> str:
        self._add("begin", run.id, run.name, run.settings["designer"])
        return "on the desk"

    def figures(self, axis: str, step: int, figures: Mapping[str, float]) -> None:
        self._add("figures", axis, step, dict(figures))

    def event(self, step: int, title: str, text: str) -> None:
        self._add("event", step, title, text)

    def end(self) -> None:
        self._add("end")


class Counting:
    """Tells figures of three updates, among them what no tracker can show."""

    def train(self, job: Any) -> TrainingResult:
        for update in (1, 2, 3):
            odd = {"warnings": ["!"], "kl": float("nan"), "entropy": None}
            job.progress({"update": update, "updates": 3, "reward": update / 2, "eta_seconds": 1.0, **odd})
        return TrainingResult(None, updates=3, samples=12)


@pytest.fixture
def notebook() -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    def add(**how: Any) -> list[tuple[Any, ...]]:
        pages: list[tuple[Any, ...]] = []
        installed().trackers.entries.pop("notebook", None)
        installed().trackers.add("notebook", lambda argument, settings: Notebook(pages, **how))
        return pages

    installed().trainers.add("counting", lambda argument, settings: Counting())
    yield add
    installed().trackers.entries.pop("notebook", None)
    del installed().trainers.entries["counting"]


def test_updates_are_counted_over_rounds_and_rounds_tell_rates_knobs_and_designs(notebook: Any, tmp_path: Path) -> None:
    pages, notes = notebook(), list[str]()
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter(notes.append))
    updates = [(step, figures) for _, axis, step, figures in of(pages, "figures") if axis == "update"]
    assert updates == [(step, {"reward": (1 + (step - 1) % 3) / 2}) for step in range(1, 7)]
    rounds = {step: {} for step in (0, 1)}
    for _, axis, step, figures in of(pages, "figures"):
        if axis == "round":
            rounds[step] |= figures
    for figures in rounds.values():
        assert 0 <= figures["valid/all"] <= 1 and sum(name.startswith("valid/") for name in figures) > 1
        assert any(name.startswith("configuration/") and name.count("/") == 2 for name in figures)
    assert rounds[0]["design/proposed"] == 1 and "design/proposed" not in rounds[1]
    assert any(name.startswith("bench/") and name.endswith("/designed") for name in rounds[1])
    (event,) = of(pages, "event")
    changed = rounds[0]["design/changes"]
    assert event[1:3] == (0, "design after round 0") and event[3].startswith("rule: proposed")
    assert changed > 0 and event[3].count(" → ") >= changed
    assert pages[0][0] == "begin" and pages[-1] == ("end",) and any("notebook: on the desk" in note for note in notes)


def test_a_run_that_goes_on_is_the_same_to_its_trackers_and_a_finished_one_bothers_none(
    notebook: Any, tmp_path: Path
) -> None:
    first = notebook()
    with pytest.raises(T2TError, match="designer"):
        run_experiment(replace(EXPERIMENT, designer="nobody"), tmp_path / "run", Reporter())
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    (tmp_path / "run" / "round_1" / "breakdown.json").unlink()
    second = notebook()
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    assert second[0][:2] == first[0][:2] and {page[2] for page in of(second, "figures")} == {1}
    third = notebook()
    run_experiment(replace(EXPERIMENT, report_to="none"), tmp_path / "run", Reporter())
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    assert third == []


def test_the_control_is_a_run_of_its_own_with_the_round_that_it_shares(notebook: Any, tmp_path: Path) -> None:
    pages = notebook()
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter(), with_control=True)
    begun = of(pages, "begin")
    assert [page[2].rpartition("/run")[2] for page in begun] == ["", "/control"] or begun[1][2] == "run/control"
    assert [page[3] for page in begun] == ["rule", "fixed"] and begun[0][1] != begun[1][1]
    own = pages[pages.index(begun[1]) :]
    own = own[: own.index(("end",))]
    assert [page[2] for page in of(own, "figures") if page[1] == "update"] == [1, 2, 3, 4, 5, 6]
    assert [page[2] for page in of(own, "figures") if "valid/all" in page[3]] == [0, 1]


@pytest.mark.parametrize("method", ["begin", "figures", "event", "end"])
def test_a_tracker_that_fails_is_named_and_the_run_goes_on(notebook: Any, tmp_path: Path, method: str) -> None:
    notebook(fails=method)
    notes: list[str] = []
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter(notes.append))
    told = [note for note in notes if "figures go to notebook" in note]
    assert len(told) == 1 and "no more paper" in told[0]
    assert (tmp_path / "run" / "summary.json").exists()


def test_what_a_user_has_to_mend_ends_the_run_before_its_work(notebook: Any, tmp_path: Path) -> None:
    notebook(fails="begin", error=T2TError("you are not logged in", next="log in"))
    with pytest.raises(T2TError, match="not logged in"):
        run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    assert not (tmp_path / "run" / "round_0" / "instances.jsonl").exists()
    pages = notebook()
    run_experiment(EXPERIMENT, tmp_path / "run", Reporter())
    assert any("configuration" in name for page in of(pages, "figures") for name in page[3] if page[2] == 0)


def test_a_missing_library_is_one_sentence_and_no_mistake_of_a_dry_run(notebook: Any, tmp_path: Path) -> None:
    installed().trackers.add("far", "nowhere:Far", needs=["a_library_of_nobody"])
    try:
        asked = replace(EXPERIMENT, report_to="far")
        with pytest.raises(NotReady, match="the tracker far needs a_library_of_nobody") as error:
            run_experiment(asked, tmp_path / "run", Reporter())
        assert error.value.next == "pip install a_library_of_nobody, or report_to=none"
        assert not (tmp_path / "run").exists()
        prepare(asked, dry=True)
    finally:
        del installed().trackers.entries["far"]
    with pytest.raises(T2TError, match="there is no tracker called 'tensorbord'"):
        Loop(replace(EXPERIMENT, report_to="tensorbord"), tmp_path / "run", Reporter())


@pytest.mark.parametrize(
    ("report_to", "installed_here", "names"),
    [
        ("", True, []),
        ("none", True, []),
        ("auto", True, ["tensorboard"]),
        ("auto", False, []),
        ("auto wandb:mine,entity=us", False, ["wandb:mine,entity=us"]),
        ("tensorboard auto mlflow", True, ["tensorboard", "mlflow"]),
    ],
)
def test_auto_is_tensorboard_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, report_to: str, installed_here: bool, names: list[str]
) -> None:
    monkeypatch.setattr(tracking, "find_spec", lambda name: name if installed_here else None)
    assert tracking.tracker_specs(report_to) == names


def of(pages: list[tuple[Any, ...]], kind: str) -> list[tuple[Any, ...]]:
    return [page for page in pages if page[0] == kind]
