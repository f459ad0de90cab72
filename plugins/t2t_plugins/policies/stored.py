"""Answers that other programs wrote: which instance each is an answer to, and what was said.

A file is JSON Lines, one JSON array, or a log of Inspect AI (`.json`, or `.eval`, a zip of samples). `stored_shapes` lists how
one answer may be written down; the first shape that fits is read, and what a shape does not name is ignored. A record that
cannot be read is a `Bad` one with the reason: it costs its own answer, not the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from t2t_core.errors import T2TError
from t2t_core.records import Response
from t2t_core.store import archives, jsonlines, paths
from t2t_plugins.policies.stored_shapes import REPEATED, SHAPES, Unfit

MAX_WHOLE = 1 << 30  # bytes of a JSON document that is not JSON Lines, unpacked; our choice
_ID = ("id", "instance_id", "instance")
_SAMPLE = re.compile(r"(.+)#([0-9]{1,6})", re.DOTALL)  # an id of `t2t bench --export-prompts` with several samples


@dataclass(frozen=True)
class Stored:
    """What a record says. id: of the instance; a number where the file has numbers. sample: None if it says none. turns: what
    was said, turn by turn. repeated: further records of the same id are further samples, in the order of the file."""

    id: str | int
    sample: int | None
    turns: Sequence[Response]
    repeated: bool = False


@dataclass(frozen=True)
class Bad:
    """A record that cannot be read. `where` names it, `id` and `sample` the question where that much is known."""

    where: str
    why: str
    id: str | int | None = None
    sample: int | None = None


def read(path: Path, torn: list[jsonlines.Torn]) -> Iterator[tuple[str, Stored | Bad]]:
    """Every answer of a file and where it stands; a last line that was cut off goes into `torn`.

    Raises:
        T2TError: the file cannot be opened, or as a whole it is none of the kinds above.
    """
    with _opened(path) as file:
        start = _start(path, file)
        file.seek(0)
        if start.startswith(b"PK\x03\x04"):
            yield from _of_archive(path, file)
        elif _whole(start):
            yield from _of_document(path, file)
        else:
            yield from _of_lines(path, file, torn)


def _opened(path: Path) -> BinaryIO:
    try:
        return paths.open_plain(path)
    except OSError as error:
        raise paths.unreadable(path, error) from None


def _start(path: Path, file: BinaryIO) -> bytes:
    try:
        return file.read(4096)
    except OSError as error:
        raise paths.unreadable(path, error) from None


def _whole(start: bytes) -> bool:
    """Whether a file that begins so is one JSON document: an array, or an object whose first line is not a whole one."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        return True
    first, newline, _ = text.partition(b"\n")
    return text.startswith(b"{") and bool(newline) and first.rstrip() == b"{"


# --- kinds of files


def _of_lines(path: Path, file: BinaryIO, torn: list[jsonlines.Torn]) -> Iterator[tuple[str, Stored | Bad]]:
    number = offset = 0
    while raw := file.readline(jsonlines.MAX_LINE + 1):
        number += 1
        where = f"{path}, line {number}"
        if len(raw) > jsonlines.MAX_LINE:
            raise T2TError(f"line {number} is longer than {jsonlines.MAX_LINE} bytes", where=where)
        if raw.strip():
            try:
                record = loads(raw)
            except jsonlines.Unreadable as error:
                if not raw.endswith(b"\n") and offset:
                    torn.append(jsonlines.Torn(path, number, offset, len(raw)))
                else:
                    yield where, Bad(where, f"it is no JSON object: {error}")
            else:
                yield from _answers(record, where)
        offset += len(raw)


def _of_document(path: Path, file: BinaryIO) -> Iterator[tuple[str, Stored | Bad]]:
    document = _document(file.read(MAX_WHOLE + 1), str(path))
    if isinstance(document, Mapping):
        yield from _of_inspect(document, str(path))
        return
    for number, record in enumerate(document if isinstance(document, list) else [document]):
        yield from _answers(record, f"{path}, element {number} of the array")


