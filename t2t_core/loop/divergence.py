"""Tells a training whose numbers left the finite ones from a trainer that is broken."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.guard import PluginFault
from t2t_core.text import one_line

# How torch's sampling, its distributions and JSON put it.
_NOT_FINITE = re.compile(
    r"contains either `?inf`?, `?nan`?|satisfy the constraint .*invalid values|out of range float values are not JSON",
    re.IGNORECASE | re.DOTALL,
)


def check_finite(figures: Mapping[str, Any]) -> None:
    """Raise T2TError if an update's loss or gradient is not finite: what follows from it teaches nothing."""
    for name in ("loss", "grad_norm"):
        if isinstance(figures.get(name), float) and not math.isfinite(figures[name]):
            raise _diverged(f"update {figures.get('update')}", f"{name} is {figures[name]:g}")


@contextmanager
def telling_divergence() -> Iterator[None]:
    """Raise T2TError with what to change, if the training in the block ended because its numbers are not finite."""
    try:
        yield
    except PluginFault as fault:
        error, said = fault.__cause__, fault.what  # the plugin's words, made safe to print
        if isinstance(error, ArithmeticError) or _NOT_FINITE.search(said):
            raise _diverged(fault.where, one_line(said, 300)) from error
        raise


def _diverged(where: str, cause: str) -> T2TError:
    return T2TError(
        "the training diverged: its numbers are not finite any more",
        where=where,
        cause=cause,
        next="begin another run with a smaller learning_rate, or smaller weights (beta, entropy, [reward])",
    )
