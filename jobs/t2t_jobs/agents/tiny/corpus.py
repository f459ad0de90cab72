"""The corpus of the toy agent's warm-up: jobs as somebody would write them who knows the form and little else. Each sets some
of the keys, to random values within their bounds. Then about a third of the jobs is spoilt by beginners' mistakes: a value out of
bounds, a word that is not among the choices, shares that do not sum to 1, far too many samples, a misspelt key, a missing quote.

No job is run or scored for the corpus, so the agent still has to learn what a job is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core.seeding import Stream
from t2t_jobs.agents.compact import question
from t2t_jobs.agents.drawing import conversations, draw, share_keys
from t2t_jobs.agents.tiny.model import ANONYMOUS
from t2t_jobs.family import Bound, Family, Value, nested
from t2t_jobs.job import document

SPOILT = 0.35  # share of the jobs that are spoilt at least once
TWICE = 0.3  # share of those that are spoilt twice
AGAIN = 0.35  # share of the questions that say `again` and may name wrong keys of a job before
UNNAMED = 0.3  # share of the questions that do not name their family
KEPT = 0.6  # probability that a job sets a key that may be edited
MOST_WRONG = 3


@dataclass(frozen=True)
class Pair:
    """A question and the text that answers it."""

    question: str
    text: str


def corpus(families: Sequence[Family], seed: int, count: int) -> list[Pair]:
    """Make `count` pairs, spread evenly over the families. The n-th pair depends only on the families and on (seed, n)."""
    writers = [_Writer(family) for family in families]
    return [writers[number % len(writers)].pair(Stream.of(seed, "jobs", number)) for number in range(count)]


class _Writer:
    """Writes jobs of one family. Looks up the keys of its shares once, since that takes long."""

    def __init__(self, family: Family) -> None:
        self.family, self.shares = family, share_keys(family)
        self.spoil: Sequence[Callable[[dict[str, Value], Stream], str | None]] = (
            self._out_of_bounds, self._out_of_bounds, self._too_much, self._uneven, self._misspelt, self._unquoted,
        )  # fmt: skip

    def pair(self, stream: Stream) -> Pair:
        named = self.family.name if stream.uniform() >= UNNAMED else ANONYMOUS
        changes = self._changes(stream)
        again, wrong = stream.uniform() < AGAIN, list[str]()
        if again:
            keys = list(self.family.bounds)
            stream.shuffle(keys)
            wrong_keys = set(keys[: stream.below(MOST_WRONG + 1)])
            wrong = [key for key in self.family.bounds if key in wrong_keys]
        text = document(nested(changes))
        if stream.uniform() < SPOILT:
            for _ in range(1 + (stream.uniform() < TWICE)):
                text = stream.choice(self.spoil)(changes, stream) or document(nested(changes))
        return Pair(question(self.family.testbed, named, wrong, again), text)

    def _changes(self, stream: Stream) -> dict[str, Value]:
        """A job within its bounds and its budget: some of the keys, and either all shares, in round numbers, or none."""
        family = self.family
        drawn = draw(family, stream)
        with_shares = stream.uniform() < KEPT
        kept = {key: value for key, value in drawn.items() if (with_shares if key in self.shares else stream.uniform() < KEPT)}
        if with_shares and self.shares:
            kept |= self._round_shares(stream)
        if "base" in drawn:
            kept = {"base": drawn["base"], **{key: value for key, value in kept.items() if key != "base"}}
        if conversations(family, kept) > family.budget.conversations:
            return {"base": drawn["base"]} if "base" in drawn else {}
        return kept

    def _round_shares(self, stream: Stream) -> dict[str, Value]:
        """Twentieths that sum to 1."""
        counts = dict.fromkeys(self.shares, 0)
        favoured = [key for key in self.shares if stream.uniform() < 0.5] or [stream.choice(self.shares)]
        for _ in range(20):
            counts[stream.choice(favoured)] += 1
        return {key: count / 20 for key, count in counts.items()}

    # --- beginners' mistakes; each changes the values, or returns a spoilt text

    def _out_of_bounds(self, changes: dict[str, Value], stream: Stream) -> str | None:
        key = stream.choice(list(self.family.bounds))
        changes[key] = beyond(self.family.bounds[key], stream)
        return None

    def _too_much(self, changes: dict[str, Value], stream: Stream) -> str | None:
        """Set most of the numbers that multiply the conversations to their maximum."""
        for key in ("generation.samples", "training.group", "training.epochs", "rounds"):
            bound = self.family.bounds.get(key)
            if bound is not None and stream.uniform() < 0.7:
                changes[key] = max(bound.choices) if bound.choices else round(bound.high)
        return None

    def _uneven(self, changes: dict[str, Value], stream: Stream) -> str | None:
        if self.shares:
            changes[stream.choice(self.shares)] = round(stream.uniform(), 2)
        return None

    def _misspelt(self, changes: dict[str, Value], stream: Stream) -> str | None:
        text = document(nested(changes))
        lines = [line for line in text.splitlines() if " = " in line]
        if not lines:
            return None
        line = stream.choice(lines)
        at = stream.below(max(1, line.index(" = ")))
        return text.replace(line, line[:at] + line[at + 1 :], 1)

    def _unquoted(self, changes: dict[str, Value], stream: Stream) -> str | None:
        text = document(nested(changes))
        spots = [at for at, character in enumerate(text) if character in '"[]']
        at = stream.choice(spots) if spots else 0
        return text[:at] + text[at + 1 :]


def beyond(bound: Bound, stream: Stream) -> Any:
    """A value that the bound refuses."""
    if bound.kind == "choice":
        words = [choice for choice in bound.choices if isinstance(choice, str)]
        return f"{stream.choice(words)}{stream.below(10)}" if words else int(max(bound.choices)) + 1 + stream.below(9)
    above = bound.high * 10 ** (0.1 + 2 * stream.uniform())
    return round(above) + 1 if bound.whole else float(f"{above:.3g}")
