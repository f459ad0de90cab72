"""Killed again and again, at random moments: every job has one result, the ledger reconciles, and the same command finishes."""

import json
import os
import signal
import time
import traceback
from dataclasses import replace

import desks
import pytest

from t2t_core.seeding import Stream
from t2t_core.store import jsonlines
from t2t_core.store.paths import SafePath
from t2t_jobs import hidden, office
from t2t_jobs.bench import BenchPlan, run_bench
from t2t_jobs.ledger import Cost, Ledger
from t2t_jobs.probe import probe
from t2t_jobs.room import Room

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]


@pytest.fixture(autouse=True)
def pretended(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a killed process is no power cut
    monkeypatch.setattr(office, "probe", lambda folder, family, *_: probe(folder, family))
    monkeypatch.setattr(hidden, "baseline_scores", lambda *_: {"small": 0.1, "large": 0.25})
    desks.register()


def room(folder):
    return Room(folder, "pretend", secret=5)


def killed(work, times, stream, longest):
    """Run it in processes of their own, each killed after a while, until it ends by itself; how many were killed. The last one
    may take as long as it likes."""
    for number in range(times + 1):
        child = os.fork()
        if child == 0:
            try:
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        if number < times:
            time.sleep(longest * stream.uniform())
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "it failed by itself"
            return number
    raise AssertionError("it never ended")


def reconciled(out):
    """Every job that was submitted has one result, and the ledger is what the logs say."""
    submitted, costs = [], {}
    for path in sorted(out.rglob("calls.jsonl")):
        name = json.loads((path.parent / "run.json").read_text())["settings"]["name"]
        for line in jsonlines.read(path):
            said = line.value
            if said.get("submission") and said["submission"]["job"]:
                submitted.append(said["submission"]["job"])
            if said.get("prompt_tokens") is not None:
                costs[f"{name}/turn-{said['turn']}"] = Cost(tokens_in=said["prompt_tokens"], tokens_out=said["completion_tokens"])
    done = sorted(path.stem for path in (out / "queue" / "done").iterdir())
    assert sorted(submitted) == done
    costs |= {job: Cost(cpu_seconds=2.0) for job in done}
    assert Ledger(out).reconcile(costs) == []
    return done


def test_a_bench_killed_two_hundred_times_ends_in_the_same_figures(tmp_path):
    plan = BenchPlan(["random-search", "rule"], ["pretend", "other", "kept"], 4, 4, [0, 1])
    whole = run_bench(plan, SafePath(tmp_path / "whole"), room)
    count = killed(lambda: run_bench(plan, SafePath(tmp_path / "killed"), room), 200, Stream.of(0, "kills"), 0.15)
    again = run_bench(plan, SafePath(tmp_path / "killed"), room)
    assert again == whole and count > 20
    assert reconciled(tmp_path / "killed") == reconciled(tmp_path / "whole")


@pytest.mark.train
def test_an_outer_loop_killed_again_and_again_finishes(tmp_path):
    """With lag, the learning depends on when jobs finish. Still every step is there once, with its own groups."""
    from t2t_jobs.agents.tiny.warmup import export, learn
    from t2t_jobs.training.outer import OuterPlan, read_steps, train_agent
    from t2t_jobs.training.settings import OuterSettings

    model, tokenizer, _ = learn([desks.family(name) for name in ("pretend", "other", "kept")], 0, 300, 40)
    export(model, tokenizer, tmp_path / "warm")
    settings = replace(OuterSettings(device="cpu"), steps=6, groups=2, group=4)
    plan = OuterPlan(f"tiny:{tmp_path / 'warm'}", ("pretend", "other"), 3, settings)
    count = killed(lambda: train_agent(plan, SafePath(tmp_path / "out"), room), 40, Stream.of(1, "kills"), 4.0)
    steps = read_steps(SafePath(tmp_path / "out"))
    used = [number for step in steps for number in step.groups]
    assert len(steps) == 6 and len(set(used)) == len(used) == 12 and count > 3
    assert max(lag for step in steps for lag in step.lags) <= 2
    reconciled(tmp_path / "out")
