"""The hidden evaluation of an episode: twins of the family's frozen sets, drawn from a secret that no workspace holds.

The agent sees nothing of it but the scores of the untrained bases. These are cached, so each base is measured once per twin; the
same seed gives the same twin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.columns import columns_of, first
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.evaluation.tables import value
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.run.experiment import Experiment
from t2t_core.store import folders, fresh, jsonlines
from t2t_core.store.paths import SafePath
from t2t_jobs.family import Family, Part
from t2t_jobs.job import make_job, to_experiment

MAX_SEED = (1 << 53) - 1


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """`baselines/FAMILY-SEED/scores.json`: the score of every untrained base on that twin, 0..1."""

    scores: Mapping[str, float]


def drawn(family: Family, seed: int) -> list[tuple[Part, list[Any]]]:
    """Draw the instances of each part from this seed."""
    testbed = family.world()
    made: dict[str, Any] = {}
    for part in family.evaluation.parts:
        if part.set not in made:
            made[part.set] = testbed.twin(part.set, seed).instances
    return [(part, _selected(testbed, made[part.set], part)) for part in family.evaluation.parts]


def _selected(testbed: AnyTestbed, instances: Sequence[Any], part: Part) -> list[Any]:
    inside = [instance for instance in instances if not part.columns or testbed.place(instance).column in part.columns]
    return list(first(testbed, inside, part.limit))


def identities(family: Family, seed: int) -> frozenset[bytes]:
    """The identity of every instance of the twin."""
    testbed = family.world()
    return frozenset(testbed.identity(instance) for _, instances in drawn(family, seed) for instance in instances)


def write_instances(family: Family, seed: int, path: SafePath) -> None:
    """Write each instance of the twin once to a file, so that a run can keep them out of its training."""
    testbed = family.world()
    kept: dict[bytes, Any] = {}
    for _, instances in drawn(family, seed):
        kept |= {testbed.identity(instance): instance for instance in instances}
    folders.write_atomic(path, "".join(jsonlines.dumps(instance.to_dict()) + "\n" for instance in kept.values()))


def score(family: Family, seed: int, experiment: Experiment, checkpoint: Path | None, folder: SafePath) -> float:
    """The hidden score of a checkpoint, 0..1: the mean of the parts' rates. The answers are stored in the folder."""
    testbed = family.world()
    policy = experiment.make_policy(checkpoint)
    form = str(experiment.validation.get("prompt_format") or policy.describe().get("prompt_format", ""))
    rates = []
    for number, (part, instances) in enumerate(drawn(family, seed)):
        evaluation, part_folder = Evaluation(testbed, instances, 1, experiment.sampling, form), folder / f"part_{number}"
        evaluate(evaluation, policy, part_folder).require_answers("the hidden evaluation")
        rates.append(_rate(evaluation, part, part_folder / ANSWERS))
    return sum(rates) / len(rates)


def _rate(evaluation: Evaluation, part: Part, answers: SafePath) -> float:
    """The unweighted mean over columns; an answer that never came counts 0."""
    metric = next(metric for metric in evaluation.testbed.metrics if metric.name == part.metric)
    columns = columns_of(evaluation.testbed, evaluation.instances)
    shares: dict[str, list[float]] = {}
    for answer in scored(evaluation, answers):
        shares.setdefault(columns[answer.instance.id], []).append(value(metric, [answer]) or 0.0)
    return sum(sum(column) / len(column) for column in shares.values()) / len(shares)


def baseline_scores(family: Family, seed: int, cache: Path | SafePath) -> dict[str, float]:
    """The hidden score of every untrained base on the twin of this seed. The scores are cached in the folder `cache`, which no
    agent may reach, so a second call asks no policy."""
    folder = SafePath.of(cache) / f"{family.name}-{seed}"
    record = folder / "scores.json"
    if record.exists():
        return dict(folders.read_record(record, Baselines).scores)
    scores = {}
    folders.make_folder(SafePath.of(cache))
    with fresh.folder_beside(folder) as work:
        for name in family.bases:
            run = to_experiment(make_job(family, {"base": name}), 0)
            scores[name] = score(family, seed, run, run.start(), work / name)
    folders.write_json(record, Baselines(scores=scores))
    return scores


def make_family(name: str) -> Family:
    """A family by its name, as `t2t plugins` lists it."""
    family: Family = installed().families.make(name)
    return family
