"""Files and folders that are made under a name nobody can guess, and get their own name once they are whole.

A process that is killed leaves the temporary one behind. It is locked (flock) while it is written, so that the next cleanup can
tell a leftover from a file that somebody is writing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from t2t_core.store import paths
from t2t_core.store.paths import SafePath

_LEFTOVER = re.compile(r"\..*\.[0-9a-f]{16}\.tmp", re.DOTALL)
_LONGEST = 200  # bytes of the final name that the temporary name repeats; a name has at most 255


@contextlib.contextmanager
def file_beside(folder: int, name: str) -> Iterator[tuple[str, BinaryIO]]:
    """A new file in the open folder, locked while the block runs; it is gone afterwards unless it was renamed."""
    make = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    temporary, descriptor = _locked(name, lambda new: os.open(new, make, 0o666, dir_fd=folder))
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield temporary, file
    finally:
        # Best effort: after Ctrl-C within `with` itself this may come late, when the folder is closed.
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


@contextlib.contextmanager
def folder_beside(target: SafePath) -> Iterator[SafePath]:
    """A new folder beside `target`, locked while the block runs; it is gone afterwards unless it was renamed."""
    with paths.located(target, paths.FOLDER) as (above, name):

        def make(new: str) -> int:
            os.mkdir(new, dir_fd=above)
            return os.open(new, paths.FOLDER | os.O_NOFOLLOW, dir_fd=above)

        temporary, descriptor = _locked(name, make)
        try:
            yield target.parent / temporary
        finally:
            os.close(descriptor)
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(temporary, dir_fd=above)


def _locked(name: str, make: Callable[[str], int]) -> tuple[str, int]:
    """Make something new with `make` under a name beside `name`; returns that name and the locked descriptor."""
    while True:
        temporary = f".{_kept(name)}.{secrets.token_hex(8)}.tmp"
        descriptor = make(temporary)
        if _lock(descriptor) and os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # a cleanup took it for a leftover between the two calls


def _kept(name: str) -> str:
    return name.encode("utf-8", "surrogateescape")[:_LONGEST].decode("utf-8", "ignore")


def _lock(descriptor: int) -> bool:
    """Whether nobody else holds the lock; True on a file system without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def remove_leftovers(folder: SafePath) -> None:
    """Remove what killed processes left under temporary names anywhere below the folder. Files that somebody is writing
    stay."""
    for entry, status in paths.walk(folder):
        if _LEFTOVER.fullmatch(entry.name):
            with paths.located(entry) as (above, name):
                _remove(above, name, status.st_mode)


def remove_leftovers_of(path: Path) -> None:
    """Remove what killed processes left of this file."""
    with contextlib.suppress(FileNotFoundError), paths.located(path, paths.FOLDER) as (above, name):
        for entry in os.listdir(above):
            if _LEFTOVER.fullmatch(entry) and entry[1:-21] == _kept(name):
                _remove(above, entry, os.stat(entry, dir_fd=above, follow_symlinks=False).st_mode)


def _remove(above: int, name: str, mode: int) -> None:
    """Best effort: something that cannot be removed takes up space and does no other harm."""
    with contextlib.suppress(OSError, RecursionError):
        _remove_unlocked(above, name, mode)


def _remove_unlocked(above: int, name: str, mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.unlink(name, dir_fd=above)  # a link or a pipe: nobody writes those
        return
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
    try:
        if not _lock(descriptor):
            return
        if stat.S_ISDIR(mode):
            shutil.rmtree(name, dir_fd=above)
        else:
            os.unlink(name, dir_fd=above)
    finally:
        os.close(descriptor)
