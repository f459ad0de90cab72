"""Instances as Parquet: our own table, which is read back, and those that verl and SkyRL train on. pyarrow writes them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_core import advice
from t2t_core.conversation import opening
from t2t_core.errors import T2TError
from t2t_core.records import InstanceSet
from t2t_core.store import folders, jsonlines
from t2t_core.store.formats import About, FileFormat, targets

if TYPE_CHECKING:
    from t2t_core.hookspecs import AnyTestbed

Row = Callable[["AnyTestbed", Any, InstanceSet, str], dict[str, Any]]


def plain_row(testbed: AnyTestbed, instance: Any, of: InstanceSet, form: str) -> dict[str, Any]:
    """`id`, `set`, the place in the tables, `prompt` (messages), `instance` (JSON, with its labels), and each number, text or
    flag of the instance in a column of its own."""
    place, data = testbed.place(instance), instance.to_dict()
    row = {"id": instance.id, "set": of.name, "table": place.table, "column": place.column, "group": place.group}
    row |= {"cell": place.cell, "prompt": _prompt(testbed, instance, form), "instance": jsonlines.dumps(data)}
    return row | {name: value for name, value in data.items() if isinstance(value, str | int | float) and name not in row}


def verl_row(testbed: AnyTestbed, instance: Any, of: InstanceSet, form: str) -> dict[str, Any]:
    """A row of verl's `RLHFDataset`; `t2t.verl:compute_score` reads it."""
    truth = {"style": "rule", "ground_truth": jsonlines.dumps(instance.to_dict())}
    extra = {"index": instance.id, "split": of.name, "testbed": testbed.name, "prompt_format": form}
    base = {"data_source": f"t2t/{testbed.name}", "prompt": _prompt(testbed, instance, form), "ability": "planning"}
    return {**base, "reward_model": truth, "extra_info": extra}


def skyrl_row(testbed: AnyTestbed, instance: Any, of: InstanceSet, form: str) -> dict[str, Any]:
    """A row of SkyRL's data set; the environment `t2t` of `t2t.skyrl` reads it."""
    spec = {"method": "rule", "ground_truth": jsonlines.dumps(instance.to_dict())}
    base = {"data_source": f"t2t/{testbed.name}", "prompt": _prompt(testbed, instance, form), "env_class": "t2t"}
    return {**base, "reward_spec": spec, "extra_info": {"testbed": testbed.name, "prompt_format": form, "id": instance.id}}


def _prompt(testbed: AnyTestbed, instance: Any, form: str) -> list[dict[str, Any]]:
    return [message.to_dict() for message in opening(testbed, instance, form)]


def as_bytes(testbed: AnyTestbed, given: InstanceSet, form: str, row: Row = plain_row) -> bytes:
    """The table of a set; the same rows give the same bytes with the same pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise T2TError("Parquet needs pyarrow, which is not installed", next=advice.extra("data")) from None
    form = form or testbed.prompt_formats[0]
    if form not in testbed.prompt_formats:
        raise T2TError(f"there is no prompt format {ascii(form)[:60]}", next=f"use {', '.join(testbed.prompt_formats)}")
    rows = [row(testbed, instance, given, form) for instance in given.instances]
    names = dict.fromkeys(name for each in rows for name in each)  # a column may be missing where its value is null
    table = pyarrow.table({name: [each.get(name) for each in rows] for name in names})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _writer(row: Row) -> Callable[[AnyTestbed, Sequence[InstanceSet], Path, About], None]:
    def write(testbed: AnyTestbed, sets: Sequence[InstanceSet], out: Path, about: About) -> None:
        for each, path in targets(sets, out, ".parquet"):
            folders.write_atomic(path, as_bytes(testbed, each, about.prompt_format, row))

    return write


def _read(testbed: AnyTestbed, path: Path, argument: str) -> list[Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise T2TError("Parquet needs pyarrow, which is not installed", where=str(path), next=advice.extra("data")) from None
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(folders.read_bytes(path, jsonlines.MAX_LINE)), columns=["instance"])
        texts = table.column("instance").to_pylist()
    except (pyarrow.ArrowException, KeyError, OSError) as error:
        raise T2TError("the Parquet file cannot be read", where=str(path), cause=str(error)[:200]) from None
    instances = []
    for number, text in enumerate(texts):
        where = f"{path}, row {number}"
        try:
            data = jsonlines.loads(text)
        except (ValueError, TypeError):
            raise T2TError("the column `instance` holds no JSON", where=where, cause="t2t export wrote it?") from None
        try:
            instances.append(testbed.read_instance(data))
        except T2TError as error:
            raise T2TError(error.what, where=where, cause=error.cause, next=error.next) from None
    return instances


PLAIN = FileFormat((".parquet",), _read, _writer(plain_row))
VERL = FileFormat(write=_writer(verl_row))
SKYRL = FileFormat(write=_writer(skyrl_row))
