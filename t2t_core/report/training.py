"""What the training of a run's rounds came to: every figure of the updates at a round's beginning and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2t_core.run.round_files import RoundFiles
from t2t_core.store import jsonlines

COUNTERS = ("update", "updates", "eta_seconds")
END = 0.2  # the share of a round's updates that its beginning, and its end, is the mean of


def updates(files: RoundFiles) -> list[Mapping[str, Any]]:
    """The figures of each update of a round, in order; of one that was done twice, since a kill came between, the last."""
    path = files.metrics
    torn: list[jsonlines.Torn] = []
    lines = (line.value for line in jsonlines.read(path, torn)) if path.exists() else iter(())
    return list({line["update"]: line for line in lines if is_number(line.get("update"))}.values())


@dataclass(frozen=True)
class TrainingSummary:
    """A round that was trained: how many updates, and every figure as the means of its first and of its last fifth of updates,
    and what was wrong in how many updates."""

    round: int
    updates: int
    figures: Mapping[str, Sequence[float]]
    warnings: Mapping[str, int] = field(default_factory=dict)


def training_summary(rounds: Sequence[RoundFiles]) -> Iterator[TrainingSummary]:
    """Of every round that was trained."""
    for files in rounds:
        done = updates(files)
        part = max(1, round(END * len(done)))
        names = dict.fromkeys(name for line in done for name in line if name not in COUNTERS)
        ends = {name: [_mean(lines, name) for lines in (done[:part], done[-part:])] for name in names}
        figures = {name: [end for end in pair if end is not None] for name, pair in ends.items() if None not in pair}
        if figures:
            told = Counter(text for line in done for text in _texts(line.get("warnings")))
            yield TrainingSummary(files.index, len(done), figures, dict(told))


def _mean(lines: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [float(line[name]) for line in lines if is_number(line.get(name))]
    return sum(values) / len(values) if values else None


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def is_number(value: Any) -> bool:
    """Whether a trainer's figure is a number; truth values are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
