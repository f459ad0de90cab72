"""The file formats of instances besides our own JSON Lines: tables, data sets, and the formats of a testbed's field.

A testbed names the formats of its field (`Testbed.file_formats`); those that work for every testbed are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from t2t_core.errors import T2TError
from t2t_core.records import InstanceSet
from t2t_core.store import folders, jsonlines
from t2t_core.store.paths import SafePath

if TYPE_CHECKING:
    from t2t_core.hookspecs import AnyTestbed


@dataclass(frozen=True)
class About:
    """What a file or a card says about its instances: the prompt format of the questions ("": the testbed's first), the
    settings they were drawn with, and the generator's configuration (as JSON)."""

    prompt_format: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    configuration: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class FileFormat:
    """One file format of instances.

    Args:
        suffixes: of the files that it reads (".scen",).
        read: returns the instances of one file. The text is what follows an `@` after the file's name ("room.scen@4").
        write: writes sets to a new file or folder.
    """

    suffixes: Sequence[str] = ()
    read: Callable[[AnyTestbed, Path, str], list[Any]] | None = None
    write: Callable[[AnyTestbed, Sequence[InstanceSet], Path, About], None] | None = None


COMMON: Mapping[str, str] = MappingProxyType(
    {
        "jsonl": "t2t_core.store.formats:JSON_LINES",
        "parquet": "t2t_core.store.parquet:PLAIN",
        "hf": "t2t_core.store.cards:DATA_SET",
        "verl": "t2t_core.store.parquet:VERL",
        "skyrl": "t2t_core.store.parquet:SKYRL",
        "lm-eval": "t2t_core.store.lm_eval:TASK_GROUP",
    }
)


def of(testbed: AnyTestbed) -> dict[str, FileFormat]:
    """Every format by its name, the testbed's own last."""
    loaded = {}
    for name, target in {**COMMON, **testbed.file_formats}.items():
        module, _, attribute = target.partition(":")
        try:
            loaded[name] = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise T2TError(f"the format {name} of {testbed.name} cannot be loaded", cause=str(error)) from None
    return loaded


def write(testbed: AnyTestbed, name: str, sets: Sequence[InstanceSet], out: Path, about: About) -> None:
    """Write sets in the format of that name. T2TError if there is no such format, or it needs what is not installed."""
    known = {key: value for key, value in of(testbed).items() if value.write}
    if name not in known:
        raise T2TError(f"there is no format {ascii(name)[:60]} to write", next=f"--format {', '.join(known)}")
    writer = known[name].write
    if str(out) == "-" and name != "jsonl":
        raise T2TError(f"{name} goes to a file or folder, not to standard output", next="--out NAME")
    if writer:
        writer(testbed, sets, out, about)


def read(testbed: AnyTestbed, path: Path | SafePath) -> list[Any] | None:
    """The instances of a file in a format other than JSON Lines, or of a folder of such files; None for anything else.

    Raises:
        T2TError: the file cannot be read, or it is no such file.
    """
    if isinstance(path, SafePath):
        return None  # a folder of ours holds JSON Lines alone
    readers = {suffix: form.read for form in of(testbed).values() for suffix in form.suffixes if form.read}
    if path.is_dir():
        return _folder(testbed, path, readers)
    name, _, argument = path.name.rpartition("@")
    if not name or path.exists():
        name, argument = path.name, ""
    reader = readers.get(Path(name).suffix.lower())
    return reader(testbed, path.with_name(name), argument) if reader else None


def _folder(testbed: AnyTestbed, folder: Path, readers: Mapping[str, Any]) -> list[Any]:
    """Of every file in the folder and in the folders below it, in the order of their names."""
    instances: list[Any] = []
    waiting = [SafePath.of(folder)]
    while waiting:
        entry = waiting.pop()
        reader = readers.get(Path(entry.name).suffix.lower())
        if entry.is_dir():
            waiting += reversed(entry.entries())
        elif reader and not entry.name.endswith(".map"):  # a scenario names its map
            instances += reader(testbed, entry.path, "")
    if not instances:
        raise T2TError("the folder holds no instances", where=str(folder), next=f"files that are read: {', '.join(readers)}")
    seen: set[str] = set()
    for instance in instances:
        if instance.id and instance.id in seen:
            raise T2TError(f"two files hold an instance called {instance.id}", where=str(folder), next="rename one of them")
        seen.add(instance.id)
    return instances


def targets(sets: Sequence[InstanceSet], out: Path, suffix: str) -> list[tuple[InstanceSet, Path]]:
    """Where each set goes that has one file: a single one to `out`, several into it as a folder."""
    return [(sets[0], out)] if len(sets) == 1 else [(each, out / f"{each.name}{suffix}") for each in sets]


def _write_lines(testbed: AnyTestbed, sets: Sequence[InstanceSet], out: Path, about: About) -> None:
    for each, path in targets(sets, out, ".jsonl"):
        folders.write_atomic(path, "".join(jsonlines.dumps(instance.to_dict()) + "\n" for instance in each.instances))


JSON_LINES = FileFormat(write=_write_lines)
