"""Values that come from strangers (files, language models, plugins, callers): read as numbers where they are some, shown in
short, and made plain JSON for the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.redaction import without_secrets

MAX_DEPTH = 16
MAX_VALUES = 20_000


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


def plain_json(value: Any) -> Any:
    """A plugin's value as JSON: NaN and infinities become None, huge integers and other objects a short text.

    Raises:
        ValueError: nested deeper than 16, or more than 20,000 values.
    """
    left = [MAX_VALUES]

    def walk(item: Any, depth: int) -> Any:
        left[0] -= 1
        if depth > MAX_DEPTH or left[0] < 0:
            raise ValueError("it is nested too deeply" if depth > MAX_DEPTH else "it holds too many values")
        if isinstance(item, Mapping):
            return {without_secrets(str(k))[:200]: walk(v, depth + 1) for k, v in item.items()}
        if isinstance(item, (list, tuple)):
            return [walk(v, depth + 1) for v in item]
        if item is None or isinstance(item, bool):
            return item
        if isinstance(item, str):
            return without_secrets(item)
        if isinstance(item, int):
            return int(item) if item.bit_length() < 256 else f"an integer of {item.bit_length()} bits"
        number = getattr(item, "__float__", None)
        if number is None:
            return type(item).__name__
        return float(item) if isfinite(float(item)) else None

    return walk(value, 0)


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
