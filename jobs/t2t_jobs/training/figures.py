"""What an outer step came to, as figures: the reward and its parts, what kind of jobs there were, and what it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from t2t_jobs.episode import EpisodeResult
from t2t_jobs.family import Family


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """`versions/3/step.json`: the third update.

    Args:
        step: its number, from 1; the version that it made.
        groups: which groups it learnt from. lags: how many updates each was behind. stale: groups left out since they were too
            far behind.
        reward, validation, quality, speed: means over the episodes; parts before their weights.
        parsable, valid, first_try, trained: shares of the episodes: of which something could be read, with a valid job, with a
            valid first submission, whose job came to a trained model.
        score, gain: of those trained, the hidden score, and that minus the best untrained base's; None where there are none.
        stronger: of the valid jobs, the share with the best untrained base; None where there are none.
        families: the mean reward on each.
        bases, knobs: of the valid jobs, how many chose each base; the share that set each value otherwise than the job to start
            from, by key.
        learner: what the learner counted. tokens, usd, cpu_seconds: what the episodes took.
    """

    step: int
    groups: list[int]
    lags: list[int]
    stale: list[int]
    episodes: int
    reward: float
    validation: float
    quality: float
    speed: float
    parsable: float
    valid: float
    first_try: float
    trained: float
    score: float | None = None
    gain: float | None = None
    stronger: float | None = None
    families: dict[str, float] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)
    knobs: dict[str, float] = field(default_factory=dict)
    learner: dict[str, float] = field(default_factory=dict)
    tokens: int = 0
    usd: float = 0.0
    cpu_seconds: float = 0.0


def step_record(
    step: int,
    groups: Sequence[int],
    lags: Sequence[int],
    stale: Sequence[int],
    results: Sequence[EpisodeResult],
    families: Mapping[str, Family],
    learner: Mapping[str, float],
) -> StepRecord:
    """The figures of these episodes."""
    valid = [result for result in results if result.valid_at is not None]
    trained = [result for result in valid if result.post is not None and result.pre]
    named = sorted({result.family for result in results})
    bases = [result.base for result in valid if result.base is not None]
    return StepRecord(
        step=step,
        groups=list(groups),
        lags=list(lags),
        stale=list(stale),
        episodes=len(results),
        **{part: fmean(result.reward[part] for result in results) for part in ("validation", "quality", "speed")},
        reward=fmean(result.total for result in results),
        parsable=_share(result.parsable for result in results),
        valid=_share(result.valid_at is not None for result in results),
        first_try=_share(result.valid_at == 1 for result in results),
        trained=_share(result.post is not None for result in results),
        score=_mean(result.post for result in trained),
        gain=_mean((result.post or 0.0) - (result.best_pre or 0.0) for result in trained),
        stronger=_mean(float(is_stronger(result)) for result in trained),
        families={name: fmean(result.total for result in results if result.family == name) for name in named},
        bases={base: bases.count(base) for base in sorted(set(bases))},
        knobs={
            key: _share(key in result.values for result in valid)
            for key in dict.fromkeys(key for name in named for key in families[name].bounds)
            if key != "base"
        }
        if valid
        else {},
        learner=dict(learner),
        tokens=sum(result.tokens for result in results),
        usd=sum(result.usd for result in results),
        cpu_seconds=round(sum(result.cpu_seconds for result in results), 1),
    )


def is_stronger(result: EpisodeResult) -> bool:
    """Whether the job started from the best untrained base."""
    return result.base is not None and result.pre.get(result.base) == result.best_pre


def _share(values: Iterable[bool]) -> float:
    return fmean(map(float, values))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
