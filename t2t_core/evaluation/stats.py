"""Intervals and tests for rates and paired differences. What they assume stands in docs/statistics.md.

Everything here is pure arithmetic on numbers and numpy arrays; random draws come from the suite's own generator, so a seed
gives the same interval with every version of numpy. All choices of method are ours; the paper gives no intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2t_core.seeding import key

Z95 = 1.959963984540054  # the 97.5 % quantile of the normal distribution
RESAMPLES = 10_000
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; all three are shares in [0, 1], or means in the metric's own unit."""

    value: float
    low: float
    high: float


def wilson(share: float, n: float, z: float = Z95) -> Estimate:
    """Wilson's score interval of a rate observed as `share` in `n` answers (`n` may be an effective, fractional number).

    n = 0 knows nothing: value NaN, interval 0 to 1.
    """
    if n <= 0:
        return Estimate(math.nan, 0.0, 1.0)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, share * (1 - share)) / n + z * z / (4 * n * n))
    low = 0.0 if share <= 0 else max(0.0, centre - half)
    high = 1.0 if share >= 1 else min(1.0, centre + half)
    return Estimate(share, low, high)


@dataclass
class Rate:
    """Adds up a rate over instances with `samples` answers each (a fraction, where what is added is worth fewer than the answers
    it is estimated from): one `add` per instance with the share of its answers that succeeded. Holds three numbers, whatever the
    size of the evaluation."""

    samples: float = 1
    instances: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, share: float) -> None:
        """Count one instance; `share` is the share of its answers that succeeded, 0..1."""
        self.instances += 1
        self.total += share
        self.squares += share * share

    @property
    def share(self) -> float:
        """The mean share over the instances, 0..1; NaN without instances."""
        return self.total / self.instances if self.instances else math.nan

    @property
    def effective(self) -> float:
        """How many independent answers these are worth.

        With one answer per instance: as many as there are. With k, answers to one instance resemble each other; the
        variance between instances says how much (Kish's design effect). At 0 and 1 the data cannot say, and each
        instance counts once. Between `instances` and `instances * samples` always.
        """
        m, share = self.instances, self.share
        if self.samples == 1 or m < 2:
            return float(m)
        between = max(0.0, (self.squares - m * share * share) / (m - 1)) / m  # variance of the mean of the instances
        single = share * (1 - share)
        if single <= 0:
            return float(m)
        return min(float(m * self.samples), max(float(m), single / between if between > 0 else math.inf))

    def estimate(self) -> Estimate:
        """The share with its 95 % Wilson interval, over the effective number of answers."""
        return wilson(self.share, self.effective)


def stratified(rates: Sequence[Rate]) -> Estimate:
    """The unweighted mean of the strata's rates (as the paper's totals are), with a stratified Wilson interval.

    The variance of the mean, V = sum w^2 p_i (1 - p_i) / n_i, says how many answers of one common rate p would be worth as
    much: n = p (1 - p) / V. Wilson's interval for p and that n follows. In V each p_i is drawn towards p by z^2 = 3.84
    pseudo-answers, as Wilson's own centre is drawn towards a half, so that a stratum at 0 or 100 % does not claim to be
    known exactly. (MOVER and the normal interval were tried: near 0 and 100 % the truth fell outside them up to 11 % of
    the time in simulation; tests hold this one to its coverage.) Empty strata are left out.
    """
    filled = [r for r in rates if r.instances]
    if not filled:
        return Estimate(math.nan, 0.0, 1.0)
    weight, pseudo = 1 / len(filled), Z95 * Z95
    share = min(1.0, sum(r.share for r in filled) * weight)
    variance = balanced = 0.0
    for rate in filled:
        n = rate.effective
        drawn = (rate.share * n + share * pseudo) / (n + pseudo)
        variance += weight * weight * drawn * (1 - drawn) / n
        balanced += weight * weight / n
    at_the_edge = share <= 0 or share >= 1
    return wilson(share, 1 / balanced if at_the_edge else share * (1 - share) / variance)


