"""The layout of a bench folder, and how to read one that may come from somebody else.

run.json                     testbed, sets, limit, samples, seed, prompt format; versions and commit. A folder grows: limit and
                             samples are the most that was ever asked for, and a row that was asked less is partial
instances/<set>.jsonl        the instances asked, with labels, so that anybody can rescore without the suite's own sets
rows/<row>/row.json          one policy: its spec and its label, its sampling, what it says of itself, the hash of the prompts;
                             under `sessions` how it was asked at each start (address, time-outs, prices)
rows/<row>/log.jsonl         every answer as it came; answers.jsonl: the same in instance order, with verdicts
leaderboard.json .md .html   pure functions of the above; verification.json: what `t2t verify` last said
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.columns import first
from t2t_core.evaluation.questions import Evaluation
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import LATER_SAMPLING, InstanceSet, Sampling
from t2t_core.store import folders, jsonlines, schema
from t2t_core.store.instance_files import read_instances
from t2t_core.store.paths import SafePath
from t2t_leaderboard.schemas import BenchSettings, RowRecord, SetRecord

KIND = "bench"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")


@dataclass(frozen=True)
class SelectedSet:
    """The instances asked from one set, and where they come from. `base` is the name by which the testbed knows the set; for
    a twin, it is the name of the set that it is a twin of."""

    base: str
    source: InstanceSet
    instances: Sequence[Any]
    twin_seed: int | None = None

    def lines(self) -> bytes:
        """The selected instances as JSON Lines, the bytes that are hashed and stored."""
        return lines(self.instances)

    def record(self) -> SetRecord:
        """What the bench's manifest says of the set: its source, hashes and counts."""
        return SetRecord(
            name=self.source.name,
            base=self.base,
            kind=self.source.kind,
            sha256=self.source.sha256,
            file_sha256=hashlib.sha256(self.lines()).hexdigest(),
            instances=len(self.instances),
            of=len(self.source.instances),
            twin_seed=self.twin_seed,
            notes=list(self.source.notes),
        )


def lines(instances: Sequence[Any]) -> bytes:
    """Instances as lines of a file."""
    return b"".join(jsonlines.dumps(i.to_dict()).encode() + b"\n" for i in instances)


def choose(
    testbed: AnyTestbed, source: InstanceSet, limit: int | None, base: str = "", twin_seed: int | None = None
) -> SelectedSet:
    """The first `limit` instances of each column; all of them without a limit."""
    return SelectedSet(base or source.name, source, first(testbed, source.instances, limit), twin_seed)


@dataclass(frozen=True)
class Row:
    """One policy of a bench folder. `record` is its row.json, and `written` is the same as plain JSON, to be written again.
    `limit` is the limit up to which the row was asked; `prompts_sha256` identifies those prompts."""

    folder: SafePath
    record: RowRecord
    written: Mapping[str, Any]
    limit: int | None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def sampling(self) -> Sampling:
        """How its policy was sampled. Raises T2TError if the manifest does not say it."""
        return recorded_sampling(self.written["sampling"], self.folder / "row.json")

    @property
    def policy(self) -> str:
        """The policy as it was named on the command line."""
        return self.record.policy

    @property
    def label(self) -> str:
        """The user's name for the row, "" if they gave none."""
        return self.record.label

    @property
    def reader(self) -> int:
        """The version of the reader that gave the verdicts in the export; 1 if an early version of the suite wrote it."""
        return self.record.reader

    @property
    def finished(self) -> bool:
        """Whether the export of its answers is written."""
        return (self.folder / ANSWERS).exists()


@dataclass(frozen=True)
class Bench:
    """A bench folder, read, with its shape checked. `written` holds the settings as in run.json, which identify the question;
    `stored` holds the instances of each set."""

    folder: SafePath
    settings: BenchSettings
    written: Mapping[str, Any]
    testbed: AnyTestbed
    stored: Sequence[Sequence[Any]]
    _firsts: dict[int | None, Sequence[Any]] = field(default_factory=dict, repr=False, compare=False)
    _prompts: dict[int | None, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def sets(self) -> Sequence[SetRecord]:
        """The sets that were asked, in order."""
        return self.settings.sets

    def first(self, limit: int | None) -> Sequence[Any]:
        """The first `limit` instances of each column, or all of them without a limit."""
        if limit not in self._firsts:
            self._firsts[limit] = [i for instances in self.stored for i in first(self.testbed, instances, limit)]
        return self._firsts[limit]

    def prompts_sha256(self, limit: int | None = None) -> str:
        """Identifies every question about the first `limit` instances of each column, which are the same for every row."""
        if limit not in self._prompts:
            self._prompts[limit] = self.evaluation(Sampling(), limit).prompts_sha256()
        return self._prompts[limit]

    def evaluation(self, sampling: Sampling, limit: int | None = None) -> Evaluation:
        """Every question of the folder, or those about the first `limit` instances of each column."""
        return Evaluation(
            self.testbed,
            self.first(limit),
            self.settings.samples,
            sampling,
            self.settings.prompt_format,
            self.settings.seed,
            self.settings.system_prompt,
        )

    def rows(self) -> list[Row]:
        """Every row of the folder, sorted by name."""
        root = self.folder / "rows"
        rows = []
        for folder in root.entries():
            if folder.name.startswith(".") and not folder.is_dir():
                continue  # a desktop's own file, such as .DS_Store
            if not _NAME.fullmatch(folder.name) or not folder.is_dir():
                raise T2TError(f"{ascii(folder.name)[:80]} is no row", where=str(root), next="remove it")
            if not folder.entries():
                continue  # a process was killed before it wrote anything
            written = folders.read_json(folder / "row.json")
            record = schema.check(written, RowRecord, str(folder / "row.json"))
            limit = record.limit if "limit" in written else self.settings.limit
            rows.append(Row(folder, record, written, limit))
        return rows


def read_bench(path: Path | SafePath) -> Bench:
    """Read a bench folder; T2TError says what is wrong with which file."""
    folder = SafePath.of(path)
    if not folder.is_dir():
        raise T2TError("there is no such folder", where=str(folder))
    written = folders.read_manifest(folder, KIND)["settings"]
    settings = schema.check(written, BenchSettings, str(folder / folders.MANIFEST))
    testbed: AnyTestbed = installed().testbeds.make(settings.testbed)
    # If a process was killed while the folder grew, the file may hold more instances than the settings mention.
    files = (read_instances(testbed, folder / "instances" / f"{record.name}.jsonl") for record in settings.sets)
    stored = [first(testbed, instances, settings.limit) for instances in files]
    return Bench(folder, settings, written, testbed, stored)


def recorded_sampling(record: Mapping[str, Any], where: SafePath) -> Sampling:
    """The inverse of `Sampling.recorded`."""
    if set(record) | LATER_SAMPLING != {f.name for f in fields(Sampling)}:
        raise T2TError("the sampling is not one that this version knows", where=str(where))
    return schema.check(record, Sampling, str(where))


def row_name(policy: str, sampling: Sampling, label: str = "") -> str:
    """The folder name of a row: readable, and unique to its policy, sampling and label."""
    told_by = [policy, sampling.recorded(), *([label] if label else [])]
    digest = hashlib.sha256(jsonlines.canonical(told_by)).hexdigest()
    slug = re.sub(r"[^A-Za-z0-9_.+-]+", "-", label or policy).strip("-_.+")[:40] or "policy"
    return f"{slug}-{digest[:8]}"
