"""Run folders: a manifest, a lock, atomic writes, and what the machine and the suite looked like.

`run.json` says what the folder holds; a folder of another format version, kind or setting is refused, never guessed at.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import platform
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from t2t_core._version import __version__
from t2t_core.errors import T2TError
from t2t_core.store import jsonlines

FORMAT = 1  # of run folders; raised when a reader of today could not read tomorrow's
MANIFEST = "run.json"
LOCK = ".lock"
_PACKAGES = ("numpy", "gymnasium", "pettingzoo", "openai", "torch", "transformers", "trl", "vllm")


def now() -> str:
    """The time as text, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write a whole file or nothing: a temporary name in the same folder, fsync, rename, fsync of the folder."""
    with replacing(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Any]:
    """A binary file that takes the place of `path` when the block ends well; otherwise `path` stays as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        make_folder(path.parent)
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        jsonlines.sync(path.parent)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError) -> T2TError:
    return T2TError(
        "the file cannot be written",
        where=str(path),
        cause=error.strerror or str(error),
        next="make room or give another folder; what was written before is kept, and the same command goes on from there",
    )


def make_folder(path: Path) -> None:
    """The folder and those above it; T2TError where that cannot be."""
    try:
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            jsonlines.sync(path.parent)
    except OSError as error:
        raise unwritable(path, error) from None


def rename(path: Path, target: Path) -> None:
    """Put a finished file or folder into its place; T2TError where that cannot be."""
    try:
        os.replace(path, target)
    except OSError as error:
        raise unwritable(target, error) from None


def sync_folder(folder: Path) -> None:
    """Every file below is on the disk when this returns, whoever wrote it: a power cut after it takes nothing away."""
    try:
        for place, _, names in os.walk(folder, topdown=False):
            for path in [*(Path(place, name) for name in names), Path(place)]:
                if not path.is_symlink() and (path.is_file() or path.is_dir()):
                    jsonlines.sync(path)
    except OSError as error:
        raise unwritable(folder, error) from None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document to read and to diff: two spaces, ASCII, a newline at the end."""
    write_atomic(path, document(value))


def document(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file that may come from a stranger; T2TError says what is wrong with it."""
    try:
        with jsonlines.open_plain(path) as file:
            data = file.read(jsonlines.MAX_FILE + 1)
        if len(data) > jsonlines.MAX_FILE:
            raise jsonlines.Unreadable(f"longer than {jsonlines.MAX_FILE} bytes")
        value = jsonlines.loads(data)
        if not isinstance(value, dict):
            raise jsonlines.Unreadable(f"a JSON object is expected, not {type(value).__name__}")
        return value
    except FileNotFoundError:
        raise T2TError("there is no such file", where=str(path)) from None
    except OSError as error:
        raise T2TError("the file cannot be read", where=str(path), cause=error.strerror or str(error)) from None
    except jsonlines.Unreadable as error:
        raise T2TError("the file is not what was written", where=str(path), cause=str(error)) from None


# --- one process per folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[str | None]:
    """Hold the folder for this process. Yields a note where a process that died had left its lock, else None.

    The kernel drops the lock with its process, so a stale one never blocks; the file only says who holds it.
    """
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # No link is followed: a stranger's folder must not let us empty a file elsewhere.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        holder = os.pread(descriptor, 200, 0).decode("ascii", "replace").strip()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise T2TError(
                "another process is working in this folder",
                where=f"{folder} ({holder or 'it has not said who it is'})",
                cause=error.strerror or str(error),
                next="wait for it, stop it, or give another --out",
            ) from None
        _sign(descriptor, path, f"pid {os.getpid()} on {socket.gethostname()} since {now()}")
        try:
            yield f"took over the lock of a process that died: {holder}" if holder else None
        finally:
            with contextlib.suppress(T2TError):  # on a full disk; a stale name in the file is harmless
                _sign(descriptor, path, "")
    finally:
        os.close(descriptor)


def _sign(descriptor: int, path: Path, text: str) -> None:
    try:
        os.ftruncate(descriptor, 0)
        if text:
            os.pwrite(descriptor, text.encode("ascii", "replace") + b"\n", 0)
    except OSError as error:
        raise unwritable(path, error) from None


# --- what the folder holds


