"""The report of a bench of agents: the reward of every agent on every family, with held-out families apart, and the costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from t2t_core.evaluation.stats import t_interval
from t2t_core.report.document import Column, Document, Paragraph, Row, Section, Table, TableCell, Words
from t2t_core.report.figures import Figure
from t2t_jobs.bench import BenchResult, Entry, by_agent

_NOTE = (
    "Means over the final episodes with 95 % t intervals, over the seeds' means where there are several seeds and over episodes "
    "where there is one. The reward is 0.35 validation + 0.60 quality + 0.05 speed; gain is the trained model's hidden score "
    "minus the best untrained base's, over the jobs that came to one. "
    "Held out: no agent was trained on that family."
)


def bench_document(result: BenchResult) -> Document:
    """The report's document."""
    families = sorted(result.families, key=lambda name: _held_out(result, name))
    sections = [
        _figures("Reward", result, families, lambda entry: list(entry.rewards), 3),
        _figures("Hidden score after training", result, families, lambda entry: _known(entry.scores), 3),
        _figures("Gain over the best untrained base", result, families, lambda entry: _known(entry.gains), 3, signed=True),
        _costs(result),
    ]
    return Document("Agents that write training jobs", [Paragraph(_NOTE, "soft")], sections)


def _held_out(result: BenchResult, family: str) -> bool:
    return any(entry.held_out for entry in result.entries if entry.family == family)


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _figures(
    title: str,
    result: BenchResult,
    families: Sequence[str],
    values: Callable[[Entry], list[float]],
    digits: int,
    signed: bool = False,
) -> Section:
    """A row per agent, a column per family, and the mean over the families that are not held out."""
    trained = [family for family in families if not _held_out(result, family)]
    columns = [Column("agent", words=True)]
    columns += [Column(f"{family} (held out)" if _held_out(result, family) else family) for family in families]
    columns.append(Column("mean, not held out", total=True))
    rows = []
    for agent, entries in by_agent(result).items():
        cells: list[TableCell] = [agent]
        for family in families:
            cells.append(_figure([values(entry) for entry in entries if entry.family == family], digits, signed))
        seeds = sorted({entry.seed for entry in entries})
        means = [
            [fmean(values(entry)) for entry in entries if entry.seed == seed and entry.family in trained and values(entry)]
            for seed in seeds
        ]
        cells.append(_figure([[fmean(mean)] for mean in means if mean], digits, signed))
        rows.append(Row(cells))
    return Section(title, [Table(columns, rows)])


def _figure(seeds: Sequence[list[float]], digits: int, signed: bool = False) -> Figure:
    """The mean with its t interval, over the seeds' means if there are several seeds, else over the episodes of the only one."""
    filled = [values for values in seeds if values]
    if not filled:
        return Figure(None)
    units = [fmean(values) for values in filled] if len(filled) > 1 else filled[0]
    estimate = t_interval(units)
    if len(units) < 2:
        return Figure(estimate.value, digits=digits, signed=signed)
    return Figure(estimate.value, estimate.low, estimate.high, digits, digits, signed)


def _costs(result: BenchResult) -> Section:
    columns = [Column("agent", words=True), *(Column(name) for name in ("valid", "jobs", "CPU seconds", "tokens", "USD"))]
    rows = []
    for agent, entries in by_agent(result).items():
        counted = sum(len(entry.rewards) for entry in entries)
        valid = sum(entry.valid for entry in entries)
        rows.append(
            Row(
                [
                    agent,
                    Words(f"{valid} of {counted}"),
                    str(sum(entry.jobs for entry in entries)),
                    Figure(sum(entry.cpu_seconds for entry in entries), digits=0),
                    str(sum(entry.tokens for entry in entries)),
                    Figure(sum(entry.usd for entry in entries), digits=4),
                ]
            )
        )
    return Section("What it took", [Table(columns, rows)])
