"""Every command on every testbed of the suite and the plugin template: each command reads what the one before has written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import jugs
import worlds
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.testing import check_testbed
from worlds import World


@pytest.fixture(scope="module", params=worlds.WORLDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Path]]:
    """A world, and the folder in which its commands run one after the other."""
    worlds.register()
    folder = tmp_path_factory.mktemp(request.param)
    worlds.write(worlds.WORLDS[request.param], folder)
    yield worlds.WORLDS[request.param], folder


def t2t(*arguments: Any, status: int = 0) -> str:
    """The output of the command; the test fails if the exit status is not the expected one."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert (result.return_value or 0) == status, result.output
    return result.output


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_generate_then_show_and_solve(place: tuple[World, Path]) -> None:
    world, folder = place
    out = folder / "instances.jsonl"
    for configuration in ("random", folder / f"{next(iter(world.configurations))}.json"):
        words = ("--testbed", world.testbed, "--configuration", configuration, *world.generate)
        t2t("generate", *words, "--count", 12, "--seed", 3, "--out", out)
        first = out.read_bytes()
        t2t("generate", *words, "--count", 12, "--seed", 3, "--out", out)
        assert out.read_bytes() == first and first.count(b"\n") == 12
    (folder / "answer.txt").write_text(world.answer)
    shown = t2t("show", "--testbed", world.testbed, out, "--answer", folder / "answer.txt")
    assert "FAIL" in shown
    assert t2t("show", "--testbed", world.testbed, "--set", world.set_name)
    if world.solves:
        assert "12" in t2t("solve", "--testbed", world.testbed, out)


def bench(world: World, folder: Path, out: str, policies: Any = None) -> str:
    named = [word for policy in policies or world.policies for word in ("--policy", policy)]
    return t2t("bench", "--testbed", world.testbed, *named, *world.options, "--limit", 2, "--out", folder / out)


def test_bench_then_verify_compare_and_submit(place: tuple[World, Path]) -> None:
    world, folder = place
    assert all(policy in bench(world, folder, "bench") for policy in world.policies)
    assert "verified" in t2t("verify", folder / "bench")
    rows = sorted((folder / "bench" / "rows").iterdir())
    compared = t2t("compare", *rows, "--json")
    assert json.loads(compared)["comparisons"] and "valid" in t2t("compare", *rows)
    t2t("submit", folder / "bench", "--name", "someone", "--row", rows[0].name, "--into", folder / "results")
    (submission,) = (folder / "results").iterdir()
    assert "verified" in t2t("verify", submission)
    answers = submission / "answers.jsonl"
    answers.write_bytes(answers.read_bytes().replace(b'"text": "', b'"text": "no ', 2))  # of a conversation: the whole, a turn
    assert "NOT verified" in t2t("verify", submission, status=1)


def test_bench_of_stored_answers_and_of_a_twin(place: tuple[World, Path]) -> None:
    world, folder = place
    bench(world, folder, "first", world.policies[:1])
    (row,) = (folder / "first" / "rows").iterdir()
    bench(world, folder, "again", [f"answers:{row / 'answers.jsonl'}"])
    tables = [read(folder / name / "leaderboard.json")["tables"] for name in ("first", "again")]
    assert [t["rows"][0]["total"] for t in tables[0]] == [t["rows"][0]["total"] for t in tables[1]]
    t2t("bench", "--testbed", world.testbed, "--policy", world.policies[0], *world.options, "--limit", 2, "--twin", 1,
        "--out", folder / "twin")  # fmt: skip
    assert "verified" in t2t("verify", folder / "twin")


def test_run_then_report_analyze_and_design(place: tuple[World, Path]) -> None:
    world, folder = place
    out = folder / "run"
    words = ("run", "--config", folder / "run.toml", *world.options, "--out", out)
    assert world.testbed in t2t(*words, "--dry-run")
    told = t2t(*words, "--with-control")
    assert "designed" in told and "control" in told
    names = {p.name for p in (out / "round_0").iterdir()}
    assert {"configuration.json", "instances.jsonl", "breakdown.json", "context.md", "proposal.json", "projection.json"} <= names
    for document in (told, (out / "summary.md").read_text()):
        assert all(word in document for word in world.words), f"labels and units are the testbed's: {world.words}"
    t2t("report", out)
    page = (out / "report.html").read_text()
    assert all(word in page for word in world.words) and "NaN" not in page
    t2t("analyze", out, "--out", folder / "analysis")
    analysis = read(folder / "analysis" / "analysis.json")
    assert len(analysis["runs"][0]["steps"]) == 1
    assert "NaN" not in (folder / "analysis" / "analysis.md").read_text()
    seen = t2t("design", "--run", out, "--designer", "fixed", "--designer", "random", "--designer", world.run["designer"])
    assert "unchanged" in seen and "proposed" in seen
    assert installed().testbeds.make(world.testbed).group in t2t("design", "--run", out, "--show-context")
    before = {p: p.read_bytes() for p in out.rglob("*.json*") if p.name not in ("log.jsonl", "run.json")}
    t2t(*words, "--with-control")
    assert {p: p.read_bytes() for p in before} == before, "the same command again changes nothing"


