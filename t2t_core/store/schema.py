"""What a JSON document must hold before anything of it is used: one declared type per file that is read back::

    @dataclass(frozen=True, kw_only=True)
    class Training:
        checkpoint: str | None
        samples: schema.Count

    training = folders.read_record(path, Training)      # T2TError names the file and the field

The same type writes the file, so what is read is what was written. JSON is read with suspicion first (`jsonlines.loads`: bombs,
doubled keys, NaN, nesting); only then is its shape looked at, by msgspec. Fields that a type does not know are let through:
a later version may say more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from t2t_core.errors import T2TError

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
EDITED = "it was edited by hand, or written by another version of the suite"
_AT = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]|(\[\.\.\.\])")
_MISSING = re.compile(r"Object missing required field `(.*)`")


def check(data: Any, kind: type[T], where: str, cause: str = EDITED) -> T:
    """JSON data as that type; T2TError names the field that is missing, of another type or out of bounds."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise T2TError(fault(error, _steps(data, kind, str(error))), where=where, cause=cause) from None
    except UnicodeEncodeError as error:  # half a surrogate: bytes of a command line that are no UTF-8, or JSON's `\\udca0`
        raise T2TError(f"{ascii(error.object)[1:-1][:80]} is no text in UTF-8", where=where, cause=cause) from None


def fault(error: msgspec.ValidationError, steps: Sequence[str | int] = ()) -> str:
    """msgspec's complaint in our words: which field, and what is wrong with it. `steps` lead to the field."""
    text = str(error)
    at = _AT.search(text)
    reason, at_field = (text[: at.start()], at[1].strip(".")) if at else (text, "")
    if steps:
        at_field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).strip(".")
    if missing := _MISSING.fullmatch(reason):
        field, reason = ".".join(filter(None, [at_field, missing[1]])), "is missing"
    else:
        field, reason = at_field or "the document", reason[:1].lower() + reason[1:]
    return f"{ascii(field)[1:-1][:80]}: {ascii(reason)[1:-1][:200]}"


def _steps(data: Any, kind: Any, complaint: str) -> list[str | int]:
    """The way to the field that msgspec complains of. It leaves out keys of dictionaries: of those the half is kept, again and
    again, with which the complaint stays the same."""
    at = _AT.search(complaint)
    steps: list[str | int] = []
    for field, index, key in _STEP.findall(at[1]) if at else ():
        if not key:
            steps.append(field or int(index))
            continue
        values = _inside(data, steps)
        keys = list(values)
        while len(keys) > 1:
            half = keys[: len(keys) // 2]
            kept = _with(data, steps, {name: values[name] for name in half})
            keys = half if _complaint(kept, kind) == complaint else keys[len(half) :]
        data = _with(data, steps, {name: values[name] for name in keys})
        steps += keys
    return steps


def _complaint(data: Any, kind: Any) -> str:
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _inside(data: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        data = data[step]
    return data


def _with(data: Any, steps: Sequence[str | int], value: Any) -> Any:
    """A copy of the data with that value at the end of those steps."""
    if not steps:
        return value
    copy = data.copy()
    copy[steps[0]] = _with(data[steps[0]], steps[1:], value)
    return copy


def plain(record: Any) -> Any:
    """A record as JSON data: dictionaries, lists, texts and numbers; anything else as it is. (msgspec's own way back leaves out
    the defaults of a dataclass that it read.)"""
    if isinstance(record, msgspec.Struct):
        return msgspec.to_builtins(record)
    return asdict(record) if is_dataclass(record) and not isinstance(record, type) else record
