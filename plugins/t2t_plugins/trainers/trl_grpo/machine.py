"""Another machine's share of a run's trainings: `python -m t2t_plugins.trainers.trl_grpo.machine RUN --rank 1`.

`t2t run` on the first machine writes each round's job into the run's folder, which all machines must see at the same path, and
starts the processes of its own machine. This command starts those of another machine for each job, and ends with the run. If a
training was stopped or lost, it waits for the run to continue.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.store.paths import SafePath
from t2t_plugins.trainers.settings import check_settings
from t2t_plugins.trainers.trl_grpo.job_files import JOB, MISTAKE, RESULT, STOP, read_job
from t2t_plugins.trainers.trl_grpo.launch import LOOK_EVERY, MARK, PROCESS, environment, launcher
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings

SUMMARY = "summary.json"  # exists once the run has ended


def serve(run: Path, rank: int) -> None:
    """Do this machine's share of every training until the run has ended."""
    while not (run / SUMMARY).exists():
        for folder in waiting(run):
            print(f"training {folder.parent.parent.relative_to(run)}", flush=True)
            status = share(folder, rank)
            print(f"training {folder.parent.parent.relative_to(run)} ended with status {status}", flush=True)
        time.sleep(LOOK_EVERY)


def waiting(run: Path) -> Iterator[Path]:
    """The folders of jobs that need processes: those that have no result and were not asked to stop."""
    top = SafePath.absolute(run)
    for arm in (top, top / "control"):
        for folder in (entry / "checkpoint/launch" for entry in arm.entries() if entry.name.startswith("round_")):
            if (folder / JOB).exists() and not any((folder / name).exists() for name in (RESULT, MISTAKE, STOP)):
                yield folder.path


def share(folder: Path, rank: int) -> int:
    """Start this machine's processes of the job and wait until they end. Returns the launcher's status."""
    settings = of_machine(check_settings(Settings, read_job(folder).settings, WHERE), rank)
    command = [*launcher(settings), "-m", PROCESS, str(folder)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(settings), text=True, errors="replace", **pipes) as process:
        try:
            for line in process.stdout or ():
                if not line.startswith(MARK):
                    print(line, end="", flush=True)
        except BaseException:
            process.terminate()
            raise
    return process.returncode


def of_machine(settings: Settings, rank: int) -> Settings:
    """The job's settings, to be launched on machine number `rank`. Raises T2TError if the run has no such machine."""
    machines = int(settings.accelerate.get("num_machines", 1))
    if not 0 < rank < machines:
        raise T2TError(
            f"this run has no machine {rank}",
            where=f"{WHERE}, [training.accelerate]",
            cause=f"num_machines={machines}, and the first one, number 0, is where t2t run is",
            next="set num_machines, or another --rank",
        )
    return replace(settings, accelerate={**settings.accelerate, "machine_rank": rank})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the run's folder")
    parser.add_argument("--rank", type=int, required=True, help="this machine's number: 1, 2, ...")
    given = parser.parse_args()
    try:
        serve(given.run.absolute(), given.rank)
    except T2TError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
