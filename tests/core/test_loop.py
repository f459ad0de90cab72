"""The closed loop on the pretend testbed: its order, its records, hostile designers, and kills at every write."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.loop.rounds import Loop
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.records import Proposal, Response, TrainingResult
from t2t_core.run.experiment import Experiment
from t2t_core.run.forks import Fork
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import PROPOSED
from t2t_core.seeding import Stream
from t2t_core.store import locks, schema

pytestmark = pytest.mark.usefixtures("lake_plugins")
EXPERIMENT = Experiment.from_dict(
    {
        "testbed": "lake",
        "policy": "repeater",
        "designer": "rule",
        "rounds": 3,
        "seed": 5,
        "generation": {"samples": 20, "agents": 2},
        "training": {"epochs": 3},
        "validation": {"set": "validation"},
    }
)
DATED = {"run.json", "log.jsonl", ".lock"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name, without those that hold times."""
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in DATED)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_run_has_every_file_and_design_runs_after_every_round_but_the_last(tmp_path: Path) -> None:
    lines: list[str] = []
    Loop(EXPERIMENT, tmp_path, Reporter(lines.append)).run()
    for index in range(3):
        files = {p.name for p in (tmp_path / f"round_{index}").iterdir()}
        always = {"configuration.json", "generation.json", "instances.jsonl", "train", "training.json", "breakdown.json"}
        assert always | {"validation", "validation.jsonl"} <= files
        assert ({"context.md", "proposal.json", "projection.json"} <= files) == (index < 2)
    projected = read(tmp_path / "round_0" / "projection.json")["configuration"]
    assert read(tmp_path / "round_1" / "configuration.json") == projected
    manifest = read(tmp_path / "run.json")
    assert manifest["sessions"][-1]["reader"] == 1
    assert [read(tmp_path / f"round_{i}" / "breakdown.json")["reader"] for i in range(3)] == [1, 1, 1]
    assert manifest["settings"] == json.loads(json.dumps(EXPERIMENT.to_dict()))
    assert any("validate" in line for line in lines)


def test_the_same_command_does_nothing_twice_and_another_is_refused(tmp_path: Path) -> None:
    Loop(EXPERIMENT, tmp_path, Reporter()).run()
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    Loop(EXPERIMENT, tmp_path, Reporter()).run()
    assert before == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(T2TError, match="seed"):
        Loop(replace(EXPERIMENT, seed=6), tmp_path, Reporter()).run()


def test_runs_depend_on_the_seed_alone(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        Loop(replace(EXPERIMENT, seed=seed), tmp_path / name, Reporter()).run()
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != contents(tmp_path / "c")


# --- hostile designers


class Unfair:
    def __init__(self, behave: Callable[[Any], Any]) -> None:
        self.behave = behave

    def propose(self, brief: Any) -> Any:
        return self.behave(brief)


def with_designer(behave: Callable[[Any], Any], name: str = "unfair") -> None:
    installed().designers.entries.pop(name, None)
    installed().designers.add(name, lambda argument, settings: Unfair(behave))


def raises(brief: Any) -> Any:
    raise RuntimeError("boo\x1b[31m")


def leaves(brief: Any) -> Any:
    raise SystemExit(3)


nested: Any = {}
for _ in range(200):
    nested = {"a": nested}


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (raises, "failed"),
        (leaves, "failed"),
        (lambda brief: None, "failed"),
        (lambda brief: Proposal("no", None), "unreadable"),
        (lambda brief: Proposal("", None, responses=[Response("", error="503")]), "failed"),
        (lambda brief: Proposal(7, [1, 2], 3, 4, 5, 6), "unreadable"),  # type: ignore[arg-type]
        (lambda brief: Proposal("deep", nested), "unreadable"),
        (lambda brief: Proposal("\ud800", {"3": {"data_ratio": math.nan, "hole_ratio": 10**400, 5: object()}}), "unchanged"),
        (lambda brief: Proposal("", {"3": {"data_ratio": 0.9}, "4": {"data_ratio": 0.1}}), "proposed"),
        (lambda brief: Proposal("", brief.previous.to_dict()), "unchanged"),
        (lambda brief: time.sleep(60), "timed out"),
    ],
)
def test_a_designer_cannot_break_the_loop(tmp_path: Path, behave: Callable[[Any], Any], outcome: str) -> None:
    with_designer(behave)
    lines: list[str] = []
    Loop(replace(EXPERIMENT, designer="unfair", rounds=2, design_seconds=0.2), tmp_path, Reporter(lines.append)).run()
    assert read(tmp_path / "round_0" / "proposal.json")["outcome"] == outcome
    if outcome != "proposed":
        before, after = (read(tmp_path / f"round_{i}" / "configuration.json") for i in (0, 1))
        assert after == {group: pytest.approx(knobs) for group, knobs in before.items()}
    if outcome not in PROPOSED:
        assert outcome in read(tmp_path / "round_0" / "projection.json")["note"]
        assert any(outcome in line and "\x1b" not in line for line in lines)


