"""Several answers to one instance: what k of them are worth.

pass@k is the chance that at least one of k answers counts, estimated without bias from n >= k of them (Chen et al. 2021,
Evaluating Large Language Models Trained on Code, arXiv:2107.03374, equation 1): 1 - C(n - c, k) / C(n, k) where c of the n
count. The best of k is the expected highest reward among k answers, by the same argument over their order. The majority's answer
is what most answers propose (`Testbed.plan`): Wang et al. 2023, Self-Consistency, arXiv:2203.11171; where several plans have as
many votes, each is taken with the same chance, and an answer without a readable plan has no vote. How ties count, and the
intervals, are our choice. """

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from t2t_core.conversation import plan_of
from t2t_core.evaluation.row_tables import Interval, Worth
from t2t_core.evaluation.stats import Rate, stratified
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Metric, Scored
from t2t_core.reward import reward

Values = Mapping[str, Sequence[float]]


def pass_at_k(answers: int, right: int, k: int) -> float:
    """The chance that at least one of `k` answers drawn from `answers`, of which `right` count, is among those that count."""
    return 1.0 - math.comb(answers - right, k) / math.comb(answers, k)


def best_of_k(values: Sequence[float], k: int) -> float:
    """The expected highest of `k` values drawn without replacement from `values`."""
    ordered, n = sorted(values), len(values)
    return sum(value * math.comb(i, k - 1) for i, value in enumerate(ordered)) / math.comb(n, k)


def sizes(samples: int) -> list[int]:
    """The k that are shown for so many answers: powers of two below, and all of them."""
    return [*(2**i for i in range(samples.bit_length()) if 2**i < samples), samples]


def majority(plans: Sequence[Hashable | None], values: Sequence[float]) -> float:
    """The mean value of the answers that propose what most do; 0 if no answer has a readable plan."""
    votes = Counter(plan for plan in plans if plan is not None)
    most = max(votes.values(), default=0)
    leading = [plan for plan, count in votes.items() if count == most]
    if not leading:
        return 0.0
    shares = [[v for p, v in zip(plans, values, strict=True) if p == plan] for plan in leading]
    return sum(sum(share) / len(share) for share in shares) / len(leading)


@dataclass
class Repeated:
    """Adds up what several answers are worth, over the instances of one column, `samples` answers each.

    An instance that has fewer answers yet enters pass@k and best of k where it has k, and a figure that does not hold all the
    instances asked is None. `unknown`: the metrics that some answer has no value of.
    """

    testbed: AnyTestbed
    samples: int
    instances: int = 0
    plans: int = 0
    passes: dict[tuple[str, int], Rate] = field(default_factory=dict)
    majorities: dict[str, Rate] = field(default_factory=dict)
    bests: dict[int, Rate] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for k in sizes(self.samples):
            self.bests[k] = Rate(self.samples / k)
            for metric in self._rates():
                self.passes[metric.name, k] = Rate(self.samples / k)
        self.majorities = {metric.name: Rate() for metric in self._rates()}

    def _rates(self) -> list[Metric]:
        return [metric for metric in self.testbed.metrics if metric.kind == "rate"]

    def add(self, group: Sequence[Scored]) -> None:
        """The answers to one instance that was asked."""
        n = len(group)
        plans = [None if answer.response.error is not None else self._plan(answer) for answer in group]
        self.instances += 1
        self.plans += len(set(plans) - {None})
        low, high = self.testbed.reward_range
        rewards = [(reward(self.testbed, answer.instance, answer.verdict) - low) / ((high - low) or 1.0) for answer in group]
        for k in (k for k in self.bests if k <= n):
            self.bests[k].add(min(1.0, max(0.0, best_of_k(rewards, k))))
        for metric in self._rates():
            values = [0.0 if a.response.error is not None else metric.value(a.verdict, a.response) for a in group]
            known = [value or 0.0 for value in values]
            if None in values:
                self.unknown.add(metric.name)
            for k in (k for k in self.bests if k <= n):
                self.passes[metric.name, k].add(pass_at_k(n, sum(value > 0 for value in known), k))
            if n == self.samples:
                self.majorities[metric.name].add(majority(plans, known))

    def _plan(self, answer: Scored) -> Hashable | None:
        return plan_of(self.testbed, answer.instance, answer.messages, answer.response.text)


def worth(columns: Sequence[Repeated]) -> Worth:
    """What the answers are worth over one column or, as the unweighted mean, over several."""
    first = columns[0]
    (low, high), unknown = first.testbed.reward_range, set().union(*(column.unknown for column in columns))

    def figure(rates: Sequence[Rate], low: float = 0.0, high: float = 100.0, known: bool = True) -> Interval:
        whole = known and all(r.instances == c.instances > 0 for r, c in zip(rates, columns, strict=True))
        if not whole:
            return Interval(value=None, low=None, high=None)
        return Interval.of(rates[0].estimate() if len(rates) == 1 else stratified(rates), low, high)

    asked = sum(column.instances for column in columns)
    return Worth(
        passes={
            metric: {
                str(k): figure([c.passes[metric, k] for c in columns], known=metric not in unknown) for k in sizes(first.samples)
            }
            for metric in first.majorities
        },
        majority={m: figure([c.majorities[m] for c in columns], known=m not in unknown) for m in first.majorities},
        best={str(k): figure([c.bests[k] for c in columns], low, high) for k in sizes(first.samples)},
        plans=round(sum(column.plans for column in columns) / asked, 4) if asked else None,
    )
