"""Measures the families: `python -m t2t_jobs.families.figures [NAME ...]` writes `figures.json`, which the docs' table shows.

For each family, on `TWINS` twins, it measures the hidden score of every untrained base and of the best known job, and the CPU
seconds that a warm worker took for that job, including its hidden evaluation.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from t2t_core.plugins import installed
from t2t_core.store import folders, fresh, jsonlines
from t2t_core.store.paths import SafePath
from t2t_jobs.family import Family
from t2t_jobs.job import FILE, document, make_job
from t2t_jobs.queue import Queue
from t2t_jobs.worker import work

FIGURES = Path(__file__).parent / "figures.json"
TWINS = 3
HIGHEST_BASE, LEAST_GAIN, MOST_SECONDS = 0.3, 0.2, 20.0  # what a family of the suite must keep to


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One family's figures: means over twins (of `cpu_seconds` the maximum), and the values of each twin. `family` is a hash of
    what was measured."""

    family: str
    bases: Mapping[str, float]
    best: float
    cpu_seconds: float
    each: Sequence[Mapping[str, float]]

    @property
    def gain(self) -> float:
        """How much better the best known job scores than the best untrained base."""
        return self.best - max(self.bases.values())


@dataclass(frozen=True, kw_only=True)
class AllFigures:
    """`figures.json`."""

    families: Mapping[str, Figures]


def fingerprint(family: Family) -> str:
    """A hash that changes whenever something changes that may affect a figure."""
    facts = [family.testbed, dict(family.start), asdict(family.evaluation), dict(family.fixed), dict(family.best)]
    names = {name: Path(base.checkpoint).name for name, base in family.bases.items()}
    return hashlib.sha256(jsonlines.canonical([*facts, names])).hexdigest()[:16]


def measure(name: str, folder: SafePath) -> Figures:
    """Measure one family; its jobs run in `folder`."""
    family: Family = installed().families.make(name)
    queue = Queue(folder / "queue", secret=2026)
    folders.write_atomic(folder / FILE, document(make_job(family, family.best).values))
    ids = [f"{name}-{number}" for number in range(TWINS)]
    for number, job_id in enumerate(ids):
        hidden_of = f"twin {number}"
        queue.submit(job_id, folder, name, hidden_of, seed=number)
    work(queue)
    each = []
    for job_id in ids:
        result = queue.result(job_id)
        if result is None or result.post is None:
            raise SystemExit(f"{job_id}: {result.failure if result else 'no result'}")
        each.append({**result.pre, "best": result.post, "cpu_seconds": result.cpu_seconds})
    mean = {key: round(sum(repeat[key] for repeat in each) / len(each), 3) for key in each[0]}
    bases = {key: mean[key] for key in family.bases}
    slowest = max(repeat["cpu_seconds"] for repeat in each)
    return Figures(family=fingerprint(family), bases=bases, best=mean["best"], cpu_seconds=slowest, each=each)


def read() -> Mapping[str, Figures]:
    """The last measured figures, by family."""
    return folders.read_record(FIGURES, AllFigures).families


def main(names: Sequence[str]) -> None:
    """Measure these families, or all that ship with this package; figures of other families are kept."""
    ours = [entry.name for entry in installed().families if entry.plugin == "t2t_jobs"]
    kept = dict(read()) if FIGURES.exists() else {}
    for name in names or ours:
        with fresh.folder_beside(SafePath(FIGURES.parent) / FIGURES.name) as folder:
            kept[name] = measure(name, folder)
        print(name, kept[name].bases, kept[name].best, f"{kept[name].gain:+.3f}", kept[name].cpu_seconds, flush=True)
        folders.write_json(FIGURES, AllFigures(families={each: kept[each] for each in ours if each in kept}))


if __name__ == "__main__":
    main(sys.argv[1:])
