"""What the trainers share: settings, the guard against training on test instances, the order of the instances."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from t2t_core.errors import T2TError
from t2t_core.evaluation.demonstrations import refuse_protected
from t2t_core.hookspecs import TrainingJob
from t2t_core.seeding import Stream
from t2t_core.store import folders

T = TypeVar("T")


def check_settings(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """A dataclass of settings from a configuration's values or a spec's texts.

    Raises:
        T2TError: an unknown setting (with the nearest name), a value of another type, a choice that does not exist.
    """
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    values = {}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            cause = f"did you mean {near[0]}?" if near else "known: " + ", ".join(known)
            raise T2TError(f"there is no setting {ascii(name)[:60]}", where=where, cause=cause)
        values[name] = _as(known[name].default, name, value, where)
    for name, choices in getattr(kind, "CHOICES", {}).items():
        if values.get(name, choices[0]) not in choices:
            raise T2TError(f"{name} must be one of {', '.join(choices)}, not {ascii(values[name])[:60]}", where=where)
    return kind(**values)


def _as(default: Any, name: str, value: Any, where: str) -> Any:
    """`value` in the type of `default`, text converted; numbers must not be negative."""
    wanted = type(default)
    found: Any
    try:
        if wanted is bool:
            found = {"true": True, "false": False}[str(value).lower()]
        elif wanted is int:
            found = value if isinstance(value, int) and not isinstance(value, bool) else int(str(value))
        elif wanted is float:
            found = float(value) if not isinstance(value, bool) else float("nan")
        else:
            found = str(value)
    except (KeyError, ValueError):
        raise T2TError(f"{name} must be {wanted.__name__}, not {ascii(value)[:60]}", where=where) from None
    if wanted in (int, float) and not 0 <= found < float("inf"):
        raise T2TError(f"{name} must not be negative, not {ascii(value)[:60]}", where=where)
    return found


def refuse_overlap(job: TrainingJob) -> None:
    """T2TError where a training instance is, up to the testbed's symmetries, one of a protected set."""
    refuse_protected(job.testbed, job.instances)


def stratified(job: TrainingJob, seed: int) -> list[int]:
    """An order of the job's instances in which every stretch holds the columns of the tables in (nearly) the same shares.

    Each column's instances are shuffled and spread evenly over the whole; ties and places are random.
    """
    stream = Stream.of(seed, "order")
    columns: dict[str, list[int]] = {}
    for index, instance in enumerate(job.instances):
        columns.setdefault(job.testbed.place(instance).column, []).append(index)
    placed = []
    for name in sorted(columns):
        members = columns[name]
        stream.shuffle(members)
        placed += [((i + stream.uniform()) / len(members), index) for i, index in enumerate(members)]
    return [index for _, index in sorted(placed)]


def bucketed(rows: Sequence[int], prompts: Sequence[str], update: int, buckets: int) -> list[int]:
    """The same updates (stretches of `update` rows), the prompts of each in the order of their length where it has parts."""
    if buckets < 2:
        return list(rows)
    updates = (rows[start : start + update] for start in range(0, len(rows), update))
    return [row for one in updates for row in sorted(one, key=lambda row: len(prompts[row]))]


def adapters(rank: int) -> Any:
    """LoRA adapters on every linear layer; None for rank 0."""
    if not rank:
        return None
    from peft import LoraConfig

    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")


def last_saved(folder: Path) -> Path | None:
    """The last complete `checkpoint-N` that transformers' Trainer left in `folder`: it writes trainer_state.json last, and not at
    one stroke."""
    found = [(int(m[1]), path) for path in folder.glob("checkpoint-*") if (m := re.fullmatch(r"checkpoint-(\d+)", path.name))]
    complete = [(step, path) for step, path in found if _is_json(path / "trainer_state.json")]
    return max(complete)[1] if complete else None


def _is_json(path: Path) -> bool:
    try:
        folders.read_json(path)
    except T2TError:
        return False
    return True


def start_of(job: TrainingJob, where: str) -> Path:
    """The checkpoint that training starts from; T2TError where there is none."""
    if job.checkpoint is None:
        raise T2TError(
            f"{where} has nothing to train", cause="the run's policy has no checkpoint", next="set checkpoint = FOLDER_OR_ID"
        )
    return job.checkpoint


def prompts_of(job: TrainingJob, prompt_format: str) -> Sequence[str]:
    """The prompt of every instance, unlabelled; "" takes the format the checkpoint was taught, else the testbed's first."""
    from t2t_plugins.policies.hf import own_formats

    chosen = prompt_format or own_formats(str(job.checkpoint)).get("prompt_format") or job.testbed.prompt_formats[0]
    return [job.testbed.prompt(job.testbed.unlabelled(instance), chosen) for instance in job.instances]
