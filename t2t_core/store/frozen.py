"""Frozen sets that ship with a package: files beside a `SHA256SUMS`, and a `manifest.json` that says which file holds which."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.records import InstanceSet
from t2t_core.store import folders, jsonlines


@cache
def read(package: str, name: str) -> bytes:
    """A file of the package, checked against its SHA256SUMS. Raises T2TError if it is not the published one."""
    folder = files(package)
    sums = {file: digest for digest, file in map(str.split, (folder / "SHA256SUMS").read_text().splitlines())}
    data = (folder / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != sums.get(name):
        raise T2TError(
            f"the frozen file {name} is not the one that was published",
            where=str(folder / name),
            cause="its SHA-256 differs from SHA256SUMS: it was edited or damaged",
            next="reinstall t2t-core; use --instances FILE for a set of your own",
        )
    return data


@cache
def manifest(package: str) -> dict[str, Any]:
    """What the package's sets hold: {"sets": {name: {"file", "kind", "notes", ...}}, ...}."""
    return dict(json.loads(read(package, "manifest.json")))


def load(package: str, name: str, read_instance: Callable[[Mapping[str, Any]], Any]) -> InstanceSet:
    """A set by name; T2TError for an unknown name, or a file that is not the published one."""
    sets = manifest(package)["sets"]
    if name not in sets:
        raise T2TError(f"there is no set called {ascii(name)[:60]}", cause="the sets are " + ", ".join(sets))
    data = read(package, sets[name]["file"])
    instances = tuple(read_instance(jsonlines.loads(line)) for line in data.splitlines())
    return InstanceSet(name, sets[name]["kind"], hashlib.sha256(data).hexdigest(), instances, tuple(sets[name]["notes"]))


def check_twin_seed(seed: int) -> None:
    """Raise T2TError unless a twin can be drawn from that seed."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise T2TError("a twin's seed must be an integer from 0 to 2^63 - 1", next="--twin 1")


def closing_files(sets: Mapping[str, str], manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The two files beside those of the sets (name -> text): `manifest.json`, and the `SHA256SUMS` of them all."""
    written = {**sets, "manifest.json": folders.document(manifest)}
    yield "manifest.json", written["manifest.json"]
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in written.items()}
    yield "SHA256SUMS", "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))


def write(folder: Path, made: Iterable[tuple[str, str]]) -> list[str]:
    """Write the files of frozen sets, (name, text), as they are made; returns their names."""
    names = []
    for name, text in made:
        folders.write_atomic(folder / name, text)
        names.append(name)
    return names