def open_manifest(folder: Path, kind: str, settings: Mapping[str, Any], what: str = "run") -> dict[str, Any]:
    """Make `folder/run.json`, or check that the one there is of the same format, kind and settings, and return it.

    A resumed run in a changed environment (another commit, another numpy) gets a further entry under `sessions`.
    """
    path = folder / MANIFEST
    if not path.exists():
        present = sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")) if folder.is_dir() else []
        if present:
            raise T2TError(
                f"the folder holds other things and no {MANIFEST}",
                where=f"{folder} ({', '.join(present[:3])})",
                next="give --out a new or empty folder",
            )
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "kind": kind,
            "settings": dict(settings),
            "sessions": [{"started": now(), "environment": environment()}],
        }
        write_json(path, manifest)
        return manifest
    manifest = read_manifest(folder, kind)
    same_settings(manifest["settings"], settings, path, what)
    here = environment()
    if manifest["sessions"][-1].get("environment") != here:
        manifest["sessions"].append({"started": now(), "environment": here})
        write_json(path, manifest)
    return manifest


def read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    """`folder/run.json`, refused where its format or kind is not ours to read."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise T2TError("there is no such folder", where=str(folder))
    if not os.path.lexists(path):
        raise T2TError(f"this is no {kind} folder: it has no {MANIFEST}", where=str(folder), next=f"name the --out of a {kind}")
    manifest = read_json(path)
    if manifest.get("format") != FORMAT:
        raise T2TError(
            f"a folder of format {ascii(manifest.get('format'))[:20]}; this version of the suite reads format {FORMAT}",
            where=str(path),
            cause="it was written by another version of the suite",
            next=f"use that version, or start a new folder with this one ({__version__})",
        )
    if manifest.get("kind") != kind:
        raise T2TError(f"the folder holds a {ascii(manifest.get('kind'))[:40]}, not a {kind}", where=str(path))
    sessions = manifest.get("sessions")
    if not isinstance(manifest.get("settings"), dict) or not (
        isinstance(sessions, list) and sessions and all(isinstance(s, dict) for s in sessions)
    ):
        raise T2TError("the manifest lacks its settings or its sessions", where=str(path), cause="it was edited by hand")
    return manifest


def same_settings(stored: Mapping[str, Any], wanted: Mapping[str, Any], path: Path, what: str = "run") -> None:
    """T2TError naming each setting that differs; otherwise nothing."""
    names = [*stored, *(name for name in wanted if name not in stored)]
    differing = [n for n in names if n not in stored or n not in wanted or _text(stored[n]) != _text(wanted[n])]
    if differing:
        shown = "; ".join(f"{n}: {_short(stored.get(n))} there, {_short(wanted.get(n))} here" for n in differing[:4])
        raise T2TError(
            f"the folder holds another {what}: {', '.join(differing)} differ{'s' * (len(differing) == 1)}",
            where=str(path),
            cause=shown,
            next="give the settings it was started with, or another --out",
        )


def _text(value: Any) -> bytes:
    return jsonlines.canonical(value)


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


@functools.cache
def _facts() -> dict[str, Any]:
    packages = {"t2t-core": __version__}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            packages[name] = metadata.version(name)
    return {
        "packages": packages,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        **_git(Path(__file__).resolve().parent.parent.parent),
    }


def environment() -> dict[str, Any]:
    """Package versions, Python, platform and, for a source checkout, the git commit and whether files differ from it."""
    return dict(_facts())


def _git(root: Path) -> dict[str, Any]:
    if not (root / ".git").exists():
        return {"git_commit": None, "git_dirty": None}
    answers = []
    for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]):
        try:
            done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=20, check=True)
        except (OSError, subprocess.SubprocessError):  # no git, or not our checkout: a fact, not an error
            return {"git_commit": None, "git_dirty": None}
        answers.append(done.stdout.strip())
    return {"git_commit": answers[0], "git_dirty": bool(answers[1])}


# --- stopping


class Interrupts:
    """SIGINT and SIGTERM become KeyboardInterrupt, and wait while something is being recorded.

    with Interrupts() as interrupts:
        for response in responses:
            with interrupts.held():
                record(response)      # whole, whatever the user presses
    """

    def __init__(self) -> None:
        self._holding = 0
        self._pending = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _handle(self, number: int, frame: object) -> None:
        if self._holding:
            self._pending = True
        else:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        self._holding += 1
        try:
            yield
        finally:
            self._holding -= 1
            if self._pending and not self._holding:
                self._pending = False
                raise KeyboardInterrupt
