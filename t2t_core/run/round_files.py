"""The files of a run folder and of its rounds: which there are, and how each is read back with suspicion::

    run.json  resolved.json  log.jsonl  summary.json  summary.md  bench/  control/
    round_0/configuration.json  generation.json  instances.jsonl  train/metrics.jsonl  checkpoint/  training.json
            validation/log.jsonl  validation.jsonl  breakdown.json  context.md  proposal.json  projection.json

A stage is finished when its last file is there, and every file is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from t2t_core.cells import CELLS, numbers
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Round
from t2t_core.run.experiment import Experiment
from t2t_core.store import folders, jsonlines
from t2t_core.store.instance_files import read_instances
from t2t_core.store.paths import SafePath

KIND = "closed loop"
Types = Mapping[str, tuple[type, ...]]
CONTEXT, PROPOSAL, PROJECTION = DESIGN_FILES = ("context.md", "proposal.json", "projection.json")


@dataclass(frozen=True)
class RoundFiles:
    """Where the files of one round are."""

    run: SafePath
    index: int

    @property
    def folder(self) -> SafePath:
        return self.run / f"round_{self.index}"

    @property
    def configuration(self) -> SafePath:
        """What the generator draws from."""
        return self.folder / "configuration.json"

    @property
    def generation(self) -> SafePath:
        """How many instances were drawn, how, and what they share with the sets kept for measuring."""
        return self.folder / "generation.json"

    @property
    def instances(self) -> SafePath:
        return self.folder / "instances.jsonl"

    @property
    def metrics(self) -> SafePath:
        """The figures of every update, as the trainer told them."""
        return self.folder / "train" / "metrics.jsonl"

    @property
    def checkpoint(self) -> SafePath:
        """The trainer's own folder."""
        return self.folder / "checkpoint"

    @property
    def training(self) -> SafePath:
        """What training consumed, and where its checkpoint is."""
        return self.folder / "training.json"

    @property
    def validation_log(self) -> SafePath:
        """The folder of a validation under way."""
        return self.folder / "validation"

    @property
    def validation(self) -> SafePath:
        """The answers of the finished validation."""
        return self.folder / "validation.jsonl"

    @property
    def breakdown(self) -> SafePath:
        """How the validation failed; with it the round is finished, but for its design."""
        return self.folder / "breakdown.json"

    @property
    def context(self) -> SafePath:
        """What the designer saw."""
        return self.folder / CONTEXT

    @property
    def proposal(self) -> SafePath:
        return self.folder / PROPOSAL

    @property
    def projection(self) -> SafePath:
        return self.folder / PROJECTION

    def write_instances(self, instances: Sequence[Any]) -> None:
        with folders.replacing(self.instances) as file:
            for instance in instances:
                file.write(jsonlines.dumps(instance.to_dict()).encode() + b"\n")

    def read_instances(self, testbed: AnyTestbed) -> list[Any]:
        return read_instances(testbed, self.instances)

    def trained_checkpoint(self) -> Path | None:
        """The checkpoint after this round's training; None where the policy has none. T2TError for a path that leaves the run."""
        text = self.read_training()["checkpoint"]
        if text is None:
            return None
        if Path(text).is_absolute():
            return Path(text)
        if ".." in Path(text).parts or not text:
            raise T2TError("the checkpoint lies outside its run", where=str(self.training), cause="the file was edited by hand")
        inside = self.run / text
        return inside.checked_path() if inside.exists() else Path(text)

    # --- what a stranger may have written: checked where it is read

    def read_configuration(self) -> dict[str, dict[str, Any]]:
        return checked_configuration(folders.read_json(self.configuration), self.configuration)

    def read_training(self) -> dict[str, Any]:
        wanted = {"checkpoint": (str, NoneType), "samples": (int,), "updates": (int,), "tokens": (int,)}
        return checked(folders.read_json(self.training), wanted, self.training)

    def read_breakdown(self) -> dict[str, Any]:
        breakdown = checked(folders.read_json(self.breakdown), {"groups": (dict,)}, self.breakdown)
        for counts in breakdown["groups"].values():
            checked(counts, dict.fromkeys(("answers", "valid", "optimal"), (int,)), self.breakdown)
        return breakdown

    def read_proposal(self) -> dict[str, Any]:
        wanted: Types = {"designer": (str,), "outcome": (str,), "parsed": (dict, NoneType), "summary": (str, NoneType)}
        wanted = {**wanted, "notes": (list,), "raw": (str,), "cost": (dict,)}
        record = checked(folders.read_json(self.proposal), wanted, self.proposal)
        counted: Types = dict.fromkeys(("calls", "prompt_tokens", "completion_tokens"), (int,))
        checked(record["cost"], {**counted, "usd": (int, float)}, self.proposal)
        return record

    def read_projection(self) -> dict[str, Any]:
        wanted = {"configuration": (dict,), "changes": (list,), "note": (str, NoneType)}
        record = checked(folders.read_json(self.projection), wanted, self.projection)
        checked_configuration(record["configuration"], self.projection)
        for change in record["changes"]:
            checked(change, {"knob": (str,), "reason": (str,)}, self.projection, ("proposed", "used"))
        return record

    def instances_drawn(self) -> int:
        count: int = checked(folders.read_json(self.generation), {"instances": (int,)}, self.generation)["instances"]
        return count

    def shared(self) -> dict[str, dict[str, int]]:
        """By set, what the round's instances share with it; nothing where the testbed, or an earlier version, did not count."""
        found = checked({"shared": {}, **folders.read_json(self.generation)}, {"shared": (dict,)}, self.generation)["shared"]
        for counts in found.values():
            checked(counts, dict.fromkeys(counts if isinstance(counts, dict) else ("counts",), (int,)), self.generation)
        return dict(found)

    def relative(self, checkpoint: Path | None) -> str | None:
        """A checkpoint as it is recorded: relative to the run where it lies inside, so that the folder can be moved."""
        if checkpoint is None:
            return None
        try:
            return str(checkpoint.resolve().relative_to(self.run.path.resolve()))
        except ValueError:
            return str(checkpoint)


