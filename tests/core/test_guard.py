"""Plugins of every kind that raise, leave, hang, print, change directory or return nonsense: each is named, and once it is
mended the same run goes on to the bytes of one that nothing happened to."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

import lake
from t2t_core import guard, guarded
from t2t_core.cli import cli, main
from t2t_core.contract import METHODS
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Hooks
from t2t_core.loop.whole_run import run_experiment
from t2t_core.plugins import installed
from t2t_core.records import Metric, Option, Proposal, TrainingResult
from t2t_core.registry import Registry
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter

Behaviour = Callable[[], Any]


class Trainer:
    def train(self, job: Any) -> TrainingResult:
        job.progress({"update": 1, "loss": 0.5})
        job.folder.mkdir(parents=True, exist_ok=True)
        (job.folder / "weights").write_text(str(job.seed))
        return TrainingResult(None, {}, len(job.instances), 1, 10)


class Designer:
    def propose(self, brief: Any) -> Proposal:
        return Proposal("", brief.previous.to_dict())


class Module:
    title = "Mine"

    def render(self, state: Any, compact: bool) -> str:
        return f"{len(state.rounds)} rounds"


PARTS = {"testbeds": lake.Lake, "policies": lake.Repeater, "designers": Designer, "contexts": Module, "trainers": Trainer}
KIND = {"testbeds": "testbed", "policies": "policy", "designers": "designer", "contexts": "context module", "trainers": "trainer"}
EXPERIMENT = Experiment.from_dict(
    {
        "testbed": "mine",
        "policy": "mine",
        "designer": "mine",
        "context": "mine",
        "trainer": "mine",
        "rounds": 2,
        "seed": 5,
        "generation": {"samples": 20},
        "validation": {"set": "validation"},
        "evaluation": {"limit": 2},
    }
)
CALLED = [  # what a run calls of each kind
    *(("testbeds", name) for name in ("request", "random_configuration", "read_configuration", "project", "generate")),
    *(("testbeds", name) for name in ("read_instance", "unlabelled", "place", "set_names", "load_set", "prompt", "verify")),
    *(("testbeds", name) for name in ("breakdown", "knobs", "options")),
    *(("policies", name) for name in ("respond", "describe")),
    ("designers", "propose"),
    ("contexts", "render"),
    ("trainers", "train"),
    *((kind, "factory") for kind in PARTS),
]
UNDISTURBED: dict[str, bytes] = {}
SOFT = {("designers", "propose"), ("testbeds", "project")}  # the loop keeps the configuration in force and goes on


class Registered:
    """A plugin of every kind named "mine"; `behave` replaces what one of their methods does."""

    def __init__(self) -> None:
        self.kind = self.method = ""
        self.behave: Behaviour | None = None

    def factory(self, kind: str) -> Callable[..., Any]:
        def make(argument: str, settings: Any) -> Any:
            if (kind, "factory") == (self.kind, self.method) and self.behave:
                before = self.behave()
                if before is not None:
                    return before
            made = PARTS[kind]()
            if kind == self.kind and self.method != "factory":
                own = getattr(made, self.method)

                def instead(*arguments: Any, **named: Any) -> Any:
                    before = self.behave() if self.behave else None
                    return own(*arguments, **named) if before is None else before

                setattr(made, self.method, instead)
            return made

        return make


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registered]:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here is about power cuts
    registered, plugins = Registered(), installed()
    for kind in PARTS:
        registry: Registry = getattr(plugins, kind)
        registry.distribution = "strange 1.0"
        registry.add("mine", registered.factory(kind))
    yield registered
    for kind in PARTS:
        del getattr(plugins, kind).entries["mine"]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name, without files that hold times and without the record of earlier tries."""
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in ("run.json", "log.jsonl", ".lock", "metrics.jsonl"))
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def run(folder: Path, notes: list[str] | None = None, **changes: Any) -> None:
    run_experiment(replace(EXPERIMENT, **changes), folder, Reporter((notes if notes is not None else []).append))


@pytest.fixture
def undisturbed(mine: Registered, tmp_path: Path) -> dict[str, bytes]:
    if not UNDISTURBED:
        run(tmp_path / "undisturbed")
        UNDISTURBED.update(contents(tmp_path / "undisturbed"))
    return UNDISTURBED


