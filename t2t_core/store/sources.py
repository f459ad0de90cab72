"""A hash of source trees: what a result depends on beside its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

SUFFIXES = (".py", ".toml", ".cpp", ".hpp", ".json", ".jsonl")


def tree_hash(packages: Mapping[str, Sequence[str]]) -> str:
    """The hash of every source file under the packages' folders: of its place below the package's name, and of its bytes."""
    digest = hashlib.sha256()
    for name in sorted(packages):
        for folder in packages[name]:
            files = (path for path in Path(folder).rglob("*") if path.suffix in SUFFIXES and "__pycache__" not in path.parts)
            for file in sorted(files):
                data = file.read_bytes()
                digest.update(f"{name}/{file.relative_to(folder).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()