def test_every_designer_and_curriculum_designs_or_refuses_with_the_reason(place: tuple[World, Path]) -> None:
    """A designer that cannot work on a testbed says so; none crashes."""
    world, folder = place
    if not (folder / "run" / "summary.json").exists():
        t2t("run", "--config", folder / "run.toml", *world.options, "--out", folder / "run")
    asks_a_model = {"llm", "base", "checkpoint"}
    plan = folder / "plan.json"
    plan.write_text(json.dumps(read(folder / "run" / "round_0" / "configuration.json")))
    of_another = {"mislabelled": "mislabelled:rule", "shuffled": "shuffled:rule", "schedule": f"schedule:{plan}"}
    for name in (entry.name for entry in installed().designers):
        if name in asks_a_model:
            continue
        name = of_another.get(name, name)
        result = CliRunner().invoke(cli, ["design", "--run", str(folder / "run"), "--designer", name])
        board = " ".join(result.output.split())
        assert result.exception is None, f"{name}: {board}"
        refused = "the designer failed: T2TError: " in board and "cause: " in board
        assert refused or re.search(r"\b(proposed|unchanged)\b", board), f"{name}: {board}"


@pytest.mark.thorough
def test_sweeps_then_analyze(place: tuple[World, Path]) -> None:
    world, folder = place
    words = ("sweep", "--config", folder / "run.toml", *world.options, "--seeds", "0 1")
    t2t(*words, "--designers", f"fixed {world.run['designer']}", "--out", folder / "designers")
    swept = read(folder / "designers" / "sweep.json")
    assert [arm["arm"].split()[0] for arm in swept["arms"]] == ["base", "fixed", world.run["designer"]]
    assert swept["differences"] and swept["unequal"] == []
    assert len(read_analysis(folder / "designers", folder / "of_sweep")["arms"]) == 2
    files = [folder / f"{name}.json" for name in world.configurations]
    t2t(*words, "--configurations", *files, "--out", folder / "fixed")
    assert [arm["arm"] for arm in read(folder / "fixed" / "sweep.json")["arms"]] == ["base", *world.configurations]


def read_analysis(folder: Path, out: Path) -> Any:
    t2t("analyze", folder, "--out", out)
    return read(out / "analysis.json")


def test_a_testbed_named_on_the_command_line_runs_by_its_own_preset(place: tuple[World, Path]) -> None:
    world, _ = place
    if not installed().testbeds.make(world.testbed).preset:
        with pytest.raises(T2TError, match="has no preset"):
            t2t("run", "--testbed", world.testbed, "--dry-run")
        return
    told = t2t("run", "--testbed", world.testbed, "--dry-run")
    assert re.search(rf"^\s*testbed\s+{world.testbed}", told, re.MULTILINE)


def test_reports_read_what_the_run_declared_also_where_its_testbed_is_not_installed(place: tuple[World, Path]) -> None:
    world, folder = place
    if not (folder / "run" / "summary.json").exists():
        t2t("run", "--config", folder / "run.toml", *world.options, "--out", folder / "run")
    declared, testbed = read(folder / "run" / "testbed.json"), installed().testbeds.make(world.testbed)
    assert (declared["group"], declared["groups"]) == (testbed.group, list(testbed.groups))
    assert [knob["name"] for knob in declared["knobs"]] == [knob.name for knob in testbed.knobs(testbed.request(1))]
    t2t("report", folder / "run", "--out", folder / "here.html")
    entries = installed().testbeds.entries
    before = dict(entries)
    del entries[world.testbed]
    try:
        t2t("report", folder / "run", "--out", folder / "elsewhere.html")
        t2t("analyze", folder / "run")
    finally:
        entries.clear()
        entries.update(before)  # in the order they had: the first is the default
    pages = [(folder / name).read_text() for name in ("here.html", "elsewhere.html")]
    here, elsewhere = (set(re.findall(r"<h2[^>]*>(.*?)</h2>", page)) for page in pages)
    assert elsewhere and elsewhere <= here and all(title.startswith("Examples") for title in here - elsewhere)
    tables = [re.findall(r"<table.*?</table>", page, re.DOTALL) for page in pages]
    assert tables[1] and set(tables[1]) <= set(tables[0]), "whatever is told of the run is told in the same words"


