import json
import os
import subprocess
import sys

import pytest

from t2t_core.errors import T2TError
from t2t_core.store import folders, jsonlines, locks
from t2t_core.store.interrupts import Interrupts


def test_atomic_write_replaces_whole_files_or_nothing(tmp_path):
    path = tmp_path / "a" / "x.json"
    folders.write_json(path, {"a": 1})
    with pytest.raises(RuntimeError), folders.replacing(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert folders.read_json(path) == {"a": 1}
    assert os.listdir(path.parent) == ["x.json"], "no temporary file is left"


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(T2TError, match="cannot be written"):
        folders.write_json(tmp_path / "file" / "x.json", {})
    with pytest.raises(T2TError, match="cannot be written"), locks.locked(tmp_path / "file" / "run"):
        pass


def test_manifest_is_made_checked_and_refused(tmp_path):
    settings = {"policy": "cbs", "seed": 3}
    first = folders.open_manifest(tmp_path, "bench", settings)
    assert first["format"] == folders.FORMAT and first["sessions"][0]["environment"]["packages"]["numpy"]
    assert folders.open_manifest(tmp_path, "bench", settings) == first
    with pytest.raises(T2TError, match="seed differs") as caught:
        folders.open_manifest(tmp_path, "bench", {**settings, "seed": 4})
    assert "3 there, 4 here" in str(caught.value)
    with pytest.raises(T2TError, match="holds a 'bench', not a loop"):
        folders.open_manifest(tmp_path, "loop", settings)
    folders.write_json(tmp_path / "run.json", {**first, "format": 99})
    with pytest.raises(T2TError, match="format 99"):
        folders.open_manifest(tmp_path, "bench", settings)
    with pytest.raises(T2TError, match="other things"):
        (tmp_path / "run.json").rename(tmp_path / "other.json")
        folders.open_manifest(tmp_path, "bench", settings)


def test_a_folder_of_something_else_is_said_to_be_none(tmp_path):
    with pytest.raises(T2TError, match="no bench folder: it has no run.json") as caught:
        folders.read_manifest(tmp_path, "bench")
    assert caught.value.where == str(tmp_path)
    with pytest.raises(T2TError, match="no such folder"):
        folders.read_manifest(tmp_path / "nope", "bench")


def test_changed_environment_is_recorded(tmp_path, monkeypatch):
    folders.open_manifest(tmp_path, "bench", {})
    monkeypatch.setattr(folders, "environment", lambda: {"packages": {"numpy": "99"}})
    folders.open_manifest(tmp_path, "bench", {})
    assert len(folders.read_manifest(tmp_path, "bench")["sessions"]) == 2


def test_second_process_is_refused_and_a_stale_lock_recognised(tmp_path):
    script = "import os\nfrom t2t_core.store import locks\nfrom pathlib import Path\n"
    script += f"with locks.locked(Path({str(tmp_path)!r})):\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with locks.locked(tmp_path) as note:
        assert note is None
        done = subprocess.run([sys.executable, "-c", script + "    pass"], env=environment, capture_output=True, text=True)
        assert "another process is working" in done.stderr and f"pid {os.getpid()} on" in done.stderr
        assert f"pid {os.getpid()}" in (tmp_path / ".lock").read_text(), "the refused one leaves the name alone"
    subprocess.run([sys.executable, "-c", script + "    os._exit(9)"], env=environment, check=False)
    with locks.locked(tmp_path) as note:
        assert "died" in note
    with locks.locked(tmp_path) as note:
        assert note is None


def test_a_folder_that_a_killed_process_was_building_is_removed(tmp_path):
    left = tmp_path / "a" / f".made.{'0' * 16}.tmp" / "within"
    left.mkdir(parents=True)
    (left / "x").write_text("half")
    with locks.locked(tmp_path):
        assert os.listdir(tmp_path / "a") == []


HOSTILE = ["NaN", "[1]", '{"a": 1, "a": 2}', '{"a": 1e999}', "[" * 100_000, '{"a": ' + "9" * 101 + "}", "\xff"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_documents_are_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    with pytest.raises(T2TError, match="not what was written"):
        folders.read_json(tmp_path / "x.json")


def test_pipes_and_folders_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(T2TError, match="cannot be read"):
            folders.read_json(path)


def test_torn_line_needs_a_reader_that_asks_for_it(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"a": 1}) + '\n\n{"b"')
    torn = []
    assert [line.value for line in jsonlines.read(path, torn)] == [{"a": 1}]
    assert torn[0].number == 3
    with pytest.raises(T2TError, match="line 3"):
        list(jsonlines.read(path))


def test_interrupt_waits_while_something_is_recorded():
    done = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts, interrupts.held():
        os.kill(os.getpid(), 15)
        done.append("recorded")
    assert done == ["recorded"]
