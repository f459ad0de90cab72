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
