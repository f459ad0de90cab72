"""A run that is stopped, loses power, finds a folder of another version, or has a designer that only proposes garbage."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli, main
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.loop.rounds import Loop
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.records import Proposal, TrainingResult
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter
from t2t_core.run.round_files import PROPOSED, RoundFiles
from t2t_core.seeding import Stream
from t2t_core.store import locks
from t2t_core.store.paths import SafePath

pytestmark = pytest.mark.usefixtures("lake_plugins")
SETTINGS = {
    "testbed": "lake",
    "policy": "repeater",
    "designer": "rule",
    "rounds": 3,
    "seed": 5,
    "generation": {"samples": 20},
    "validation": {"set": "validation"},
    "evaluation": {"limit": 3},
}
EXPERIMENT = Experiment.from_dict(SETTINGS)
CONFIGURATION = """
testbed = "lake"
policy = "repeater"
designer = "rule"
rounds = 3
[generation]
samples = 20
[validation]
set = "validation"
[evaluation]
limit = 3
"""


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name, without those that hold times or were left by a process that was stopped."""
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in ("run.json", "log.jsonl", ".lock"))
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.suffix != ".tmp"}


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_run_and_the_same_command_goes_on_to_the_same_bytes(tmp_path: Path, number: signal.Signals) -> None:
    config = tmp_path / "lake.toml"
    config.write_text(CONFIGURATION)

    def work(folder: Path) -> None:
        main(["run", "--config", str(config), "--with-control", "--seed", "5", "--report-to", "none", "--out", str(folder)])

    def whole(folder: Path) -> float:
        started = time.monotonic()
        with pytest.raises(SystemExit) as ended:
            work(folder)
        assert ended.value.code == 0
        return time.monotonic() - started

    longest, stream, stopped = whole(tmp_path / "whole"), Stream.of(3, number.name), 0
    for at in range(8):
        folder = tmp_path / str(at)
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])  # until the child can answer it
        child = os.fork()
        if not child:
            try:
                for stream_number in (1, 2):
                    os.dup2(os.open(tmp_path / "child.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), stream_number)
                sys.stdout, sys.stderr = (os.fdopen(stream_number, "w", buffering=1) for stream_number in (1, 2))
                signal.signal(number, signal.default_int_handler)  # as a shell starts a process, until the run takes over
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
                work(folder)
            except SystemExit as ended:
                os._exit(int(ended.code or 0))
            except KeyboardInterrupt:
                os._exit(130)
            finally:
                os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        time.sleep(stream.uniform() * longest)
        os.kill(child, number)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, 130), (tmp_path / "child.txt").read_text()[-2000:]
        stopped += status == 130
        whole(folder)
        assert contents(folder) == contents(tmp_path / "whole")
    assert stopped


class Saving:
    """A trainer that writes a checkpoint in its own way, as libraries do that do not know the suite."""

    def train(self, job: TrainingJob) -> TrainingResult:
        (job.folder / "part").mkdir(parents=True)
        (job.folder / "weights").write_text("w" * 10_000)
        (job.folder / "part" / "more").write_text(str(job.seed))
        (job.folder / "link").symlink_to("weights")
        return TrainingResult(job.folder, {}, len(job.instances), 1, 10)


@pytest.fixture
def saving() -> Iterator[str]:
    installed().trainers.add("saving", lambda argument, settings: Saving())
    yield "saving"
    del installed().trainers.entries["saving"]


def test_between_rounds_the_power_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saving: str) -> None:
    """When a round is over, every file of it has been synced to the disk in its final state, and so has its folder."""
    synced: set[tuple[int, int]] = set()
    real = os.fsync

    def sync(descriptor: int) -> None:
        facts = os.fstat(descriptor)
        synced.add((facts.st_ino, facts.st_size if stat.S_ISREG(facts.st_mode) else 0))
        real(descriptor)

    checked: list[str] = []

    def check(folder: Path) -> None:
        for path in (p for p in folder.rglob("*") if not p.is_symlink() and p.is_file()):
            facts = path.stat()
            assert (facts.st_ino, facts.st_size) in synced, f"{path} would be lost"
            for place in (path.parent, path.parent.parent):
                assert (place.stat().st_ino, 0) in synced, f"the name of {path} would be lost"
            checked.append(path.name)

    class Between(Reporter):
        def round(self, index: int, of: int) -> None:
            for before in range(index):
                check(tmp_path / f"round_{before}")

    monkeypatch.setattr(os, "fsync", sync)
    Loop(replace(EXPERIMENT, trainer=saving), tmp_path, Between()).run()
    assert {"weights", "more", "training.json", "validation.jsonl", "metrics.jsonl", "projection.json"} <= set(checked)


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_every_command_refuses_a_run_folder_of_another_version(tmp_path: Path, version: Any) -> None:
    folder, config = tmp_path / "run", tmp_path / "lake.toml"
    config.write_text(CONFIGURATION)
    CliRunner().invoke(cli, ["run", "--config", str(config), "--out", str(folder)], catch_exceptions=False)
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"format": version}))
    before = contents(folder)
    for command in (
        ["run", "--config", config, "--out", folder],
        ["run", "--fork", f"{folder}@0", "--designer", "random", "--out", tmp_path / "fork"],
        ["design", "--run", folder],
        ["report", folder],
        ["analyze", folder],
    ):
        with pytest.raises(T2TError, match="this version of the suite reads format 1") as refusal:
            CliRunner().invoke(cli, [str(word) for word in command], catch_exceptions=False)
        assert "use that version" in str(refusal.value)
    assert contents(folder) == before