def fails() -> Any:
    raise RuntimeError("boo")


def leaves() -> Any:
    sys.exit(3)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError


def fails_without_text() -> Any:
    raise Unreadable


def says(kind: str, behaviour: Behaviour, error: T2TError) -> None:
    assert str(error).startswith(f"the {KIND[kind]} mine "), error
    assert "strange 1.0" in error.cause and error.where


RAISED = [(kind, method, fails) for kind, method in CALLED]
RAISED += [(kind, method, odd) for kind, method in CALLED[-7:] for odd in (leaves, fails_without_text)]


@pytest.mark.parametrize(("kind", "method", "behaviour"), RAISED)
def test_one_that_raises_is_named_and_the_run_goes_on_once_it_is_mended(
    mine: Registered, undisturbed: dict[str, bytes], tmp_path: Path, kind: str, method: str, behaviour: Behaviour
) -> None:
    mine.kind, mine.method, mine.behave = kind, method, behaviour
    if (kind, method) in SOFT:
        notes: list[str] = []
        run(tmp_path / "run", notes)
        record = (tmp_path / "run" / "round_0" / ("proposal.json" if kind == "designers" else "projection.json")).read_text()
        assert f"{KIND[kind]} mine failed in {method}()" in record
        return
    with pytest.raises(T2TError) as error:
        run(tmp_path / "run")
    says(kind, behaviour, error.value)
    mine.behave = None
    run(tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed


NONSENSE = [*[(kind, method) for kind, method in CALLED if method not in ("unlabelled", "request")]]


@pytest.mark.parametrize(("kind", "method"), NONSENSE)
def test_one_that_returns_nonsense_is_named_with_what_it_returned(
    mine: Registered, undisturbed: dict[str, bytes], tmp_path: Path, kind: str, method: str
) -> None:
    mine.kind, mine.method, mine.behave = kind, method, lambda: SimpleNamespace(odd=1)
    if (kind, method) in SOFT:
        run(tmp_path / "run")
        return
    with pytest.raises(T2TError, match="SimpleNamespace") as error:
        run(tmp_path / "run")
    says(kind, lambda: None, error.value)
    mine.behave = None
    run(tmp_path / "run")
    assert contents(tmp_path / "run") == undisturbed


@pytest.mark.parametrize(
    ("kind", "method", "value"),
    [
        ("contexts", "render", 7),
        ("contexts", "render", b"text"),
        ("trainers", "train", TrainingResult("here", {}, 1, 1, 1)),  # type: ignore[arg-type]
        ("trainers", "train", TrainingResult(None, {}, -1, 1, 1)),
        ("trainers", "train", TrainingResult(None, {}, True, 1.5, 1)),  # type: ignore[arg-type]
        ("trainers", "train", TrainingResult(None, [1], 1, 1, 1)),  # type: ignore[arg-type]
        ("testbeds", "generate", []),
        ("testbeds", "generate", [1, 2]),
        ("testbeds", "set_names", "validation"),
        ("testbeds", "breakdown", {"total": {}, "groups": {}}),
        ("testbeds", "breakdown", {"total": {"answers": 1, "valid": float("nan"), "optimal": 0}, "groups": {}}),
        ("testbeds", "prompt", b"bytes"),
        ("policies", "describe", {"model": object()}),
        ("policies", "respond", 7),
        ("policies", "respond", [(0, "text")]),
    ],
)
def test_what_looks_nearly_right_is_nonsense_too(mine: Registered, tmp_path: Path, kind: str, method: str, value: Any) -> None:
    mine.kind, mine.method, mine.behave = kind, method, lambda: value
    with pytest.raises(T2TError) as error:
        run(tmp_path)
    assert KIND[kind] in str(error.value)


def test_a_checkpoint_that_is_not_there_is_no_result(mine: Registered, tmp_path: Path) -> None:
    mine.kind, mine.method, mine.behave = "trainers", "train", lambda: TrainingResult(tmp_path / "nowhere", {}, 1, 1, 1)
    with pytest.raises(T2TError, match="nowhere, but it is not there"):
        run(tmp_path / "run")


@pytest.mark.parametrize(("kind", "method"), CALLED)
def test_one_that_prints_and_changes_directory_is_named_and_the_run_stays_where_it_was(
    mine: Registered,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    method: str,
) -> None:
    """Nothing that it prints reaches standard output, which may be a table that a program reads."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def behave() -> None:
        print("hello", 1, end="")
        os.chdir(tmp_path / "elsewhere")

    mine.kind, mine.method, mine.behave = kind, method, behave
    notes: list[str] = []
    run(Path("run"), notes)
    assert f"  note: {KIND[kind]} mine printed: hello 1" in notes
    assert any(note.startswith(f"  note: {KIND[kind]} mine changed the working directory") for note in notes)
    assert capsys.readouterr().out == ""
    assert guard._calls or not isinstance(sys.stdout, guard._Router), "but for what still hangs from another test's plugin"
    assert Path.cwd() == tmp_path and not list((tmp_path / "elsewhere").iterdir())
    assert contents(tmp_path / "run") == undisturbed


LIMITED = [("contexts", "render"), ("designers", "propose")]


@pytest.mark.parametrize(("kind", "method"), [case for case in CALLED if case not in LIMITED])
def test_one_that_hangs_is_named_and_can_be_stopped(
    mine: Registered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, method: str
) -> None:
    """The user sees which plugin is silent and stops it; the same command then continues."""
    monkeypatch.setattr(guard, "PATIENCE", 0.05)
    named = threading.Event()

    def hangs() -> None:
        assert named.wait(60), "nobody named it"
        raise KeyboardInterrupt

    def say(line: str) -> None:
        if f"{KIND[kind]} mine has been silent in {method if method != 'factory' else 'its factory'}" in line:
            named.set()

    mine.kind, mine.method, mine.behave = kind, method, hangs
    with pytest.raises(KeyboardInterrupt):
        run_experiment(EXPERIMENT, tmp_path / "run", Reporter(say))
    mine.behave = None
    run(tmp_path / "run")


@pytest.mark.parametrize(("kind", "method"), LIMITED)
def test_what_has_a_time_limit_is_cut_off_and_named(mine: Registered, tmp_path: Path, kind: str, method: str) -> None:
    over = threading.Event()
    mine.kind, mine.method, mine.behave = kind, method, lambda: over.wait(300) and None
    notes: list[str] = []
    try:
        if kind == "designers":
            run(tmp_path, notes, design_seconds=0.2)
            assert any("the designer mine did not answer within 0.2 s" in note for note in notes)
        else:
            with pytest.raises(T2TError, match=r"the context module mine did not answer within 0.2 s"):
                run(tmp_path, notes, design_seconds=0.2)
            mine.behave = None
            run(tmp_path, notes, design_seconds=0.2)
    finally:
        over.set()


def test_a_progress_line_and_a_sign_of_life_come_from_within_a_trainer(
    mine: Registered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("t2t_core.run.progress.EVERY", -1.0)
    run_experiment(EXPERIMENT, tmp_path, Reporter(print))
    printed = capsys.readouterr().out
    assert "update 1" in printed and "printed" not in printed


def test_functions_within_its_metrics_and_options_are_guarded_too(mine: Registered, tmp_path: Path) -> None:
    class Odd(lake.Lake):
        metrics = (Metric("valid", "valid", "rate", lambda verdict, response: float(1 / 0)),)

        def options(self) -> Any:
            return [Option("agents", "", "2", lambda text: text.nothing)]

    mine.kind, mine.method, mine.behave = "testbeds", "factory", Odd
    bed = installed().testbeds.make("mine")
    with pytest.raises(T2TError, match="testbed mine failed in its metric valid: ZeroDivisionError"):
        bed.metrics[0].value(None, None)
    with pytest.raises(T2TError, match="testbed mine failed in its option agents: AttributeError"):
        bed.options()[0].parse("2")


def test_what_a_part_lacks_is_named_where_it_is_wanted(mine: Registered) -> None:
    mine.kind, mine.method, mine.behave = "testbeds", "factory", lambda: SimpleNamespace(verify=len, prompt_formats=["x"])
    bed = installed().testbeds.make("mine")
    assert getattr(bed, "shared", None) is None and not hasattr(bed, "generate")
    with pytest.raises(T2TError, match=r"the testbed mine has no generate\(\)"):
        bed.generate()


def test_a_user_s_mistake_that_a_plugin_tells_stays_as_it_was_told(mine: Registered, tmp_path: Path) -> None:
    def tells() -> None:
        raise T2TError("the moon is down", next="wait")

    mine.kind, mine.method, mine.behave = "trainers", "train", tells
    with pytest.raises(T2TError, match="the moon is down") as error:
        run(tmp_path)
    assert not isinstance(error.value, guard.PluginFault) and error.value.where == "trainer mine" and error.value.next == "wait"


def test_ctrl_c_inside_a_plugin_is_no_fault_of_it(mine: Registered, tmp_path: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    mine.kind, mine.method, mine.behave = "trainers", "train", interrupted
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)


def test_the_author_of_a_plugin_may_see_the_exception_itself(
    mine: Registered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T2T_PLUGIN_TRACEBACK", "1")
    mine.kind, mine.method, mine.behave = "trainers", "train", fails
    with pytest.raises(RuntimeError, match="boo"):
        run(tmp_path)


def test_a_command_and_a_preset_are_named_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def strange() -> None:
        raise RuntimeError("boo")

    plugins = installed()
    for kind, target in (("commands", strange), ("presets", lambda argument, settings: 7)):
        getattr(plugins, kind).distribution = "strange 1.0"
        getattr(plugins, kind).add("strange", target if kind == "presets" else f"{__name__}:gone")
    try:
        with pytest.raises(T2TError, match="'strange' could not be loaded"):
            CliRunner().invoke(cli, ["strange"], catch_exceptions=False, standalone_mode=False)
        plugins.commands.entries["strange"] = replace(plugins.commands.entries["strange"], target="test_guard:failing")
        with pytest.raises(SystemExit) as ended:
            main(["strange"])
        assert ended.value.code == 2 and "the command strange failed in its code: RuntimeError: boo" in capsys.readouterr().err
        with pytest.raises(T2TError, match="the preset strange is of no use"):
            plugins.presets.make("strange")
    finally:
        del plugins.commands.entries["strange"], plugins.presets.entries["strange"]


@click.command()
def failing() -> None:
    raise RuntimeError("boo")


def test_every_kind_that_makes_objects_has_a_contract() -> None:
    hooks = {name.removeprefix("register_") for name in vars(Hooks) if name.startswith("register_")}
    assert hooks == {*PARTS, "trackers", "pools", "agents", "commands", "presets", "families"}
    for kind in (*PARTS, "trackers", "pools", "agents"):  # what a tracker's faults do to a run: test_tracking.py
        assert installed().registries[kind].kind in METHODS


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError, MemoryError, StopIteration])
def test_whatever_is_raised_is_a_plugin_s_fault(kind: type[BaseException]) -> None:
    def falls() -> Any:
        raise kind("boo")

    def answers() -> Iterator[Any]:
        yield 1
        raise kind("boo")

    plugin = guard.Plugin("policy", "mine", "mine 1.0")
    with pytest.raises(guard.PluginFault, match="the policy mine failed in respond"):
        guard.run(plugin, "respond()", falls)
    with pytest.raises(guard.PluginFault, match="the policy mine failed in respond"):
        list(guarded._steps(plugin, "respond()", answers()))


def test_a_limit_longer_than_the_system_can_wait_is_no_limit() -> None:
    assert guard.within(1e23, lambda: 4) == 4


def test_a_call_that_nobody_waits_for_any_more_moves_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call began in another working directory than the one that the process has by then."""
    go_on, ended = threading.Event(), threading.Event()

    def late() -> None:
        guard.run(guard.Plugin("designer", "late"), "propose()", go_on.wait)
        ended.set()

    with pytest.raises(guard.TimedOut, match="designer late"):
        guard.within(0.2, late)
    monkeypatch.chdir(tmp_path)
    go_on.set()
    assert ended.wait(20) and Path.cwd() == tmp_path
