"""Paths below a folder that may come from a stranger: on the way to a file nothing is a link, and only regular files are opened.

A plain `Path` is what the user named: it may be reached through links, since that is the user's own choice. A `SafePath` is such
a folder and names below it. Every one of them is opened from the folder above it without following a link, so that a folder
somebody sends reaches nothing outside itself, whatever lies in it.

Functions here raise OSError, with a `strerror` that is fit to be shown; `folders` and `jsonlines` turn it into T2TError.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from t2t_core.errors import T2TError

MAX_STREAM = 64 << 30  # bytes of a file that is read line by line or only hashed; our choice
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # a folder that is only gone through
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # a folder that is listed or synced
MAX_DEPTH = 64  # of folders in one another; our choice


@dataclass(frozen=True, order=True)
class SafePath:
    """A folder that the user named, and names below it. It looks like a `Path` but cannot be opened as one."""

    root: Path
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path | SafePath) -> SafePath:
        """The path itself, or a folder that the user named."""
        return path if isinstance(path, SafePath) else cls(path)

    @classmethod
    def absolute(cls, path: Path | SafePath) -> SafePath:
        """The same, wherever a plugin may take this process later."""
        return path if isinstance(path, SafePath) else cls(path.absolute())

    def __truediv__(self, names: str) -> SafePath:
        parts = names.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise T2TError(f"{ascii(names)[:80]} leads out of its folder", where=str(self), cause="it was edited by hand")
        return SafePath(self.root, (*self.parts, *parts))

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:  # every line that is read names its file
        return str(self.path)

    @property
    def path(self) -> Path:
        """Where it is, to be told or compared; what opens a file takes the SafePath itself."""
        return self.root.joinpath(*self.parts)

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1] if self.parts else self.root.name

    @property
    def parent(self) -> SafePath:
        """The folder that it is in."""
        return SafePath(self.root, self.parts[:-1]) if self.parts else SafePath(self.root.parent)

    def exists(self) -> bool:
        """Is anything there? A link counts: opening it says what is wrong. Raises T2TError if the way to it is none."""
        return self._look() is not None

    def is_empty(self) -> bool:
        """Is it nothing, or a file without a byte?"""
        status = self._look()
        return status is None or (stat.S_ISREG(status.st_mode) and status.st_size == 0)

    def is_dir(self) -> bool:
        """Is it a folder? A link to one is none."""
        status = self._look()
        return status is not None and stat.S_ISDIR(status.st_mode)

    def _look(self) -> os.stat_result | None:
        try:
            if not self.parts:
                return os.stat(self.root)
            with located(self) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self, error) from None

    def entries(self) -> list[SafePath]:
        """What the folder holds, in the order of the names; nothing if there is no such folder."""
        try:
            descriptor = self.open_folder(FOLDER)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable(self, error) from None
        try:
            return [SafePath(self.root, (*self.parts, name)) for name in sorted(os.listdir(descriptor))]
        finally:
            os.close(descriptor)

    def open_folder(self, flags: int = _STEP) -> int:
        """A descriptor of this folder. Only the root may be reached through links."""
        descriptor = os.open(self.root, flags if not self.parts else _STEP)
        for at, part in enumerate(self.parts, 1):
            above = descriptor
            try:
                descriptor = _enter(above, part, flags if at == len(self.parts) else _STEP)
            finally:
                os.close(above)
        return descriptor

    def checked_path(self) -> Path:
        """The path for a library that opens what lies there by itself: T2TError where the way to it, or anything below it, is
        neither a folder nor a regular file nor a link to such a one below it. What is not there yet has nothing wrong with it."""
        try:
            own = self._look()
            if own and not stat.S_ISDIR(own.st_mode):
                _regular(self.name, own)
            for entry, status in walk(self) if own and stat.S_ISDIR(own.st_mode) else ():
                if not stat.S_ISDIR(status.st_mode) and not self.holds_link(entry, status):
                    _regular(str(entry), status)
        except OSError as error:
            raise unreadable(self, error) from None
        return self.path

    def holds_link(self, entry: SafePath, status: os.stat_result) -> bool:
        """Is that entry below this folder a relative link that stays below it?"""
        if not stat.S_ISLNK(status.st_mode) or os.path.isabs(os.readlink(entry.path)):
            return False
        return Path(os.path.realpath(entry.path)).is_relative_to(os.path.realpath(self.path))


def unreadable(path: Path | SafePath, error: OSError) -> T2TError:
    """The error of a file that the system does not let us read."""
    return T2TError("the file cannot be read", where=str(path), cause=error.strerror or str(error))


def unwritable(path: Path | SafePath, error: OSError) -> T2TError:
    """The error of a file that the system does not let us write."""
    return T2TError(
        "the file cannot be written",
        where=str(path),
        cause=error.strerror or str(error),
        next="make room or give another folder; what was written before is kept, and the same command goes on from there",
    )


def _enter(above: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=above)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        status = os.stat(name, dir_fd=above, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            raise error
        raise refused(name, status.st_mode, "a folder") from None


def kind(mode: int) -> str:
    """What a file is, where it is no regular one, in words."""
    if stat.S_ISLNK(mode):
        return "a link, and none is followed"
    names = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFREG: "a file"}
    return names.get(stat.S_IFMT(mode), "a device")


def refused(name: str, mode: int, expected: str) -> OSError:
    """The error of something that is there and is not what is expected, e.g. a link where a file should be."""
    return OSError(errno.EINVAL, f"not {expected}: {ascii(name)[1:-1][-80:] or 'it'} is {kind(mode)}")


@contextlib.contextmanager
def located(path: Path | SafePath, flags: int = _STEP) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that holds `path`, and its name there."""
    if not path.name or path.name == ".." or (isinstance(path, SafePath) and not path.parts):
        raise OSError(errno.EISDIR, "a folder, not a file")
    descriptor = path.parent.open_folder(flags) if isinstance(path, SafePath) else os.open(path.parent, flags)
    try:
        yield descriptor, path.name
    finally:
        os.close(descriptor)


