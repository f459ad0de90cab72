"""The frozen evaluation and validation sets. `t2t generate --sets DIR` makes the files of this folder again, bit for bit."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from t2t_core.records import InstanceSet
from t2t_core.store import frozen

from ..instance import Instance

NAMES = ("3agents", "4agents", "5agents", "validation_2agents")


@cache
def manifest() -> dict[str, Any]:
    """The contents of the sets, cell by cell, and which cells had too few forms."""
    return frozen.manifest(__package__)


@cache
def load_set(name: str) -> InstanceSet:
    """A frozen set by name; T2TError for an unknown name, or a file that is not the published one."""
    return frozen.load(__package__, name, Instance.from_dict)


def twin(name: str, seed: int) -> InstanceSet:
    """A fresh set of the same distribution: as many instances of every size, hole count and kind, none of the frozen forms.

    Its ids begin with `twin<seed>_`. A policy that scores better on the frozen set than on twins has seen the frozen set.
    """
    frozen.check_twin_seed(seed)
    return _twin(name, seed)


@lru_cache(maxsize=8)
def _twin(name: str, seed: int) -> InstanceSet:
    from ..generation.frozen_sets import make_twin

    return make_twin(load_set(name), manifest()["sets"].get(name, {}), seed)


@cache
def canonical_exclusions() -> frozenset[bytes]:
    """The canonical forms of all frozen instances, for `generate(..., exclude=...)`."""
    return frozenset(instance.canonical() for name in NAMES for instance in load_set(name).instances)
