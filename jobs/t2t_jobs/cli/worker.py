"""`t2t worker`: a warm process that runs the jobs of a queue."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(no_args_is_help=True)
@click.option("--queue", required=True, type=click.Path(path_type=Path), help="The queue's folder.")
@click.option(
    "--idle-exit",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0, 86_400),
    help="Exit after this many seconds without a job.",
)
@click.option("--name", default="", help="The worker's name in the records.  [default: host and process]")
@click.option("--keep-runs", is_flag=True, help="Keep each job's run, with its checkpoints, in the queue's folder work/.")
def worker(queue: Path, idle_exit: float, name: str, keep_runs: bool) -> int:
    """Take jobs from a queue's folder, train them one after another, and store their results there.

    Start as many workers as you like, on any machine that sees the folder. Each job gets exactly one result, whichever worker is
    killed. If you stop a worker (Ctrl-C or SIGTERM), the job in hand goes back into the queue.
    """
    from t2t_core.errors import T2TError
    from t2t_core.store.paths import SafePath
    from t2t_jobs.queue import Queue
    from t2t_jobs.worker import work

    if not (SafePath.of(queue) / "secret.json").exists():
        raise T2TError("there is no queue", where=str(queue), next="whoever submits jobs makes it; name its folder")
    done = work(Queue(queue), idle_exit, click.echo, name, keep_runs)
    click.echo(f"{done} jobs done; none has come for {idle_exit:g} s")
    return 0
