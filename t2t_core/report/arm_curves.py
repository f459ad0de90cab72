"""The arms of many seeds side by side: where each seed ended, and the way there, as charts of a sweep or a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.stats import t_interval
from t2t_core.report.charts import PERCENT, Axis, Chart, Dots, Lane, Lines, Point, Series
from t2t_core.report.document import Block, Charts, Links, Paragraph, Section
from t2t_core.report.figures import Figure
from t2t_core.report.summary import round_summary
from t2t_core.report.training import is_number, updates
from t2t_core.run.round_files import finished_rounds
from t2t_core.store.paths import SafePath

_SHARED = "shared"  # the round 0 that the arms of a seed have in common
_MOST = 60  # points on a curve; of more updates, every so-many-th


def seed_runs(folder: SafePath) -> dict[str, list[SafePath]]:
    """The run folders of a sweep or a study by arm, in the order of the seeds; the shared round 0 is none of them."""
    arms: dict[str, list[SafePath]] = {}
    for seed in sorted((entry for entry in folder.entries() if entry.name.startswith("seed_") and entry.is_dir()), key=_number):
        entries = (entry for entry in seed.entries() if entry.name != _SHARED and entry.is_dir())
        for run in (arm for arm in entries if (arm / "run.json").exists()):
            arms.setdefault(run.name, []).append(run)
    return arms


def _number(seed: SafePath) -> tuple[int, str]:
    digits = seed.name.removeprefix("seed_")
    return (int(digits) if digits.isdecimal() and len(digits) < 19 else 0), seed.name


def curves(folder: SafePath, order: Sequence[str]) -> Iterator[Section]:
    """How the arms went on the way, over their seeds; `order` is that of the arms elsewhere on the page. Nothing if the folder
    keeps no runs."""
    runs = seed_runs(folder)
    names = [*(name for name in order if name in runs), *(name for name in runs if name not in order)]
    validations = {name: [[_valid(files) for files in finished_rounds(run)] for run in runs[name]] for name in names}
    rewards = {name: [_rewards(run) for run in runs[name]] for name in names}
    charts: list[Chart] = []
    if max((len(seed) for arm in validations.values() for seed in arm), default=0) > 1:
        charts.append(_over_seeds("validation: valid by round, %, mean over seeds", validations, names, 100))
    if any(seed for arm in rewards.values() for seed in arm):
        charts.append(_over_seeds("reward by update, mean over seeds", rewards, names, 1))
    if charts:
        note = Paragraph("Bars: 95 % t interval over seeds, where the arms are few enough to tell them apart.", "soft")
        yield Section("On the way", [Charts(charts), note])
    pages = [(f"{run.path.parent.name}, {name}", run) for name in names for run in runs[name] if (run / "report.html").exists()]
    if pages:
        told: list[Block] = [Links([(words, f"{run.path.parent.name}/{run.name}/report.html") for words, run in pages])]
        yield Section("The runs' own pages", told)


def _valid(files: Any) -> float | None:
    return round_summary(files).valid.value


def _rewards(run: SafePath) -> list[float | None]:
    told = [line.get("reward") for files in finished_rounds(run) for line in updates(files)]
    return [float(value) if value is not None and is_number(value) else None for value in told]


def _over_seeds(title: str, arms: Mapping[str, Sequence[Sequence[float | None]]], names: Sequence[str], scale: float) -> Lines:
    """A line per arm: at every place the mean over the seeds that came so far, with an interval if there are several."""
    longest = max(len(seed) for arm in arms.values() for seed in arm)
    step = max(1, -(-longest // _MOST))
    series = []
    for number, name in enumerate(names):
        points: list[Figure | None] = []
        for at in range(0, longest, step):
            values = [seed[at] for seed in arms[name] if at < len(seed)]
            known = [scale * value for value in values if value is not None]
            points.append(_mean(known) if known else None)
        series.append(Series(name, points, number))
    first = 0 if "round" in title else 1
    axis = PERCENT if scale == 100 else Axis(None, None)
    return Lines(title, [str(at + first) for at in range(0, longest, step)], series, axis, wide=True)


def _mean(values: Sequence[float]) -> Figure:
    estimate = t_interval(values)
    if len(values) < 2:
        return Figure(estimate.value, digits=3)
    return Figure(estimate.value, estimate.low, estimate.high, 3, 3)


def seeds_chart(title: str, arms: Mapping[str, Sequence[float]]) -> Dots:
    """A dot for every seed, and a bar at an arm's mean; in percent."""
    lanes = [
        Lane(name, [Point(Figure(value, digits=1), says="one seed") for value in values], number, sum(values) / len(values))
        for number, (name, values) in enumerate(arms.items())
        if values
    ]
    return Dots(title, {"": lanes})


def require_finished(folder: SafePath, file: str, what: str) -> SafePath:
    """The result file of a folder. Raises T2TError if it is not through yet."""
    path = folder / file
    if not path.exists():
        raise T2TError(f"the {what} is not finished", where=str(folder), next="give the same t2t sweep again: it goes on")
    return path
