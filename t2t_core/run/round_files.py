"""The files of a run folder and of its rounds: what they are, and how each is read back without trusting it::

    run.json  resolved.json  log.jsonl  summary.json  summary.md  bench/  control/
    round_0/configuration.json  generation.json  instances.jsonl  train/metrics.jsonl  checkpoint/  training.json
            validation/log.jsonl  validation.jsonl  breakdown.json  context.md  [trials.json]  proposal.json  projection.json

A stage is finished when its last file exists, and every file is written whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core.cells import numbers
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Round
from t2t_core.run.experiment import Experiment
from t2t_core.run.schemas import Breakdown, Configuration, Design, Generation, Projected, Training, TriedAll
from t2t_core.store import folders, jsonlines, schema
from t2t_core.store.instance_files import read_instances
from t2t_core.store.paths import SafePath

KIND = "closed loop"
PROPOSED = ("proposed", "unchanged")  # the outcomes of a design in which a configuration was proposed
CONTEXT, TRIALS, PROPOSAL, PROJECTION = DESIGN_FILES = ("context.md", "trials.json", "proposal.json", "projection.json")


@dataclass(frozen=True)
class RoundFiles:
    """Where the files of one round are."""

    run: SafePath
    index: int

    @property
    def folder(self) -> SafePath:
        """The round's folder, RUN/round_INDEX."""
        return self.run / f"round_{self.index}"

    @property
    def configuration(self) -> SafePath:
        """The configuration that the generator draws from."""
        return self.folder / "configuration.json"

    @property
    def generation(self) -> SafePath:
        """How many instances were drawn, how, and what they share with the sets kept for measuring."""
        return self.folder / "generation.json"

    @property
    def instances(self) -> SafePath:
        """The instances that the round trains on, as JSON Lines."""
        return self.folder / "instances.jsonl"

    @property
    def metrics(self) -> SafePath:
        """The figures of every update, as the trainer reported them."""
        return self.folder / "train" / "metrics.jsonl"

    @property
    def checkpoint(self) -> SafePath:
        """The trainer's own folder."""
        return self.folder / "checkpoint"

    @property
    def updates(self) -> SafePath:
        """What an interrupted training continues from."""
        return self.checkpoint / "updates"

    @property
    def training(self) -> SafePath:
        """What training consumed, and where its checkpoint is."""
        return self.folder / "training.json"

    @property
    def validation_log(self) -> SafePath:
        """The folder of a validation in progress."""
        return self.folder / "validation"

    @property
    def validation(self) -> SafePath:
        """The answers of the finished validation."""
        return self.folder / "validation.jsonl"

    @property
    def breakdown(self) -> SafePath:
        """How the validation failed. Once this file exists, the round is finished except for its design."""
        return self.folder / "breakdown.json"

    @property
    def context(self) -> SafePath:
        """What the designer saw."""
        return self.folder / CONTEXT

    @property
    def trials(self) -> SafePath:
        """The trial runs that the designer made, where it made any."""
        return self.folder / TRIALS

    @property
    def proposal(self) -> SafePath:
        """The design made after the round."""
        return self.folder / PROPOSAL

    @property
    def projection(self) -> SafePath:
        """What Project made of that design: the next round's configuration."""
        return self.folder / PROJECTION

    def write_instances(self, instances: Sequence[Any]) -> None:
        """Write the round's instances, atomically."""
        with folders.replacing(self.instances) as file:
            for instance in instances:
                file.write(jsonlines.dumps(instance.to_dict()).encode() + b"\n")

    def read_instances(self, testbed: AnyTestbed) -> list[Any]:
        """The round's instances. Raises T2TError, with the line, for what the testbed does not read."""
        return read_instances(testbed, self.instances)

    def trained_checkpoint(self) -> Path | None:
        """The checkpoint after this round's training; None if the policy has none. T2TError for a path that leaves the run."""
        text = self.read_training().checkpoint
        if text is None:
            return None
        if Path(text).is_absolute():
            return Path(text)
        if ".." in Path(text).parts or not text:
            raise T2TError("the checkpoint lies outside its run", where=str(self.training), cause="the file was edited by hand")
        inside = self.run / text
        return inside.checked_path() if inside.exists() else Path(text)

    # --- what a stranger may have written: checked where it is read

    def read_configuration(self) -> Configuration:
        """The configuration that the round's instances were drawn from. Raises T2TError for a file that holds none."""
        return _checked_configuration(folders.read_json(self.configuration), self.configuration)

    def read_generation(self) -> Generation:
        """The facts of the drawing. Raises T2TError for a file of another shape."""
        return folders.read_record(self.generation, Generation)

    def read_training(self) -> Training:
        """The record of the training. Raises T2TError for a file of another shape."""
        return folders.read_record(self.training, Training)

    def read_breakdown(self) -> dict[str, Any]:
        """The whole breakdown: the testbed's own terms and those that every testbed has."""
        breakdown = folders.read_json(self.breakdown)
        schema.check(breakdown, Breakdown, str(self.breakdown))
        breakdown.pop("reader", None)  # says who counted, not what
        return breakdown

    def read_proposal(self) -> Design:
        """The design made after the round. Raises T2TError for a file of another shape."""
        return folders.read_record(self.proposal, Design)

    def design_tokens(self) -> int:
        """The cost of the design after this round: the tokens of its calls and of its trial runs."""
        if not self.proposal.exists():
            return 0
        cost = self.read_proposal().cost
        trials = folders.read_record(self.trials, TriedAll).trials if self.trials.exists() else []
        return cost.prompt_tokens + cost.completion_tokens + sum(trial.tokens for trial in trials)

    def read_projection(self) -> Projected:
        """The next configuration and its corrections. Raises T2TError for a file of another shape."""
        projected = folders.read_record(self.projection, Projected)
        _checked_configuration(projected.configuration, self.projection)
        return projected

    def relative(self, checkpoint: Path | None) -> str | None:
        """A checkpoint as recorded: relative to the run if it lies inside, so that the folder can be moved."""
        if checkpoint is None:
            return None
        try:
            return str(checkpoint.resolve().relative_to(self.run.path.resolve()))
        except ValueError:
            return str(checkpoint)


