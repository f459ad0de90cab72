"""What the training of a run's rounds came to: every figure of the updates at a round's beginning and at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.run.round_files import RoundFiles
from t2t_core.store import jsonlines

_COUNTERS = ("update", "updates", "eta_seconds")
END = 0.2  # the share of a round's updates that its beginning, and its end, is the mean of


def updates(files: RoundFiles) -> list[Mapping[str, Any]]:
    """The figures of each update of a round, in order; of one that was done twice, since a kill came between, the last."""
    path = files.metrics
    torn: list[jsonlines.Torn] = []
    lines = (line.value for line in jsonlines.read(path, torn)) if path.exists() else iter(())
    return list({line["update"]: line for line in lines if _is_number(line.get("update"))}.values())


def training_summary(rounds: Sequence[RoundFiles]) -> Iterator[dict[str, Any]]:
    """Of every round that was trained: {"round", "updates", "figures": {name: [at its beginning, at its end]}}."""
    for files in rounds:
        done = updates(files)
        part = max(1, round(END * len(done)))
        names = dict.fromkeys(name for line in done for name in line if name not in _COUNTERS)
        ends = {name: [_mean(lines, name) for lines in (done[:part], done[-part:])] for name in names}
        figures = {name: pair for name, pair in ends.items() if None not in pair}
        if figures:
            yield {"round": files.index, "updates": len(done), "figures": figures}


def training_rows(arms: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a row per figure, a column per arm and round (round 0 is shared: once)."""
    columns = {
        f"{arm} round {one['round']}": one["figures"]
        for number, (arm, rounds) in enumerate(arms.items())
        for one in rounds
        if not number or one["round"]
    }
    names = dict.fromkeys(name for figures in columns.values() for name in figures)
    return ["figure", *columns], [[name, *(_shown(f.get(name)) for f in columns.values())] for name in names]


def _shown(pair: Sequence[float] | None) -> str:
    return "-" if pair is None else f"{pair[0]:.4g} -> {pair[1]:.4g}"


def _mean(lines: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [float(line[name]) for line in lines if _is_number(line.get(name))]
    return sum(values) / len(values) if values else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
