"""The files that pass a training job to its processes, and its outcome back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_core.records import TrainingResult
from t2t_core.store import folders, jsonlines, paths, schema
from t2t_core.store.schema import Count
from t2t_plugins.trainers.trl_grpo.settings import Settings

JOB, RESULT, MISTAKE = "job.json", "result.json", "error.json"
STOP = "stop"  # a file that asks the processes to save what they have and end


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """`job.json`: a `TrainingJob` without its functions, with the testbed's name and the instances as the testbed writes them."""

    testbed: str
    checkpoint: str | None
    settings: dict[str, Any]
    folder: str
    seed: int
    round_index: Count
    resume_from: str | None
    instances: list[dict[str, Any]]
    reward: dict[str, float]

    def job(self, progress: Callable[[Any], None], stop: Callable[[], bool]) -> TrainingJob:
        """The training job again, in another process, with that process's ways to report progress and to be stopped."""
        testbed = installed().testbeds.make(self.testbed)
        return TrainingJob(
            checkpoint=Path(self.checkpoint) if self.checkpoint else None,
            instances=[testbed.read_instance(instance) for instance in self.instances],
            testbed=testbed,
            settings=self.settings,
            folder=Path(self.folder),
            seed=self.seed,
            round_index=self.round_index,
            resume_from=Path(self.resume_from) if self.resume_from else None,
            progress=progress,
            reward=self.reward,
            stop=stop,
        )


@dataclass(frozen=True, kw_only=True)
class ResultRecord:
    """`result.json`: the training's result (`t2t_core.records.TrainingResult`)."""

    checkpoint: str
    metrics: dict[str, Any] = field(default_factory=dict)
    samples: Count = 0
    updates: Count = 0
    tokens: Count = 0
    keep_updates: bool = False


@dataclass(frozen=True, kw_only=True)
class MistakeRecord:
    """`error.json`: what a process found wrong with the job, as `T2TError` says it."""

    what: str
    where: str = ""
    cause: str = ""
    next: str = ""


def write_job(job: TrainingJob, settings: Settings, folder: Path) -> None:
    """Write the job to a file that every process reads."""
    record = JobRecord(
        testbed=job.testbed.name,
        checkpoint=str(job.checkpoint) if job.checkpoint else None,
        settings=asdict(settings),
        folder=str(job.folder),
        seed=job.seed,
        round_index=job.round_index,
        resume_from=str(job.resume_from) if job.resume_from else None,
        instances=[instance.to_dict() for instance in job.instances],
        reward=dict(job.reward),
    )
    folders.write_json(folder / JOB, record)


def read_job(folder: Path) -> JobRecord:
    """Read the job in a folder. A T2TError names the field that is wrong."""
    path = folder / JOB
    return schema.check(jsonlines.loads(folders.read_bytes(path, paths.MAX_STREAM)), JobRecord, str(path))


def write_result(folder: Path, result: TrainingResult) -> None:
    """Write what the training ended with, for the process that started it."""
    folders.write_json(folder / RESULT, {**asdict(result), "checkpoint": str(result.checkpoint)})


def write_mistake(folder: Path, error: T2TError) -> None:
    """Write the user's mistake that the training found, for the process that started it."""
    mistake = MistakeRecord(what=error.what, where=error.where, cause=error.cause, next=error.next)
    folders.write_json(folder / MISTAKE, mistake)


def outcome(folder: Path) -> TrainingResult | T2TError | None:
    """What the processes left: a result, the mistake that they found, or None if there is nothing yet."""
    if (folder / MISTAKE).exists():
        mistake = folders.read_record(folder / MISTAKE, MistakeRecord)
        return T2TError(mistake.what, where=mistake.where, cause=mistake.cause, next=mistake.next)
    if not (folder / RESULT).exists():
        return None
    result = folders.read_record(folder / RESULT, ResultRecord)
    return TrainingResult(**{**schema.plain(result), "checkpoint": Path(result.checkpoint)})
