"""What the Gymnasium environments of tic-tac-toe share: checked options, which game a reset starts, and how a game ended."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from t2t_core.errors import T2TError
from t2t_core.hostile import as_number, shown
from t2t_core.store import jsonlines

from ..game import Game, begin
from ..generation.configuration import Configuration
from ..generation.generator import generate
from ..generation.request import Request
from ..instance import OPPONENTS, Instance
from ..reward import RUBRIC, reward_terms
from ..verifier import judge_game

PoolSource = str | os.PathLike[str] | Sequence[Instance | Mapping[str, Any]]
RESET_OPTIONS = ("instance", "pool")


class Games:
    """Where an environment's games come from.

    Args:
        p: how likely each of the opponent's moves is to be random: a number, or the two ends of a range from which every reset
            draws.
        first: how likely the policy is to move first.
        mid_game: how likely a game is to start from a random position in mid-game.
        configuration: instead of p, first and mid_game, a `Configuration` (or its dict form) as the generator takes it.
        opponent: how the opponent chooses between optimal moves: "mixed", "second" or "first".
        pool: instead of all of these, a JSON Lines file of instances or a list of them.
        weights: the weights of the reward's terms, in place of the rubric's.
    """

    def __init__(
        self,
        p: float | Sequence[float] = (0.0, 1.0),
        first: float = 0.5,
        mid_game: float = 0.0,
        configuration: Configuration | Mapping[str, Any] | None = None,
        opponent: str = "mixed",
        pool: PoolSource | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        if configuration is None:
            low, high = (p, p) if isinstance(p, int | float) else _ends(p)
            self.configuration = Configuration.uniform(low, high, first, mid_game)
        elif isinstance(configuration, Configuration):
            self.configuration = configuration
        else:
            self.configuration = Configuration.from_dict(configuration)
        if opponent not in OPPONENTS:
            raise T2TError("unknown opponent", where="option opponent", next="use one of " + ", ".join(OPPONENTS))
        self.request = Request(1, opponent=opponent, stratified=False)
        self.pool = None if pool is None else read_pool(pool)
        self.weights = {**RUBRIC, **_weights(weights or {})}

    def draw(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> Instance:
        """The instance of a reset: the one in `options`, else one from the pool in `options` or ours, else a fresh one."""
        check_reset_options(options)
        instance, source = (options or {}).get("instance"), (options or {}).get("pool")
        if instance is not None and source is not None:
            raise T2TError("give either an instance or a pool", where="reset options")
        if instance is not None:
            return _instance(instance)
        pool = self.pool if source is None else read_pool(source)
        if pool is not None:
            return pool[int(rng.integers(len(pool)))]
        (game,) = generate(self.configuration, self.request, int(rng.integers(1 << 62)))
        return replace(game, id=f"p{game.p:g}_{game.seed}")

    def reward(self, game: Game) -> float:
        """The reward of a whole game."""
        return float(sum(self.weights[name] * term for name, term in reward_terms(judge_game(game)).items()))


def check_reset_options(options: Mapping[str, Any] | None, known: Collection[str] = RESET_OPTIONS) -> None:
    """Refuse unknown options, so that a typing error does not silently start a random game."""
    unknown = [name for name in options or {} if name not in known]
    if unknown:
        raise T2TError(f"unknown reset option {unknown[0]!r}", where="reset options", next="use one of " + ", ".join(known))


def read_pool(source: PoolSource) -> list[Instance]:
    """The instances of a file or a list. Raises T2TError if there is none, or if it holds anything else."""
    if isinstance(source, str | os.PathLike):
        pool = [_instance(line.value, f"{source}, line {line.number}") for line in jsonlines.read(Path(source))]
    else:
        pool = [_instance(item) for item in source]
    if not pool:
        raise T2TError("the pool holds no instance", where=str(source) if isinstance(source, str) else "option pool")
    return pool


def verdict_info(game: Game) -> dict[str, Any]:
    """What `step` says about a game that has ended."""
    verdict = judge_game(game)
    info: dict[str, Any] = {"result": game.result, "valid": verdict.valid, "optimal": bool(verdict.optimal)}
    if not verdict.valid:
        info |= {"failure": verdict.failure, "faults": {name: fault.message for name, fault in verdict.faults.items()}}
    return info


class Play:
    """The game that an environment is in the middle of."""

    def __init__(self) -> None:
        self._instance: Instance | None = None
        self._game: Game | None = None

    def start(self, instance: Instance) -> None:
        self._instance, self._game = instance, begin(instance)

    @property
    def instance(self) -> Instance:
        """The game being played; raises T2TError before the first."""
        if self._instance is None:
            raise T2TError("there is no episode yet", where="environment", next="call reset() first")
        return self._instance

    @property
    def game(self) -> Game:
        """The game as far as it has been played."""
        if self._game is None:
            raise T2TError("there is no episode yet", where="environment", next="call reset() first")
        return self._game

    @game.setter
    def game(self, game: Game) -> None:
        self._game = game

    def check_open(self) -> None:
        """Raise T2TError if the game has ended."""
        if self.game.result is not None:
            raise T2TError("the episode has ended", where="step()", next="call reset() first")


def _ends(p: Any) -> tuple[Any, Any]:
    ends = list(p) if isinstance(p, Sequence) and not isinstance(p, str) else []
    if len(ends) != 2:
        raise T2TError(f"p must be a number or the two ends of a range, not {shown(p)}", where="option p")
    return ends[0], ends[1]


def _weights(weights: Mapping[str, float]) -> dict[str, float]:
    for name, weight in weights.items():
        if name not in RUBRIC or as_number(weight) is None:
            known = "the terms are " + ", ".join(RUBRIC)
            raise T2TError(f"{shown(name)} = {shown(weight)} is no weight of the reward", where="option weights", cause=known)
    return {name: float(weight) for name, weight in weights.items()}


def _instance(value: Any, where: str = "reset options") -> Instance:
    if isinstance(value, Instance):
        return value
    try:
        return Instance.from_dict(value)
    except T2TError as error:
        raise T2TError(error.what, where=where, cause=error.cause, next=error.next) from None