def test_no_key_is_written_wherever_a_designer_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-planted-0123456789"
    monkeypatch.setenv("SOME_API_KEY", key)
    call = Response(key, error=f"401 {key}")

    def blurts(brief: Any) -> Any:
        if brief.state.rounds[-1].index:
            raise RuntimeError(key)
        return Proposal(key, {"3": {key: key, "hole_ratio": key}}, key, [key], key, [call])

    with_designer(blurts)
    summary = run_experiment(replace(EXPERIMENT, designer="unfair"), tmp_path, Reporter())
    assert "[SOME_API_KEY]" in json.dumps(schema.plain(summary))
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and key.encode() in p.read_bytes()]


def garbage(stream: Stream, depth: int = 0) -> Any:
    """A value a careless model might propose."""
    pick = stream.below(12)
    if pick < 4 and depth < 3:
        keys = ["3", "4", "data_ratio", "hole_ratio", "wait_ratio", "10", "", "\ud800"]
        return {stream.choice(keys): garbage(stream, depth + 1) for _ in range(stream.below(5))}
    if pick < 5 and depth < 3:
        return [garbage(stream, depth + 1) for _ in range(stream.below(4))]
    return stream.choice([None, True, -1, 10**400, math.nan, math.inf, -0.0, 0.3, 30, 1e308, "0.2", "\x00", 2.5, object()])


