"""Files that cannot be written or read, and full disks: each command says so in one sentence, keeps what is there, and continues
from there once it can."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import addition
from t2t_core.cli import cli, main
from t2t_core.errors import T2TError

NOBODY = 65534
TAMED = ("run.json", "log.jsonl", ".lock")  # they hold times


@pytest.fixture(autouse=True)
def _addition() -> None:
    addition.register()


def t2t(*arguments: Any) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def bench(out: Path, *more: Any) -> str:
    return t2t("bench", "--testbed", "addition", "--policy", "adder", "--out", out, *more)


def generate(out: Path) -> str:
    return t2t("generate", "--configuration", "uniform", "--count", 300, "--agents", 2, "--out", out)


def unprivileged(action: Callable[[], object]) -> str:
    """What T2TError the action raises for a user who is not root, "" where it succeeds; anything else fails the test.

    Root ignores permissions, so a child process gives its rights away first.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setegid(NOBODY)
                os.seteuid(NOBODY)
            action()
        except T2TError as error:
            said = str(error)
        except BaseException:
            said = "CRASH " + traceback.format_exc()[-1500:]
        os.write(write, said.encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    assert not said.startswith("CRASH"), said
    return said


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter (those of pytest are private)."""
    folder = Path(tempfile.mkdtemp(prefix="t2t-place-"))
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.rmtree(folder)


def closed(folder: Path) -> None:
    """Make everything below read-only."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".lock"}


LAKE = """
testbed = "lake"
policy = "repeater"
trainer = "none"
designer = "rule"
rounds = 1
[generation]
samples = 10
[validation]
set = "validation"
"""
COMMANDS: dict[str, Callable[[Path], object]] = {
    "bench": lambda folder: bench(folder / "new"),
    "generate": lambda folder: generate(folder / "new.jsonl"),
    "run": lambda folder: t2t("run", "--config", folder.parent / "lake.toml", "--out", folder / "new"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_is_not_ours_to_write(place: Path, name: str, lake_plugins: None) -> None:
    (place / "lake.toml").write_text(LAKE)
    folder, warm = place / "theirs", place / "ours"
    folder.mkdir()
    warm.mkdir()
    COMMANDS[name](warm)  # what is imported on demand is imported before the rights are given away
    closed(folder)
    said = unprivileged(lambda: COMMANDS[name](folder))
    assert "ermission denied" in said and not list(folder.iterdir())


def test_a_finished_bench_that_is_read_only(place: Path) -> None:
    out = place / "out"
    bench(out)
    t2t("verify", out)
    t2t("compare", out, out)
    before = contents(out)
    closed(out)
    said = unprivileged(lambda: bench(out))
    assert "cannot be written" in said and contents(out) == before
    assert unprivileged(lambda: t2t("verify", out)) == ""  # checking needs no rights
    assert unprivileged(lambda: t2t("compare", out, out)) == ""


def test_files_that_may_not_be_read(place: Path) -> None:
    out = place / "out"
    bench(out)
    t2t("verify", out)
    t2t("compare", out, out)
    (out / "run.json").chmod(0)
    assert "cannot be read" in unprivileged(lambda: t2t("verify", out))
    (out / "run.json").chmod(0o644)
    next(out.glob("rows/*/answers.jsonl")).chmod(0)
    assert "ermission denied" in unprivileged(lambda: t2t("compare", out, out))


def test_a_folder_that_may_not_be_entered(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = place / "private" / "out"
    bench(out)
    out.parent.chmod(0)

    def checked() -> None:
        with pytest.raises(SystemExit) as ended:
            main(["verify", str(out)])
        assert ended.value.code == 2

    assert unprivileged(checked) == ""
    shown = capfd.readouterr().err
    assert "ermission denied" in shown and "Traceback" not in shown


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A file system of that size at `folder`; yields what makes it larger. Skipped where mounting is not allowed."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting needs rights: " + mounted.stderr.decode()[:80])
    try:
        yield lambda larger: subprocess.run(["mount", "-o", f"remount,size={larger}", str(folder)], check=True) and None
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("size", ["8k", "16k", "24k", "40k", "64k", "96k"])
def test_a_bench_on_a_full_disk_goes_on_to_the_same_bytes(tmp_path: Path, size: str) -> None:
    bench(tmp_path / "calm", "--samples", 4)
    with small_disk(tmp_path / "disk", size) as grow:
        out = tmp_path / "disk" / "out"
        with contextlib.suppress(T2TError):
            bench(out, "--samples", 4)  # a failing policy is reported at the end, everything else is raised
        kept = sum(log.read_bytes().count(b"\n") for log in out.glob("rows/*/log.jsonl"))
        grow("4m")
        bench(out, "--samples", 4)
        logs = [line for log in out.glob("rows/*/log.jsonl") for line in log.read_bytes().splitlines()]
        assert len(logs) == 160 and kept <= 160, "what was answered before is not asked again"
        left = [p.name for p in out.rglob("*.tmp")]
        assert not left, "no half file stays"
        ours = {name: data for name, data in contents(out).items() if Path(name).name not in TAMED}
        assert ours == {n: d for n, d in contents(tmp_path / "calm").items() if Path(n).name not in TAMED}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("size", ["12k", "32k", "48k", "72k", "100k"])
def test_a_run_on_a_full_disk_goes_on_to_the_same_bytes(tmp_path: Path, size: str, lake_plugins: None) -> None:
    (tmp_path / "lake.toml").write_text(LAKE.replace("rounds = 1", "rounds = 2") + "[evaluation]\nlimit = 2\n")

    def run(out: Path) -> None:
        t2t("run", "--config", tmp_path / "lake.toml", "--with-control", "--report-to", "none", "--out", out)

    run(tmp_path / "calm")
    with small_disk(tmp_path / "disk", size) as grow:
        out = tmp_path / "disk" / "out"
        with pytest.raises(T2TError, match="cannot be written"):
            run(out)
        finished = {p: p.stat().st_mtime_ns for p in out.rglob("breakdown.json")}
        grow("4m")
        run(out)
        assert all(path.stat().st_mtime_ns == before for path, before in finished.items()), "no finished round is done again"
        assert not list(out.rglob("*.tmp")), "no half file stays"
        ours = {name: data for name, data in contents(out).items() if Path(name).name not in TAMED}
        assert ours == {n: d for n, d in contents(tmp_path / "calm").items() if Path(n).name not in TAMED}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_generate_on_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8k") as grow:
        out = tmp_path / "disk" / "instances.jsonl"
        with pytest.raises(T2TError, match="cannot be written"):
            generate(out)
        assert not list(out.parent.iterdir())
        grow("4m")
        generate(out)
        assert out.read_bytes().count(b"\n") == 300


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_pipe_or_device_that_is_named_to_be_written_stays_what_it_is(through_a_link: bool, tmp_path: Path) -> None:
    """A new file replaces the file of that name: `--out /dev/null`, run by root, would have replaced the device."""
    pipe = out = tmp_path / "pipe"
    os.mkfifo(pipe)
    if through_a_link:
        out = tmp_path / "link"
        out.symlink_to(pipe)
    instances = tmp_path / "instances.jsonl"
    generate(instances)
    words = [["solve", str(instances), "--out", str(out)], ["export", str(instances), "--format", "jsonl", "--out", str(out)]]
    for call in (lambda: generate(out), *(lambda w=w: CliRunner().invoke(cli, w, catch_exceptions=False) for w in words)):
        with pytest.raises(T2TError, match="cannot be written"):
            call()
        assert pipe.is_fifo() and out.is_symlink() == through_a_link


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no such device")
def test_standard_output_on_a_full_disk_is_one_clear_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "t2t_core", "plugins"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n  where: standard output\n")
