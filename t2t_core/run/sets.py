"""The sets of a run: what its validations and its closing bench ask, and what must not be trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter, signature
from itertools import chain
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.columns import first
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceRecord, InstanceSet, Request, Scored
from t2t_core.run.experiment import Experiment
from t2t_core.seeding import key
from t2t_core.store.instance_files import file_set
from t2t_core.store.paths import SafePath


def validation(experiment: Experiment, testbed: AnyTestbed) -> Evaluation:
    """The questions of every validation of a run. Raises T2TError if the configuration names no set."""
    settings = experiment.validation
    if not settings.get("set"):
        raise T2TError("the run has no validation set", where="[validation]", next='add set = "..." to it')
    instances = limited(testbed, testbed.load_set(settings["set"]).instances, settings.get("limit", 0))
    form = prompt_format(experiment)
    return Evaluation(testbed, instances, 1, experiment.sampling, form, key(experiment.seed, "validate") >> 1)


def request(experiment: Experiment, testbed: AnyTestbed) -> Request:
    """What every round orders from the generator; never an instance of the run's own evaluation set."""
    options = {k: v for k, v in experiment.generation.items() if k != "samples"}
    own = own_set(experiment, testbed)
    if own:
        options["exclude"] = protected(testbed, own.instances)
    return requested(testbed, experiment.samples, options, "[generation]")


def requested(testbed: AnyTestbed, count: int, options: Mapping[str, Any], where: str) -> Request:
    """The testbed's request with these options; T2TError for one that it does not know, such as another testbed's."""
    parameters = signature(testbed.request).parameters.values()
    known = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY or p.default is not Parameter.empty]
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    fixed = [p.name for p in parameters if p.kind is not Parameter.VAR_KEYWORD and p.name not in known]  # the options that we set
    strange = [name for name in options if name in fixed or not (takes_any or name in known)]
    if strange:
        own = ", ".join(name for name in known if name != "exclude")
        raise T2TError(
            f"the generator of {testbed.name} has no setting {ascii(strange[0])[:60]}",
            where=where,
            cause=f"its settings are {own}" if own else "" if takes_any else "it has no settings but the number of instances",
            next="remove it, or name the testbed that has it",
        )
    return testbed.request(count, **options)


def protected(testbed: AnyTestbed, others: Iterable[InstanceRecord] = ()) -> frozenset[bytes]:
    """The identities of all instances in the testbed's protected sets, and of the given ones."""
    kept = (instance for name in testbed.protected_sets() for instance in testbed.load_set(name).instances)
    return frozenset(testbed.identity(instance) for instance in chain(kept, others))


def own_set(experiment: Experiment, testbed: AnyTestbed) -> InstanceSet | None:
    """The set in the file that `[evaluation] instances` names, if it names one."""
    path = experiment.evaluation.get("instances")
    return file_set(testbed, Path(str(path))) if path else None


def prompt_format(experiment: Experiment) -> str:
    """The configured prompt format, else the one the policy says it was trained with, else "" (the testbed's first)."""
    taught = experiment.make_policy(experiment.start()).describe().get("prompt_format", "")
    return str(experiment.validation.get("prompt_format") or taught)


def limited(testbed: AnyTestbed, instances: Sequence[InstanceRecord], limit: int) -> list[InstanceRecord]:
    """The first `limit` instances of every column of the tables; all of them where limit is 0."""
    if limit < 0:
        raise T2TError(f"a limit must not be negative, not {limit}")
    return list(first(testbed, instances, limit or len(instances)))


def failed(evaluation: Evaluation, path: SafePath) -> list[Scored]:
    """The answers of a validation that arrived and were not valid."""
    return [s for s in scored(evaluation, path) if not s.verdict.valid and s.response.error is None]
