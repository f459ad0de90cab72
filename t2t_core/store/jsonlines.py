"""JSON Lines that grow by whole lines and are read with suspicion.

Lines are plain ASCII (`ensure_ascii`), so control characters, lone surrogates and line separators inside a model's answer
survive word for word. A file's last line may be torn (the process died while it was written): `read` reports it and goes on.
Any other unreadable line is an error that names file and line; nothing is skipped in silence.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.store import locks, paths
from t2t_core.store.paths import SafePath

MAX_LINE = 256 << 20  # bytes; no honest record comes near
MAX_DIGITS = 100  # of one integer; the cheapest bomb is a billion digits
MAX_FILE = 64 << 20  # bytes of a whole JSON document that is not JSON Lines
_MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
_SYNC_SECONDS = 2.0


class Unreadable(ValueError):
    """Why a text is not acceptable JSON."""


def dumps(value: Any) -> str:
    """One line of JSON, without the newline. NaN and infinities are refused (ValueError)."""
    return _encoder.encode(value)


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value that is hashed: sorted keys, no spaces, ASCII."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise Unreadable(f"an integer of {len(text)} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Unreadable("a number too large for a float")
    return value


def _constant(text: str) -> float:
    raise Unreadable(f"{text} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Unreadable("one key twice in an object")
    return result


_encoder = json.JSONEncoder(allow_nan=False)
def decoder(**other: Any) -> json.JSONDecoder:
    """A decoder of hostile JSON; `other` arguments take the place of its own."""
    own = {"parse_int": _integer, "parse_float": _number, "parse_constant": _constant, "object_pairs_hook": _object}
    return json.JSONDecoder(**{**own, **other})


_decoder = decoder()


def loads(text: str | bytes) -> Any:
    """Read hostile JSON: `Unreadable` for bad UTF-8, NaN, doubled keys, huge numbers and deep nesting, never a crash. The
    mark that some editors put at the beginning of a file is no part of it."""
    try:
        return _decoder.decode(text if isinstance(text, str) else text.removeprefix(_MARK).decode())
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except Unreadable:
        raise
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise Unreadable(str(error)[:200]) from None


@dataclass(frozen=True)
class Line:
    """One line of a file: its number from 1, the byte offset where it begins, and its value."""

    number: int
    offset: int
    value: dict[str, Any]


@dataclass(frozen=True)
class Torn:
    """A last line that was cut off while it was written."""

    path: Path | SafePath
    number: int
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.number}: the last line was cut off ({self.length} bytes) and is dropped"


def read(path: Path | SafePath, torn: list[Torn] | None = None) -> Iterator[Line]:
    """The objects of a JSON Lines file, one by one; blank lines are allowed.

    A last line that lacks its newline and does not parse is put into `torn` and skipped; without a list for it, it is an
    error like every other unreadable line. T2TError names file and line.
    """
    try:
        with paths.open_plain(path) as file:
            number = offset = 0
            while raw := file.readline(MAX_LINE + 1):
                number += 1
                if len(raw) > MAX_LINE:
                    raise _bad(path, number, f"longer than {MAX_LINE} bytes")
                if raw.strip():
                    line = _line(path, number, offset, raw, torn)
                    if line:
                        yield line
                offset += len(raw)
    except OSError as error:
        raise paths.unreadable(path, error) from None


def _line(path: Path | SafePath, number: int, offset: int, raw: bytes, torn: list[Torn] | None) -> Line | None:
    try:
        value = loads(raw)
    except Unreadable as error:
        if torn is not None and not raw.endswith(b"\n"):
            torn.append(Torn(path, number, offset, len(raw)))
            return None
        raise _bad(path, number, str(error)) from None
    if not isinstance(value, dict):
        raise _bad(path, number, f"a JSON object is expected, not {type(value).__name__}")
    return Line(number, offset, value)


def _bad(path: Path | SafePath, number: int, cause: str) -> T2TError:
    return T2TError(
        f"line {number} cannot be read",
        where=f"{path}, line {number}",
        cause=f"{cause}; the file was damaged or edited by hand",
        next="mend or delete that line; nothing else of the file is touched",
    )


class Appender:
    """Appends whole lines to a file; each reaches the kernel before `append` returns, and the disk every two seconds.

    A torn last line is cut off first (give its `Torn` from `read`). Where a write fails (disk full), the file ends with the
    last whole line again and T2TError says what is kept. The file is locked while it is open, so that no second process appends
    to it even where the folder's own lock was removed. A link is refused: a stranger's folder must not let us cut or grow a file
    elsewhere.
    """

    def __init__(self, path: Path | SafePath, torn: Torn | None = None) -> None:
        self.path = path
        try:
            paths.make_folder(path.parent)
            self._file = paths.open_own(path, os.O_APPEND)
        except OSError as error:
            raise self._error(error) from None
        self._descriptor = self._file.fileno()
        try:
            self._begin(torn)
        except OSError as error:
            self._file.close()
            raise self._error(error) from None
        except T2TError:
            self._file.close()
            raise
        self._synced = time.monotonic()

    def _begin(self, torn: Torn | None) -> None:
        with contextlib.suppress(OSError):  # a file system without locks has the folder's lock, or none
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise T2TError(
                    "another process is writing to this file",
                    where=str(self.path),
                    cause=error.strerror or str(error),
                    next="wait for it, or stop it; the same command then goes on",
                ) from None
        size = os.fstat(self._descriptor).st_size
        if torn:
            os.ftruncate(self._descriptor, torn.offset)
            size = torn.offset
        self.size = self._began = size
        self._written = hashlib.sha256()
        if not size:
            paths.sync(self.path.parent)
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":  # whole, but its newline was cut off
            self._write(b"\n")

    def append(self, value: dict[str, Any]) -> int:
        """Write one line; returns the byte offset where it begins. FolderLost, once it is written, where the folder was moved."""
        start = self.size
        try:
            self._write(dumps(value).encode() + b"\n")
            now = time.monotonic()
            if now - self._synced > _SYNC_SECONDS:
                os.fsync(self._descriptor)
                self._synced = now
        except OSError as error:
            raise self._error(error) from None
        locks.check()
        return start

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except BaseException:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)
        self._written.update(data)

    def undisturbed(self) -> bool:
        """Whether the file still ends in what was written here, and in nothing else."""
        try:
            with paths.open_plain(self.path) as file:
                file.seek(self._began)
                on_disk = hashlib.sha256()
                while piece := file.read(1 << 16):
                    on_disk.update(piece)
        except OSError as error:
            raise paths.unreadable(self.path, error) from None
        return on_disk.digest() == self._written.digest()

    def _error(self, error: OSError) -> T2TError:
        return paths.unwritable(self.path, error)

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._error(error) from None
        finally:
            self._file.close()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
