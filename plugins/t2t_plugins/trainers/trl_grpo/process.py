"""One process of a training job that `launch` runs in several."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_plugins.trainers.settings import check_settings
from t2t_plugins.trainers.trl_grpo.job_files import STOP, read_job, write_mistake, write_result
from t2t_plugins.trainers.trl_grpo.launch import MARK
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings
from t2t_plugins.trainers.trl_grpo.trainer import train


def end_with_launcher() -> None:
    """End this process when the launcher, which holds the other end of its standard input, is gone. Otherwise it would write into
    the folder of a resumed run, and keep GPU memory from it."""

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def asked_to_stop(sign: Path) -> Callable[[], bool]:
    """A function that tells whether to stop: the launcher asked for it, or all processes got a SIGTERM."""
    told: list[int] = []
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    return lambda: bool(told) or sign.exists()


def run(folder: Path) -> None:
    """Do this process's share of the job in the folder."""
    record = read_job(folder)
    job = record.job(lambda figures: print(MARK + json.dumps(dict(figures)), flush=True), asked_to_stop(folder / STOP))
    settings = check_settings(Settings, job.settings, WHERE)
    try:
        if int(os.environ.get("WORLD_SIZE", "1")) != settings.processes:
            raise T2TError(f"accelerate launch did not start {settings.processes} processes", where=WHERE)
        result = train(job, settings)
    except T2TError as error:
        write_mistake(folder, error)
        raise
    except KeyboardInterrupt:  # it was asked to stop, and its state is saved
        return
    if os.environ.get("RANK", "0") == "0":
        write_result(folder, result)


if __name__ == "__main__":
    end_with_launcher()
    run(Path(sys.argv[1]))
