"""One process of a training job that `launch` runs in several."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_core.store import folders, jsonlines, paths
from t2t_plugins.trainers.settings import check_settings
from t2t_plugins.trainers.trl_grpo.launch import JOB, MARK, MISTAKE, RESULT, STOP
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings
from t2t_plugins.trainers.trl_grpo.trainer import train


def end_with_launcher() -> None:
    """The launcher holds the other end of this process's standard input: where it is gone, so are we. A process that went on
    would write into the folder of a resumed run, and keep a GPU's memory from it."""

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def asked_to_stop(sign: Path) -> Callable[[], bool]:
    """Whether the launcher wants this process to stop, or a SIGTERM that went to all processes."""
    told: list[int] = []
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    return lambda: bool(told) or sign.exists()


def run(folder: Path) -> None:
    """This process's share of the job in that folder."""
    facts = jsonlines.loads(folders.read_bytes(folder / JOB, paths.MAX_STREAM))
    testbed = installed().testbeds.make(facts["testbed"])
    path = {name: Path(facts[name]) if facts[name] else None for name in ("checkpoint", "resume_from")}
    job = TrainingJob(
        checkpoint=path["checkpoint"],
        instances=[testbed.read_instance(one) for one in facts["instances"]],
        testbed=testbed,
        settings=facts["settings"],
        folder=Path(facts["folder"]),
        seed=facts["seed"],
        round_index=facts["round_index"],
        resume_from=path["resume_from"],
        progress=lambda figures: print(MARK + json.dumps(dict(figures)), flush=True),
        reward=facts["reward"],
        stop=asked_to_stop(folder / STOP),
    )
    settings = check_settings(Settings, job.settings, WHERE)
    try:
        if int(os.environ.get("WORLD_SIZE", "1")) != settings.processes:
            raise T2TError(f"accelerate launch did not start {settings.processes} processes", where=WHERE)
        result = train(job, settings)
    except T2TError as error:
        mistake = {"what": error.what, "where": error.where, "cause": error.cause, "next": error.next}
        folders.write_json(folder / MISTAKE, mistake)
        raise
    except KeyboardInterrupt:  # as it was asked to: what it had is saved
        return
    if os.environ.get("RANK", "0") == "0":
        folders.write_json(folder / RESULT, {**asdict(result), "checkpoint": str(result.checkpoint)})


if __name__ == "__main__":
    end_with_launcher()
    run(Path(sys.argv[1]))
