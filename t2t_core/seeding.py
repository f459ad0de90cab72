"""The suite's own random integers, stable over library versions, machines and languages.

Every stream's key comes from `numpy.random.SeedSequence` (whose output numpy promises to keep), with the purpose of the
stream as spawn key, so neighbouring seeds and neighbouring indices share nothing. The draws are SplitMix64; native
generators (`stream.hpp` in the environments' room) hold the same one, draw for draw. (Our choice.)
"""

from __future__ import annotations

import zlib
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

import numpy as np

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
T = TypeVar("T")


def key(seed: int, *purpose: int | str) -> int:
    """A 64-bit key for the stream of `seed` that serves `purpose`, e.g. `key(7, "generate", size)`."""
    words = tuple(zlib.crc32(p.encode()) if isinstance(p, str) else p for p in purpose)
    state = np.random.SeedSequence(entropy=seed, spawn_key=words).generate_state(1, np.uint64)
    return int(state[0])


def _mix64(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class Stream:
    """A stream of random integers from a 64-bit key (SplitMix64)."""

    def __init__(self, key: int) -> None:
        self._state = key & _MASK

    @classmethod
    def of(cls, seed: int, *purpose: int | str) -> Stream:
        """The stream for a seed and a purpose, e.g. `Stream.of(seed, "validation", 3)`; other purposes give independent streams.
        """
        return cls(key(seed, *purpose))

    def next(self) -> int:
        """Uniform in [0, 2^64)."""
        self._state = (self._state + _GOLDEN) & _MASK
        return _mix64(self._state)

    def below(self, n: int) -> int:
        """Uniform in [0, n), 1 <= n < 2^32, by multiply-shift with rejection."""
        product = (self.next() >> 32) * n
        if product & 0xFFFFFFFF < n:
            threshold = (-n % (1 << 32)) % n
            while product & 0xFFFFFFFF < threshold:
                product = (self.next() >> 32) * n
        return product >> 32

    def uniform(self) -> float:
        """Uniform in [0, 1) with 53 bits."""
        return (self.next() >> 11) * 2.0**-53

    def fork(self, index: int) -> Stream:
        """The index-th independent stream of the same key; draws nothing from this one."""
        return Stream(_mix64(self._state ^ _mix64((index + _GOLDEN) & _MASK)))

    def choice(self, items: Sequence[T]) -> T:
        """One of fewer than 2^32 items, each as likely."""
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Fisher–Yates, in place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
