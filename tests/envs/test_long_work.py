"""Long work reacts to Ctrl-C, shows its progress, and is given up if it would take too long."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.errors import T2TError
from t2t_envs.cli import display
from t2t_envs.cli.generate import generate as generate_command
from t2t_envs.cli.solve import solve as solve_command
from t2t_envs.frozen_lake import Configuration, Instance, generate, solve_many, solver, write_instances
from t2t_envs.frozen_lake.generation.progress import Progress, duration

native = pytest.mark.skipif(solver.native_core() is None, reason="the native core is not built")

# A signal after so many seconds of processor time, while crowded lakes are solved; prints how late its handler ran, in processor
# time too, so that other work on the machine plays no part.
LATENESS = """
import signal, sys, time
from t2t_core.seeding import Stream
from t2t_envs.frozen_lake import Instance, solve, solve_many

class Caught(Exception): pass

def catch(*_): raise Caught

def crowded(size, agents, holes, seed):
    stream = Stream.of(seed, "crowded", size)
    cells = [(r, c) for r in range(size) for c in range(size)]
    stream.shuffle(cells)
    free = cells[holes:]
    goals = list(free)
    stream.shuffle(goals)
    return Instance(size, cells[:holes], free[:agents], goals[:agents])

signal.signal(signal.SIGVTALRM, catch)
for size, agents, holes, objective, threads in {cases!r}:
    lakes = [crowded(size, agents, holes, seed) for seed in range(20)]
    for delay in {delays!r}:
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, delay)
        try:
            solve_many(lakes, objective, 2**40, wait=True, threads=threads)
        except Caught:
            print(time.process_time() - begun - delay, flush=True)
        else:
            sys.exit(f"{{size}}x{{size}} with {{agents}} agents was solved within {{delay}} s: it is no test")