@pytest.mark.parametrize("rounds", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_garbage_round_after_round_leaves_every_configuration_sound(tmp_path: Path, monkeypatch: Any, rounds: int) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    stream = Stream.of(1, "garbage")
    with_designer(lambda brief: Proposal("?", garbage(stream)))
    tiny = {"set": "validation", "limit": 1}
    many = replace(EXPERIMENT, designer="unfair", rounds=rounds, validation=tiny, generation={"samples": 1}, context="F,G")
    Loop(many, tmp_path, Reporter()).run()
    for index in range(1, rounds):
        knobs = read(tmp_path / f"round_{index}" / "configuration.json").values()
        assert sum(k["data_ratio"] for k in knobs) == pytest.approx(1)
        assert all(0 <= k["hole_ratio"] <= 0.5 and 0 <= k["wait_ratio"] <= 1 for k in knobs)


# --- kills


class Counting:
    """A trainer that says how often it was called, and makes a checkpoint."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def train(self, job: TrainingJob) -> TrainingResult:
        with open(self.log, "a") as file:
            file.write(f"{job.round_index}\n")
        assert job.progress is not None
        job.progress({"update": 1, "reward": 0.5})
        job.folder.mkdir(exist_ok=True)
        (job.folder / "weights").write_text(f"{job.checkpoint and job.checkpoint.name} {job.seed}")
        return TrainingResult(job.folder, {"reward": 0.5}, len(job.instances), 1, 10)


def die_at(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process, without running any `finally`, at the `count`-th write (after half a line), rename or sync."""
    left = [count]

    def mortal(real: Callable[..., Any], half: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if half:
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os._exit(9)
            done = real(*arguments, **named)
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
            return done

        return call

    monkeypatch.setattr(os, "replace", mortal(os.replace, False))
    monkeypatch.setattr(os, "write", mortal(os.write, True))
    monkeypatch.setattr(os, "fsync", mortal(lambda descriptor: None, False))


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process; its exit status."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the child must not go on with the tests
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.thorough
def test_killed_at_every_write_it_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    installed().trainers.entries.pop("counting", None)
    installed().trainers.add("counting", lambda argument, settings: Counting(calls))
    small = replace(EXPERIMENT, trainer="counting", rounds=2, validation={"set": "validation", "limit": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        Loop(small, tmp_path / "whole", Reporter()).run()
        undisturbed, kills = contents(tmp_path / "whole"), 0
        for count in range(1, 1000):
            calls.unlink(missing_ok=True)
            folder = tmp_path / str(count)

            def killed(folder: Path = folder, count: int = count) -> None:
                die_at(count, monkeypatch)
                Loop(small, folder, Reporter()).run()

            status = in_child(killed)
            Loop(small, folder, Reporter()).run()
            assert contents_but_metrics(contents(folder)) == contents_but_metrics(undisturbed)
            trained = [int(line) for line in calls.read_text().split()]
            assert len(trained) <= 3 and sorted(set(trained)) == [0, 1]
            if status == 0:
                break
            assert status == 9
            kills += 1
    print(f"run: killed at each of {kills} writes")
    assert kills > 60


def contents_but_metrics(files: dict[str, bytes]) -> dict[str, bytes]:
    """The contents without the log of answers, which has times, and without training figures, which tell of interruptions."""
    return {n: b for n, b in files.items() if not n.endswith(("/log.jsonl", "metrics.jsonl", ".tmp"))}


@pytest.mark.thorough
@pytest.mark.parametrize("folders", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_whole_run_goes_on_to_the_same_bytes(tmp_path: Path, folders: int) -> None:
    experiment = replace(EXPERIMENT, rounds=3, evaluation={"limit": 3})

    def work(folder: Path) -> None:
        run_experiment(experiment, folder, Reporter(), with_control=True)

    started = time.monotonic()
    work(tmp_path / "whole")
    longest = time.monotonic() - started
    undisturbed, stream, kills = contents(tmp_path / "whole"), Stream.of(2, "kills"), 0
    for number in range(folders):
        folder = tmp_path / str(number)
        for _ in range(10):
            child = os.fork()
            if not child:
                work(folder)
                os._exit(0)
            time.sleep(stream.uniform() * longest)
            os.kill(child, signal.SIGKILL)
            kills += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
        work(folder)
        assert contents_but_metrics(contents(folder)) == contents_but_metrics(undisturbed)
    print(f"run with control: killed {kills} times at random moments of {10 * folders} starts")
    assert kills > folders


# --- forks and control


def test_a_fork_shares_its_rounds_and_differs_in_its_designer(tmp_path: Path) -> None:
    Loop(EXPERIMENT, tmp_path / "run", Reporter()).run()
    fork = Fork.parse(f"{tmp_path / 'run'}@0")
    other = replace(EXPERIMENT, designer="random")
    Loop(other, tmp_path / "fork", Reporter(), fork).run()
    shared = {n: b for n, b in contents(tmp_path / "run").items() if n.startswith("round_0/")}
    taken = {n: b for n, b in contents(tmp_path / "fork").items() if n.startswith("round_0/")}
    assert {n for n in shared if shared[n] != taken[n]} <= {"round_0/proposal.json", "round_0/projection.json"}
    assert read(tmp_path / "fork" / "round_0" / "proposal.json")["designer"] == "random"
    with pytest.raises(T2TError, match="training"):
        Loop(replace(other, training={"epochs": 1}), tmp_path / "x", Reporter(), fork).run()
    with pytest.raises(T2TError, match="not finished"):
        Loop(replace(other, rounds=9), tmp_path / "y", Reporter(), Fork.parse(f"{tmp_path / 'run'}@7")).run()


def test_the_summary_compares_the_arms_at_equal_budgets(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    installed().trainers.entries.pop("counting", None)
    installed().trainers.add("counting", lambda argument, settings: Counting(calls))
    experiment = replace(EXPERIMENT, trainer="counting", evaluation={"agents": "2,3", "limit": 4})
    summary = run_experiment(experiment, tmp_path / "run", Reporter(), with_control=True)
    assert [r.round for r in summary.rounds] == [0, 1, 2]
    assert summary.unequal == [] and set(summary.budgets) == {"designed", "control"}
    assert summary.budgets["designed"].samples == 60
    tables = summary.bench.sets
    assert [t.instances for t in tables] == [8, 8]
    assert [row.arm for row in tables[0].rows] == ["base", "designed", "control"]
    assert {tuple(d.arms) for d in tables[0].differences} == {
        ("designed", "base"),
        ("designed", "control"),
        ("control", "base"),
    }
    configurations = [read(tmp_path / "run" / "control" / f"round_{i}" / "configuration.json") for i in range(3)]
    assert {g: pytest.approx(k) for g, k in configurations[0].items()} == configurations[2]
    text = (tmp_path / "run" / "summary.md").read_text()
    assert "| designed - control | valid " in text and "UNEQUAL" not in text
    again = run_experiment(experiment, tmp_path / "run", Reporter(), with_control=True)
    assert again == summary


def test_what_training_shares_with_a_set_is_counted_in_every_round_and_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared(self: Any, instances: Any, others: Any) -> dict[str, int]:
        numbers = {other.number for other in others}
        return {"same_numbers": sum(i.number in numbers for i in instances)}

    monkeypatch.setattr(installed().testbeds.make("lake").__class__, "shared", shared, raising=False)
    summary = run_experiment(EXPERIMENT, tmp_path, Reporter(), with_control=True)
    counted = [read(tmp_path / f"round_{index}" / "generation.json")["shared"] for index in range(3)]
    assert summary.shared["designed"] == counted and set(counted[0]) == {"validation"}
    assert len(summary.shared["control"]) == 3
    text = (tmp_path / "summary.md").read_text()
    assert "What training instances share with each set" in text and "same numbers" in text
    path = tmp_path / "round_1" / "generation.json"
    record = read(path)
    for edited in ({"validation": 3}, {"validation": {"same_numbers": -1}}, {"validation": {"same_numbers": "many"}}, []):
        path.write_text(json.dumps(record | {"shared": edited}))
        with pytest.raises(T2TError, match="generation.json"):
            run_experiment(EXPERIMENT, tmp_path, Reporter(), with_control=True)
    del record["shared"]  # as an earlier version left it
    path.write_text(json.dumps(record))
    again = run_experiment(EXPERIMENT, tmp_path, Reporter(), with_control=True)
    assert again.shared["designed"] == [counted[0], {}, counted[2]]


def test_a_second_process_on_one_folder_is_refused(tmp_path: Path) -> None:
    with locks.locked(tmp_path), pytest.raises(T2TError, match="another process"):
        run_experiment(EXPERIMENT, tmp_path, Reporter())
