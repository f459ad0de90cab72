"""Runs one training job in several processes: `accelerate launch` starts `process` in each of them.

How the model is spread over the processes stands in Accelerate's own configuration files (the folder `accelerate`); how many
processes and machines there are is given beside them. The job travels as a folder of JSON files; the first process sends its
figures back as lines of JSON and its result, or the mistake that stopped it, as a file. No process outlives the one that
launched it, however that one ends.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.records import TrainingResult
from t2t_core.store import folders
from t2t_core.text import plain_lines
from t2t_plugins.trainers.trl_grpo.job_files import MISTAKE, RESULT, STOP, outcome, write_job
from t2t_plugins.trainers.trl_grpo.settings import Settings

PROCESS = "t2t_plugins.trainers.trl_grpo.process"
CONFIGURATIONS = Path(__file__).resolve().parent / "accelerate"
MARK = "t2t-figures "
LOOK_EVERY = 0.5  # seconds between two looks whether the run was asked to stop
TAIL, SHOWN = 200, 25  # lines of crashed processes that are kept, and that are shown
_OF_LAUNCHER = re.compile(r"[WEI]\d{4} .*torch/distributed/elastic")  # how torch's launcher begins to tell of an end
_END = re.compile(r"^\s*(rank|exitcode|traceback)\s*:")


def launch(job: TrainingJob, settings: Settings) -> TrainingResult:
    """Run the job under `accelerate launch`.

    Raises:
        T2TError: what a process found wrong with the job, word for word; the last lines of the output where one crashed.
        KeyboardInterrupt: the run was asked to stop, and the processes have saved what they had.
    """
    folder = job.folder / "launch"
    folders.make_folder(folder)
    write_job(job, settings, folder)
    for name in (RESULT, MISTAKE, STOP):  # of an earlier attempt
        folders.remove(folder / name)
    command = [*launcher(settings), "-m", PROCESS, str(folder)]
    tail: list[str] = []
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, errors="replace", env=environment(settings), **pipes) as process:
        try:
            with passing_on(job, folder):
                tail = read_output(job, process)
        except BaseException:
            process.terminate()
            raise
    match outcome(folder):  # a process may abort after all work is done: what counts is what it wrote
        case TrainingResult() as result:
            return result
        case T2TError() as mistake:
            raise mistake
    if (folder / STOP).exists():
        raise KeyboardInterrupt
    raise crashed(settings, process.returncode, tail)


@contextmanager
def passing_on(job: TrainingJob, folder: Path) -> Iterator[None]:
    """While the block runs, the processes are told where the run is asked to stop."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_EVERY):
            if job.stop():
                folders.write_json(folder / STOP, {})
                return

    watcher = threading.Thread(target=watch, name="stop of a training", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def read_output(job: TrainingJob, process: Any) -> list[str]:
    """Hand the figures on; the last lines of everything else."""
    tail: list[str] = []
    for line in process.stdout or ():
        if line.startswith(MARK):
            if job.progress:
                job.progress(json.loads(line[len(MARK) :]))
        else:
            tail = [*tail[1 - TAIL :], line.rstrip()]
    return tail


def crashed(settings: Settings, status: int, tail: Sequence[str]) -> T2TError:
    """What to say of processes that ended without a result: their last words, and what to do."""
    words = last_words(tail)
    text = " ".join(words).lower()
    goes_on = "the same command goes on from the last saved update"
    cures = {
        "out of memory": f"lower training.micro_batch or training.vllm_memory, or set training.recompute=true; {goes_on}",
        "no space left": f"free some of the disk; {goes_on}",
        "sigkill": f"see whether the system was out of memory (dmesg), which kills the largest process; {goes_on}",
    }
    return T2TError(
        f"training in {settings.processes} processes failed with status {status}",
        cause=plain_lines("\n".join(words))[-3000:],
        next=next((cure for sign, cure in cures.items() if sign in text), goes_on),
    )


def last_words(tail: Sequence[str]) -> list[str]:
    """What the processes said last, and what the launcher says of their end; not its own traceback, which would push that out."""
    lines = [line for line in tail if line.strip()]
    begins = next((at for at, line in enumerate(lines) if _OF_LAUNCHER.match(line)), len(lines))
    return lines[:begins][-SHOWN:] + [line.strip() for line in lines[begins:] if _END.search(line)]


def launcher(settings: Settings) -> list[str]:
    """`accelerate launch` with the configuration file of the sharding, our numbers, and what [training.accelerate] adds."""
    import torch

    cpu = not torch.cuda.is_available()
    given: dict[str, Any] = {
        "config_file": CONFIGURATIONS / f"{settings.sharding}.yaml",
        "num_processes": settings.processes,
        "mixed_precision": "bf16" if settings.in_bfloat16(cpu) else "no",
        "dynamo_backend": "no",
    }
    if settings.accelerate.get("num_machines", 1) == 1:
        given["main_process_port"] = 0  # any that is free; several machines have to agree on one
    if settings.sharding.startswith("zero"):
        given["deepspeed_config_file"] = CONFIGURATIONS / f"{settings.sharding}.json"
    # With a configuration file for GPUs, `accelerate launch` starts several processes on a CPU too; with `--cpu` it would start
    # one and say nothing.
    return [sys.executable, "-m", "accelerate.commands.launch", *_flags({**given, **settings.accelerate})]


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Options as `accelerate launch` takes them: true is a flag alone, false is none."""
    flags: list[str] = []
    for name, value in options.items():
        if value is True:
            flags.append(f"--{name}")
        elif value is not False:
            flags += [f"--{name}", str(value)]
    return flags


def environment(settings: Settings) -> dict[str, str]:
    """Of the launched processes: this one's, and if there is no GPU, that there is none."""
    import torch

    ours = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    if not torch.cuda.is_available():
        ours |= {"DS_ACCELERATOR": "cpu", "ACCELERATE_TORCH_DEVICE": "cpu"}
        ours |= {} if settings.sharding.startswith("zero") else {"ACCELERATE_USE_CPU": "true"}
    return ours
