"""A folder scored by another version of the testbed's reader: the check names the verdicts that change, and reports no damage."""

import json
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner

import addition
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.evaluation import demonstrations
from t2t_core.evaluation.demonstrations import collect
from t2t_leaderboard import rescoring, submission

MOVED = "one_digit_0003"  # the instance whose answers the next reader does not take


def t2t(*arguments):
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def benched(tmp_path_factory):
    addition.register()
    folder = tmp_path_factory.mktemp("bench") / "out"
    bench(folder)
    return folder


@pytest.fixture
def out(benched, tmp_path):
    return shutil.copytree(benched, tmp_path / "out")


@pytest.fixture
def next_reader(monkeypatch):
    """The testbed as its next version reads answers."""
    before = addition.Addition.verify

    def verify(self, instance, text, format=""):
        verdict = before(self, instance, text, format)
        return verdict if instance.id != MOVED else replace(verdict, checks=dict.fromkeys(verdict.checks, False), valid=False,
                                                            optimal=False, cost=None, costs={}, gap=None, gaps={})  # fmt: skip

    def upgrade():
        monkeypatch.setattr(addition.Addition, "reader", 2)
        monkeypatch.setattr(addition.Addition, "verify", verify)

    return upgrade


def bench(folder):
    return t2t("bench", "--testbed", "addition", "--policy", "adder", "--policy", "adder:off=3", "--out", folder)


def test_the_reader_stands_in_every_manifest_that_holds_verdicts(out, tmp_path):
    rows = [json.loads(path.read_text()) for path in out.glob("rows/*/row.json")]
    assert [row["reader"] for row in rows] == [1, 1]
    assert json.loads((out / "run.json").read_text())["sessions"][-1]["reader"] == 1
    assert all(row["reader"] == 1 for row in json.loads((out / "leaderboard.json").read_text())["tables"][0]["rows"])
    folder = submission.make(out, "adder", tmp_path, "adder")
    assert json.loads((folder / "metadata.json").read_text())["reader"] == 1


def test_verdicts_that_move_are_listed_and_the_folder_is_not_called_damaged(out, next_reader):
    page = (out / "leaderboard.md").read_text()
    next_reader()
    result = t2t("verify", out)
    assert result.return_value == 0 and "sound: 80 answers" in result.stdout and "2 are others under reader 2" in result.stdout
    assert result.stdout.count(MOVED) == 2 and "valid: True there, False recomputed" in result.stdout
    shown = (out / "leaderboard.md").read_text()
    assert "2 of 80 verdicts are others under reader 2" in " ".join(shown.replace("\\", "").split())
    figures = [line for line in page.splitlines() if line.startswith("|")]
    assert [line for line in shown.splitlines() if line.startswith("|")] == figures, "what was recorded stays"
    assert t2t("verify", out).return_value == 0, "again: the pages show what was found"
    with pytest.raises(T2TError, match="others under reader 2"):
        submission.make(out, "adder", out.parent, "adder")


def test_a_folder_of_before_there_were_versions_is_one_of_reader_1(out, next_reader):
    for path in out.glob("rows/*/row.json"):
        path.write_text(json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != "reader"}))
    board = json.loads((out / "leaderboard.json").read_text())
    for row in board["tables"][0]["rows"]:
        del row["reader"]
    (out / "leaderboard.json").write_text(json.dumps(board))
    (out / "leaderboard.html").unlink()
    assert rescoring.verify(out).problems == []
    next_reader()
    check = rescoring.verify(out)
    assert check.problems == [] and len(check.moved) == 2 and check.reader == 2


def test_what_does_not_follow_from_the_recorded_verdicts_is_still_a_fault(out, next_reader):
    next_reader()
    path = next(out.glob("rows/*/answers.jsonl"))
    lines = path.read_text().splitlines()
    record = json.loads(lines[6])
    record["verdict"]["valid"] = not record["verdict"]["valid"]
    path.write_text("\n".join([*lines[:6], json.dumps(record), *lines[7:]]) + "\n")
    assert any("leaderboard.json" in problem for problem in rescoring.verify(out).problems)
    record["verdict"] = {"valid": 1}
    path.write_text("\n".join([*lines[:6], json.dumps(record), *lines[7:]]) + "\n")
    assert any("line 7" in problem for problem in rescoring.verify(out).problems)


def test_the_same_bench_scores_the_answers_anew_and_asks_nothing(out, next_reader):
    next_reader()
    asked = [path.read_bytes() for path in out.glob("rows/*/log.jsonl")]
    result = bench(out)
    assert result.return_value == 0 and [path.read_bytes() for path in out.glob("rows/*/log.jsonl")] == asked
    assert [json.loads(path.read_text())["reader"] for path in out.glob("rows/*/row.json")] == [2, 2]
    check = rescoring.verify(out)
    assert check.verified and not check.moved
    assert [s["reader"] for s in json.loads((out / "run.json").read_text())["sessions"]] == [1, 2]
    valid = {
        row["policy"]: row["total"]["valid"]["value"]
        for row in json.loads((out / "leaderboard.json").read_text())["tables"][0]["rows"]
    }
    assert 95 < valid["adder"] < 100


def test_a_submission_of_an_earlier_reader_is_sound(out, tmp_path, next_reader):
    folder = submission.make(out, "adder", tmp_path, "adder")
    next_reader()
    check = submission.verify(folder)
    assert check.verified and len(check.moved) == 1
    result = t2t("verify", folder)
    assert result.return_value == 0 and "1 are others under reader 2" in result.stdout


def test_demonstrations_record_the_reader(tmp_path, next_reader, monkeypatch):
    addition.register()
    monkeypatch.setattr(addition.Addition, "protected_sets", lambda self: ())
    testbed = addition.Addition()
    instances = [replace(i, id=f"t{i.id}") for i in testbed.twin("two_digit", 5).instances[:4]]
    request = demonstrations.Request("adder")
    collect(testbed, instances, request, tmp_path / "d.jsonl")
    next_reader()
    collect(testbed, instances, request, tmp_path / "d.jsonl")
    sessions = json.loads((tmp_path / "d.jsonl.asked" / "run.json").read_text())["sessions"]
    assert [session["reader"] for session in sessions] == [1, 2]


def test_a_folder_that_grows_gets_the_verdicts_of_one_reader(out, next_reader):
    next_reader()
    t2t("bench", "--testbed", "addition", "--policy", "adder:every=4", "--samples", 2, "--out", out)
    rows = [json.loads(path.read_text()) for path in out.glob("rows/*/row.json")]
    assert [row["reader"] for row in rows] == [2, 2, 2]
    check = rescoring.verify(out)
    assert check.verified and not check.moved and len(check.partial) == 2
