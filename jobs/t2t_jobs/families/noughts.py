"""Families over tic-tac-toe: the toy policy learns what its warm-up on a mediocre player's games has not taught it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_jobs.family import Base, Bound, Budget, Family, HiddenEvaluation, Part

BASES = {
    "small": Base("tiny:tictactoe-weak", "saw 100 games of a mediocre player; some moves are not legal, many lines left open"),
    "large": Base("tiny:tictactoe", "saw 200 games of a mediocre player; knows most of the legal moves and a few lines"),
}
HASTY = Base(
    str(Path(__file__).parent / "bases" / "hasty"), "saw 200 games in few updates; half of its games end in an illegal move"
)
BANDS = {"0.75-1": (0.75, 1.0), "0.5-0.75": (0.5, 0.75), "0.25-0.5": (0.25, 0.5), "0-0.25": (0.0, 0.25)}
START: Mapping[str, Any] = {
    "base": "small",
    "trainer": "grpo",
    "rounds": 1,
    "generation": {"samples": 64},
    "configuration": {
        name: {"share": float(name == "0.75-1"), "p_low": low, "p_high": high, "first": 0.5, "mid_game": 0.0}
        for name, (low, high) in BANDS.items()
    },
    "training": {"group": 4, "prompts": 16, "epochs": 1, "learning_rate": 1e-5, "temperature": 1.0, "loss": "dapo"},
    "reward": {"win": 1.0, "draw": 0.5, "invalid": -0.1, "format": 0.2},
}
FIXED: Mapping[str, Any] = {
    "policy": "tiny:{checkpoint}",
    "training": {"max_tokens": 2, "save_every": 1000, "threads": 1},
    "validation": {"set": "validation", "limit": 1, "temperature": 0.0, "max_tokens": 2},
}


def bounds() -> dict[str, Bound]:
    """The keys of a job that may be edited, with their bounds: the same in every family of this world."""
    share = "share of the games against opponents whose moves are random with a probability in {}; shares sum to 1"
    made = {
        "base": Bound("choice", "the untrained model that training starts from", choices=tuple(BASES)),
        "rounds": Bound("range", "rounds of generating and training", low=1, high=3, whole=True),
        "generation.samples": Bound("log-range", "games generated a round", low=16, high=2048, whole=True),
        "training.group": Bound("choice", "plays of each game, compared with each other", choices=(2, 4, 8, 16)),
        "training.prompts": Bound("choice", "games an update", choices=(4, 8, 16, 32, 64)),
        "training.epochs": Bound("range", "passes over a round's games", low=1, high=4, whole=True),
        "training.learning_rate": Bound("log-range", "of AdamW; 1e-3 moves this small model well", low=1e-6, high=1e-2),
        "training.temperature": Bound("range", "of sampling while training", low=0.3, high=2.0),
        "training.loss": Bound("choice", "how the loss averages and clips", choices=("dapo", "grpo", "cispo")),
    }
    for name in BANDS:
        made[f'configuration."{name}".share'] = Bound("range", share.format(name), low=0.0, high=1.0)
        made[f'configuration."{name}".first'] = Bound("range", "share of those games in which the model moves first", high=1.0)
    made["reward.win"] = Bound("range", "what a won game earns", low=0.0, high=2.0)
    made["reward.draw"] = Bound("range", "what a drawn game earns", low=0.0, high=2.0)
    made["reward.invalid"] = Bound("range", "what a game with an invalid move earns besides", low=-2.0, high=0.0)
    made["reward.format"] = Bound("range", "what messages in the right form earn", low=0.0, high=1.0)
    return made


def _shares(**shares: float) -> dict[str, float]:
    """Shares by dotted key; a, b, c and d are the bands from the weakest opponent to the strongest."""
    return {f'configuration."{name}".share': shares.get(letter, 0.0) for name, letter in zip(BANDS, "abcd", strict=True)}


STRONG: Mapping[str, Any] = {
    "base": "large", "generation.samples": 1024, "training.group": 8, "training.prompts": 32, "training.learning_rate": 1e-3,
}  # fmt: skip


def _family(name: str, title: str, what: str, parts: Sequence[Part], best: Mapping[str, Any]) -> Family:
    return Family(
        name=name,
        title=title,
        testbed="tictactoe",
        description=f"Teach a small model to play tic-tac-toe: {what}",
        bases=BASES,
        start=START,
        bounds=bounds(),
        fixed=FIXED,
        evaluation=HiddenEvaluation(tuple(parts)),
        teacher="minimax",
        budget=Budget(conversations=8192),
        best={**STRONG, **best},
    )


def defend(argument: str = "", settings: Mapping[str, str] | None = None) -> Family:
    """Hold the draw against optimal play."""
    _no_argument(argument, settings, "draw-optimal")
    what = "it must not lose against an opponent that plays optimally. Score: the share of games drawn; it moves second in half."
    return _family("draw-optimal", "hold the draw against optimal play", what, [Part("optimal", "draw")], _shares(d=1.0))


def second(argument: str = "", settings: Mapping[str, str] | None = None) -> Family:
    """Move second against optimal play, from weaker bases."""
    _no_argument(argument, settings, "hold-second")
    what = "it moves second and must hold the draw against an opponent that plays optimally. Score: the share of games drawn."
    parts = [Part("optimal", "draw", ("moving second",))]
    made = _family("hold-second", "hold the draw moving second", what, parts, {**_shares(d=1.0), "base": "small"})
    bases = {"hasty": HASTY, "small": BASES["small"]}
    base = Bound("choice", "the untrained model that training starts from", choices=tuple(bases))
    return replace(made, bases=bases, start={**START, "base": "hasty"}, bounds={**bounds(), "base": base})


def lead(argument: str = "", settings: Mapping[str, str] | None = None) -> Family:
    """Move first: keep the draw against optimal play, and win where the opponent errs."""
    _no_argument(argument, settings, "both-ways")
    what = "it must hold the draw against optimal play when it moves first, and win against opponents whose moves are random "
    what += "with a probability between 0.25 and 0.5. Score: the mean of both shares."
    parts = [Part("optimal", "draw", ("moving first",)), Part("validation", "win", ("p 0.25-0.5",))]
    return _family("both-ways", "hold the draw, and win where the opponent errs", what, parts, _shares(c=0.5, d=0.5))


def _no_argument(argument: str, settings: Mapping[str, str] | None, name: str) -> None:
    if argument or settings:
        raise T2TError(f"the family {name} takes no argument and no settings", next=f"--family {name}")