def test_numbers_about_an_order_are_left_out_where_groups_have_none(place: tuple[World, Path]) -> None:
    world, folder = place
    if not (folder / "run" / "summary.json").exists():
        t2t("run", "--config", folder / "run.toml", *world.options, "--out", folder / "run")
    step = read_analysis(folder / "run", folder / "ordered")["runs"][0]["steps"][0]
    rise = installed().testbeds.make(world.testbed).groups_rise
    assert (step["centre_shift"] is not None) == rise and (step["groups_kept"] is not None)


def test_the_testbed_written_from_the_documentation_keeps_the_contract() -> None:
    check_testbed(jugs.Decanting(), solve=lambda it: jugs.written(jugs.ways(it.source, it.jugs)[it.wanted]))
    renamed = [jugs.Measuring("x", "tank", litres, litres_left) for litres, litres_left in (((8, 5, 3), 4), ((3, 8, 5), 4))]
    in_another_unit = [jugs.Measuring("x", "spring", litres, litres_left) for litres, litres_left in (((5, 3), 4), ((10, 6), 8))]
    for pair in (renamed, in_another_unit):
        assert len({jugs.Decanting().identity(measuring) for measuring in pair}) == 1
    assert jugs.identity(renamed[0]) != jugs.identity(jugs.Measuring("x", "barrel", (8, 5, 3), 4))


def test_tables_and_columns_stand_in_the_order_of_the_groups_and_means_have_their_unit(tmp_path: Path) -> None:
    """Names without a digit: nothing is sorted by the alphabet, on the board or in a comparison."""
    worlds.register()
    out = tmp_path / "bench"
    for policy in ("decanter", "decanter:depth=9"):
        t2t("bench", "--testbed", "decanting", "--sources", "tank,barrel,spring", "--policy", policy, "--limit", 1, "--out", out)
    tables = read(out / "leaderboard.json")["tables"]
    assert [table["title"] for table in tables] == ["spring", "barrel", "tank"]
    assert all(table["columns"] == ["two jugs", "three jugs"] for table in tables)
    assert "water emptied out, l" in (out / "leaderboard.md").read_text()
    compared = json.loads(t2t("compare", *sorted((out / "rows").iterdir()), "--json"))["comparisons"]
    assert list(dict.fromkeys(comparison["table"] for comparison in compared)) == ["spring", "barrel", "tank"]


def test_a_brief_says_units_and_whole_numbers(place: tuple[World, Path]) -> None:
    world, folder = place
    if not (folder / "run" / "summary.json").exists():
        t2t("run", "--config", folder / "run.toml", *world.options, "--out", folder / "run")
    seen = t2t("design", "--run", folder / "run", "--show-context")
    testbed = installed().testbeds.make(world.testbed)
    for knob in testbed.knobs(testbed.request(1)):
        unit = f" {knob.unit}" if knob.unit and knob.form != "percent" else ""
        assert f"({knob.low:g} to {knob.high:g}{unit}{', whole numbers' if knob.form == 'whole' else ''})" in seen


@pytest.mark.parametrize("words", [("run", "--preset", "tiny", "--dry-run"), ("generate", "--set", "agents=3")])
def test_what_another_testbeds_generator_knows_is_a_mistake_and_no_fault_of_the_plugin(words: tuple[str, ...]) -> None:
    worlds.register()
    rest = ("--configuration", "random", "--out", "-") if words[0] == "generate" else ()
    with pytest.raises(T2TError, match="the generator of decanting has no setting 'agents'"):
        t2t(words[0], "--testbed", "decanting", *words[1:], *rest)


def test_a_next_command_names_the_testbed() -> None:
    worlds.register()
    with pytest.raises(T2TError) as refusal:
        t2t("generate", "--testbed", "decanting", "--count", 3)
    assert "--testbed decanting --configuration" in refusal.value.next


def test_a_file_of_another_task_is_told_from_a_broken_one(tmp_path: Path) -> None:
    worlds.register()
    path = tmp_path / "measurings.jsonl"
    t2t("generate", "--testbed", "decanting", "--configuration", "random", "--count", 3, "--out", path)
    for command in ("show", "solve"):
        with pytest.raises(T2TError) as refusal:
            t2t(command, path)
        assert "read as an instance of mapf-frozenlake: --testbed NAME" in refusal.value.next
    with pytest.raises(T2TError, match="the testbed decanting has no solver"):
        t2t("solve", path, "--testbed", "decanting")
