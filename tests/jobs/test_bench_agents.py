"""`t2t episode` and `t2t bench-agents`, over a pool that pretends to train."""

import json
import os

import desks
import pytest
from chat_model import ChatModel
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.store import folders, jsonlines
from t2t_core.store.paths import SafePath
from t2t_jobs import hidden, office
from t2t_jobs.bench import BenchResult
from t2t_jobs.ledger import Cost, Ledger
from t2t_jobs.probe import probe
from t2t_jobs.queue import Queue


@pytest.fixture(autouse=True)
def pretended(monkeypatch):
    """No base is measured, and no job tried by an update."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here is about power cuts
    monkeypatch.setattr(office, "probe", lambda folder, family, *_: probe(folder, family))
    monkeypatch.setattr(hidden, "baseline_scores", lambda *_: {"small": 0.1, "large": 0.25})


@pytest.fixture
def pool():
    return desks.register()


def run(*arguments, status=0):
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == status or status is None, (result.output, result.exception)
    if status == 0 and result.exception:
        raise result.exception
    return result


def logs(out):
    """What the logs say everything took, by its id in the ledger."""
    costs = {}
    for path in sorted(out.rglob("calls.jsonl")):
        name = json.loads((path.parent / "run.json").read_text())["settings"]["name"]
        for line in jsonlines.read(path):
            said = line.value
            if said.get("prompt_tokens") is not None:
                costs[f"{name}/turn-{said['turn']}"] = Cost(
                    tokens_in=said["prompt_tokens"], tokens_out=said["completion_tokens"], usd=said["usd"] or 0.0
                )
    for path in (out / "queue" / "done").iterdir():
        costs[path.stem] = Cost(cpu_seconds=json.loads(path.read_text())["cpu_seconds"])
    return costs


def test_a_chat_model_through_a_local_server_ends_in_a_page(tmp_path, pool):
    with ChatModel() as server:
        spec = f"llm:endpoint:fake,base_url={server.url},price_in=1,price_out=5"
        shown = run("episode", "--agent", spec, "--family", "pretend", "--pool", "pretend", "--out", tmp_path)
    assert "Submission 2 was valid" in shown.output and "submit_job" in shown.output
    assert "the job is queued" in shown.stderr
    page = (tmp_path / "report.html").read_text()
    assert "Timeline" in page and "0.750" in page
    assert Ledger(tmp_path).reconcile(logs(tmp_path)) == []
    again = run("episode", "--agent", spec, "--family", "pretend", "--pool", "pretend", "--out", tmp_path)
    assert again.stdout == shown.stdout and pool.done == ["episode-2"]


def test_agents_side_by_side_with_what_they_cost(tmp_path, pool):
    arguments = ["bench-agents", "--agents", "random-search rule", "--families", "kept pretend", "--episodes", "2",
                 "--tries", "2", "--seeds", "0 1", "--pool", "pretend", "--out", tmp_path]  # fmt: skip
    shown = run(*arguments)
    assert "kept (held out)" in shown.output and "mean, not held out" in shown.output
    result = folders.read_record(SafePath(tmp_path) / "bench.json", BenchResult)
    assert len(result.entries) == 2 * 2 * 2 and all(entry.valid == 2 and entry.jobs == 4 for entry in result.entries)
    rule = next(entry for entry in result.entries if entry.agent == "rule")
    assert rule.scores == [pytest.approx(0.25 + 0.5 * 0.75)] * 2 and rule.gains == [pytest.approx(0.375)] * 2
    assert Ledger(tmp_path).reconcile(logs(tmp_path)) == []
    # the final job of the search is the best it tried
    place = tmp_path / "seed_0" / "0-random-search" / "pretend"
    tries = [json.loads((place / f"try_{n}" / "episode.json").read_text()) for n in range(2)]
    final = json.loads((place / "final_0" / "episode.json").read_text())
    assert final["values"] == max(tries, key=lambda attempt: attempt["reward"]["total"])["values"]
    before = len(pool.done)
    assert run(*arguments).output.endswith(shown.output[-200:]) and len(pool.done) == before


def test_all_agents_meet_the_same_hidden_evaluations(tmp_path, pool):
    run(
        "bench-agents",
        "--agents",
        "random-search rule",
        "--families",
        "pretend",
        "--episodes",
        "2",
        "--pool",
        "pretend",
        "--out",
        tmp_path,
    )
    orders = [json.loads(path.read_text())["episode"] for path in sorted((tmp_path / "queue" / "done").iterdir())]
    assert sorted(orders) == ["0-pretend-final-0", "0-pretend-final-0", "0-pretend-final-1", "0-pretend-final-1"]
    seeds = {Queue(tmp_path / "queue").hidden_seed(name) for name in orders}
    assert len(seeds) == 2


def test_money_for_everything_is_hard(tmp_path, pool):
    with ChatModel() as server:
        spec = f"llm:endpoint:fake,base_url={server.url},price_in=0,price_out=1000,max_tokens=20"
        arguments = [
            "bench-agents",
            "--agents",
            spec,
            "--families",
            "pretend",
            "--episodes",
            "1",
            "--pool",
            "pretend",
            "--out",
            tmp_path,
        ]
        stopped = run(*arguments, "--max-usd", "0.03", status=None)
        assert "the budget has no room" in str(stopped.exception)
        assert 0 < Ledger(tmp_path).total().usd <= 0.03
        assert Ledger(tmp_path).reconcile(logs(tmp_path)) == []
        run(*arguments, "--max-usd", "10")
    assert json.loads((tmp_path / "bench.json").read_text())["entries"][0]["jobs"] == 1
    assert Ledger(tmp_path).reconcile(logs(tmp_path)) == []


def test_seconds_for_everything_are_hard(tmp_path, pool):
    arguments = [
        "bench-agents",
        "--agents",
        "rule",
        "--families",
        "pretend",
        "--episodes",
        "9",
        "--pool",
        "pretend",
        "--out",
        tmp_path,
    ]
    stopped = run(*arguments, "--max-cpu-seconds", "45", status=None)
    assert "does not cover" in str(stopped.exception)
    assert Queue(tmp_path / "queue").counts()["queued"] == 2, "a job of at most 20 seconds is begun where 20 are left"
    run(*arguments, "--max-cpu-seconds", "180")
    assert len(pool.done) == 9 and Ledger(tmp_path).total().cpu_seconds == 18


@pytest.mark.parametrize(
    "wrong",
    [
        ["episode", "--agent", "nobody", "--family", "pretend"],
        ["episode", "--agent", "rule", "--family", "nothing"],
        ["episode", "--agent", "rule:x", "--family", "pretend"],
        ["bench-agents", "--agents", "rule", "--families", "pretend", "--seeds", "one"],
        ["bench-agents", "--agents", " ", "--families", "pretend"],
    ],
)
def test_a_users_mistake_is_told(tmp_path, pool, wrong):
    result = run(*wrong, "--pool", "pretend", "--out", tmp_path / "out", status=None)
    assert result.exit_code != 0 and type(result.exception).__name__ == "T2TError"


def test_tries_end_once_their_jobs_took_so_much(tmp_path, pool):
    run("bench-agents", "--agents", "random-search", "--families", "pretend", "--episodes", "1", "--tries", "9",
        "--tries-cpu-seconds", "5", "--pool", "pretend", "--out", tmp_path)  # fmt: skip
    assert json.loads((tmp_path / "bench.json").read_text())["entries"][0]["jobs"] == 3 + 1, "of two seconds each"


def test_an_agent_is_told_which_code_its_job_may_bring(tmp_path, pool):
    arguments = ["episode", "--agent", "rule", "--family", "pretend", "--pool", "pretend"]
    run(*arguments, "--out", tmp_path / "without")
    run(*arguments, "--allow-code", "reward.py", "--out", tmp_path / "with")
    told = {name: (tmp_path / name / "episode/workspace/README.md").read_text() for name in ("with", "without")}
    assert (
        "reward.py: `def reward(" in told["with"] and "environment.py" not in told["with"] and "reward.py" not in told["without"]
    )
    assert json.loads((tmp_path / "with/episode/run.json").read_text())["settings"]["allow_code"] == ["reward.py"]


def test_jobs_that_die_keep_the_part_for_validity(tmp_path):
    desks.register(desks.PretendPool(fails=lambda job: True))
    shown = run("episode", "--agent", "rule", "--family", "pretend", "--pool", "pretend", "--out", tmp_path)
    assert "the job died: it died. Reward 0.350" in shown.output