@pytest.mark.parametrize("line", ['{"id": "x"}', "[1]", '{"size": 3'])
def test_an_edited_instance_of_a_round_is_named_by_file_and_line(tmp_path: Path, line: str) -> None:
    files, lake = RoundFiles(SafePath(tmp_path), 0), installed().testbeds.make("mapf-frozenlake")
    request = lake.request(3)
    files.write_instances(lake.generate(lake.random_configuration(request, 1), request, 2))
    lines = files.instances.path.read_text().splitlines()
    files.instances.path.write_text("\n".join([lines[0], line, lines[2]]) + "\n")
    with pytest.raises(T2TError, match=r"instances.jsonl, line 2"):
        files.read_instances(lake)


class Babbling:
    """A designer of garbage; `said` keeps what it proposed."""

    def __init__(self, say: Callable[[], Any]) -> None:
        self.say = say

    def propose(self, brief: Any) -> Proposal:
        return Proposal("?", self.say())


def babble(stream: Stream) -> Any:
    """A proposal with sizes, ratios and numbers as a fuzzer makes them up, and now and then something entirely different."""
    if stream.below(12) == 0:
        return stream.choice([None, [], {}, "3", {"3": 1}, {"sizes": {}}, 10**400])
    numbers = [0, 1, 0.3, 0.5, 0.77, 1e-9, 30, -1, -0.0, 1e308, 10**400, float("nan"), float("inf"), True, None, "0.2", [0.2]]
    sizes = [str(3 + stream.below(8)) for _ in range(stream.below(9))] + ["11"] * (stream.below(4) == 0)
    knobs = ("data_ratio", "hole_ratio", "wait_ratio", "wait ratio")
    return {size: {knob: stream.choice(numbers) for knob in knobs if stream.below(5)} for size in sizes}


@pytest.mark.parametrize("rounds", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_rounds_of_garbage_on_frozen_lakes_stay_sound_and_name_every_correction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """On the real testbed, every configuration can be generated from, and every proposed value that is not used is named."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    stream, corrections, used = Stream.of(7, "babble"), 0, 0
    installed().designers.add("babbling", lambda argument, settings: Babbling(lambda: babble(stream)))
    lakes = {"testbed": "mapf-frozenlake", "policy": "independent", "designer": "babbling", "rounds": rounds, "context": "F"}
    settings = SETTINGS | lakes | {"generation": {"samples": 8}, "validation": {"set": "validation_2agents", "limit": 1}}
    try:
        Loop(Experiment.from_dict(settings), tmp_path, Reporter()).run()
    finally:
        del installed().designers.entries["babbling"]
    for index in range(rounds - 1):
        folder = tmp_path / f"round_{index}"
        proposal, projection = (json.loads((folder / name).read_text()) for name in ("proposal.json", "projection.json"))
        configuration = projection["configuration"]
        assert sum(knobs["data_ratio"] for knobs in configuration.values()) == pytest.approx(1, abs=1e-6)
        assert all(0 <= k["hole_ratio"] <= 0.5 and 0 <= k["wait_ratio"] <= 1 for k in configuration.values())
        named = {change["knob"] for change in projection["changes"]}
        parsed = proposal["parsed"] if isinstance(proposal["parsed"], dict) else {}
        for size, knobs in parsed.items():
            for knob, value in knobs.items() if isinstance(knobs, dict) else ():
                taken = configuration.get(size, {}).get(knob)
                same = isinstance(value, (int, float)) and not isinstance(value, bool) and value == taken
                about = {size, f"{size}.{knob}"} | ({"data_ratio"} if knob == "data_ratio" else set())
                assert same or named & about or proposal["outcome"] not in PROPOSED, (index, size, knob, value, taken)
                used += same
        corrections += len(projection["changes"])
        instances = (tmp_path / f"round_{index + 1}" / "instances.jsonl").read_bytes()
        assert instances.count(b"\n") == 8, "what Project passes can be generated"
    print(f"{rounds} rounds of garbage on frozen lakes: {corrections} corrections named, {used} numbers used as proposed")
    assert corrections > rounds


def test_a_lock_left_by_a_machine_that_went_down_is_taken_over(tmp_path: Path) -> None:
    """After a reboot the file still names a process, but the kernel's lock is gone, whichever process has that number now."""
    (tmp_path / ".lock").write_text(f"pid {os.getppid()} on elsewhere since 2026-01-01T00:00:00Z\n")
    lines: list[str] = []
    run_experiment(EXPERIMENT, tmp_path, Reporter(lines.append))
    assert any("took over the lock of a process that died: pid" in line for line in lines)
    with locks.locked(tmp_path) as note:
        assert note is None
