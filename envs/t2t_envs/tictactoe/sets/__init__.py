"""The frozen evaluation and validation sets. `python -m t2t_envs.tictactoe.generation.frozen_sets DIR` remakes the files of this
folder, bit for bit."""

from __future__ import annotations

from functools import cache, lru_cache

from t2t_core.records import InstanceSet
from t2t_core.store import frozen

from ..instance import Instance

EVALUATION = ("random", "optimal", "second")
NAMES = (*EVALUATION, "validation")


@cache
def load_set(name: str) -> InstanceSet:
    """A frozen set by name. Raises T2TError for an unknown name, or a file that is not the published one."""
    return frozen.load(__package__, name, Instance.from_dict)


def twin(name: str, seed: int) -> InstanceSet:
    """A fresh set from the same distribution, with other seeds, in the validation set other starts, and none of the frozen games.

    Its ids begin with `twin<seed>_`. A policy that scores better on the frozen set than on twins has seen the frozen set.
    """
    frozen.check_twin_seed(seed)
    return _twin(name, seed)


@lru_cache(maxsize=8)
def _twin(name: str, seed: int) -> InstanceSet:
    from ..generation.frozen_sets import make_twin

    return make_twin(load_set(name), seed, identities())


@cache
def identities() -> frozenset[bytes]:
    """The identities of all frozen games, which training must not use."""
    return frozenset(game.identity() for name in NAMES for game in load_set(name).instances)
