"""Policies and designers that hold something while they live: a GPU's memory, processes."""

from __future__ import annotations

from typing import Any


def close(holder: Any) -> None:
    """Have a policy or a designer let go of what it holds; most hold nothing, and have no method `close`."""
    end = getattr(holder, "close", None)
    if callable(end):
        end()
