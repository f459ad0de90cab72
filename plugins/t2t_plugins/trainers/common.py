"""What the trainers share: the guard against training on test instances, the order of the instances, saved states, and warnings
about updates that teach nothing."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.columns import columns_of
from t2t_core.evaluation.demonstrations import refuse_protected
from t2t_core.hookspecs import TrainingJob
from t2t_core.seeding import Stream
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.text import one_line

UPDATES = "updates"  # in a job's folder: the states from which an interrupted training continues (t2t_core.records.TrainingJob)
CUT_OFF = "every response was cut off at max_tokens: none could earn what a finished answer earns"
NO_SPREAD = "no group's rewards differ: but for the KL term there is nothing to learn from"
NO_GRADIENT = "the gradient is zero: the update changed nothing"


def refuse_overlap(job: TrainingJob) -> None:
    """Raise T2TError if a training instance is in a protected set, up to the testbed's symmetries."""
    refuse_protected(job.testbed, job.instances)


def stratified(job: TrainingJob, seed: int) -> list[int]:
    """An order of the job's instances in which every stretch has (nearly) the same mix of the tables' columns.

    Each column's instances are shuffled and spread evenly over the whole order, at randomly shifted places.
    """
    stream = Stream.of(seed, "order")
    columns: dict[str, list[int]] = {}
    named = columns_of(job.testbed, job.instances)
    for index, instance in enumerate(job.instances):
        columns.setdefault(named[instance.id], []).append(index)
    placed = []
    for name in sorted(columns):
        members = columns[name]
        stream.shuffle(members)
        placed += [((i + stream.uniform()) / len(members), index) for i, index in enumerate(members)]
    return [index for _, index in sorted(placed)]


def bucketed(rows: Sequence[int], prompts: Sequence[str], update: int, buckets: int) -> list[int]:
    """The same updates (stretches of `update` rows); if an update has several buckets, its rows are sorted by prompt length."""
    if buckets < 2:
        return list(rows)
    updates = (rows[start : start + update] for start in range(0, len(rows), update))
    return [row for indices in updates for row in sorted(indices, key=lambda row: len(prompts[row]))]


def adapters(rank: int) -> Any:
    """LoRA adapters on every linear layer; None for rank 0."""
    if not rank:
        return None
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")


def last_saved(folder: Path) -> Path | None:
    """The last complete `checkpoint-N` that transformers' Trainer left in `folder`. The Trainer writes trainer_state.json last
    and not atomically, so a checkpoint is complete only if that file can be read."""
    saved = [(int(m[1]), path) for path in folder.glob("checkpoint-*") if (m := re.fullmatch(r"checkpoint-(\d+)", path.name))]
    complete = [(step, path) for step, path in saved if _is_json(path / "trainer_state.json")]
    return max(complete)[1] if complete else None


def remove_torn(folder: Path) -> None:
    """Remove incompletely written states from `folder`."""
    for path in folder.glob("checkpoint-*"):
        if not _is_json(path / "trainer_state.json"):
            folders.remove_folder(SafePath.of(folder) / path.name)


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Wrap a training that saves its states in `folder`. If the disk is too full for one, raises a T2TError that says so and
    removes the torn state, so that the training can continue from the one before."""
    try:
        yield
    except Exception as error:
        if not _is_full(error):
            raise
        remove_torn(folder)
        raise T2TError(
            "the disk has no room to save the state of the training",
            where=str(folder),
            cause=one_line(error, 300),
            next="free disk space (--dry-run says what a round takes); the same command continues from the previous state",
        ) from error


def _is_full(error: BaseException) -> bool:
    """Whether the disk is full. safetensors and torch raise their own exceptions for it, which quote the system's message."""
    words = [os.strerror(number).lower() for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)]
    return any(word in str(error).lower() for word in words)


def holds(saved: Path, pattern: str) -> bool:
    """Whether a saved state has a file that matches the pattern."""
    return any(saved.glob(pattern))


def _is_json(path: Path) -> bool:
    try:
        folders.read_json(path)
    except T2TError:
        return False
    return True


def format_of(job: TrainingJob, prompt_format: str) -> str:
    """The prompt format to train in. "" takes the one that the checkpoint was taught, else the testbed's first."""
    from t2t_plugins.policies.hf import own_formats

    return prompt_format or own_formats(str(job.checkpoint)).get("prompt_format") or str(job.testbed.prompt_formats[0])


def prompts_of(job: TrainingJob, prompt_format: str) -> Sequence[str]:
    """The prompt of every instance, without its labels, in the format that `format_of` returns."""
    form = format_of(job, prompt_format)
    return [job.testbed.prompt(job.testbed.unlabelled(instance), form) for instance in job.instances]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads while the block runs (0: its default). Afterwards the old number is restored, since
    validation, which comes next, has its own setting."""
    import torch

    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def warnings(shown: Mapping[str, Any]) -> list[str]:
    """Warnings about an update that taught nothing; empty for any other."""
    cases = {
        CUT_OFF: shown.get("truncated", 0) >= 1,
        NO_SPREAD: shown.get("zero_variance", 0) >= 1,
        NO_GRADIENT: shown.get("grad_norm", 1) == 0,
    }
    return [text for text, holds in cases.items() if holds]
