"""A pilot grows in its folder. A stopped bench is partial, and the folder of a killed process is incomplete, not damaged."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import addition
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import AnswerLog
from t2t_core.records import Response
from t2t_core.store import locks
from t2t_core.store.paths import SafePath
from t2t_leaderboard import comparison, rescoring, submission
from t2t_leaderboard.folder import read_bench


@pytest.fixture(autouse=True)
def _addition():
    addition.register()


def t2t(*arguments):
    result = CliRunner().invoke(cli, list(map(str, arguments)), standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def bench(out, *arguments):
    return t2t("bench", "--testbed", "addition", "--out", out, *arguments)


def row(folder, policy="adder"):
    return next(r for r in json.loads((folder / "leaderboard.json").read_text())["tables"][0]["rows"] if r["policy"] == policy)


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


LASTING = ("answers.jsonl", "leaderboard.json", "leaderboard.md", "leaderboard.html", "one_digit.jsonl")


@pytest.mark.parametrize(
    "steps",
    [
        [("--limit", 2), ("--limit", 10)],
        [("--limit", 2), ()],
        [("--samples", 1), ("--samples", 4)],
        [("--limit", 2, "--samples", 3), ("--limit", 5), ("--limit", 5, "--samples", 3)],
    ],
)
def test_a_pilot_grows_into_what_was_asked_at_once(tmp_path, steps):
    """The same bytes, and no answer is asked for twice."""
    asked = []
    for step in steps:
        said = bench(tmp_path / "grown", "--policy", "adder", *step).stderr
        asked.append(int(said.split(" asked now")[0].rpartition(" ")[2]))
        assert rescoring.verify(tmp_path / "grown").verified
    bench(tmp_path / "once", "--policy", "adder", *steps[-1])
    grown, once = files(tmp_path / "grown"), files(tmp_path / "once")
    for name in once:
        if name.endswith(LASTING):
            assert grown[name] == once[name], name
    assert sum(asked) == len(next(v for n, v in once.items() if n.endswith("answers.jsonl")).splitlines())
    assert submission.make(tmp_path / "grown", "a", tmp_path / "s").is_dir()


def test_rows_that_were_not_asked_are_partial_and_say_so(tmp_path):
    out = tmp_path / "out"
    bench(out, "--policy", "adder", "--policy", "adder:off=3", "--limit", 2)
    bench(out, "--policy", "adder", "--limit", 5)
    behind, whole = row(out, "adder:off=3"), row(out)
    assert behind["partial"] == {"asked": 4, "of": 10} and behind["incomplete"] and "partial: 4 of 10 asked" in behind["label"]
    assert "partial" not in whole and not whole["incomplete"]
    assert behind["total"]["valid"]["value"] == 100 and behind["total"]["valid"]["n"] == 4, "figures are of what was asked"
    check = rescoring.verify(out)
    assert check.verified and check.partial == ["adder:off=3: 4 of 10 questions were asked"]
    assert "incomplete: adder:off=3: 4 of 10" in t2t("verify", out).stdout
    assert "PARTIAL" in (out / "leaderboard.md").read_text() and "4 of 10 asked" in (out / "leaderboard.html").read_text()
    assert "more than 1 %" not in (out / "leaderboard.md").read_text(), "questions that were not asked are no errors"
    with pytest.raises(T2TError, match="the row is incomplete"):
        submission.make(out, "a", tmp_path / "s", "adder:off=3")
    assert "0 asked now" in bench(out, "--policy", "adder", "--limit", 2).stderr, "a smaller limit asks for nothing more"
    bench(out, "--policy", "adder:every=2", "--limit", 1)
    assert row(out, "adder:every=2")["partial"] == {"asked": 2, "of": 10}, "a new row may be a pilot in a grown folder"


def test_a_column_without_answers_has_no_figure_and_the_total_none(tmp_path):
    out = tmp_path / "out"
    bench(out, "--policy", "adder", "--limit", 2)
    log = read_bench(out).rows()[0].folder
    lines = (log / "log.jsonl").path.read_text().splitlines()
    even = [line for line in lines if json.loads(line)["instance"] in _column(out, "even")]
    (log / "log.jsonl").path.write_text("\n".join(even) + "\n")
    bench(out, "--policy", "adder:every=1", "--limit", 1)  # writes the leaderboard; the row itself is not asked again
    evaluation = read_bench(out).evaluation(read_bench(out).rows()[0].sampling)
    from t2t_core.evaluation.evaluate import export

    with_log = AnswerLog(log / "log.jsonl", [i.id for i in evaluation.instances], 1)
    export(evaluation, with_log, log / "answers.jsonl")
    with_log.close()
    bench(out, "--policy", "adder:every=1", "--limit", 1)
    shown_row = row(out)
    assert shown_row["partial"] == {"asked": 2, "of": 4}
    assert shown_row["cells"]["odd"]["valid"]["value"] is None and shown_row["total"]["valid"]["value"] is None
    assert rescoring.verify(out).verified


def _column(out, column):
    stored_bench = read_bench(out)
    return {i.id for instances in stored_bench.stored for i in instances if stored_bench.testbed.place(i).column == column}


def start(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(Path(addition.__file__)), "bench", "--testbed", "addition", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stopped_in_the_middle(out, signum, *arguments):
    process = start("--policy", "adder:slow=0.05", "--out", out, *arguments)
    log = out / "rows"
    while not any(path.stat().st_size > 2000 for path in log.glob("*/log.jsonl")):
        time.sleep(0.01)
        assert process.poll() is None, process.stderr.read()
    process.send_signal(signum)
    process.wait(60)
    return process


@pytest.mark.thorough
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_partial_board(tmp_path, signum):
    out = tmp_path / "out"
    process = stopped_in_the_middle(out, signum)
    assert process.returncode == 130 and "a partial leaderboard is in" in process.stderr.read()
    made = row(out, "adder:slow=0.05")
    assert 0 < made["partial"]["asked"] < made["partial"]["of"] == 40 and "partial" in made["label"]
    assert "PARTIAL" in (out / "leaderboard.md").read_text()
    assert not (out / "answers").exists(), "it ends soon: the pages of answers wait for the whole board"
    checked = t2t("verify", out)
    assert checked.return_value == 0 and "incomplete: adder:slow=0.05" in checked.stdout and "NOT" not in checked.stdout
    assert bench(out, "--policy", "adder:slow=0.05").return_value == 0
    assert "partial" not in row(out, "adder:slow=0.05")
    assert list((out / "answers").iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize("again", [False, True], ids=["at its first start", "as it grows"])
def test_what_a_killed_process_left_is_incomplete_not_damaged(tmp_path, again):
    out = tmp_path / "out"
    if again:
        bench(out, "--policy", "adder:slow=0.05", "--limit", 1)
    stopped_in_the_middle(out, signal.SIGKILL)
    checked = t2t("verify", out)
    assert checked.return_value == 1 and "incomplete, but nothing is damaged" in checked.stdout, checked.stdout
    assert "not finished by pid" in checked.stdout and "NOT verified" not in checked.stdout
    assert "incomplete" in (out / "leaderboard.md").read_text(), "pages show it too"
    assert bench(out, "--policy", "adder:slow=0.05").return_value == 0
    assert rescoring.verify(out).verified and not rescoring.verify(out).partial


def test_what_a_desktop_leaves_in_a_folder_is_passed_over(tmp_path):
    out = tmp_path / "out"
    bench(out, "--policy", "adder", "--limit", 2)
    for place in (out, out / "rows", out / "instances", next(out.glob("rows/*"))):
        (place / ".DS_Store").write_bytes(b"Bud1")
    assert bench(out, "--policy", "adder", "--limit", 3).return_value == 0
    assert rescoring.verify(out).verified


def test_the_same_without_a_killed_process_is_damage(tmp_path):
    """An answer removed from the export is reported, because the export may lag behind its log only after a kill."""
    out = tmp_path / "out"
    bench(out, "--policy", "adder", "--limit", 2)
    (path,) = out.glob("rows/*/answers.jsonl")
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[1:]))
    assert "no answer to" in rescoring.verify(out).problems[0]
    path.write_bytes(whole)
    assert rescoring.verify(out).verified


def test_a_working_process_is_not_a_fault(tmp_path):
    out = tmp_path / "out"
    bench(out, "--policy", "adder", "--limit", 2)
    (out / ".lock").write_text("pid 1 on somewhere since yesterday\n")
    (out / "leaderboard.json").unlink()
    check = rescoring.verify(out)
    assert not check.problems and not check.verified and "pid 1 on somewhere" in check.unfinished[0]
    with locks.locked(out):
        assert locks.holder(SafePath(out)) is None, "our own work is not somebody else's"


def test_killed_between_the_files_of_growth(tmp_path):
    """The instances have grown, but the settings do not mention them yet: the folder is sound and can be continued."""
    out, more = tmp_path / "out", tmp_path / "more"
    bench(out, "--policy", "adder", "--limit", 2)
    bench(more, "--policy", "adder", "--limit", 5)
    (out / "instances" / "one_digit.jsonl").write_bytes((more / "instances" / "one_digit.jsonl").read_bytes())
    assert rescoring.verify(out).verified
    bench(out, "--policy", "adder", "--limit", 5)
    assert row(out) == row(more) and rescoring.verify(out).verified


def test_a_folder_of_an_earlier_version_grows(tmp_path):
    """Its rows do not say the limit up to which they were asked."""
    out = tmp_path / "out"
    bench(out, "--policy", "adder", "--policy", "adder:off=1", "--limit", 2)
    for path in out.glob("rows/*/row.json"):
        facts = json.loads(path.read_text())
        del facts["limit"]
        path.write_text(json.dumps(facts))
    assert rescoring.verify(out).verified
    bench(out, "--policy", "adder", "--limit", 4)
    check = rescoring.verify(out)
    assert check.verified and check.partial == ["adder:off=1: 4 of 8 questions were asked"]
    bench(out, "--policy", "adder:off=1", "--limit", 4)
    assert not rescoring.verify(out).partial


def test_another_question_is_still_another_bench(tmp_path):
    out = tmp_path / "out"
    bench(out, "--policy", "adder", "--limit", 2)
    for other in (("--seed", 1), ("--twin", 1), ("--prompt-format", "words"), ("--digits", "two")):
        with pytest.raises(T2TError, match="the folder holds another bench"):
            bench(out, "--policy", "adder", "--limit", 2, *other)


def test_without_out_the_folder_is_found_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for limit in (2, 10, 3):
        t2t("bench", "--testbed", "addition", "--policy", "adder", "--limit", limit)
    (folder,) = (tmp_path / "runs").iterdir()
    assert row(folder)["answers"]["asked"] == 20


def test_a_failing_policy_leaves_its_answers_on_the_board(tmp_path):
    """A wrong key half way: what came before is shown, as partial."""
    out = tmp_path / "out"
    assert bench(out, "--policy", "adder:die=7").return_value == 1
    assert row(out, "adder:die=7")["partial"] == {"asked": 6, "of": 40}
    assert bench(out, "--policy", "adder:die=1").return_value == 1
    assert {r["policy"] for r in json.loads((out / "leaderboard.json").read_text())["tables"][0]["rows"]} == {"adder:die=7"}


def test_compare_leaves_out_what_one_side_was_not_asked(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    bench(a, "--policy", "adder", "--limit", 4)
    bench(b, "--policy", "adder:off=1", "--limit", 2)
    bench(b, "--policy", "adder", "--limit", 4)
    (behind,) = (r for r in read_bench(b).rows() if r.policy == "adder:off=1")
    comparisons = comparison.compare(comparison.read_side(a), comparison.read_side(behind.folder.path))
    assert {c.difference.instances for c in comparisons} == {4}


def test_not_asked_is_told_from_an_error(tmp_path):
    log = AnswerLog(SafePath(tmp_path) / "log.jsonl", ["a", "b"], 2, to_ask=lambda index: index % 2 == 0)
    assert list(log.missing()) == [0, 2] and log.empty and log.progress.total == 2
    log.append(0, Response("", error="HTTP 500", finish_reason="error"))
    log.append(0, Response("7"))
    assert list(log.missing()) == [2] and not log.empty
    assert [r.error for r in log.superseded(0)] == ["HTTP 500"]
    log.close()
