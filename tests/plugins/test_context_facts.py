"""Every fact has one section: if a fact changes in a state or in the files of a run, only its own section changes."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import lake
from t2t_core.cli import cli
from t2t_core.hookspecs import RoundState
from t2t_core.loop import context
from t2t_core.plugins import installed
from t2t_core.records import Response, Round, Scored

pytestmark = pytest.mark.usefixtures("lake_plugins")
SPECS = ("V1", "V2", "V3", "V4", "V5", "V6", "F,G,H,S,T:full", "T,S,H:no_round_0,last=2,G,F:examples=1", "F:examples=0,S")
SHOWN = ("answers", "valid", "optimal", "first_failures")


def configuration(shift: float) -> dict[str, dict[str, float]]:
    return {g: {"data_ratio": 0.5, "hole_ratio": 0.1 + shift, "wait_ratio": 0.5 - shift} for g in lake.GROUPS}


def facts() -> dict[str, Any]:
    """A state as plain JSON, so that every leaf of it is a fact to change."""
    return {
        "guideline": "Train where about half succeeds.",
        "rounds": [
            {"configuration": configuration(0.05 * i), "breakdown": lake.breakdown(2 + i, 1 + i), "summary": f"reason {i}"}
            for i in range(4)
        ],
        "answers": ["no idea", "no idea at all"],
        "bookkeeping": {"round_index": 3, "rounds": 5, "epochs_per_round": 3, "total_epochs": 15},
        "training": {"algorithm": "GRPO", "learning_rate": 2e-6, "group": 8},
    }


def state(known: Mapping[str, Any]) -> RoundState:
    testbed = lake.Lake()
    testbed.guideline = known["guideline"]
    rounds = [Round(i, r["configuration"], r["breakdown"], r["summary"]) for i, r in enumerate(known["rounds"])]
    asked = [lake.Number(f"n{i}", "3", 70 + i, 70 + i) for i in range(len(known["answers"]))]
    answers = [Scored(n, 0, Response(t), testbed.verify(n, t)) for n, t in zip(asked, known["answers"], strict=True)]
    return RoundState(testbed, rounds, answers, known["bookkeeping"], known["training"], testbed.knobs(None))


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*at, key))
    else:
        yield at


LEAVES = list(leaves(facts()))


def changed(place: tuple[Any, ...]) -> dict[str, Any]:
    known = copy.deepcopy(facts())
    *inner, last = place
    node: Any = known
    for step in inner:
        node = node[step]
    old = node[last]
    node[last] = f"{old}, too" if isinstance(old, str) else old + (1 if isinstance(old, int) else 0.25)
    return known


def owner(place: tuple[Any, ...]) -> str:
    """The letter of the module that states a fact; "" if none does."""
    kind, *rest = place
    if kind != "rounds":
        return {"guideline": "G", "answers": "F", "bookkeeping": "T", "training": "T"}[kind]
    latest = rest[0] == 3
    if rest[1] == "summary":
        return "S" if latest else ""
    if rest[1] == "configuration":
        return "" if latest else "H"  # the configuration in force stands in the task statement
    told = rest[2] == "groups" and rest[4] in SHOWN
    return ("F" if latest else "H") if told else ""


def tells(spec: str, place: tuple[Any, ...]) -> bool:
    """Whether a module with these options tells that fact of its own."""
    if place[0] == "training":
        return "full" in spec
    if place[0] == "answers":
        return place[1] < int(spec.partition("examples=")[2] or 2)
    if place[0] == "rounds" and place[1] < 3 and spec.startswith("H"):
        hidden = "no_round_0" in spec and place[1] == 0 and place[2] == "configuration"
        return not hidden and place[1] >= 3 - int(spec.partition("last=")[2] or 3)
    return True


@given(st.sampled_from(LEAVES), st.sampled_from(SPECS))
@settings(max_examples=300, deadline=None)
def test_whichever_fact_is_changed_its_own_section_alone_changes(place: tuple[Any, ...], spec: str) -> None:
    named = context.modules(spec, installed().contexts)
    before, after = state(facts()), state(changed(place))
    old, new = ({s.spec: s for s in context.sections(named, record)} for record in (before, after))
    moved = [name for name in old if old[name] != new[name]]
    assert moved == [n for n in old if n[0] == owner(place) and tells(n, place)], place
    prompts = [context.prompt(named, record, lake.Setting(configuration(0)), lake.Wanted(10)) for record in (before, after)]
    for name in moved:
        prompts[0] = prompts[0].replace(old[name].text, new[name].text)
    assert prompts[0] == prompts[1]


def test_every_module_owns_some_fact() -> None:
    assert {owner(place) for place in LEAVES} == {*"FGHST", ""}


# --- the files of a run

CONFIGURATION = """
testbed = "lake"
policy = "repeater"
designer = "rule"
context = "F,G,H,S,T:full"
rounds = 3
[generation]
samples = 10
[training]
epochs = 3
[validation]
set = "validation"
"""


def t2t(*arguments: Any) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def run(folder: Path) -> Path:
    path = folder / "lake.toml"
    path.write_text(CONFIGURATION)
    t2t("run", "--config", path, "--out", folder / "run")
    return folder / "run"


def sections(text: str) -> dict[str, str]:
    return dict(part.partition("\n")[::2] for part in text.split("\n## "))


def edit(path: Path, *place: str) -> None:
    data = json.loads(path.read_text())
    node = data
    for step in place[:-1]:
        node = node[step]
    old = node[place[-1]]
    node[place[-1]] = f"{old}, too" if isinstance(old, str) else old + 1
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("file", "place", "title"),
    [
        ("round_1/breakdown.json", ("groups", "3", "valid"), "Latest validation"),
        ("round_0/breakdown.json", ("groups", "3", "valid"), "Earlier rounds"),
        ("round_0/proposal.json", ("summary",), "Your explanation of the configuration in force"),
        ("run.json", ("settings", "training", "epochs"), "Training"),
    ],
)
def test_in_a_run_too_one_file_one_section(tmp_path: Path, file: str, place: tuple[str, ...], title: str) -> None:
    folder = run(tmp_path)
    before = t2t("design", "--run", folder, "--round", 1, "--show-context")
    assert before == (folder / "round_1" / "context.md").read_text()
    edit(folder / file, *place)
    after = sections(t2t("design", "--run", folder, "--round", 1, "--show-context"))
    assert [name for name, text in sections(before).items() if after[name] != text] == [title]


def test_a_new_module_is_one_file_with_a_title_and_a_render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weather.py").write_text(
        'class Weather:\n    title = "Weather"\n\n    def render(self, state, compact):\n'
        '        return "sun" if compact else f"sunny after round {state.rounds[-1].index}"\n\n\n'
        "def make(argument, settings):\n    return Weather()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "weather", raising=False)  # of another test
    registry = installed().contexts
    registry.add("weather", "weather:make", "the weather")
    try:
        folder = run(tmp_path)
        without = sections(t2t("design", "--run", folder, "--round", 1, "--show-context"))
        named = sections(t2t("design", "--run", folder, "--round", 1, "--show-context", "--context", "F,G,weather,H,S,T:full"))
        assert named.pop("Weather").strip() == "sunny after round 1"
        assert named == without and list(named) == list(without)
        modules = context.modules("F,weather", registry)
        assert context.compact(modules, replace(state(facts())))[1] == "sun"
    finally:
        del registry.entries["weather"]
