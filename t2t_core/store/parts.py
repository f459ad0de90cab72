"""Parts of one order of instances (`t2t generate --shard i/n`), and the whole that they make.

A part is JSON Lines: a head that says of which order it is, then its instances, each with its place in the whole. So the parts
can be drawn anywhere and in any order, and what is put together is what one process would have written, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.store import folders, jsonlines
from t2t_core.store.formats import About


@dataclass(frozen=True)
class Shard:
    """The `number`-th (from 1) of `of` parts."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`2/8`; T2TError for anything that is no part of a whole."""
        match = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text, re.ASCII)
        number, parts = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= parts:
            raise T2TError(f"{ascii(text)[:40]} is no part of a whole", where="--shard", next="--shard 1/4 to --shard 4/4")
        return cls(number, parts)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def all(self) -> list[Shard]:
        """Every part of its whole."""
        return [Shard(number, self.of) for number in range(1, self.of + 1)]


@dataclass(frozen=True)
class Order:
    """What was ordered: everything that decides which instances are drawn."""

    settings: Mapping[str, Any]
    configuration: Mapping[str, Any]
    excluded: str

    @classmethod
    def of(cls, about: About, exclude: Iterable[bytes], **more: Any) -> Order:
        """`exclude`: the identities that are never drawn; of them the hash is kept."""
        excluded = hashlib.sha256(b"".join(sorted(set(exclude)))).hexdigest()
        return cls({**about.settings, **more}, dict(about.configuration or {}), excluded)


def write(
    testbed: AnyTestbed, pairs: Sequence[tuple[int, Any]], total: int, shard: Shard, order: Order, about: About, out: Path
) -> None:
    """Write one part: (place in the whole, instance) in rising order."""
    head = {
        "testbed": testbed.name,
        "shard": str(shard),
        "total": total,
        "instances": len(pairs),
        "order": asdict(order),
        "prompt_format": about.prompt_format,
        "settings": dict(about.settings),
    }
    lines = [head, *({"position": position, "instance": instance.to_dict()} for position, instance in pairs)]
    folders.write_atomic(out, "".join(jsonlines.dumps(line) + "\n" for line in lines))


def merge(testbed: AnyTestbed, paths: Sequence[Path]) -> tuple[list[Any], About]:
    """The instances of the whole in their order, and what is to be said of them.

    Raises:
        T2TError: parts of different orders, a part that is missing, twice there or torn, or a file that is no part.
    """
    instances: dict[int, Any] = {}
    first, heads = _head(paths[0]), dict[str, Path]()
    for path in paths:
        head = _head(path)
        _same_order(paths[0], first, path, head)
        if head["shard"] in heads:
            raise T2TError(f"part {head['shard']} is there twice", where=f"{heads[head['shard']]} and {path}")
        heads[head["shard"]] = path
        instances.update(_instances(testbed, path, head))
    missing = [str(shard) for shard in Shard.parse(first["shard"]).all() if str(shard) not in heads]
    if missing:
        shown = f"part {missing[0]} is" if len(missing) == 1 else f"{len(missing)} parts, {', '.join(missing[:8])}, are"
        raise T2TError(
            f"{shown} missing",
            where=", ".join(map(str, paths))[:200],
            next=f"t2t generate, with the options of the others and --shard {missing[0]}",
        )
    if sorted(instances) != list(range(first["total"])):
        raise T2TError(
            f"the parts hold {len(instances)} of {first['total']} places",
            cause="they were drawn by different versions of the generator",
            next="draw them again with one version",
        )
    about = About(first["prompt_format"], first["settings"], first["order"]["configuration"])
    return [instances[position] for position in range(first["total"])], about


def testbed_of(path: Path) -> str:
    """Whose instances a part holds. Raises T2TError if it is no part."""
    return str(_head(path)["testbed"])


def _head(path: Path) -> dict[str, Any]:
    line = next(iter(jsonlines.read(path)), None)
    head = line.value if line else {}
    counts = all(type(head.get(name)) is int and head[name] >= 0 for name in ("total", "instances"))
    texts = all(isinstance(head.get(name), str) for name in ("testbed", "shard", "prompt_format"))
    tables = isinstance(head.get("settings"), dict) and isinstance(head.get("order"), dict)
    if not (counts and texts and tables and isinstance(head["order"].get("configuration"), dict)):
        hint = "merge what `t2t generate --shard i/n` wrote"
        raise T2TError("the file is no part of an order of instances", where=str(path), next=hint)
    Shard.parse(head["shard"])
    return head


def _same_order(first_path: Path, first: Mapping[str, Any], path: Path, head: Mapping[str, Any]) -> None:
    def said(head: Mapping[str, Any]) -> dict[str, Any]:
        order = {name: head["order"].get(name) for name in ("settings", "configuration", "excluded")}
        parts = head["shard"].partition("/")[2]
        return {name: head[name] for name in ("testbed", "total", "prompt_format")} | {"parts": parts} | order

    theirs, ours = said(first), said(head)
    differing = [name for name in theirs if jsonlines.canonical(theirs[name]) != jsonlines.canonical(ours[name])]
    if differing:
        raise T2TError(
            f"parts of different orders: {', '.join(differing)} differ{'s' * (len(differing) == 1)}",
            where=f"{first_path} and {path}",
            cause=f"{ascii(theirs[differing[0]])[:100]} there, {ascii(ours[differing[0]])[:100]} here",
            next="draw all parts with the same options but --shard and --out",
        )


def _instances(testbed: AnyTestbed, path: Path, head: Mapping[str, Any]) -> dict[int, Any]:
    instances: dict[int, Any] = {}
    for line in list(jsonlines.read(path))[1:]:
        position, record = line.value.get("position"), line.value.get("instance")
        if type(position) is not int or not isinstance(record, dict) or position in instances:
            raise T2TError("the line holds no instance with its place", where=f"{path}, line {line.number}")
        instances[position] = testbed.read_instance(record)
    if len(instances) != head["instances"]:
        raise T2TError(
            f"it holds {len(instances)} of {head['instances']} instances",
            where=str(path),
            cause="its end is missing",
            next=f"draw it again: --shard {head['shard']}",
        )
    return instances
