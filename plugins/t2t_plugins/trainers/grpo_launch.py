"""Runs one training job in several processes: `accelerate launch` starts `grpo_process` in each of them.

The job travels as a folder of JSON files; the first process sends its figures back as lines of JSON and its result, or the
mistake that stopped it, as a file. No process outlives the one that launched it, however that one ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.records import TrainingResult
from t2t_core.store import folders
from t2t_core.text import plain_lines

PROCESS = "t2t_plugins.trainers.grpo_process"
JOB = "job.json"
MARK = "t2t-figures "
RESULT, MISTAKE = "result.json", "error.json"


def launch(job: TrainingJob, processes: int) -> TrainingResult:
    """Run the job under `accelerate launch`.

    Raises:
        T2TError: what a process found wrong with the job, word for word; the last lines of the output where one crashed.
    """
    import torch

    folder = job.folder / "launch"
    facts = {
        "testbed": job.testbed.name,
        "checkpoint": str(job.checkpoint) if job.checkpoint else None,
        "settings": dict(job.settings),
        "folder": str(job.folder),
        "seed": job.seed,
        "round_index": job.round_index,
        "resume_from": str(job.resume_from) if job.resume_from else None,
        "instances": [instance.to_dict() for instance in job.instances],
        "processes": processes,
    }
    folders.write_atomic(folder / JOB, json.dumps(facts))
    for name in (RESULT, MISTAKE):  # of an earlier attempt
        folders.remove(folder / name)
    # `--multi_gpu` is what makes `accelerate launch` start several processes; with `--cpu` it would start one and say nothing.
    spread = ["--multi_gpu", "--num_processes", str(processes), "--num_machines", "1", "--main_process_port", "0"]
    plain = ["--mixed_precision", "no", "--dynamo_backend", "no"]
    command = [sys.executable, "-m", "accelerate.commands.launch", *spread, *plain, "-m", PROCESS, str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if not torch.cuda.is_available():
        environment["ACCELERATE_USE_CPU"] = "true"
    tail: list[str] = []
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        try:
            for line in process.stdout or ():
                if line.startswith(MARK) and job.progress:
                    job.progress(json.loads(line[len(MARK) :]))
                tail = [*tail[-19:], line.rstrip()]
        except BaseException:
            process.terminate()
            raise
    if (folder / MISTAKE).exists():
        raise T2TError(**folders.read_json(folder / MISTAKE))
    if process.returncode:
        raise T2TError(
            f"training in {processes} processes failed with status {process.returncode}",
            cause=plain_lines("\n".join(tail))[-2000:],
        )
    result = folders.read_json(folder / RESULT)
    return TrainingResult(**{**result, "checkpoint": Path(result["checkpoint"])})
