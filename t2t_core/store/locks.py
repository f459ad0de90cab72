"""One process per folder: its lock, and whether what a process holds is still where it was."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.store import fresh, paths
from t2t_core.store.paths import SafePath, unwritable

LOCK = ".lock"
_held: dict[SafePath, tuple[str, int]] = {}  # by folder, its lock's path and descriptor


class FolderLost(T2TError):
    """The folder that this process works in was moved or removed, or its lock was: nothing more is written there."""


@contextlib.contextmanager
def locked(path: Path | SafePath) -> Iterator[str | None]:
    """Hold the folder for this process, and remove what killed ones left in it under temporary names. Yields a note where a
    process that died had left its lock, else None.

    The kernel drops the lock with its process, so a stale one never blocks; the file only says who holds it.
    """
    folder = SafePath.of(path)
    lock = folder / LOCK
    try:
        paths.make_folder(folder)
        file = paths.open_own(lock, 0)
    except OSError as error:
        raise unwritable(lock, error) from None
    with file:
        descriptor = file.fileno()
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
        _sign(descriptor, lock, f"pid {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        try:
            _held[folder] = os.path.abspath(lock.path), descriptor
            check()
            _clean(folder)
            yield f"took over the lock of a process that died: {holder}" if holder else None
        finally:
            _held.pop(folder, None)
            with contextlib.suppress(T2TError):  # on a full disk; a stale name in the file is harmless
                _sign(descriptor, lock, "")


@contextlib.contextmanager
def waiting(path: SafePath) -> Iterator[None]:
    """Hold the file `path`, made if there is none, after whoever holds it now: for what takes a moment. The kernel drops the
    lock with its process."""
    try:
        paths.make_folder(path.parent)
        file = paths.open_own(path, 0)
    except OSError as error:
        raise unwritable(path, error) from None
    with file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def _sign(descriptor: int, path: SafePath, text: str) -> None:
    try:
        os.ftruncate(descriptor, 0)
        if text:
            os.pwrite(descriptor, text.encode("ascii", "replace") + b"\n", 0)
    except OSError as error:
        raise unwritable(path, error) from None


def _clean(folder: SafePath) -> None:
    try:
        fresh.remove_leftovers(folder)
    except OSError as error:
        raise unwritable(folder, error) from None


def holder(path: Path | SafePath) -> str | None:
    """Which other process works in the folder, or was killed while it did, in its own words; None if none has said so."""
    folder = SafePath.of(path)
    if folder in _held:
        return None
    try:
        with paths.open_plain(folder / LOCK) as file:
            return file.read(200).decode("ascii", "replace").strip() or None
    except OSError:
        return None


def check() -> None:
    """Raise FolderLost if a folder that this process holds is no longer the one it locked: somebody moved or removed it, or its
    lock. What was written until now is in it, wherever it is; a file made now would lie in another one."""
    for folder, (lock, descriptor) in _held.items():
        try:  # nothing is opened, so a link on the way does no harm: what counts is that the same file lies at its end
            there = os.stat(lock, follow_symlinks=False)
        except OSError:
            there = None
        if there is None or not os.path.samestat(there, os.fstat(descriptor)):
            raise FolderLost(
                "the folder was moved or removed, or its lock was, while this process worked in it",
                where=str(folder),
                cause="another command, or another process that took the folder over",
                next="every answer that came is kept where the folder is now; the same command with --out naming it goes on",
            )