def _of_inspect(log: Mapping[str, Any], where: str) -> Iterator[tuple[str, Stored | Bad]]:
    samples = log.get("samples")
    if not isinstance(samples, list):
        if samples is None and "samples" not in log:
            yield from _answers(log, where)  # one answer, written over several lines
            return
        raise T2TError("the log holds no samples", where=where, cause="it was written without them, or was cut off")
    for number, record in enumerate(samples):
        yield from _answers(record, f"{where}, sample {number}")


def _of_archive(path: Path, file: BinaryIO) -> Iterator[tuple[str, Stored | Bad]]:
    """A log of Inspect AI in its own format."""
    empty = True
    for name, data in archives.members(file, path, _is_sample, MAX_WHOLE):
        empty = False
        where = f"{path}, {ascii(name)[1:-1][:120]}"
        yield from _answers(_document(data, where), where)
    if empty:
        raise T2TError("the archive holds no samples of Inspect AI", where=str(path))


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _document(data: bytes, where: str) -> Any:
    if len(data) > MAX_WHOLE:
        raise T2TError(f"the document is longer than {MAX_WHOLE} bytes", where=where, next="write JSON Lines: one answer a line")
    try:
        return loads(data)
    except jsonlines.Unreadable as error:
        raise T2TError("the document is no JSON", where=where, cause=str(error)) from None


def loads(data: bytes) -> Any:
    """Hostile JSON as `jsonlines.loads` reads it, but for NaN and infinities, which become None: many programs write them among
    log-probabilities."""
    try:
        return _decoder.decode(data.removeprefix(b"\xef\xbb\xbf").decode())
    except RecursionError:
        raise jsonlines.Unreadable("nested too deeply") from None
    except jsonlines.Unreadable:
        raise
    except ValueError as error:
        raise jsonlines.Unreadable(str(error)[:200]) from None


_decoder = jsonlines.decoder(parse_constant=lambda name: None)


# --- one record


def _answers(record: Any, where: str) -> Iterator[tuple[str, Stored | Bad]]:
    """The answers of a record: one, or its samples."""
    if not isinstance(record, Mapping):
        yield where, Bad(where, f"a JSON object is expected, not {type(record).__name__}")
        return
    _, _, reader = next(shape for shape in SHAPES if shape[1](record))
    id, sample = None, None
    try:
        id, sample = _asked(record)
        for number, turns in enumerate(reader(record, where)):
            if not turns:
                raise Unfit("it holds no answer")
            at = sample if number == 0 else (sample or 0) + number
            yield where, Stored(id, at, turns, reader in REPEATED)
    except Unfit as error:
        yield where, Bad(where, str(error), id, sample)
    except T2TError as error:
        yield where, Bad(where, error.what, id, sample)


def _asked(record: Mapping[str, Any]) -> tuple[str | int, int | None]:
    """Which question a record answers."""
    doc, info, task = record.get("doc"), record.get("info"), record.get("task")
    if isinstance(info, str):  # verifiers writes it as JSON in some of its outputs
        try:
            info = jsonlines.loads(info)
        except jsonlines.Unreadable:
            info = None
    parts = [doc, info, task.get("data") if isinstance(task, Mapping) else None, record]
    names = [*_ID, "custom_id", "doc_id", "example_id"]
    known = [part[name] for part in parts if isinstance(part, Mapping) for name in names if _is_id(part.get(name))]
    if isinstance(record.get("custom_id"), str):  # `id` is the request's there
        known.insert(0, record["custom_id"])
    if not known:
        raise Unfit(f"it does not say which instance it answers: {', '.join(_ID)} or custom_id")
    id = next((key for key in known if isinstance(key, str)), known[0])
    sample = record.get("sample", record.get("rollout"))
    if sample is None and type(record.get("epoch")) is int:
        sample = record["epoch"] - 1
    if sample is not None and (type(sample) is not int or sample < 0):
        raise Unfit("it does not say which sample it is: a number from 0")
    if isinstance(id, str) and sample is None and (numbered := _SAMPLE.fullmatch(id)):
        return numbered[1], int(numbered[2])
    return id, sample


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and bool(value)) or (type(value) is int and 0 <= value < 1 << 53)
