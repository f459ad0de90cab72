"""Reads and writes instances as JSON Lines, one per line. Files are not trusted: see `t2t_core.store.jsonlines`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.store import folders, jsonlines
from t2t_core.store.instance_files import another_tasks

from .instance import Instance

MAX_INSTANCES = 1_000_000  # our choice


def read_instances(path: str | os.PathLike[str]) -> list[Instance]:
    """Every instance of a file, in order.

    Raises:
        T2TError: the file cannot be read, a line is not an instance, or an id occurs twice; it names the file and line.
    """
    return list(iterate_instances(path))


def iterate_instances(path: str | os.PathLike[str]) -> Iterator[Instance]:
    """The instances of a file one by one; see `read_instances`."""
    lines: dict[str, int] = {}
    for line in jsonlines.read(Path(path)):
        where = f"{path}, line {line.number}"
        try:
            instance = Instance.from_dict(line.value)
        except T2TError as error:
            hint = error.next or another_tasks("mapf-frozenlake")
            raise T2TError(error.what, where=where, cause=error.cause, next=hint) from None
        if instance.id and instance.id in lines:
            what = f"the id {instance.id} is on line {lines[instance.id]} too"
            raise T2TError(what, where=where, next="give each instance its own")
        if len(lines) >= MAX_INSTANCES:
            raise T2TError(f"more than {MAX_INSTANCES} instances", where=where, next="split the file")
        lines[instance.id or f"#{line.number}"] = line.number
        yield instance


def write_instances(path: str | os.PathLike[str], instances: Iterable[Instance]) -> None:
    """Write the whole file at once, so that it exists completely or not at all. Raises T2TError if it cannot be written."""
    text = "".join(jsonlines.dumps(instance.to_dict()) + "\n" for instance in instances)
    folders.write_atomic(Path(path), text)
