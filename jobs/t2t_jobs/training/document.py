"""The report of an agent's training: the reward and its parts over the outer steps, what the jobs chose, and the costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from t2t_core.report.charts import Axis, Lines, Series
from t2t_core.report.document import Block, Charts, Column, Document, Paragraph, Row, Section, Table, TableCell
from t2t_core.report.figures import Figure
from t2t_jobs.training.figures import StepRecord

SHARE = Axis(0.0, 1.0)
# The figures reported for the neighbouring system, step -> value; its models, families and jobs differ from ours.
REPORTED: Mapping[str, Mapping[int, float]] = {"held-out family": {0: 0.399, 10: 0.438, 34: 0.545, 54: 0.492}}
_REPORTED = (
    "Reported of 54 outer steps with 1,750 jobs, on other models and other families: on the families that trained the agent the "
    "reward went from about 0 to a peak of 0.63, first by valid jobs (0.26 with quality flat), then by better models."
)
_SHOWN = 8  # knobs in a chart; the ones whose use changed most


def training_document(agent: str, families: Sequence[str], steps: Sequence[StepRecord]) -> Document:
    """The report's document, for a training that has finished or is under way."""
    lead: list[Block] = [Paragraph(_in_short(steps) if steps else "No step is through yet.", "strong")]
    if not steps:
        return Document(f"{agent}, trained on what its jobs achieve", lead, [])
    sections = [
        Section("The reward and its parts", [Charts([_parts(steps), _validity(steps)]), Charts([_quality(steps)])]),
        Section("What was chosen", [Charts([_bases(steps)]), Charts(_knobs(steps))]),
        Section("Families", [Charts([_families(steps, families)])]),
        Section("Every step", [_table(steps), _costs(steps)]),
        Section("The neighbouring system", [_reported(), Paragraph(_REPORTED, "soft")]),
    ]
    return Document(f"{agent}, trained on what its jobs achieve", lead, sections)


def _in_short(steps: Sequence[StepRecord]) -> str:
    first, last = steps[0], steps[-1]
    episodes = sum(step.episodes for step in steps)
    return (
        f"{len(steps)} steps, {episodes} episodes: mean reward {first.reward:.3f} in the first step and "
        f"{last.reward:.3f} in the last; valid {100 * first.valid:.0f} and {100 * last.valid:.0f} %."
    )


def _lines(
    title: str, steps: Sequence[StepRecord], lines: Mapping[str, Callable[[StepRecord], float | None]], axis: Axis
) -> Lines:
    series = [
        Series(name, [None if (value := of(step)) is None else Figure(value, digits=3) for step in steps], number)
        for number, (name, of) in enumerate(lines.items())
    ]
    return Lines(title, [str(step.step) for step in steps], series, axis)


def _parts(steps: Sequence[StepRecord]) -> Lines:
    weighed: Mapping[str, Callable[[StepRecord], float | None]] = {
        "reward": lambda step: step.reward,
        "0.35 validation": lambda step: 0.35 * step.validation,
        "0.60 quality": lambda step: 0.60 * step.quality,
        "0.05 speed": lambda step: 0.05 * step.speed,
    }
    return _lines("mean reward by outer step, and what its parts add", steps, weighed, Axis(None, 1.0))


def _validity(steps: Sequence[StepRecord]) -> Lines:
    shares: Mapping[str, Callable[[StepRecord], float | None]] = {
        "can be read": lambda step: step.parsable,
        "valid": lambda step: step.valid,
        "valid at once": lambda step: step.first_try,
        "trained a model": lambda step: step.trained,
    }
    return _lines("share of the episodes", steps, shares, SHARE)


def _quality(steps: Sequence[StepRecord]) -> Lines:
    scores: Mapping[str, Callable[[StepRecord], float | None]] = {
        "score after training": lambda step: step.score,
        "gain over the best base": lambda step: step.gain,
    }
    return _lines("hidden score of the jobs that trained a model", steps, scores, Axis(None, None))


def _bases(steps: Sequence[StepRecord]) -> Lines:
    curves: Mapping[str, Callable[[StepRecord], float | None]] = {"stronger base": lambda step: step.stronger}
    return _lines("share of the jobs that start from the stronger base", steps, curves, SHARE)


def _of(figures: Callable[[StepRecord], Mapping[str, float]], name: str) -> Callable[[StepRecord], float | None]:
    """One of several figures of a step, by its name."""
    return lambda step: figures(step).get(name)


def _knobs(steps: Sequence[StepRecord]) -> list[Lines]:
    """Charts of the knobs whose use changed most."""
    first, last = steps[0].knobs, steps[-1].knobs
    changed = sorted(last, key=lambda key: -abs(last[key] - first.get(key, 0.0)))[:_SHOWN]
    used = {key: _of(lambda step: step.knobs, key) for key in changed}
    placed = {key: _of(lambda step: step.positions, key) for key in changed}
    titles = ("share of the jobs that set a value: those that changed most", "where they set it, between its bounds (0 to 1)")
    return [_lines(title, steps, lines, SHARE) for title, lines in zip(titles, (used, placed), strict=True) if lines]


def _families(steps: Sequence[StepRecord], families: Sequence[str]) -> Lines:
    lines = {name: _of(lambda step: step.families, name) for name in families}
    return _lines("mean reward on each family", steps, lines, Axis(None, 1.0))


def _table(steps: Sequence[StepRecord]) -> Table:
    names = ("reward", "validation", "quality", "speed", "valid", "at once", "score", "gain", "stronger base")
    rows = []
    for step in steps:
        values = (step.reward, step.validation, step.quality, step.speed, step.valid, step.first_try)
        known = (step.score, step.gain, step.stronger)
        rows.append(Row([str(step.step), *(Figure(value, digits=3) for value in (*values, *known))]))
    return Table([Column("step", words=True), *(Column(name) for name in names)], rows)


def _costs(steps: Sequence[StepRecord]) -> Table:
    names = ("episodes", "updates behind", "left out", "importance ratio", "clipped", "tokens", "CPU seconds", "USD")
    rows = []
    for step in steps:
        behind = ", ".join(map(str, sorted(step.lags)))
        figures: list[TableCell] = [Figure(step.learner.get(name), digits=3) for name in ("ratio", "clipped")]
        taken: list[TableCell] = [str(step.tokens), Figure(step.cpu_seconds, digits=0), Figure(step.usd, digits=4)]
        rows.append(Row([str(step.step), str(step.episodes), behind, str(len(step.stale)), *figures, *taken]))
    return Table([Column("step", words=True), *(Column(name) for name in names)], rows)


def _reported() -> Table:
    columns = [Column("reported, not ours", words=True), *(Column(f"step {step}") for step in (0, 10, 34, 54))]
    rows = [
        Row([f"{name}, reward", *(Figure(values.get(step), digits=3) for step in (0, 10, 34, 54))], "quoted")
        for name, values in REPORTED.items()
    ]
    return Table(columns, rows)