"""
FULL = [(4, 15, 0, "sum_of_costs", 1), (4, 15, 0, "sum_of_costs", 2), (32, 16, 300, "sum_of_costs", 1)]
MORE = [(4, 15, 0, "makespan", 1), (20, 16, 150, "sum_of_costs", 2), (4, 12, 0, "sum_of_costs", 1)]


@pytest.mark.thorough
@native
@pytest.mark.parametrize(
    ("cases", "delays"),
    [(FULL, (0.1, 0.6)), pytest.param(FULL + MORE, (0.05, 0.3, 1.0, 2.5, 5.0), marks=pytest.mark.slow)],
)
def test_a_search_answers_a_signal_within_half_a_second_of_its_own_time(cases: Any, delays: Any) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = LATENESS.format(cases=cases, delays=delays)
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    late = [float(line) for line in ran.stdout.split()]
    assert len(late) == len(cases) * len(delays) and max(late) < 0.5, late


class Enough(Exception):
    pass


def test_progress_is_told_and_what_it_raises_ends_the_work() -> None:
    seen: list[Progress] = []
    instances = generate(Configuration.uniform(0.2, 0.5), 80, 2, seed=1, progress=seen.append)
    assert seen[-1].kept == seen[-1].ordered == 80 and seen[-1].drawn == instances.report.drawn
    assert [x.size for x in seen if x.kept % 10 == 0][-1] == 10 and seen == sorted(seen, key=lambda x: x.drawn)
    assert seen[-1].to_go == 0

    def stop(progress: Progress) -> None:
        raise Enough

    with pytest.raises(Enough):
        generate(Configuration.uniform(0.2, 0.5), 2000, 2, seed=1, progress=stop)


@native
@pytest.mark.parametrize("threads", [1, 2])
def test_what_progress_raises_ends_the_solver(threads: int) -> None:
    def stop(done: int) -> None:
        assert done == 0
        raise Enough

    cells = [(r, c) for r in range(4) for c in range(4)]
    with pytest.raises(Enough):
        solve_many([Instance(4, [], cells[:15], cells[:0:-1])], "sum_of_costs", 2**40, threads=threads, progress=stop)


CROWDED = Configuration.from_dict({"4": {"data_ratio": 1, "hole_ratio": 0, "wait_ratio": 0.5}})


@native
def test_an_order_that_would_take_for_ever_is_refused_with_the_rate_that_was_seen() -> None:
    refusals = []
    for threads in (1, 3):
        with pytest.raises(T2TError, match="reasonable time") as refused:
            generate(CROWDED, 100_000, 9, seed=3, objective="sum_of_costs", threads=threads, max_work=3 * 10**9)
        assert "of 50000 wait" in refused.value.cause and "would take at least" in refused.value.cause
        assert refused.value.where == "4x4 with 0 holes and 9 agents, sum_of_costs" and "max_work" in refused.value.next
        refusals.append(refused.value.cause.split(" in ")[0])
    assert refusals[0] == refusals[1]  # the same instances of the same candidates


@pytest.mark.thorough
@native
def test_one_search_that_takes_all_the_work_ends_the_order() -> None:
    """The limit holds within a candidate too: with many agents a single one would take minutes."""
    refusals = []
    for threads in (1, 3):
        with pytest.raises(T2TError, match="reasonable time") as refused:
            generate(CROWDED, 5, 12, objective="sum_of_costs", threads=threads, max_work=10**6)
        assert "undecided" in refused.value.cause
        refusals.append(refused.value.cause.split(" in ")[0])
    assert refusals[0] == refusals[1]
    with pytest.raises(T2TError, match="reasonable time"):
        generate(Configuration.uniform(0.2, 0.5), 80, 3, max_work=1)


@native
def test_the_work_limit_changes_nothing_that_it_allows() -> None:
    free = generate(Configuration.uniform(0.2, 0.5), 80, 3, seed=1)
    tight = generate(Configuration.uniform(0.2, 0.5), 80, 3, seed=1, max_work=10**9)
    assert free == tight and free.report == tight.report
    for limit in (0, -1, 1.5, True):
        with pytest.raises(T2TError, match="max_work"):
            generate(CROWDED, 10, max_work=limit)  # type: ignore[arg-type]


def test_durations_read_well() -> None:
    texts = [duration(s) for s in (0, 40, 720, 12_600, 700_000, float("inf"))]
    assert texts == ["0 s", "40 s", "12 min", "3.5 hours", "8 days", "for ever"]


# --- the commands


def run(command: Any, *arguments: Any) -> Any:
    result = CliRunner().invoke(command, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_generate_shows_how_far_it_is_and_warns_once_of_a_long_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVERY", "WARN_AFTER", "LONG"):
        monkeypatch.setattr(display, name, 0.0)
    told = run(generate_command, "--configuration", "uniform", "--count", 16, "--out", "-").stderr
    assert "16 of 16 instances from" in told and "0 s to go; now 10x10 with 20 holes" in told
    assert told.count("this order will take about") + told.count("no instance yet") == 1


def test_ctrl_c_leaves_no_file_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("t2t_envs.cli.generate._show", interrupt)
    result = run(generate_command, "--configuration", "uniform", "--count", 16, "--out", tmp_path / "x.jsonl")
    assert result.exit_code == 130 and "interrupted; nothing was written" in result.stderr and not list(tmp_path.iterdir())


@native
def test_solve_leaves_what_the_work_limit_does_not_reach(tmp_path: Any) -> None:
    path, out = tmp_path / "x.jsonl", tmp_path / "y.jsonl"
    instances = generate(Configuration.uniform(0.2, 0.5), 160, 3, seed=1)
    write_instances(path, instances)
    text = run(solve_command, path, "--quiet", "--max-work", 1, "--out", out).output
    assert "160 instances; 0 wrong labels, 0 undecided, 0 without a solution, 96 not looked at" in text
    lines = out.read_text().splitlines()
    assert [("null" in line) for line in lines] == [False] * 64 + [True] * 96  # one optimum is stored, the other was not made


def test_on_a_terminal_one_line_is_written_over(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with display.Display(lambda: now[0]) as shown:
        shown.begin("first")
        for second in (0.1, 0.3, 0.4, 1.0):
            now[0] = second
            shown.show(lambda: f"at {second}")  # noqa: B023
        shown.warn(1e9, lambda: "too early")
        now[0] = 11.0
        shown.warn(60, lambda: "not long")
        shown.warn(1e9, lambda: "long")
        shown.warn(1e9, lambda: "said already")
    told = capsys.readouterr().err.replace("\r\x1b[K", "|")
    assert told == "|first|at 0.3|at 1.0|long\n"
