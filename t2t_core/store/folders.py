"""Run folders: a manifest, whole files, and what the machine and the suite looked like.

`run.json` says what the folder holds; a folder of another format version, kind or setting is refused, never guessed at.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, BinaryIO, TypeVar

from msgspec import Meta

from t2t_core._version import __version__
from t2t_core.errors import T2TError
from t2t_core.store import fresh, jsonlines, locks, paths, schema
from t2t_core.store.paths import SafePath, unreadable, unwritable

T = TypeVar("T")
FORMAT = 1  # of run folders; raised when a reader of today could not read tomorrow's
MANIFEST = "run.json"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_PIECE = 1 << 20  # bytes read at a time
_PACKAGES = ("numpy", "gymnasium", "pettingzoo", "aiohttp", "torch", "transformers", "trl", "vllm")


def scratch() -> BinaryIO:
    """A file without a name, which ends with whoever holds it."""
    return tempfile.TemporaryFile()  # noqa: SIM115


def now() -> str:
    """The time as text, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_atomic(path: Path | SafePath, data: str | bytes) -> None:
    """Write a whole file or nothing: a temporary name in the same folder, fsync, rename, fsync of the folder."""
    with replacing(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def write_once(path: SafePath, data: str | bytes) -> bool:
    """Write a whole file where nothing has that name yet: True for exactly one of all processes that try, whenever they are
    killed. The others change nothing."""
    make_folder(path.parent)
    try:
        with paths.located(path, paths.FOLDER) as (folder, name), fresh.file_beside(folder, name) as (temporary, file):
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            os.fsync(folder)
            return True
    except FileExistsError:
        return False
    except OSError as error:
        raise unwritable(path, error) from None


def refuse_device(path: Path) -> None:
    """T2TError where the user named a device, a pipe or a socket as the file to write, or a link to one: it would be lost, for a
    new file takes the name of the one before."""
    with contextlib.suppress(OSError):  # nothing is there, or what is wrong with it is told when it is written
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            what = f"it is {paths.kind(mode)}, and a file would take its place"
            raise T2TError("the file cannot be written", where=str(path), cause=what, next="give the name of a file")


@contextlib.contextmanager
def replacing(path: Path | SafePath) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well; otherwise `path` stays as it was."""
    if isinstance(path, Path):
        refuse_device(path)
    make_folder(path.parent)
    try:
        if isinstance(path, Path):
            fresh.remove_leftovers_of(path)
        with paths.located(path, paths.FOLDER) as (folder, name), fresh.file_beside(folder, name) as (temporary, file):
            yield file
            file.flush()
            os.fsync(file.fileno())
            locks.check()
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
    except OSError as error:
        raise unwritable(path, error) from None


@contextlib.contextmanager
def building(target: SafePath) -> Iterator[SafePath]:
    """A folder that takes the place of `target`, where nothing is yet, when the block ends well; otherwise nothing is left."""
    make_folder(target.parent)
    try:
        with fresh.folder_beside(target) as temporary:
            yield temporary
            sync_folder(temporary)
            rename(temporary, target)
    except OSError as error:
        raise unwritable(target, error) from None


def take_over(source: SafePath, target: SafePath, left_out: Collection[str] = ()) -> None:
    """Fill a new folder with the files of another one, but those `left_out` at its top. They are hard links where the file system
    allows it, so neither side may write to them again."""
    try:
        for entry, status in paths.walk(source):
            inside = SafePath(target.root, (*target.parts, *entry.parts[len(source.parts) :]))
            if inside.parent == target and inside.name in left_out:
                continue
            if stat.S_ISDIR(status.st_mode):
                paths.make_folder(inside)
            elif source.holds_link(entry, status):
                os.symlink(os.readlink(entry.path), inside.path)
            else:
                paths.link_or_copy(entry, inside)
    except OSError as error:
        raise T2TError("the folder cannot be taken over", where=str(source), cause=error.strerror or str(error)) from None


def make_folder(path: Path | SafePath) -> None:
    """The folder and those above it. Raises T2TError if that cannot be."""
    locks.check()
    try:
        paths.make_folder(path)
    except OSError as error:
        raise unwritable(path, error) from None


def rename(path: SafePath, target: SafePath) -> None:
    """Put a finished file or folder into its place. Raises T2TError if that cannot be."""
    locks.check()
    try:
        with paths.located(path) as (there, old), paths.located(target, paths.FOLDER) as (here, new):
            os.replace(old, new, src_dir_fd=there, dst_dir_fd=here)
            os.fsync(here)
    except OSError as error:
        raise unwritable(target, error) from None


def remove(path: Path | SafePath) -> None:
    """Remove a file, or whatever else has its name and is no folder; nothing if there is none."""
    try:
        with contextlib.suppress(FileNotFoundError), paths.located(path) as (folder, name):
            os.unlink(name, dir_fd=folder)
    except OSError as error:
        raise unwritable(path, error) from None


def remove_folder(path: SafePath) -> None:
    """Remove a folder and what is in it, no link followed; nothing if there is none."""
    locks.check()
    try:
        with contextlib.suppress(FileNotFoundError), paths.located(path, paths.FOLDER) as (folder, name):
            shutil.rmtree(name, dir_fd=folder)
    except OSError as error:
        raise unwritable(path, error) from None


def sync_folder(folder: SafePath) -> None:
    """Every file below is on the disk when this returns, whoever wrote it: a power cut after it takes nothing away. A folder that
    is not there has none."""
    if not folder.exists():
        return
    try:
        for entry, status in paths.walk(folder):
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                paths.sync(entry)
        paths.sync(folder)
    except OSError as error:
        raise unwritable(folder, error) from None


def write_json(path: Path | SafePath, value: Any) -> None:
    """Write a JSON document, or a record, to read and to diff: two spaces, ASCII, a newline at the end."""
    write_atomic(path, document(schema.plain(value)))


def document(value: Any) -> str:
    """JSON as it stands in files that people read: indented, one newline at the end. ValueError for NaN and infinities."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def read_bytes(path: Path | SafePath, most: int = jsonlines.MAX_FILE) -> bytes:
    """The whole of a regular file. Raises T2TError if it is none, cannot be read or is longer than `most` bytes."""
    try:
        data = bytearray()
        with paths.open_plain(path, most) as file:
            while len(data) <= most and (piece := file.read(_PIECE)):
                data += piece
    except FileNotFoundError:
        raise T2TError("there is no such file", where=str(path)) from None
    except OSError as error:
        raise unreadable(path, error) from None
    if len(data) > most:  # it grew meanwhile, or is one of those whose size the system does not know
        raise T2TError("the file cannot be read", where=str(path), cause=f"longer than {most} bytes")
    return bytes(data)


def read_text(path: Path | SafePath, most: int = jsonlines.MAX_FILE) -> str:
    """The whole of a text file, its damaged bytes shown as U+FFFD; T2TError as in `read_bytes`."""
    return read_bytes(path, most).decode("utf-8", "replace")


def read_json(path: Path | SafePath) -> dict[str, Any]:
    """Read a JSON object from a file that may come from a stranger; T2TError says what is wrong with it."""
    data = read_bytes(path)
    try:
        value = jsonlines.loads(data)
        if not isinstance(value, dict):
            raise jsonlines.Unreadable(f"a JSON object is expected, not {type(value).__name__}")
    except jsonlines.Unreadable as error:
        raise T2TError("the file is not what was written", where=str(path), cause=str(error)) from None
    return value


def read_record(path: Path | SafePath, kind: type[T]) -> T:
    """Read a JSON object of that type; T2TError says what is wrong with it, and where."""
    return schema.check(read_json(path), kind, str(path))


def sha256(path: Path | SafePath) -> str:
    """The hash of a file's bytes, in hexadecimal. Raises T2TError if it cannot be read."""
    try:
        with paths.open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError as error:
        raise unreadable(path, error) from None


# --- what the folder holds


@dataclass(frozen=True)
class Manifest:
    """`run.json`: what the folder holds, and the versions and machines of each session that worked in it."""

    format: int
    kind: str
    settings: dict[str, Any]
    sessions: Annotated[list[dict[str, Any]], Meta(min_length=1)]


def open_manifest(
    folder: Path | SafePath,
    kind: str,
    settings: Mapping[str, Any],
    what: str = "run",
    asked: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    session: Mapping[str, Any] = _NOTHING,
) -> dict[str, Any]:
    """Make `folder/run.json`, or check that the one there is of the same format, kind and settings, and return it.

    A run that is resumed in a changed environment (another commit, another numpy), or with other facts of the `session` (the
    version of the reader of answers), gets a further entry under `sessions`; so does one whose settings differ in what `asked`
    leaves out, with what they are now and what they were.
    """
    folder = SafePath.of(folder)
    path = folder / MANIFEST
    if not path.exists():
        present = [entry.name for entry in folder.entries() if not entry.name.startswith(".")]
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
            "sessions": [{"started": now(), "environment": environment(), **session}],
        }
        write_json(path, manifest)
        return manifest
    manifest = read_manifest(folder, kind)
    before = manifest["settings"]
    same_settings(asked(before), asked(settings), path, what)
    changed = [name for name in settings if _text(settings[name]) != _text(before.get(name))]
    if changed:
        manifest["sessions"][-1]["changed"] = {
            **{name: before.get(name) for name in changed},
            **manifest["sessions"][-1].get("changed", {}),
        }
        manifest["settings"] = dict(settings)
    here = {"environment": environment(), **session}
    if changed or any(manifest["sessions"][-1].get(name) != value for name, value in here.items()):
        manifest["sessions"].append(
            {"started": now(), **here, **({"changed": {n: settings[n] for n in changed}} if changed else {})}
        )
        write_json(path, manifest)
    return manifest


def read_manifest(folder: Path | SafePath, kind: str) -> dict[str, Any]:
    """`folder/run.json`, refused where its format or kind is not ours to read."""
    folder = SafePath.of(folder)
    path = folder / MANIFEST
    if not folder.is_dir():
        raise T2TError("there is no such folder", where=str(folder))
    if not path.exists():
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
    schema.check(manifest, Manifest, str(path))
    return manifest


def same_settings(stored: Mapping[str, Any], settings: Mapping[str, Any], path: SafePath, what: str = "run") -> None:
    """T2TError naming each setting that differs; otherwise nothing."""
    names = [*stored, *(name for name in settings if name not in stored)]
    differing = [n for n in names if n not in stored or n not in settings or _text(stored[n]) != _text(settings[n])]
    if differing:
        shown = "; ".join(f"{n}: {_short(stored.get(n))} there, {_short(settings.get(n))} here" for n in differing[:4])
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
