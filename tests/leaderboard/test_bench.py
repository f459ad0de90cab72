import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

import addition
from t2t_core import advice, registry
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.evaluation.tables import tabulate
from t2t_core.plugins import installed
from t2t_core.records import Response, Sampling, Scored
from t2t_core.settings import refuse_secrets
from t2t_core.store.paths import SafePath
from t2t_envs.frozen_lake.reported import reported_rows
from t2t_leaderboard import board, defaults, submission
from t2t_leaderboard.folder import read_bench, recorded_sampling
from t2t_leaderboard.pages import PAGES
from t2t_leaderboard.schemas import VerificationRecord

SCRIPT = Path(addition.__file__)


@pytest.fixture(autouse=True)
def _addition():
    addition.register()


def bench(*arguments):
    """Run `t2t bench --testbed addition ...` in this process."""
    result = CliRunner().invoke(cli, ["bench", "--testbed", "addition", *map(str, arguments)], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def start(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(SCRIPT), "bench", "--testbed", "addition", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def load(folder):
    return json.loads((folder / "leaderboard.json").read_text())


def test_table_has_every_figure(tmp_path):
    out = tmp_path / "out"
    result = bench("--policy", "adder", "--policy", "adder:off=3", "--policy", "adder:every=10", "--out", out)
    made = load(out)
    table = made["tables"][0]
    assert (table["title"], table["columns"]) == ("one digit", ["even", "odd"])
    assert [r["policy"] for r in table["rows"]] == ["adder", "adder:off=3", "adder:every=10"]
    exact, off, broken = table["rows"]
    assert result.stderr.count("the last error: ") == 1, "of the one policy that had errors"
    assert exact["total"]["optimal"]["value"] == 100 and exact["total"]["optimal"]["low"] > 85
    assert (off["total"]["valid"]["value"], off["total"]["optimal"]["value"], off["total"]["gap"]["value"]) == (100, 0, 3)
    assert broken["answers"]["errors"] == 4 and broken["incomplete"] and not exact["incomplete"]
    cells = broken["cells"]
    mean = (cells["even"]["valid"]["value"] + cells["odd"]["valid"]["value"]) / 2
    assert broken["total"]["valid"]["value"] == pytest.approx(mean, abs=1e-3), "a total is the mean of the columns"
    assert exact["answers"]["cost_usd"] == pytest.approx(0.04)
    for text in ("incomplete", "4 errors", "verified: 120 answers"):
        assert text in " ".join(result.stdout.split())
    assert (out / "leaderboard.md").exists() and (out / "leaderboard.html").exists()
    assert json.loads((out / "verification.json").read_text())["verified"]


@pytest.mark.parametrize(("errors", "incomplete"), [(0, False), (1, False), (2, True)])
def test_more_than_one_percent_of_errors_marks_a_row_incomplete(errors, incomplete):
    instances = addition.Addition().load_set("one_digit").instances[:1] * 100
    responses = [Response("", error="HTTP 500", finish_reason="error")] * errors + [Response("no number")] * (100 - errors)
    testbed = addition.Addition()
    answers = [Scored(i, 0, r, testbed.verify(i, r.text)) for i, r in zip(instances, responses, strict=True)]
    table = tabulate(testbed, answers, 1)["one digit"]
    assert table.incomplete is incomplete and table.answers.errors == errors


def test_where_every_question_failed_it_is_a_failure(tmp_path):
    out = tmp_path / "out"
    result = bench("--policy", "adder:every=1", "--policy", "adder", "--out", out)
    assert result.return_value == 1 and "no question to adder:every=1 was answered" in " ".join(result.stdout.split())
    rows = {r["policy"]: r for r in load(out)["tables"][0]["rows"]}
    assert rows["adder:every=1"]["incomplete"] and not rows["adder"]["incomplete"]
    with pytest.raises(T2TError, match="the row is incomplete"):
        submission.make(out, "none", tmp_path / "submissions", "adder:every=1")
    assert submission.make(out, "all", tmp_path / "submissions", "adder").is_dir()
    assert bench("--policy", "adder:every=10", "--out", out).return_value == 0, "errors among answers are asked again"
    with pytest.raises(T2TError, match="the row is incomplete"):
        submission.make(out, "some", tmp_path / "submissions", "adder:every=10")


def test_replies_that_were_no_answer_count_into_tokens_and_cost():
    testbed = addition.Addition()
    lost = Response("", 10, 500, None, "error", "no choices", cost_usd=0.5)
    response = Response("7", 10, 20, cost_usd=0.25, earlier=(lost, lost))
    answers = [Scored(i, 0, response, testbed.verify(i, "7")) for i in testbed.load_set("one_digit").instances[:4]]
    table = tabulate(testbed, answers, 1)["one digit"]
    assert table.answers.tokens == 4 * 1020 and table.answers.cost_usd == pytest.approx(4 * 1.25)
    assert table.total["tokens"].value == 20, "a mean is of answers"


def test_testbed_brings_its_options(tmp_path):
    assert "--digits" in bench("--help").stdout
    bench("--policy", "adder", "--digits", "two", "--out", tmp_path / "out")
    assert load(tmp_path / "out")["tables"][0]["title"] == "two digits"
    with pytest.raises(T2TError, match="digits is one or two"):
        bench("--policy", "adder", "--digits", "nine")


def test_same_command_resumes_in_the_same_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("--policy", "adder", "--limit", 3)
    bench(*command)
    (folder,) = (tmp_path / "runs").iterdir()
    before = {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    again = bench(*command)
    assert "0 asked now" in again.stderr
    assert {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    with pytest.raises(T2TError, match="seed differ"):
        bench("--policy", "adder", "--limit", 3, "--seed", 4, "--out", folder)
    bench("--policy", "adder:off=1", "--limit", 3, "--out", folder)
    assert len(load(folder)["tables"][0]["rows"]) == 2, "another policy joins the folder's leaderboard"


def test_limit_samples_twin_and_own_instances(tmp_path):
    bench("--policy", "adder", "--limit", 2, "--samples", 3, "--out", tmp_path / "a")
    row = load(tmp_path / "a")["tables"][0]["rows"][0]
    assert row["answers"]["asked"] == 12 and row["total"]["valid"]["n"] == 4
    bench("--policy", "adder", "--twin", 7, "--out", tmp_path / "b")
    sets = load(tmp_path / "b")["settings"]["sets"]
    assert (sets[0]["kind"], sets[0]["twin_seed"]) == ("twin", 7)
    own = tmp_path / "own.jsonl"
    own.write_text('{"id": "x1", "a": 1, "b": 2, "label": 3}\n{"id": "x2", "a": 1, "b": 2}')
    bench("--policy", "adder", "--instances", own, "--out", tmp_path / "c")
    total = load(tmp_path / "c")["tables"][0]["rows"][0]["total"]
    assert total["valid"]["value"] == 100
    assert total["optimal"] == {"value": None, "low": None, "high": None, "n": 2, "unknown": 1}, "no optimum, no figure"
    own.write_text('{"id": "x1", "a": 1, "b": 2}\n{"id": "x1"}\n')
    with pytest.raises(T2TError, match=r"own.jsonl, line 2"):
        bench("--policy", "adder", "--instances", own, "--out", tmp_path / "d")


def test_a_stored_optimum_that_an_answer_beats_is_said(tmp_path):
    own = tmp_path / "own.jsonl"
    lake = {"size": 3, "holes": [[0, 1]], "starts": [[2, 0], [1, 0]], "goals": [[1, 2], [2, 2]], "optimal_sum_of_costs": 6}
    own.write_text("".join(json.dumps({"id": f"i{n}", "optimal_makespan": n, **lake}) + "\n" for n in (3, 4, 5)))
    arguments = ("--instances", str(own), "--policy", "cbs", "--out", str(tmp_path / "out"))
    result = CliRunner().invoke(cli, ["bench", *arguments], standalone_mode=False)
    row = load(tmp_path / "out")["tables"][0]["rows"][0]
    assert row["wrong_instances"]["answers"] == 2 and "makespan 3 < 4" in row["wrong_instances"]["first"]
    assert row["total"]["optimal"]["value"] == pytest.approx(100 / 3, abs=1e-3)
    assert "WRONG INSTANCES: 2 answers of cbs disprove what is stored, e.g. i4:" in " ".join(result.stdout.split())
    assert json.loads((tmp_path / "out" / "verification.json").read_text())["verified"]


def test_settings_of_one_policy_and_labels_that_tell_rows_apart(tmp_path):
    out = tmp_path / "out"
    bench("--policy", "adder", "--policy", "adder:temperature=0.6,max_tokens=99", "--out", out)
    bench("--policy", "adder", "--temperature", 1, "--out", out)
    rows = load(out)["tables"][0]["rows"]
    assert sorted(r["label"] for r in rows) == [
        "adder (temperature=0.0)",
        "adder (temperature=1.0)",
        "adder:temperature=0.6,max_tokens=99",
    ]
    sampling = next(r["sampling"] for r in rows if ":" in r["label"])
    assert (sampling["temperature"], sampling["max_tokens"]) == (0.6, 99)


def test_failing_policy_does_not_stop_the_others(tmp_path):
    from t2t_core.plugins import installed

    class Broken(addition.Adder):
        def respond(self, tasks, sampling):
            raise RuntimeError("boom")

    installed().policies.entries.pop("broken", None)
    installed().policies.add("broken", lambda argument, settings: Broken(), "")
    result = bench("--policy", "broken", "--policy", "adder", "--out", tmp_path / "out")
    assert "RuntimeError: boom" in result.stderr
    assert result.return_value == 1
    last = " ".join(result.stdout[result.stdout.index("leaderboard.html") :].split())
    assert "broken failed before it finished (" in last and "boom" in last, "the reason stands under the tables too"
    assert [r["policy"] for r in load(tmp_path / "out")["tables"][0]["rows"]] == ["adder"]


def test_budget_is_shared_by_all_policies(tmp_path):
    result = bench("--policy", "adder", "--policy", "adder:off=1", "--max-usd", 0.06, "--out", tmp_path / "out")
    rows = {r["policy"]: r for r in load(tmp_path / "out")["tables"][0]["rows"]}
    assert rows["adder"]["answers"]["errors"] == rows["adder:off=1"]["answers"]["errors"] == 0
    assert "partial" not in rows["adder"] and rows["adder:off=1"]["partial"] == {"asked": 20, "of": 40}
    assert "budget ended adder:off=1" in result.stdout


@pytest.mark.parametrize(
    "setting",
    ["api_key=sk-1", "KEY=hunter2", "base_url=http://me:pw@host/v1", "base_url=http://h/v1?api_key=x", "Authorization=hunter2"],
)
def test_keys_are_refused_and_not_repeated(setting):
    name, value = setting.lower().split("=", 1)
    with pytest.raises(T2TError, match="holds a key") as caught:
        refuse_secrets({name: value}, "policy endpoint")
    assert value not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [["--limit", "0"], ["--samples", "0"], ["--temperature", "nan"], ["--max-tokens", "0"], ["--policy", "addr"],
     ["--twin", "1", "--instances", "x"], ["--prompt-format", "verse"], []],
)  # fmt: skip
def test_mistakes_are_named_before_anything_is_asked(tmp_path, arguments):
    policies = [] if "--policy" in arguments or not arguments else ["--policy", "adder"]
    with pytest.raises(T2TError):
        bench(*policies, *arguments, "--out", tmp_path / "out")
    assert not (tmp_path / "out" / "rows").exists()


def test_second_process_on_one_folder_is_refused(tmp_path):
    first = start("--policy", "adder:slow=2", "--out", tmp_path / "out")
    try:
        while not list(tmp_path.glob("out/rows/*/log.jsonl")):
            time.sleep(0.02)
        second = start("--policy", "adder", "--out", tmp_path / "out")
        assert "another process is working in this folder" in second.communicate()[1]
        assert second.returncode == 2
    finally:
        first.send_signal(signal.SIGTERM)
        stderr = first.communicate()[1]
    assert first.returncode == 130 and "the same command continues" in stderr


@pytest.mark.thorough
def test_killed_at_random_moments_ends_in_the_same_bytes(tmp_path):
    command = ("--policy", "adder:slow=0.002", "--samples", 5)
    bench(*command, "--out", tmp_path / "calm")
    moments = random.Random(5)
    for _ in range(4):
        process = start(*command, "--out", tmp_path / "killed")
        time.sleep(moments.uniform(0.2, 1.2))
        process.kill()
        process.communicate()
    bench(*command, "--out", tmp_path / "killed")
    for name in ("answers.jsonl", "leaderboard.json", "leaderboard.html", "leaderboard.md", "verification.json"):
        calm, killed = (next((tmp_path / side).rglob(name)).read_bytes() for side in ("calm", "killed"))
        assert calm == killed, name


# --- reported rows


def test_reported_rows_stand_beside_and_never_get_an_interval():
    columns = [f"{n}x{n}" for n in range(3, 11)]
    rows = reported_rows("3agents", columns)
    ours = next(r for r in rows if r["policy"] == "Qwen3-4B + GRPO + Ours")
    assert ours["cells"]["10x10"] == {"valid": {"value": 32.0}, "optimal": {"value": 16.0}}
    assert ours["total"]["valid"] == {"value": 51.67}
    assert "2606.17682" in ours["source"]
    assert reported_rows("validation", columns) == []


def test_exactly_two_printed_totals_disagree_with_their_cells():
    disagreeing = {
        (agents, row["policy"], name, figure["value"], figure["mean_of_cells"])
        for agents in (3, 4, 5)
        for row in reported_rows(f"{agents}agents", [f"{n}x{n}" for n in range(3, 11)])
        for name, figure in row["total"].items()
        if "mean_of_cells" in figure
    }
    assert disagreeing == {(4, "Gemini-3.1-Pro", "valid", 12.95, 13.05), (5, "Kimi-K2.5", "valid", 13.47, 14.22)}


# --- hostile names and answers


def test_page_is_self_contained_and_escapes_everything(tmp_path):
    bench("--policy", "adder", "--out", tmp_path / "out")
    made = board.build(read_bench(tmp_path / "out"))
    evil = "<script>alert(1)</script>\x1b[31m\u202e\n| `x` [a](javascript:b) \"'"
    row = made.tables[0].measured[0]
    row = replace(row, policy=replace(row.policy, policy=evil), label=evil, table=replace(row.table, failures={evil: 3}))
    made = replace(made, tables=[replace(made.tables[0], title=evil, measured=[row])], title=evil, notes=[*made.notes, evil])
    record = VerificationRecord(verified=False, problems=[evil], answers=1, rows=1, version="0")
    text, page = (render(made, record) for render in PAGES.values())
    page = addition.without_own_script(page)
    assert "<script" not in page and "\x1b" not in page and "\u202e" not in page
    assert "Content-Security-Policy" in page and "default-src 'none'" in page
    assert not re.search(r"<[^>]+\s(on\w+|style|src)\s*=|href=\"[^#]", page), "no handler, no inline style, no address"
    assert "<script" not in text and "\x1b" not in text and "](javascript" not in text


def test_cost_plot_only_where_costs_are_known(tmp_path):
    bench("--policy", "adder", "--out", tmp_path / "out")
    made = board.build(read_bench(tmp_path / "out"))
    assert "USD per answer" in PAGES["leaderboard.html"](made, None)
    row = made.tables[0].measured[0]
    unpriced = replace(row, table=replace(row.table, answers=replace(row.table.answers, cost_usd=None)))
    made = replace(made, tables=[replace(made.tables[0], measured=[unpriced])])
    assert "USD per answer" not in PAGES["leaderboard.html"](made, None)


def test_toy_models_are_called_toys_and_where_they_are_missing_the_board_says_how_to_get_them(tmp_path, monkeypatch):
    lake = installed().testbeds.make("mapf-frozenlake")
    asked = []
    monkeypatch.setattr(registry, "find_spec", lambda name: asked.append(name))
    without = defaults.policies(lake)
    assert "cbs" in without and not any(p.startswith("tiny") for p in without) and "torch" in asked
    monkeypatch.setattr(registry, "find_spec", lambda name: name)
    toys = [p for p in defaults.policies(lake) if p not in without]
    assert {"tiny", "tiny:2agents", "tiny:designed", "tiny:control"} == set(toys)
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    note = defaults.missing(lake, without)
    assert "tiny:designed" in note and advice.extra("train") in note
    assert defaults.missing(lake, [*without, "tiny"]) is None
    assert defaults.missing(lake, ["cbs"]) is None, "whoever names policies wants those"
    with pytest.raises(T2TError, match="no default"):
        defaults.policies(addition.Addition())


def test_a_policys_caveat_stands_beside_its_name(tmp_path):
    bench("--policy", "adder", "--policy", "adder:caveat=a toy", "--limit", 2, "--out", tmp_path / "out")
    assert [row["label"] for row in load(tmp_path / "out")["tables"][0]["rows"]] == ["adder", "adder:caveat=a toy (a toy)"]
    assert "(a toy)" in (tmp_path / "out" / "leaderboard.md").read_text().replace("\\", "")


def test_the_commonest_first_failed_check_is_seen_everywhere(tmp_path):
    texts = ["I think 7.", "so: 3", "eleven", "??", "999"]
    ids = [instance.id for instance in addition.Addition().load_set("one_digit").instances]
    lines = [json.dumps({"id": name, "text": texts[i % len(texts)]}) + "\n" for i, name in enumerate(ids)]
    (tmp_path / "answers.jsonl").write_text("".join(lines))
    shown = bench("--policy", f"answers:{tmp_path / 'answers.jsonl'}", "--out", tmp_path / "out").stdout
    counts = load(tmp_path / "out")["tables"][0]["rows"][0]["failures"]
    assert max(counts, key=counts.get) == "number"
    commonest = f"number {counts['number']}"
    for text in (shown, *((tmp_path / "out" / page).read_text() for page in PAGES)):
        assert "first failed check" in text and commonest in text


def test_a_mean_stands_beside_its_own_n(tmp_path):
    bench("--policy", "adder", "--policy", "adder:every=4", "--out", tmp_path / "out")
    row = next(r for r in load(tmp_path / "out")["tables"][0]["rows"] if r["policy"] == "adder:every=4")
    gap, valid = row["total"]["gap"], row["total"]["valid"]
    assert gap["n"] < valid["n"]
    page = (tmp_path / "out" / "leaderboard.md").read_text()
    assert f"{gap['value']:.2f} n {gap['n']}" in page.replace("*", "")


@pytest.mark.parametrize("command", [("bench", "--out"), ("compare", "--json", ".")])
def test_a_seed_below_zero_is_refused_before_a_folder_is_made(tmp_path, command):
    result = CliRunner().invoke(cli, [*command, str(tmp_path / "made"), "--seed", "-1"])
    assert result.exit_code == 2 and "not in the range" in result.output and not (tmp_path / "made").exists()


def test_a_row_says_only_what_it_narrows_so_that_earlier_rows_go_on(tmp_path):
    earlier = {"temperature": 0.6, "max_tokens": 9, "thinking": None, "top_p": 0.9}
    assert Sampling(0.6, 9, None, 0.9).recorded() == earlier
    assert recorded_sampling(earlier, SafePath.absolute(tmp_path)) == Sampling(0.6, 9, None, 0.9)
    narrow = Sampling(0.6, 9, None, 0.9, 20, 0.05)
    assert narrow.recorded() == {**earlier, "top_k": 20, "min_p": 0.05}
    assert recorded_sampling(narrow.recorded(), SafePath.absolute(tmp_path)) == narrow
    with pytest.raises(T2TError):
        recorded_sampling({**earlier, "top_q": 1}, SafePath.absolute(tmp_path))
