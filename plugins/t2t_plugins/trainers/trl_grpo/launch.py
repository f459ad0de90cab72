"""Runs one training job in several processes: `accelerate launch` starts `process` in each of them.

Accelerate's own configuration files (the folder `accelerate`) say how the model is spread over the processes; the numbers of
processes and machines are passed as flags. The job is passed in a folder of JSON files. The first process sends its figures back
as lines of JSON, and its result, or the mistake that stopped it, as a file. No process outlives the one that launched it, however
that one ends.
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
LOOK_EVERY = 0.5  # seconds between two checks whether the run was asked to stop
TAIL, SHOWN = 200, 25  # lines of the processes' output that are kept, and that are shown after a crash
_OF_LAUNCHER = re.compile(r"[WEI]\d{4} .*torch/distributed/elastic")  # how the launcher's own report of a crash begins
_END = re.compile(r"^\s*(rank|exitcode|traceback)\s*:")


def launch(job: TrainingJob, settings: Settings) -> TrainingResult:
    """Run the job under `accelerate launch`.

    Raises:
        T2TError: a process found something wrong with the job (its error, word for word), or crashed (its last output lines).
        KeyboardInterrupt: the run was asked to stop, and the processes have saved what they had.
    """
    folder = job.folder / "launch"
    folders.make_folder(folder)
    write_job(job, settings, folder)
    for name in (RESULT, MISTAKE, STOP):  # left by an earlier attempt
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
    match outcome(folder):  # a process may abort after all work is done, so what counts is what it wrote
        case TrainingResult() as result:
            return result
        case T2TError() as mistake:
            raise mistake
    if (folder / STOP).exists():
        raise KeyboardInterrupt
    raise crashed(settings, process.returncode, tail)


@contextmanager
def passing_on(job: TrainingJob, folder: Path) -> Iterator[None]:
    """While the block runs, pass a request to stop the run on to the processes."""
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
    """Pass the figures on. Returns the last lines of all other output."""
    tail: list[str] = []
    for line in process.stdout or ():
        if line.startswith(MARK):
            if job.progress:
                job.progress(json.loads(line[len(MARK) :]))
        else:
            tail = [*tail[1 - TAIL :], line.rstrip()]
    return tail


def crashed(settings: Settings, status: int, tail: Sequence[str]) -> T2TError:
    """The error for processes that ended without a result: their last output, and what to do."""
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
    """The processes' last output and the launcher's report of their end, without the launcher's own, long traceback."""
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
    """Options as flags of `accelerate launch`: true becomes a flag without a value, and false becomes none."""
    flags: list[str] = []
    for name, value in options.items():
        if value is True:
            flags.append(f"--{name}")
        elif value is not False:
            flags += [f"--{name}", str(value)]
    return flags


def environment(settings: Settings) -> dict[str, str]:
    """The environment of the launched processes: this process's own, and on a machine without a GPU, variables that say so."""
    import torch

    ours = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    if not torch.cuda.is_available():
        ours |= {"DS_ACCELERATOR": "cpu", "ACCELERATE_TORCH_DEVICE": "cpu"}
        ours |= {} if settings.sharding.startswith("zero") else {"ACCELERATE_USE_CPU": "true"}
    return ours
