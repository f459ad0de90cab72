"""What an episode is worth: 0.35 · validation + 0.60 · quality + 0.05 · speed.

The three weights, the quarter of quality that is the absolute score, and -0.1 for an episode without anything parsable are
those of the neighbouring system (docs/agents.md). What that system leaves open is a parameter here, and its default our choice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from t2t_core.errors import T2TError


@dataclass(frozen=True)
class RewardSettings:
    """The parameters of an episode's reward.

    Args:
        validation, quality, speed: weights of the three parts.
        unparsable: the whole reward if no submission could be read as a job.
        decay: how much each further submission lowers `validation`, which is 1 if the first one is valid (our choice: 1.0, 0.8,
            0.6, ...).
        post: the share of quality that is the trained model's score; the rest is the uplift term.
        unchanged: the uplift term of a model that is as good as the best untrained base. The shape is our choice: from there, the
            term rises linearly to 1 at a perfect score and falls linearly to 0 at a score of 0.
    """

    validation: float = 0.35
    quality: float = 0.60
    speed: float = 0.05
    unparsable: float = -0.1
    decay: float = 0.2
    post: float = 0.25
    unchanged: float = 0.5


@dataclass(frozen=True)
class Reward:
    """An episode's reward and its parts, each before its weight and in 0..1."""

    validation: float
    quality: float
    speed: float
    total: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


DEFAULT = RewardSettings()


@dataclass(frozen=True)
class Trained:
    """The figures of a job that succeeded.

    Args:
        post: score of the trained model in the hidden evaluation, 0..1.
        best_pre: score of the best untrained base in the same evaluation, 0..1.
        elapsed, limit: how long the job took and was allowed to take, in the same unit (our choice: CPU-seconds, since a busy
            machine does not stretch them).
    """

    post: float
    best_pre: float
    elapsed: float
    limit: float


def episode_reward(
    submission: int | None, trained: Trained | None, *, parsable: bool = True, settings: RewardSettings = DEFAULT
) -> Reward:
    """The reward of one episode.

    Args:
        submission: which submission was valid, from 1; None if none was.
        trained: the figures of the trained model; None if the job died or none was run.
        parsable: whether any submission could be read as a job.

    Raises:
        T2TError: a score outside 0..1, or a limit that is not positive.
    """
    if submission is None:
        return Reward(0.0, 0.0, 0.0, 0.0 if parsable else settings.unparsable)
    validation = max(0.0, 1.0 - settings.decay * (submission - 1))
    quality = speed = 0.0
    if trained is not None:
        _check(trained)
        quality = settings.post * trained.post + (1 - settings.post) * uplift_term(trained.post, trained.best_pre, settings)
        speed = min(1.0, max(0.0, 1.0 - trained.elapsed / trained.limit))
    total = settings.validation * validation + settings.quality * quality + settings.speed * speed
    return Reward(validation, quality, speed, total)


def uplift_term(post: float, best_pre: float, settings: RewardSettings = DEFAULT) -> float:
    """How much better the model is than the best untrained base, in 0..1: `settings.unchanged` for the same score, 1 for a
    perfect one, 0 for a score of 0. A gain counts as a share of what was left to gain, a loss as a share of what there was to
    lose."""
    uplift = post - best_pre
    if uplift > 0:
        return settings.unchanged + (1 - settings.unchanged) * uplift / (1 - best_pre)
    return settings.unchanged * (1 + uplift / best_pre) if uplift < 0 else settings.unchanged


def _check(trained: Trained) -> None:
    for name, score in (("post", trained.post), ("best_pre", trained.best_pre)):
        if not 0 <= score <= 1:
            raise T2TError(f"the score {name} is {score}, which does not lie in 0..1", where="an episode's reward")
    if not trained.limit > 0 or not trained.elapsed >= 0:
        raise T2TError(f"{trained.elapsed} of {trained.limit} is no time a job took", where="an episode's reward")
