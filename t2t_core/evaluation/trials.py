"""Statistics of a study beside its intervals: what a "no difference" could have missed, how often one way beats another, and
what a training came to on its way. Percentage points in, percentage points out; all choices of method are ours.

Sources: interquartile mean and probability of improvement, Agarwal et al. 2021 (Deep RL at the Edge of the Statistical
Precipice, arXiv:2108.13264); two one-sided tests, Schuirmann 1987; conditional value at risk, Rockafellar and Uryasev 2000.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2t_core.evaluation.stats import SeededDifference, t_below, t_quantile

POWER = 0.8  # at which the minimum detectable effect is stated


@dataclass(frozen=True)
class Inference:
    """What an interval says beside itself, in its unit.

    p: two-sided, of "no difference". detectable: the true difference that would be told from zero (at 5 %) with 80 % power,
    given this spread. p_equivalence: of "they differ by the margin or more" (two one-sided tests); below 0.05 they are
    equivalent within the margin. All NaN if one seed gives no interval.
    """

    p: float
    detectable: float
    p_equivalence: float


def inference(difference: SeededDifference, margin: float) -> Inference:
    """The tests that belong to a difference's interval, with its standard error and degrees of freedom.

    Args:
        difference: pooled over seeds.
        margin: the largest difference that does not matter, in the difference's unit.
    """
    if math.isnan(difference.high):
        return Inference(math.nan, math.nan, math.nan)
    df = max(1.0, difference.df)
    error = (difference.high - difference.value) / t_quantile(df)
    if error <= 0:  # every seed and instance agree
        same = difference.value == 0
        return Inference(1.0 if same else 0.0, 0.0, 0.0 if abs(difference.value) < margin else 1.0)
    p = 2 * (1 - t_below(abs(difference.value) / error, df))
    sides = [(margin + difference.value) / error, (margin - difference.value) / error]
    return Inference(p, (t_quantile(df) + t_quantile(df, POWER)) * error, max(1 - t_below(t, df) for t in sides))


def power(effect: float, error: float, df: float) -> float:
    """How often a true difference `effect` is told from zero at 5 %, where its estimate has this standard error; the chance of
    telling it with the wrong sign is left out. (Student's t, shifted by the effect.)"""
    return t_below(abs(effect) / error - t_quantile(df), df)


def interquartile_mean(values: Sequence[float]) -> float:
    """The mean of the middle half, a quarter of the weight cut off at each end; values at the cut count in part."""
    ordered = np.sort(np.asarray(values, dtype=float))
    n = len(ordered)
    ends = np.arange(n + 1) / n
    weights = np.clip(np.minimum(ends[1:], 0.75) - np.maximum(ends[:-1], 0.25), 0.0, None)
    return float(weights @ ordered / weights.sum())


def probability_of_improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The chance that a run of ours, of any seed, scores above one of theirs; equal scores count half."""
    a, b = np.asarray(ours, dtype=float)[:, None], np.asarray(theirs, dtype=float)[None, :]
    return float(((a > b) + 0.5 * (a == b)).mean())


def area_under(curve: Sequence[tuple[float, float]], until: float) -> float:
    """The mean height of a learning curve from its first point to `until` (trapezoids): (spent so far, score) in order. A
    curve that ends before keeps its last score; NaN if it begins after."""
    spent, scores = (np.array(column, dtype=float) for column in zip(*curve, strict=True))
    if until < spent[0]:
        return math.nan
    if until == spent[0]:
        return float(scores[0])
    inside = spent < until
    x = np.append(spent[inside], until)
    y = np.append(scores[inside], np.interp(until, spent, scores))
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum() / (until - spent[0]))


def worst_quarter(rates: Mapping[str, float]) -> float:
    """The mean of the lowest quarter of the cells' rates, the cell at the cut in part (conditional value at risk at 25 %)."""
    ordered = np.sort(np.array(list(rates.values()), dtype=float))
    ends = np.arange(len(ordered) + 1) / len(ordered)
    weights = np.clip(np.minimum(ends[1:], 0.25) - ends[:-1], 0.0, None)
    return float(weights @ ordered / weights.sum())


def forgetting(validations: Sequence[Mapping[str, float]]) -> float:
    """The worst drop of a group from its best validation to the last one; 0 if none fell."""
    last = validations[-1]
    return max((max(v[group] for v in validations if group in v) - rate for group, rate in last.items()), default=0.0)
