"""Values that come from strangers (files, language models, callers): read as numbers where they are some, and shown in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from t2t_core.errors import T2TError


def shown(value: object) -> str:
    """A short, printable form; billion-digit integers are never turned into text."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    text = type(value).__name__ if isinstance(value, list | tuple | dict | set) else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def as_number(value: object) -> float | None:
    """A finite number as float; None for everything else (booleans, text, NaN, infinities, integers beyond any float)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def brief_value(value: object) -> float | str | None:
    """A value for the record: a number where it is a finite one, None for None, else as `shown`."""
    number = as_number(value)
    return number if number is not None else None if value is None else shown(value)


def brief_key(key: object) -> str:
    """The key of an object for the record: the beginning of a text, anything else as `shown`."""
    return key[:40] if isinstance(key, str) else shown(key)


def check_fields(data: Any, known: Sequence[str], required: Sequence[str]) -> None:
    """Raise T2TError unless an instance as JSON is an object with all the required fields, and none but the known ones."""
    if not isinstance(data, Mapping):
        raise T2TError(f"an instance is a JSON object, not {shown(data)}")
    missing = [name for name in required if name not in data]
    unknown = [name for name in data if name not in known]
    if missing or unknown:
        raise T2TError(
            f"the instance has no field {missing[0]!r}" if missing else f"unknown field {shown(unknown[0])}",
            where=f"instance {shown(data.get('id', ''))}",
            cause="its fields are " + ", ".join(sorted(known)),
        )
