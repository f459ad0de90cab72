"""Anybody's own set of instances, as JSON Lines or in another of `t2t_core.store.formats`: for `t2t bench --instances`, say, and
a run's `[evaluation] instances`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceSet
from t2t_core.store import folders, formats, jsonlines
from t2t_core.store.paths import SafePath


def read_instances(testbed: AnyTestbed, path: Path | SafePath) -> list[Any]:
    """The instances of a JSON Lines file, or of a file or folder in another form; T2TError names file and line."""
    foreign = formats.read(testbed, path)
    if foreign is not None:
        return foreign
    instances = []
    for line in jsonlines.read(path):
        try:
            instances.append(testbed.read_instance(line.value))
        except T2TError as error:
            at, hint = f"{path}, line {line.number}", error.next or another_tasks(testbed.name)
            raise T2TError(error.what, where=at, cause=error.cause, next=hint) from None
    if not instances:
        raise T2TError("the file holds no instances", where=str(path))
    return instances


def another_tasks(testbed: str) -> str:
    """What to do where a line that is no instance of this testbed may be one of another."""
    return f"it was read as an instance of {testbed}: --testbed NAME, where it is another task's"


def digest_of(instances: Sequence[Any]) -> str:
    """SHA-256 of the instances as JSON Lines: what a file of ours with them would have."""
    digest = hashlib.sha256()
    for instance in instances:
        digest.update(jsonlines.dumps(instance.to_dict()).encode() + b"\n")
    return digest.hexdigest()


def file_set(testbed: AnyTestbed, path: Path) -> InstanceSet:
    """The file as a set, named after it."""
    instances = read_instances(testbed, path)
    digest = folders.sha256(path) if path.is_file() and path.suffix == ".jsonl" else digest_of(instances)
    name = re.sub(r"[^A-Za-z0-9_.+-]", "_", path.stem).lstrip("_.+-")[:60] or "instances"
    return InstanceSet(name, "file", digest, instances)
