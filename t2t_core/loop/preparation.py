"""Make and check everything a run needs before anything begins, so that a run that cannot work fails here, in the dry run
too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t2t_core.errors import NotReady, T2TError
from t2t_core.evaluation.questions import Evaluation
from t2t_core.hookspecs import AnyTestbed, Designer, Trainer, TrainingOrder
from t2t_core.loop import context
from t2t_core.plugins import installed
from t2t_core.records import ConfigurationRecord, InstanceSet, Json, Request
from t2t_core.registry import Spec
from t2t_core.reward import check_weights
from t2t_core.run import sets, tracking
from t2t_core.run.closing_bench import evaluation_sets
from t2t_core.run.experiment import Experiment

_SHOWN = 5  # how many corrections of a prepared configuration a message lists


@dataclass(frozen=True)
class Preparation:
    """The parts of a run.

    `first` is the prepared configuration of round 0, None if it is to be drawn. In a dry run, `designer` and `validation` are
    None if they need something (a key, a server) that is not available.
    """

    experiment: Experiment
    testbed: AnyTestbed
    trainer: Trainer
    order: TrainingOrder
    designer: Designer | None
    context: Sequence[context.NamedModule]
    request: Request
    first: ConfigurationRecord | None
    validation: Evaluation | None

    @property
    def designer_at_hand(self) -> Designer:
        """The designer. Raises NotReady if a dry run went on without it."""
        if self.designer is None:
            raise NotReady(f"the designer {self.experiment.designer} is not at hand")
        return self.designer

    @property
    def validation_at_hand(self) -> Evaluation:
        """What every validation asks; NotReady where a dry run went on without it."""
        if self.validation is None:
            raise NotReady("the validation is not at hand")
        return self.validation


def prepare(experiment: Experiment, dry: bool = False) -> Preparation:
    """Make the parts of a run.

    Args:
        experiment: the run's settings, resolved.
        dry: nothing is going to be run, so something that is not available is no mistake.

    Raises:
        T2TError: an unknown plugin, setting, option or set, or a value that no run could use.
        NotReady: something is not available.
    """
    plugins = installed()
    testbed: AnyTestbed = plugins.testbeds.make(experiment.testbed)
    trainer = plugins.trainers.make(experiment.trainer)
    named = context.modules(experiment.context, plugins.contexts)
    order = TrainingOrder(experiment.start(), testbed, experiment.training, experiment.samples, experiment.rounds)
    check_plays(experiment, trainer)
    check = getattr(trainer, "check", None)
    if check is not None:
        check(order)
    check_weights(testbed, experiment.reward, "[reward]")
    tracking.check(experiment.report_to)
    request = sets.request(experiment, testbed)
    designer = validation = None
    try:
        designer = plugins.designers.make(experiment.designer)
        experiment.check_designer(designer)
        validation = sets.validation(experiment, testbed)
    except NotReady:
        if not dry:
            raise
    check_apart(validation, evaluation_sets(experiment, testbed), experiment, testbed)
    first = prepared_configuration(experiment.configuration, testbed, request) if experiment.configuration else None
    return Preparation(experiment, testbed, trainer, order, designer, named, request, first, validation)


def check_plays(experiment: Experiment, trainer: Trainer) -> None:
    """Raise T2TError if the run's policy cannot play what its trainer trains."""
    players, name = getattr(trainer, "policies", ()), Spec.parse(experiment.policy).name
    if players and name not in players:
        raise T2TError(
            f"the policy {name} cannot play what the trainer {Spec.parse(experiment.trainer).name} trains",
            where=f"trainer {experiment.trainer}",
            cause=f"it trains for {', '.join(players)}",
            next=f'write policy = "{players[0]}:{{checkpoint}}", or name another trainer',
        )


def check_apart(
    validation: Evaluation | None, measuring: Sequence[InstanceSet], experiment: Experiment, testbed: AnyTestbed
) -> None:
    """Raise T2TError if what steers the design would also measure it: a set by its name, or instances in a user's file."""
    steering = experiment.validation.get("set")
    same = any(evaluation_set.name == steering for evaluation_set in measuring)
    own = [instance for evaluation_set in measuring if evaluation_set.kind == "file" for instance in evaluation_set.instances]
    steered = {testbed.identity(instance) for instance in validation.instances} if validation and own else set()
    shared = sum(testbed.identity(instance) in steered for instance in own)
    if same or shared:
        what = f"the set {steering}" if same else f"{shared} of {len(own)} instances of the file"
        raise T2TError(
            "what steers the design cannot measure it",
            where="[validation] set and [evaluation]",
            cause=f"{what} would do both: every design follows from the validation",
            next="name another set in one of them",
        )


def prepared_configuration(data: Mapping[str, Json], testbed: AnyTestbed, request: Request) -> ConfigurationRecord:
    """The configuration of round 0 that a run was given, exactly as it stands; T2TError where the generator could not draw
    from it."""
    where = "configuration of round 0"
    try:
        first: ConfigurationRecord = testbed.read_configuration(data)
    except T2TError as error:
        raise T2TError(error.what, where=f"{where}, {error.where}".rstrip(", "), cause=error.cause, next=error.next) from None
    changes = testbed.project(first.to_dict(), first, request).changes
    if changes:
        listed = "; ".join(f"{c.knob}: {c.proposed} -> {c.used} ({c.reason})" for c in changes[:_SHOWN])
        more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        raise T2TError(
            "the generator cannot draw from the configuration as written",
            where=where,
            cause=f"what it would take: {listed}{more}"[:1000],
            next="write those values, or another number of samples",
        )
    return first