def walk(top: SafePath) -> Iterator[tuple[SafePath, os.stat_result]]:
    """Everything below a folder with its status, a folder before what it holds; no link is followed."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        if len(folder.parts) - len(top.parts) > MAX_DEPTH:
            raise OSError(errno.ELOOP, f"folders nested deeper than {MAX_DEPTH}")
        try:
            descriptor = folder.open_folder(FOLDER)
        except FileNotFoundError:
            if folder == top:
                raise
            continue  # removed since, perhaps by whoever walks
        try:
            for name in sorted(os.listdir(descriptor)):
                entry = SafePath(folder.root, (*folder.parts, name))
                with contextlib.suppress(FileNotFoundError):  # gone since
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    yield entry, status
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry)
        finally:
            os.close(descriptor)


def open_plain(path: Path | SafePath, most: int = MAX_STREAM) -> BinaryIO:
    """Open a regular file of at most `most` bytes for reading bytes. A pipe, folder or device is refused, never waited for; below
    a `SafePath`'s root so is a link."""
    if "\0" in str(path):  # from a stranger's scenario, say; the operating system would not take it
        raise OSError(errno.EINVAL, "no file's name holds NUL")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    if isinstance(path, SafePath):
        with located(path) as (folder, name):
            _regular(name, os.stat(name, dir_fd=folder, follow_symlinks=False))  # a device is not even opened
            descriptor = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    else:
        _regular(path.name, os.stat(path))
        descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        _regular(path.name, status)
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"longer than {most} bytes")
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")  # it owns the descriptor: an interrupt that comes here must not close it twice


def _regular(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise refused(name, status.st_mode, "a regular file")


def open_own(path: Path | SafePath, flags: int) -> FileIO:
    """A regular file to read and change in place, made if there is none. A link is refused, and so is a file that has a second
    name (a hard link): what is written here would change there too.

    It closes itself, and gives up its lock, once nobody has it any more: an interrupt may come between any two instructions."""
    with located(path) as (folder, name):
        with contextlib.suppress(FileNotFoundError):
            _regular(name, os.stat(name, dir_fd=folder, follow_symlinks=False))
        all_flags = flags | os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        file = FileIO(os.open(name, all_flags, 0o644, dir_fd=folder), "r+")
    status = os.fstat(file.fileno())
    try:
        _regular(path.name, status)
        if status.st_nlink > 1:
            raise OSError(errno.EMLINK, "the file has a second name (a hard link), where it would change too; copy it first")
    except OSError:
        file.close()
        raise
    return file


def make_folder(path: Path | SafePath) -> None:
    """The folder and those above it; their names are on the disk when this returns."""
    if isinstance(path, Path):
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            sync(path.parent)
        return
    make_folder(path.root)
    with contextlib.suppress(FileNotFoundError):
        os.close(path.open_folder())
        return
    above = os.open(path.root, FOLDER)
    try:
        for part in path.parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=above)
                os.fsync(above)
            above, passed = _enter(above, part, FOLDER), above
            os.close(passed)
    finally:
        os.close(above)


def link_or_copy(source: SafePath, target: SafePath) -> None:
    """The regular file `source` under a second name, or a copy of it where the file system has no such links."""
    with located(source) as (there, old), located(target) as (here, new):
        _regular(old, os.stat(old, dir_fd=there, follow_symlinks=False))
        try:
            os.link(old, new, src_dir_fd=there, dst_dir_fd=here, follow_symlinks=False)
        except OSError:
            make = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            with open_plain(source) as file, os.fdopen(os.open(new, make, 0o666, dir_fd=here), "wb") as copy:
                shutil.copyfileobj(file, copy)


def sync(path: Path | SafePath) -> None:
    """A file's content, or the names in a folder, are on the disk when this returns."""
    if isinstance(path, Path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    elif not path.parts:
        descriptor = path.open_folder(FOLDER)
    else:
        with located(path) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
