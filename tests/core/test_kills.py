"""Every long-running command is killed at every single write; the same command then finishes with the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import addition
import worlds
from t2t_core.cli import cli
from t2t_leaderboard import rescoring, submission

DATED = ("run.json", "log.jsonl", ".lock", "tracking.json")  # they hold times, and what trackers know a run by
MUST_BE_MORE = {"bench": 40, "generate": 3, "run": 60, "sweep": 100}  # writes at which the process dies


def t2t(*arguments: Any) -> None:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception


def bench(folder: Path) -> None:
    t2t("bench", "--testbed", "addition", "--policy", "adder", "--policy", "adder:off=1", "--limit", 3, "--out", folder / "out")


def generate(folder: Path) -> None:
    t2t("generate", "--configuration", "uniform", "--count", 20, "--out", folder / "instances.jsonl")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param(name, command, marks=() if (name, command) == ("change", "run") else pytest.mark.slow)
        for name in worlds.WORLDS
        for command in ("run", "sweep")
    ],
)
def test_the_loop_killed_at_every_write_goes_on_to_the_same_bytes(tmp_path: Path, name: str, command: str) -> None:
    """This holds on every testbed. Training figures may differ, because they also tell of an interrupted training."""
    worlds.register()
    configuration = worlds.write(worlds.WORLDS[name], tmp_path)
    files = [tmp_path / f"{each}.json" for each in worlds.WORLDS[name].configurations]
    arms = ("--configurations", *files, "--set", "rounds=1") if command == "sweep" else ()

    def work(folder: Path) -> None:
        watched = ("--report-to", "none")  # trackers write from threads of their own; tests/core/test_tracking.py stops those
        t2t(command, "--config", configuration, *worlds.WORLDS[name].options, *arms, *watched, "--out", folder)

    kills = assert_the_same_bytes(work, tmp_path, MUST_BE_MORE[command], whole)
    print(f"{command} on {name}: killed at each of {kills} writes")


def contents(folder: Path) -> dict[str, bytes]:
    files_below = (p for p in folder.rglob("*") if p.is_file() and "tensorboard" not in p.parts)
    files = (p for p in files_below if p.name not in DATED)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def whole(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(folder).items() if not name.endswith("metrics.jsonl")}


def dying(at: int) -> None:
    """Make this process die at its `at`-th write, rename, truncation or sync. A write then writes half of its data."""
    left = [at]

    def deadly(name: str) -> Callable[..., Any]:
        call = getattr(os, name)

        def instead(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if name == "write":
                    call(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os._exit(9)
            return call(*arguments, **named)

        return instead

    for name in ("write", "pwrite", "replace", "ftruncate", "fsync", "mkdir"):
        setattr(os, name, deadly(name))


def in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", worlds.WORLDS)
def test_a_bench_killed_at_every_write_goes_on_to_the_same_bytes(tmp_path: Path, name: str) -> None:
    """This holds for every testbed, even in the middle of a game."""
    worlds.register()
    world = worlds.WORLDS[name]

    def work(folder: Path) -> None:
        policies = [word for policy in world.policies for word in ("--policy", policy)]
        t2t("bench", "--testbed", name, *world.options, *policies, "--limit", 2, "--out", folder / "out")

    assert_the_same_bytes(work, tmp_path, 40)


def assert_the_same_bytes(
    work: Callable[[Path], None], tmp_path: Path, kills_at_least: int, read: Callable[[Path], dict[str, bytes]] = contents
) -> int:
    """Kill it at each write in turn and start it again: it must end in the bytes of an undisturbed one. Returns the number of
    kills."""
    (tmp_path / "calm").mkdir()
    work(tmp_path / "calm")
    undisturbed, kills = read(tmp_path / "calm"), 0
    for at in range(1, 1000):
        folder = tmp_path / str(at)
        folder.mkdir()

        def killed(at: int = at, folder: Path = folder) -> None:
            dying(at)
            work(folder)

        status = in_child(killed)
        assert status in (0, 9)
        work(folder)
        assert read(folder) == undisturbed, f"killed at write {at}"
        if status == 0:
            break
        kills += 1
        shutil.rmtree(folder)
    print(f"killed at each of {kills} writes")
    assert kills >= kills_at_least, kills
    return kills


@pytest.mark.thorough
@pytest.mark.parametrize("work", [bench, generate])
def test_killed_at_every_write_it_goes_on_to_the_same_bytes(tmp_path: Path, work: Callable[[Path], None]) -> None:
    addition.register()
    assert_the_same_bytes(work, tmp_path, MUST_BE_MORE[work.__name__])


@pytest.mark.thorough
def test_a_submission_killed_at_every_write_is_made_by_the_same_command(tmp_path: Path) -> None:
    """A killed command leaves nothing in its place, so the name is free. After the rename, the submission is there and sound."""
    addition.register()
    (tmp_path / "benched").mkdir()
    bench(tmp_path / "benched")

    def submit(folder: Path) -> None:
        if not list((folder / "made").glob("2*")):
            t2t("submit", tmp_path / "benched" / "out", "--row", "adder", "--name", "mine", "--into", folder / "made")
        (made,) = (folder / "made").glob("2*")
        assert submission.verify(made).verified

    assert_the_same_bytes(submit, tmp_path, 5)


@pytest.mark.thorough
@pytest.mark.parametrize("starts", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_generate_killed_at_random_moments_leaves_the_file_or_nothing(tmp_path: Path, starts: int) -> None:
    def work(out: Path) -> None:
        t2t("generate", "--configuration", "uniform", "--count", 2000, "--out", out)

    work(tmp_path / "calm.jsonl")
    undisturbed, longest = (tmp_path / "calm.jsonl").read_bytes(), 60.0
    for _ in range(3):  # the shortest: one that other work held up would let most children come to their end
        started = time.monotonic()
        work(tmp_path / "calm.jsonl")
        longest = min(longest, time.monotonic() - started)
    moments, kills, out = random.Random(6), 0, tmp_path / "out.jsonl"
    for _ in range(starts):
        child = os.fork()
        if child == 0:
            try:
                work(out)
            finally:
                os._exit(0)
        time.sleep(moments.random() * longest)
        os.kill(child, signal.SIGKILL)
        kills += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
        if out.exists():
            assert out.read_bytes() == undisturbed
            out.unlink()
    work(out)
    assert out.read_bytes() == undisturbed
    print(f"generate: killed {kills} times at random moments of {starts} starts")
    assert kills > starts // 3


@pytest.mark.slow
def test_a_bench_killed_three_hundred_times_is_still_verified(tmp_path: Path) -> None:
    """It is killed at random writes, again and again in the same folder, and never gets far before it dies."""
    addition.register()
    moments, kills = random.Random(4), 0
    (tmp_path / "calm").mkdir()
    bench(tmp_path / "calm")
    for number in range(30):
        folder = tmp_path / str(number)
        folder.mkdir()
        for _ in range(10):

            def killed(folder: Path = folder) -> None:
                dying(moments.randrange(1, 60))
                bench(folder)

            moments.random()
            kills += in_child(killed) == 9
        bench(folder)
        assert contents(folder) == contents(tmp_path / "calm") and rescoring.verify(folder / "out").verified
    print(f"bench: killed {kills} times at random writes")
    assert kills > 150
