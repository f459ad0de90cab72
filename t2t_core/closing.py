"""Release what policies and designers hold while they live: a GPU's memory, processes."""

from __future__ import annotations

from typing import Any


def close(holder: Any) -> None:
    """Have a policy or a designer release what it holds. Most hold nothing and have no method `close`."""
    end = getattr(holder, "close", None)
    if callable(end):
        end()
