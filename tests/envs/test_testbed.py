"""The testbed plugin: what the core relies on, the breakdown's counts, instance files, and the commands show and solve."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core import hookspecs
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Place, Response, Scored
from t2t_core.testing import check_testbed
from t2t_envs.cli.show import show
from t2t_envs.cli.solve import solve as solve_command
from t2t_envs.frozen_lake import CHECKS, Instance, format_answer, read_instances, solve, verify, write_instances
from t2t_envs.frozen_lake.testbed import MAPFFrozenLake, make, parse_agents

BED: hookspecs.Testbed = MAPFFrozenLake()
LAKE = Instance(
    size=3,
    holes=[(0, 1)],
    starts=[(2, 0), (1, 0)],
    goals=[(1, 2), (2, 2)],
    id="page",
    optimal_makespan=3,
    optimal_sum_of_costs=6,
    requires_wait=False,
)
ANSWER = "Agent 0: (2,0) -> (2,1) -> (2,2) -> (1,2)\nAgent 1: (1,0) -> (1,1) -> (2,1) -> (2,2)"


@pytest.mark.thorough
def test_it_is_a_testbed() -> None:
    check_testbed(make(), solve=lambda instance: format_answer(solve(instance).paths))
    assert installed().testbeds.make("mapf-frozenlake").name == BED.name == "mapf-frozenlake"
    with pytest.raises(T2TError, match="no argument"):
        installed().testbeds.make("mapf-frozenlake:x")


def test_places() -> None:
    assert BED.place(LAKE) == Place("2 agents", "3x3", "3x3 holes=1 no-wait", "3")
    assert BED.place(replace(LAKE, requires_wait=True)).cell == "3x3 holes=1 wait"
    assert BED.place(LAKE.unlabelled()).cell == "3x3 holes=1"


def test_agents_choose_the_sets() -> None:
    (option,) = BED.options()
    assert list(BED.set_names({"agents": option.parse(option.default)})) == ["3agents", "4agents", "5agents"]
    assert list(BED.set_names({"agents": parse_agents("5, 3,5")})) == ["5agents", "3agents"]
    assert list(BED.set_names({"agents": (2,)})) == ["validation_2agents"]
    assert list(BED.set_names({})) == ["3agents", "4agents", "5agents"]
    with pytest.raises(T2TError, match="7 agents"):
        BED.set_names({"agents": (7,)})
    for text in ("", "3,", "x", "-1", "٣", "3.0", "9" * 50):
        with pytest.raises(T2TError, match="--agents"):
            parse_agents(text)


def test_metrics() -> None:
    response = Response(ANSWER, completion_tokens=40)

    def figures(instance: Instance, text: str) -> dict[str, float | None]:
        return {m.name: m.value(verify(instance, text), response) for m in BED.metrics}

    assert figures(LAKE, ANSWER) == {
        "valid": 1.0, "optimal": 1.0, "makespan_gap": 0, "trajectory_length": 6, "response_tokens": 40,
    }  # fmt: skip
    assert figures(LAKE, "no") == {
        "valid": 0.0, "optimal": 0.0, "makespan_gap": None, "trajectory_length": None, "response_tokens": 40,
    }  # fmt: skip
    slow = ANSWER.replace("(1,0) ->", "(1,0) -> (1,0) ->")
    other = replace(LAKE, objective="sum_of_costs")
    assert figures(other, slow)["makespan_gap"] == 1
    assert figures(LAKE.unlabelled(), ANSWER)["optimal"] is None


def test_requests_keep_protected_forms_out() -> None:
    protected = {i.canonical() for i in BED.load_set("validation_2agents").instances}
    assert BED.request(10).exclude == protected
    assert BED.request(10, agents=2, exclude=(), objective="sum_of_costs").exclude == frozenset()
    with pytest.raises(T2TError, match="unknown generation option"):
        BED.request(10, colour="red")


def scored(instance: Instance, text: str, **response: Any) -> Scored:
    return Scored(instance, 0, Response(text, **response), verify(instance, text))


def test_breakdown_counts() -> None:
    four = replace(LAKE, size=4, requires_wait=True, id="four")
    entries = [
        scored(four, "nothing"),
        scored(LAKE, ANSWER),
        scored(LAKE, ANSWER.replace("(2,0) ->", "(2,0) -> (2,0) ->")),  # now both stand on (2,1)
        scored(LAKE, "", error="timeout", finish_reason="error"),
        scored(LAKE, ANSWER.replace("(2,2) -> (1,2)", "(2,2)"), finish_reason="length"),
    ]
    facts = BED.breakdown(entries)
    assert facts == BED.breakdown(entries[::-1])
    assert json.loads(json.dumps(facts)) == facts
    assert list(facts) == ["total", "groups", "agents", "cells"]
    assert list(facts["groups"]) == ["3", "4"]
    assert list(facts["agents"]) == ["2"]
    assert list(facts["cells"]) == ["3x3 holes=1 no-wait", "4x4 holes=1 wait"]
    three = facts["groups"]["3"]
    assert {k: three[k] for k in ("answers", "valid", "optimal", "errors", "truncated")} == {
        "answers": 4, "valid": 1, "optimal": 1, "errors": 1, "truncated": 1,
    }  # fmt: skip
    assert list(three["first_failures"]) == list(three["failures"]) == list(CHECKS)
    # the delayed agent collides; the one that stops early ends on the other's goal: it collides too, and misses its own
    assert {k: v for k, v in three["first_failures"].items() if v} == {"conflict_free": 2}
    assert {k: v for k, v in three["failures"].items() if v} == {"conflict_free": 2, "goal_reached": 1}
    assert facts["total"]["first_failures"]["parsable"] == 1
    assert all(count == 1 for count in facts["groups"]["4"]["failures"].values())


def test_the_guideline_names_no_round_and_no_number_of_this_one() -> None:
    assert 300 < len(BED.guideline) < 2000
    assert "hole ratio" in BED.guideline


# --- instance files


def test_files_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "lakes.jsonl"
    write_instances(path, [LAKE, replace(LAKE, id="other", size=4)])
    assert read_instances(path) == [LAKE, replace(LAKE, id="other", size=4)]
    assert [p.name for p in tmp_path.iterdir()] == ["lakes.jsonl"]


LINE = json.dumps(LAKE.to_dict())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (LINE, "line 1 too"),
        (LINE[:-5], "line 2"),
        ("[" * 100_000, "line 2"),
        ('{"a":' * 100_000, "line 2"),
        (LINE.replace("3,", "9" * 10_000 + ",", 1), "line 2"),
        (LINE.replace("3,", "NaN,", 1), "line 2"),
        (LINE.replace('"size"', '"size": 3, "size"'), "line 2"),
        (LINE.replace('"page"', '"\\u001b[31m"'), "line 2"),
        ("[1, 2]", "line 2"),
        ("\x00", "line 2"),
        (LINE.replace("page", "other").replace('"starts": [[2, 0]', '"starts": [[0, 1]'), "is a hole"),
    ],
)
def test_hostile_lines_are_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "lakes.jsonl"
    path.write_text(f"{LINE}\n{line}\n")
    with pytest.raises(T2TError) as caught:
        read_instances(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(T2TError, match="cannot be read"):
            read_instances(path)


# --- commands


def run(command: Any, *arguments: object, stdin: str | bytes | None = None) -> tuple[Any, str]:
    """A command's result status and what it printed; T2TError as the command raises it."""
    result = CliRunner().invoke(command, [str(a) for a in arguments], input=stdin, standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.return_value, result.output


@pytest.fixture
def lakes(tmp_path: Path) -> Path:
    path = tmp_path / "lakes.jsonl"
    blocked = Instance(size=3, holes=[(0, 1), (1, 1), (2, 1)], starts=[(0, 0)], goals=[(0, 2)], id="blocked")
    write_instances(path, [LAKE, replace(LAKE.unlabelled(), id="bare"), blocked])
    return path


def test_solve_labels_and_checks(lakes: Path, tmp_path: Path) -> None:
    status, text = run(solve_command, lakes, "--out", tmp_path / "out.jsonl")
    assert status == 0
    assert "bare  optimal_makespan=3 optimal_sum_of_costs=6 requires_wait=false" in text
    assert "blocked  has no solution (proven)" in text
    assert "3 instances; 0 wrong labels, 0 undecided, 1 without a solution" in text
    solved = read_instances(tmp_path / "out.jsonl")
    assert solved[:2] == [LAKE, replace(LAKE, id="bare")]


@pytest.mark.parametrize("label", [{"optimal_makespan": 2}, {"optimal_sum_of_costs": 7}, {"requires_wait": True}])
def test_solve_flags_wrong_labels(tmp_path: Path, label: dict[str, Any]) -> None:
    write_instances(tmp_path / "wrong.jsonl", [replace(LAKE, **label)])
    status, text = run(solve_command, tmp_path / "wrong.jsonl")
    assert status == 1
    assert f"WRONG LABEL stored: {next(iter(label))}" in text


def test_solve_says_what_it_could_not_decide(tmp_path: Path) -> None:
    cells = [(r, c) for r in range(6) for c in range(6)]
    hard = Instance(size=6, holes=[], starts=cells[:5], goals=cells[:5][::-1], id="hard")
    write_instances(tmp_path / "hard.jsonl", [hard])
    status, text = run(solve_command, tmp_path / "hard.jsonl", "--max-nodes", 1, "--out", tmp_path / "out.jsonl")
    assert status == 0
    assert "undecided within the node limit" in text
    assert "1 undecided" in text
    assert read_instances(tmp_path / "out.jsonl")[0].optimal_sum_of_costs is None, "never guessed"


def test_show_answers(lakes: Path, tmp_path: Path) -> None:
    _, text = run(show, f"{lakes}#page", "--answer", "-", stdin=f"<answer>{ANSWER}</answer>\x1b]0;evil\x07")
    assert "valid, optimal; makespan 3, sum of costs 6" in text
    assert "\x1b" not in text
    recorded = {"instance": "page", "sample": 0, "text": "Agent 0: (2,0) -> (9,9)"}
    (tmp_path / "answers.jsonl").write_text(json.dumps(recorded) + "\n")
    _, text = run(show, lakes, "--id", "page", "--answer", tmp_path / "answers.jsonl")
    assert "FAIL  in_bounds: agent 0 leaves the grid at step 1, on (9,9)" in text
    with pytest.raises(T2TError, match="no answer"):
        run(show, lakes, "--id", "bare", "--answer", tmp_path / "answers.jsonl")
    _, text = run(show, lakes, "--id", "page", "--answer", "-", stdin=b"\xff\xfe")
    assert "FAIL  parsable" in text


def test_show_says_what_came_with_an_answer(lakes: Path, tmp_path: Path) -> None:
    """The reasoning that a server sent, the model that served, and what came instead of an answer."""
    path = tmp_path / "answers.jsonl"
    recorded = {"instance": "page", "sample": 0, "text": f"<answer>{ANSWER}</answer>", "model": "m-2026"}
    path.write_text(json.dumps({**recorded, "reasoning": "first down\x1b[31m, <b>then</b> right"}) + "\n")
    _, text = run(show, lakes, "--id", "page", "--answer", path)
    assert "the model's reasoning:\nfirst down\\x1b[31m, <b>then</b> right" in text and "m-2026" in text
    run(show, lakes, "--id", "page", "--answer", path, "--format", "html", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<details><summary>the model&#x27;s reasoning</summary><pre>first down" in page and "&lt;b&gt;then" in page
    path.write_text(json.dumps({"instance": "page", "sample": 0, "text": "", "error": "HTTP 500", "detail": "half"}) + "\n")
    _, text = run(show, lakes, "--id", "page", "--answer", path)
    assert "what came instead of an answer:\nHTTP 500" in text and "half" in text


@pytest.mark.parametrize(
    ("form", "begins"), [("terminal", b"page:"), ("svg", b"<svg"), ("gif", b"GIF89a"), ("html", b"<!doctype html>")]
)
def test_show_solutions_in_every_format(lakes: Path, tmp_path: Path, form: str, begins: bytes) -> None:
    out = tmp_path / f"picture.{form}"
    run(show, lakes, "--id", "page", "--solution", "--format", form, "--out", out)
    assert out.read_bytes().startswith(begins)


def test_show_names_user_mistakes(lakes: Path) -> None:
    for arguments in ([lakes, "--set", "3agents"], [f"{lakes}#nobody"], [lakes, "--solution", "--answer", "-"], ["--solution"]):
        with pytest.raises(T2TError):
            run(show, *arguments, stdin="")
    with pytest.raises(T2TError, match="cannot all reach"):
        run(show, f"{lakes}#blocked", "--solution")


def test_show_a_frozen_instance() -> None:
    _, text = run(show, "--set", "3agents", "--id", "3agents_3x3_0000")
    assert text.startswith("3agents_3x3_0000: 3 agents, 3x3")


@pytest.mark.thorough
def test_a_run_is_measured_on_a_set_of_ones_own_and_never_trained_on_it(tmp_path: Path) -> None:
    def run(*words: Any) -> None:
        CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)

    common = ("run", "--preset", "tiny", "--trainer", "none", "--designer", "fixed", "--rounds", 1)
    common += ("--set", "policy=random", "--set", "checkpoint=", "--set", "validation.limit=1", "--set", "evaluation.limit=1")
    run(*common, "--out", tmp_path / "first")
    drawn = read_instances(tmp_path / "first" / "round_0" / "instances.jsonl")
    own = list({x.canonical(): x for x in drawn if x.size > 4}.values())[:40]
    write_instances(tmp_path / "mine.jsonl", own)
    run(*common, "--set", f"evaluation.instances={tmp_path / 'mine.jsonl'}", "--out", tmp_path / "run")
    table = json.loads((tmp_path / "run" / "bench" / "table.json").read_text())
    assert [s["name"] for s in table["sets"]] == ["3agents", "4agents", "5agents", "mine"]
    drawn = read_instances(tmp_path / "run" / "round_0" / "instances.jsonl")
    assert not {x.canonical() for x in drawn} & {x.canonical() for x in own}