def open_run(folder: Path | SafePath) -> tuple[dict[str, Any], Experiment]:
    """The manifest and the experiment of a run folder. Raises T2TError if it is none, or one of another version."""
    manifest = folders.read_manifest(folder, KIND)
    settings = {key: value for key, value in manifest["settings"].items() if key != "fork"}
    return manifest, Experiment.from_dict(settings, str(SafePath.of(folder) / folders.MANIFEST))


def finished_rounds(folder: Path | SafePath) -> Iterator[RoundFiles]:
    """The rounds whose validation is finished, in order."""
    run, index = SafePath.of(folder), 0
    while (files := RoundFiles(run, index)).breakdown.exists():
        yield files
        index += 1


def round_facts(files: RoundFiles) -> Round:
    """A finished round as facts. Its summary is what its designer said when it chose this round's configuration."""
    before = RoundFiles(files.run, files.index - 1)
    summary = before.read_proposal().summary if files.index and before.proposal.exists() else None
    return Round(files.index, files.read_configuration(), files.read_breakdown(), summary, files.read_training().metrics)


def _checked_configuration(data: Any, path: SafePath) -> Configuration:
    """Check a configuration's JSON as every reader here expects it: at least one group, and the same knobs, at least one, in
    each."""
    configuration = schema.check(data, Configuration, str(path))
    knobs = [numbers(group) for group in configuration.values()]
    listed = any(isinstance(value, list) for group in knobs for value in group.values())
    if not knobs or not knobs[0] or listed or any(list(group) != list(knobs[0]) for group in knobs):
        raise T2TError(
            "this is not a configuration: its groups have different knobs, or none", where=str(path), cause=schema.EDITED
        )
    return configuration