def unpaired(a: Estimate, b: Estimate) -> Estimate:
    """The difference a - b of two rates measured on different instances, with an interval from theirs (Newcombe 1998, method 10:
    square-and-add of the distances to the limits)."""
    below = math.hypot(a.value - a.low, b.high - b.value)
    above = math.hypot(a.high - a.value, b.value - b.low)
    return Estimate(a.value - b.value, a.value - b.value - below, a.value - b.value + above)


# --- paired comparison


@dataclass(frozen=True)
class Difference:
    """A minus B on the same instances: the mean difference (unweighted over strata), its bootstrap interval, on how many
    instances A is higher and lower, and the p value of "no difference" by the named test."""

    value: float
    low: float
    high: float
    instances: int
    higher: int
    lower: int
    p: float
    test: str


def paired_difference(
    strata: Sequence[Sequence[float]], seed: int = 0, binary: bool = True, resamples: int = RESAMPLES
) -> Difference:
    """Compare two policies from their differences per instance, grouped by stratum (a group of the testbed).

    Args:
        strata: for each stratum, A's value minus B's for each instance.
        seed: of the bootstrap and of the sign flips.
        binary: every difference is -1, 0 or 1 (one answer per instance, a rate): exact McNemar; otherwise a
            sign-flip permutation test.
        resamples: bootstrap resamples, and sign flips.
    """
    arrays = [np.asarray(s, dtype=np.float64) for s in strata if len(s)]
    if not arrays:
        return Difference(math.nan, math.nan, math.nan, 0, 0, 0, 1.0, "none")
    value = float(np.mean([a.mean() for a in arrays]))
    means = np.mean([_resampled_means(a, key(seed, "bootstrap", i), resamples) for i, a in enumerate(arrays)], axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    above = int(sum((a > 0).sum() for a in arrays))
    below = int(sum((a < 0).sum() for a in arrays))
    if binary:
        p, test = mcnemar(above, below), "exact McNemar"
    else:
        p, test = sign_flip(arrays, key(seed, "flip"), resamples), "sign flips"
    return Difference(value, float(low), float(high), sum(map(len, arrays)), above, below, p, test)


@dataclass(frozen=True)
class SeededDifference:
    """A minus B over several training seeds and the same instances: the mean difference with a 95 % interval that counts both
    the seeds and the instances as drawn at random, the degrees of freedom of that interval, and the mean of each seed."""

    value: float
    low: float
    high: float
    df: float
    seeds: Sequence[float]


def seeded_difference(values: Sequence[Sequence[Sequence[float]]]) -> SeededDifference:
    """The difference between two ways of training, pooled over seeds: an unweighted mean over strata, instances and seeds.

    Seeds and instances are crossed (every seed's policy answers every instance), so neither an interval over seeds alone nor
    one over instances alone is wide enough. The variance of the mean is that of the seeds' means plus that of the instances'
    means less the residual, which both contain (two-way analysis of variance), and never less than either; Student's t with
    Satterthwaite's degrees of freedom. (Our choice.) With one seed there is no interval: low and high are NaN.

    Args:
        values: for each seed, for each stratum, A's value minus B's for each instance, in one order for all seeds.
    """
    strata = [np.asarray(stratum, dtype=np.float64) for stratum in zip(*values, strict=True) if len(stratum[0])]
    if not strata:
        return SeededDifference(math.nan, math.nan, math.nan, 0.0, [])
    by_seed = np.mean([d.mean(axis=1) for d in strata], axis=0)
    value, n = float(by_seed.mean()), len(by_seed)
    usable = n > 1 and all(d.shape[1] > 1 for d in strata)
    if not usable:
        return SeededDifference(value, math.nan, math.nan, 0.0, by_seed.tolist())
    weight = 1 / len(strata) ** 2
    freedom = sum(d.shape[1] - 1 for d in strata)
    over_seeds = float(by_seed.var(ddof=1)) / n
    over_instances = sum(weight * float(d.mean(axis=0).var(ddof=1)) / d.shape[1] for d in strata)
    rest = sum(weight * _residual(d) / d.size for d in strata)
    variance = max(over_seeds + over_instances - rest, over_seeds, over_instances)
    parts = over_seeds**2 / (n - 1) + over_instances**2 / freedom + rest**2 / ((n - 1) * freedom)
    df = variance**2 / parts if parts else float(n - 1 + freedom)
    half = t_quantile(df) * math.sqrt(variance)
    return SeededDifference(value, value - half, value + half, df, by_seed.tolist())


def _residual(d: NDArray[np.float64]) -> float:
    """Mean square of what neither the row's nor the column's mean explains."""
    left = d - d.mean(axis=0, keepdims=True) - d.mean(axis=1, keepdims=True) + d.mean()
    return float((left**2).sum()) / ((len(d) - 1) * (len(d[0]) - 1))


def t_interval(values: Sequence[float]) -> Estimate:
    """Mean and 95 % t interval of independent values, such as one per seed; low and high are NaN for a single one."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return Estimate(mean, math.nan, math.nan)
    half = t_quantile(n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half)


def t_quantile(df: float, share: float = 0.975) -> float:
    """The quantile of Student's t distribution below which `share` (above 1/2) of it lies; a fractional `df` (at least 1) is
    rounded down, to the safe side."""
    low, high = 0.0, 1.0
    while t_below(high, df) < share:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_below(middle, df) < share else (low, middle)
    return high


def t_below(t: float, df: float) -> float:
    """P(T < t) for Student's t; a fractional `df` (at least 1) is rounded down."""
    inside = _t_between(abs(t), max(1, math.floor(min(df, 10_000))))
    return (1 + inside) / 2 if t > 0 else (1 - inside) / 2


def _t_between(t: float, df: int) -> float:
    """P(-t < T < t) for a whole number of degrees of freedom (the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term = total = cosine if odd else 1.0
    for k in range(2 + odd, df - 1 + odd, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + (sine * total if df > 1 else 0.0)) if odd else sine * total


def _random_words(key: int, start: int, count: int) -> NDArray[np.uint64]:
    """Words `start`.. of the SplitMix64 stream of `key`, all at once (the same ones `seeding.Stream` draws)."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + _GOLDEN * np.arange(start + 1, start + count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _resampled_means(values: NDArray[np.float64], key: int, resamples: int) -> NDArray[np.float64]:
    """Means of `resamples` draws with replacement; drawn in blocks, so memory stays small for any number of instances."""
    n = len(values)
    block = max(1, 1_000_000 // n)
    means = np.empty(resamples)
    for first in range(0, resamples, block):
        rows = min(block, resamples - first)
        words = _random_words(key, first * n, rows * n)
        index = ((words >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)  # biased by less than n / 2^32
        means[first : first + rows] = values[index.astype(np.int64)].reshape(rows, n).mean(axis=1)
    return means


def mcnemar(higher: int, lower: int) -> float:
    """Exact two-sided p value: are the instances that only one of the two solved split evenly?"""
    n = higher + lower
    if n == 0:
        return 1.0
    smaller = min(higher, lower)
    log_half = n * math.log(0.5)
    tail = sum(math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + log_half) for i in range(smaller + 1))
    return min(1.0, 2 * tail)


def sign_flip(arrays: Sequence[NDArray[np.float64]], key: int, resamples: int) -> float:
    """Two-sided p value of a permutation test: under "no difference" each instance's difference may have either sign."""
    weighted = np.concatenate([a / (len(a) * len(arrays)) for a in arrays])
    weighted = weighted[weighted != 0]
    if not len(weighted):
        return 1.0
    observed = abs(weighted.sum()) * (1 - 1e-12)
    n = len(weighted)
    block = max(1, 1_000_000 // n)
    extreme = 0
    for first in range(0, resamples, block):
        rows = min(block, resamples - first)
        signs = (_random_words(key, first * n, rows * n) >> np.uint64(63)).astype(np.float64) * 2 - 1
        extreme += int((np.abs(signs.reshape(rows, n) @ weighted) >= observed).sum())
    return (extreme + 1) / (resamples + 1)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction: adjusted p values that hold for all comparisons together, whatever their dependence."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
