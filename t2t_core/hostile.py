"""Values that come from strangers (files, language models, callers): read as numbers where they are some, and shown in short."""

from __future__ import annotations

from math import isfinite


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
