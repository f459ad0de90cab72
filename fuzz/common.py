"""What the targets share: text, values and files made from a fuzzer's bytes, and the promise of linear time."""

from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz.values import Values
from t2t_core.errors import T2TError
from t2t_core.store import jsonlines

SECONDS = 3.0  # of processor time for `LONG` characters; linear readers need about 0.1, quadratic ones minutes
LONG = 1 << 17
EVERY = 256


def text_of(data: bytes) -> str:
    """Any bytes as text, with lone surrogates where they are not UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def linear(function: Callable[[Any], Any], piece: Any) -> None:
    """Check that the same text over and over is read in linear time; one input in `EVERY` (by its bytes) is tried."""
    if not piece or hash_of(piece) % EVERY:
        return
    begin = time.thread_time()
    with contextlib.suppress(T2TError):
        function(piece * (LONG // len(piece) + 1))
    assert time.thread_time() - begin < SECONDS, f"{time.thread_time() - begin:.1f} s for {LONG} characters"


def hash_of(piece: Any) -> int:
    """A hash that is the same in every process, unlike Python's own."""
    data = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
    return sum(data)


def values_of(data: bytes, base: dict[str, Any]) -> Iterator[Any]:
    """The value that the bytes spell as JSON, and `base` with some fields set by them."""
    with contextlib.suppress(jsonlines.Unreadable):
        yield jsonlines.loads(data)
    source = Values(data)
    yield source.any()
    yield {**base, **{source.choice([*base, "objective", "id", "optimal_makespan", "x"]): source.any() for _ in range(3)}}


@functools.cache
def scratch() -> Path:
    """One folder per process, in memory if the machine has a file system there."""
    folder = tempfile.mkdtemp(prefix="t2t-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
