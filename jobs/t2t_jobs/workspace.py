"""The folder in which an agent writes its job.

The files that count are held in memory, by name, and mirrored to disk for people and for the probe. No name that an agent gives
is ever looked up in a file system, so links, `..` and devices lead nowhere. The number and size of the files are limited.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from t2t_core.errors import T2TError
from t2t_core.store import folders
from t2t_core.store.paths import SafePath

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SHOWN = 80  # characters of a name that a message shows


@dataclass(frozen=True)
class Limits:
    """What a workspace may hold (our choice): the most files, bytes of one file and of all, characters and parts of a path."""

    files: int = 32
    file_bytes: int = 64 << 10
    bytes: int = 256 << 10
    path: int = 120
    depth: int = 4


class Workspace:
    """Text files by name.

    Args:
        folder: where the files are mirrored; None: nowhere.
        files: the files at the start.
        limits: what it may hold.
    """

    def __init__(self, folder: SafePath | None, files: Mapping[str, str], limits: Limits = Limits()) -> None:
        self._folder, self._limits, self._files = folder, limits, dict[str, str]()
        if folder is not None:
            folders.remove_folder(folder)
            folders.make_folder(folder)
        for path, text in files.items():
            self.write(path, text)

    @property
    def files(self) -> Mapping[str, str]:
        """Every file's text by its path, in the order of the paths."""
        return dict(sorted(self._files.items()))

    def list(self) -> list[str]:
        """A line per file: its path and its size in bytes."""
        return [f"{path} ({len(text.encode())} bytes)" for path, text in self.files.items()]

    def read(self, path: str) -> str:
        """A file's text. Raises T2TError if there is no such file."""
        path = self._checked(path)
        if path not in self._files:
            raise T2TError(f"there is no file {path}", next=f"the workspace holds {', '.join(self.files) or 'nothing'}")
        return self._files[path]

    def write(self, path: str, text: str) -> None:
        """Create a file, or replace its text. Raises T2TError if the path leads out of the workspace or a limit is exceeded."""
        path, limits = self._checked(path), self._limits
        size = _size(text, path)
        if size > limits.file_bytes:
            raise T2TError(f"{path} would have {size} bytes", cause=f"a file has at most {limits.file_bytes}")
        others = {name: len(other.encode()) for name, other in self._files.items() if name != path}
        if len(others) >= limits.files:
            raise T2TError(f"{path} would be one file too many", cause=f"a workspace holds at most {limits.files}")
        if sum(others.values()) + size > limits.bytes:
            raise T2TError(f"{path} would fill the workspace", cause=f"all files together have at most {limits.bytes} bytes")
        if any(name.startswith(f"{path}/") or path.startswith(f"{name}/") for name in others):
            raise T2TError(f"{path} cannot be a file and a folder at once")
        self._files[path] = text
        if self._folder is not None:
            folders.write_atomic(self._folder / path, text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace `old` by `new`. Raises T2TError unless `old` is in the file exactly once."""
        text = self.read(path)
        count = text.count(old) if old else 0
        if count != 1:
            cause = "the text to replace is empty" if not old else f"it stands there {count} times"
            raise T2TError(f"{path} is left as it was: the text to replace must stand in it once", cause=cause)
        self.write(path, text.replace(old, new))

    def _checked(self, path: str) -> str:
        limits = self._limits
        shown = ascii(path)[1:-1][:_SHOWN]
        parts = path.removeprefix("./").split("/")
        if path.startswith(("/", "~")) or ".." in parts:
            raise T2TError(f"{shown} leads out of the workspace", next="name a file in it, for example job.toml")
        if len(path) > limits.path or len(parts) > limits.depth or not all(_PART.fullmatch(part) for part in parts):
            raise T2TError(
                f"{shown or 'nothing'} is no path of a file here",
                cause=f"at most {limits.path} characters and {limits.depth} parts of letters, digits, _, - and .",
            )
        return "/".join(parts)


def _size(text: str, path: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise T2TError(f"the text for {path} is no UTF-8", cause="it holds half a surrogate") from None
