"""The figures of an outer step: the reward and its parts, what kinds of jobs there were, and the costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import fmean
from typing import Any

from t2t_jobs.episode import EpisodeResult
from t2t_jobs.family import Bound, Family


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """`versions/3/step.json`: the third update.

    Args:
        step: the step's number, from 1; also the version that it made.
        groups: the groups it learnt from. lags: how many updates each was behind. stale: groups left out because they were too
            far behind.
        reward, validation, quality, speed: means over the episodes; the parts are before their weights.
        parsable, valid, first_try, trained: shares of the episodes in which a submission could be read, a job was valid, the
            first submission was valid, and the job trained a model.
        score, gain: means over the trained models of the hidden score, and of that minus the best untrained base's; None if
            no model was trained.
        stronger: the share of the jobs that trained a model whose base is the best untrained one; None if there are none.
        families: the mean reward on each family.
        bases: how many of the valid jobs chose each base.
        knobs: for each key, the share of the jobs that changed it, among the valid jobs whose family lets it be edited.
        positions: where these jobs' values lie between the key's bounds on average, 0 to 1 (on a log scale for a "log-range").
        learner: the learner's figures. tokens, usd, cpu_seconds: costs of the episodes.
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
    positions: dict[str, float] = field(default_factory=dict)
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
    knobs = _knobs(valid, families)
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
        knobs={key: _share(value is not None for value in values) for key, values in knobs.items()},
        positions={
            key: fmean(known) for key, values in knobs.items() if (known := [value for value in values if value is not None])
        },
        learner=dict(learner),
        tokens=sum(result.tokens for result in results),
        usd=sum(result.usd for result in results),
        cpu_seconds=round(sum(result.cpu_seconds for result in results), 1),
    )


def _knobs(valid: Sequence[EpisodeResult], families: Mapping[str, Family]) -> dict[str, list[float | None]]:
    """For each key, where the jobs whose family lets it be edited have set it; None for a job that left it alone."""
    positions: dict[str, list[float | None]] = {}
    for result in valid:
        for key, bound in families[result.family].bounds.items():
            if key != "base":
                value = result.values.get(key)
                positions.setdefault(key, []).append(None if value is None else position_of(bound, value))
    return positions


def position_of(bound: Bound, value: Any) -> float:
    """Where a value lies between its bounds, 0 to 1; for a choice, its position among the choices."""
    if bound.kind == "choice":
        return bound.choices.index(value) / max(1, len(bound.choices) - 1)
    low, high, at = (log(x) if bound.kind == "log-range" else float(x) for x in (bound.low, bound.high, value))
    return (at - low) / (high - low) if high > low else 0.0


def is_stronger(result: EpisodeResult) -> bool:
    """Whether the job started from the best untrained base."""
    return result.base is not None and result.pre.get(result.base) == result.best_pre


def _share(values: Iterable[bool]) -> float:
    return fmean(map(float, values))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
