"""Ctrl-C at every instruction that reads or writes files: it is raised as an interrupt, and the same call works afterwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from t2t_core.cli import main
from t2t_core.plugins import installed
from t2t_core.store import folders, fresh, jsonlines, locks, paths
from t2t_core.store.paths import SafePath

STORE = str(Path(paths.__file__).parent)


def append(root: SafePath) -> None:
    appender = jsonlines.Appender(root / "log.jsonl")
    appender.append({"a": 1})
    appender.close()


def replace(root: SafePath) -> None:
    with folders.replacing(root / "replaced") as file:
        file.write(b"new")


def build(root: SafePath) -> None:
    target = root / "built"
    if not target.exists():
        with folders.building(target) as folder:
            folders.write_json(folder / "part.json", {})


def lock(root: SafePath) -> None:
    with locks.locked(root):
        locks.check()


def read(root: SafePath) -> None:
    for path in (root / "there.json", (root / "there.json").path):
        with paths.open_plain(path) as file:
            assert file.read()
    assert folders.read_json(root / "there.json") == {"a": 1}


CALLS: dict[str, Callable[[SafePath], Any]] = {
    "append": append,
    "replace": replace,
    "build": build,
    "lock": lock,
    "read": read,
    "make": lambda root: paths.make_folder(root / "some" / "way" / "down"),
    "list": lambda root: [root.entries(), list(paths.walk(root)), (root / "there.json").exists()],
    "link": lambda root: (root / "copy").exists() or paths.link_or_copy(root / "there.json", root / "copy"),
    "clean up": fresh.remove_leftovers,
}


def interrupted_at(number: int, call: Callable[[], Any]) -> bool:
    """Raise KeyboardInterrupt before that instruction of the store; returns whether the call got that far."""
    left = number

    def instruction(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "opcode":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return instruction

    def enter(frame: Any, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(STORE):
            return None
        frame.f_trace_opcodes = True
        return instruction

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return left <= 0  # what tidies up after a generator may swallow it


@pytest.mark.thorough
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_stays_one_wherever_it_comes(tmp_path: Path, name: str) -> None:
    root = SafePath(tmp_path)
    folders.write_json(root / "there.json", {"a": 1})
    number = 1
    while interrupted_at(number, lambda: CALLS[name](root)):
        number += 1
    assert number > 50
    CALLS[name](root)


def test_a_command_that_cannot_end_in_order_was_interrupted_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    def stopped() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            try:
                raise OSError("No space left on device")
            except OSError as error:
                raise paths.unwritable(Path("log.jsonl"), error) from None

    commands = installed().commands
    commands.add("stopped", stopped, "is interrupted on a full disk")
    with pytest.raises(SystemExit) as ended:
        main(["stopped"])
    del commands.entries["stopped"]
    told = capsys.readouterr().err
    assert ended.value.code == 130
    assert "No space left" in told and "the same command goes on" in told


def test_ctrl_c_while_the_command_is_still_imported_is_answered() -> None:
    code = """if True:
        import sys

        class Interrupting:  # Ctrl-C comes while this module is looked for
            def find_spec(self, name, path=None, target=None):
                if name == "t2t_core.plugins":
                    raise KeyboardInterrupt

        sys.meta_path.insert(0, Interrupting())
        from t2t_core.__main__ import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_ctrl_c_while_an_object_is_finalized_is_not_lost() -> None:
    code = """if True:
        import signal, sys, time
        import t2t_core.cli

        class Finalized:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)

        def command():
            Finalized()
            time.sleep(60)

        t2t_core.cli.main = command
        from t2t_core.__main__ import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
