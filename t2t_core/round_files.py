"""The files of a run folder and of its rounds: which there are, and how each is read back with suspicion.

    run.json  log.jsonl  summary.json  summary.md  bench/  control/
    round_0/  configuration.json  generation.json  instances.jsonl  train/metrics.jsonl  checkpoint/  training.json
              validation/log.jsonl  validation.jsonl  breakdown.json  context.md  proposal.json  projection.json

A stage is finished when its last file is there, and every file is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core import jsonlines, runs
from t2t_core.errors import T2TError
from t2t_core.experiment import Experiment
from t2t_core.records import Round

KIND = "closed loop"
DESIGN_FILES = ("context.md", "proposal.json", "projection.json")


@dataclass(frozen=True)
class RoundFiles:
    """Where the files of one round are."""

    run: Path
    index: int

    @property
    def folder(self) -> Path:
        return self.run / f"round_{self.index}"

    def __getattr__(self, name: str) -> Path:
        try:
            return self.folder / _NAMES[name]
        except KeyError:
            raise AttributeError(name) from None

    def write_instances(self, instances: Sequence[Any]) -> None:
        with runs.replacing(self.instances) as file:
            for instance in instances:
                file.write(jsonlines.dumps(instance.to_dict()).encode() + b"\n")

    def read_instances(self, testbed: Any) -> list[Any]:
        return [testbed.read_instance(line.value) for line in jsonlines.read(self.instances)]

    def trained_checkpoint(self) -> Path | None:
        """The checkpoint after this round's training; None where the policy has none."""
        text = runs.read_json(self.training).get("checkpoint")
        if text is None:
            return None
        if not isinstance(text, str):
            raise T2TError("the checkpoint is no path", where=str(self.training), cause="the file was edited by hand")
        inside = self.run / text
        return inside if not Path(text).is_absolute() and inside.exists() else Path(text)

    def relative(self, checkpoint: Path | None) -> str | None:
        """A checkpoint as it is recorded: relative to the run where it lies inside, so that the folder can be moved."""
        if checkpoint is None:
            return None
        try:
            return str(checkpoint.resolve().relative_to(self.run.resolve()))
        except ValueError:
            return str(checkpoint)


_NAMES = {
    "configuration": "configuration.json",
    "generation": "generation.json",
    "instances": "instances.jsonl",
    "train": "train",
    "checkpoint": "checkpoint",
    "training": "training.json",
    "validation_log": "validation",
    "validation": "validation.jsonl",
    "breakdown": "breakdown.json",
    "context": DESIGN_FILES[0],
    "proposal": DESIGN_FILES[1],
    "projection": DESIGN_FILES[2],
}


def open_run(folder: Path) -> tuple[dict[str, Any], Experiment]:
    """The manifest and the experiment of a run folder; T2TError where it is none, or one of another version."""
    manifest = runs.read_manifest(folder, KIND)
    settings = {key: value for key, value in manifest["settings"].items() if key != "fork"}
    return manifest, Experiment.from_dict(settings, str(folder / runs.MANIFEST))


def finished_rounds(folder: Path) -> Iterator[RoundFiles]:
    """The rounds whose validation is finished, in order."""
    index = 0
    while (files := RoundFiles(folder, index)).breakdown.exists():
        yield files
        index += 1


def round_facts(files: RoundFiles) -> Round:
    """A finished round as facts; its summary is what its designer said when it chose this round's configuration."""
    before = RoundFiles(files.run, files.index - 1).proposal
    summary = runs.read_json(before).get("summary") if files.index and before.exists() else None
    breakdown = runs.read_json(files.breakdown)
    _check_breakdown(breakdown, files.breakdown)
    return Round(files.index, runs.read_json(files.configuration), breakdown, summary if isinstance(summary, str) else None)


def _check_breakdown(breakdown: Mapping[str, Any], path: Path) -> None:
    groups = breakdown.get("groups")
    if not isinstance(groups, dict) or not all(isinstance(c, dict) and _counted(c) for c in groups.values()):
        raise T2TError("the breakdown lacks counts per group", where=str(path), cause="the file was edited by hand")


def _counted(counts: Mapping[str, Any]) -> bool:
    return all(type(counts.get(name)) is int and counts[name] >= 0 for name in ("answers", "valid", "optimal"))
