"""A stranger's folder reaches nothing outside it: in every place of every kind of folder a link, a pipe, a device or a huge file,
then every command that reads or writes it. Nothing outside is read, shown, changed or made, and nothing hangs."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import addition
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_leaderboard import submission

pytestmark = pytest.mark.usefixtures("lake_plugins")
SECRET = "secret 4711 without a newline"
SECONDS = 60  # after which a command counts as hanging; none takes one on an idle machine
HUGE = 3 << 40
RUN = """
testbed = "lake"
policy = "repeater"
trainer = "none"
designer = "rule"
context = "V6"
rounds = 2
[generation]
samples = 4
[validation]
set = "validation"
[evaluation]
limit = 1
"""


def link_to_file(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "secret")


def link_to_folder(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "folder")


def link_to_nothing(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "not there yet")


def link_to_twin(place: Path, outside: Path) -> None:
    """Replace a file by a link to its copy outside the folder, so that a command that followed the link would not notice."""
    shutil.copytree(outside / "twin", outside / "moved") if (outside / "twin").is_dir() else shutil.copy(
        outside / "twin", outside / "moved"
    )
    place.symlink_to(outside / "moved")


def hard_link(place: Path, outside: Path) -> None:
    os.link(outside / "secret", place)


def pipe(place: Path, outside: Path) -> None:
    os.mkfifo(place)


def device(place: Path, outside: Path) -> None:
    try:
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        place.symlink_to("/dev/zero")


def huge(place: Path, outside: Path) -> None:
    with place.open("wb") as file:
        file.truncate(HUGE)


HOSTILE: tuple[Callable[[Path, Path], None], ...] = (
    link_to_file, link_to_folder, link_to_nothing, link_to_twin, hard_link, pipe, device, huge,
)  # fmt: skip


def bench(folder: Path) -> Any:
    return ("bench", "--testbed", "addition", "--policy", "adder", "--policy", "adder:label=again", "--limit", 2, "--out", folder)


def run(folder: Path) -> Any:
    return ("run", "--config", folder.parent / "run.toml", "--with-control", "--agents", "2", "--out", folder)


def answers(folder: Path) -> Any:
    return ("generate", "--configuration", "uniform", "--count", 2, "--answers-from", "cbs", "--out", folder / "a.jsonl")


def sweep(folder: Path) -> Any:
    return ("sweep", "--config", folder.parent / "run.toml", "--designers", "fixed random", "--contexts", "V6", "--seeds", "0",
            "--out", folder)  # fmt: skip


def run_commands(folder: Path) -> list[Any]:
    fork = folder.parent / "fork"
    return [
        run(folder),
        ("report", folder),
        ("analyze", folder),
        ("design", "--run", folder, "--show-context", "--out", folder.parent / "steps"),
        ("run", "--fork", f"{folder}@0", "--designer", "random", "--out", fork),
        ("verify", folder / "bench"),
    ]


def bench_commands(folder: Path) -> list[Any]:
    made = folder.parent / "made"
    return [
        ("verify", folder),
        bench(folder),
        ("compare", *sorted((folder / "rows").glob("*"))[:2]),
        ("submit", folder, "--row", "again", "--name", "stranger", "--into", made),
    ]


KINDS: dict[str, Callable[[Path], list[Any]]] = {
    "bench": bench_commands,
    "submission": lambda folder: [("verify", folder)],
    "run": run_commands,
    "answers": lambda folder: [answers(folder), ("show", folder / "a.jsonl")],
    "sweep": lambda folder: [sweep(folder), ("analyze", folder), ("report", folder)],
}


@contextmanager
def within_time() -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def t2t(arguments: Any) -> str:
    """The output of the command. A refusal is fine; a crash fails the test."""
    with within_time():
        result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, (SystemExit, T2TError)):
        raise result.exception
    return result.output + (str(result.exception) if isinstance(result.exception, T2TError) else "")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    import lake
    from t2t_core.plugins import installed

    addition.register()
    installed().testbeds.add("lake", lambda argument, settings: lake.Lake(), "pretend testbed")
    installed().policies.add("repeater", lake.Repeater, "scripted policy")
    top = tmp_path_factory.mktemp("made")
    (top / "run.toml").write_text(RUN)
    folders = {kind: top / kind for kind in KINDS}
    for command in (bench, run, sweep, answers):
        folders[command.__name__].parent.mkdir(exist_ok=True)
        shown = t2t(command(folders[command.__name__]))
        assert len(places(folders[command.__name__])) > 2, shown
    submission.make(folders["bench"], "adder-1", top, "again", "2026-07-31")
    shutil.move(top / "2026-07-31_adder-1", folders["submission"])
    return folders


def everything(folder: Path) -> dict[str, Any]:
    """Names, kinds and bytes of all that is in a folder."""
    seen: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        seen[str(path.relative_to(folder))] = (
            stat.S_IFMT(status.st_mode), path.read_bytes() if stat.S_ISREG(status.st_mode) else status.st_mtime_ns
        )  # fmt: skip
    return seen


def places(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))]


def remove(place: Path) -> None:
    shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink(missing_ok=True)


def reaches_nothing_outside(made: dict[str, Path], kind: str, base: Path, name: str, plant: Any) -> None:
    folder, outside = base / kind, base / "outside"
    shutil.copytree(made[kind], folder)
    shutil.copy(made["run"].parent / "run.toml", base / "run.toml")
    (outside / "folder").mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    (outside / "folder" / "secret").write_text(SECRET)
    place = folder / name
    shutil.move(place, outside / "twin")
    plant(place, outside)
    before = everything(outside)
    for command in KINDS[kind](folder):
        where = f"{plant.__name__} at {name}: {' '.join(map(str, command))}"
        try:
            shown = t2t(command)
        except BaseException as error:
            raise AssertionError(where) from error
        assert everything(outside) == before, where
        if plant is hard_link:  # the folder does hold that file, as much as anybody else does; forks are made of such links
            continue
        assert "4711" not in shown, where
        for path in base.rglob("*"):
            status = path.lstat()
            if path.is_relative_to(outside) or not stat.S_ISREG(status.st_mode) or status.st_size > 1 << 30:
                continue
            assert SECRET.encode() not in path.read_bytes(), f"{where}: {path}"
    shutil.rmtree(base)


def hostile_places(made: dict[str, Path], kind: str) -> list[tuple[str, Any]]:
    return [
        (name, plant)
        for name in places(made[kind])
        for plant in HOSTILE
        if not (plant is hard_link and (made[kind] / name).is_dir())  # there are none of folders
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_it_reaches_nothing_outside(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """Every place of a folder, with one thing after the other in it."""
    all_places = hostile_places(made, kind)
    names = places(made[kind])
    assert len(names) > 1
    for number, name in enumerate(names):
        plants = [plant for place, plant in all_places if place == name]
        reaches_nothing_outside(made, kind, tmp_path / str(number), name, plants[number % len(plants)])


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_any_place_reaches_outside(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """Every place of a folder with everything in it."""
    for number, (name, plant) in enumerate(hostile_places(made, kind)):
        reaches_nothing_outside(made, kind, tmp_path / str(number), name, plant)