def open_run(folder: Path | SafePath) -> tuple[dict[str, Any], Experiment]:
    """The manifest and the experiment of a run folder; T2TError where it is none, or one of another version."""
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
    """A finished round as facts; its summary is what its designer said when it chose this round's configuration."""
    before = RoundFiles(files.run, files.index - 1)
    summary = before.read_proposal()["summary"] if files.index and before.proposal.exists() else None
    training = files.read_training().get("metrics", {})
    return Round(files.index, files.read_configuration(), files.read_breakdown(), summary, training)


def checked(data: Any, wanted: Types, path: SafePath, present: Sequence[str] = ()) -> dict[str, Any]:
    """`data` where it is an object whose fields have those types; T2TError otherwise. Numbers must not be negative."""
    for name in (*wanted, *present):
        fields = data if isinstance(data, dict) else {}
        value, types = fields.get(name), wanted.get(name, (object,))
        boolean = isinstance(value, bool) and bool not in types and object not in types
        negative = isinstance(value, (int, float)) and value < 0
        if name not in fields or not isinstance(value, types) or boolean or (negative and name in wanted):
            raise T2TError(f"{name!r} is missing or not what was written", where=str(path), cause="the file was edited by hand")
    found: dict[str, Any] = data
    return found


def checked_configuration(data: Any, path: SafePath) -> dict[str, dict[str, Any]]:
    """A configuration's JSON as every reader here expects it: group -> knob -> number, the same knobs in every group, and
    perhaps joint cells, each an object of numbers (`t2t_core.cells.numbers` leaves them out)."""
    groups = list(data.values()) if isinstance(data, dict) else []
    objects = all(isinstance(group, dict) for group in groups)
    knobs = [numbers(group) for group in groups] if objects else []
    cells = [cell for group in groups for cell in _listed(group.get(CELLS, []))] if objects else []
    if not knobs or not knobs[0] or any(list(k) != list(knobs[0]) for k in knobs) or not all(map(_numeric, [*knobs, *cells])):
        raise T2TError("this is no configuration", where=str(path), cause="the file was edited by hand")
    found: dict[str, dict[str, Any]] = data
    return found


def _listed(cells: Any) -> list[Any]:
    return cells if isinstance(cells, list) else [None]


def _numeric(values: Any) -> bool:
    return isinstance(values, dict) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values.values())
