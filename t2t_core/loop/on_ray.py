"""Do the runs of a sweep or a study side by side on a Ray cluster (`t2t sweep --ray`). Every node must see the sweep's folder.

Each run is a task that keeps its progress in its own folder. If Ray restarts a task, because a node died for example, it
continues from there. The sweep itself then finds every run finished and makes the tables: the same bytes as without Ray.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.loop.sweep import PlannedRun
from t2t_core.run.progress import Reporter

RETRIES = 3  # for a run whose worker died (our choice)
_NUMBER = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,3})?")


@dataclass(frozen=True)
class Cluster:
    """Where Ray runs, and what each run needs of it.

    Args:
        address: "local" starts a cluster on this machine; "auto" finds the one this machine belongs to; else HOST:PORT or
            ray://HOST:PORT.
        cpus, gpus: for each run.
    """

    address: str = "local"
    cpus: float = 1.0
    gpus: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Cluster:
        """`auto,gpus=1,cpus=4`; T2TError for anything else."""
        address, *rest = [piece.strip() for piece in text.split(",")]
        settings = dict(piece.partition("=")[::2] for piece in rest)
        wrong = [name for name, value in settings.items() if name not in ("cpus", "gpus") or not _NUMBER.fullmatch(value)]
        if wrong or not address or "=" in address:
            raise T2TError(
                f"{ascii(text)[:60]} does not name a cluster", where="--ray", next="--ray local, or --ray auto,cpus=4,gpus=1"
            )
        return cls(address, **{name: float(value) for name, value in settings.items()})


def run_ahead(planned: Sequence[Sequence[PlannedRun]], cluster: Cluster, reporter: Reporter) -> None:
    """Do the runs of every seed; a run that forks waits for the run it forks from. Within a seed, runs start in their order.
    Across seeds, the first runs of all start before the second ones.

    Raises:
        T2TError: Ray is not installed or cannot be reached, or runs failed; the others are finished by then.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise T2TError("Ray is not installed", where="--ray", next=advice.extra("ray")) from None
    began = not ray.is_initialized()
    if began:
        connect(ray, cluster.address)
    try:
        task = ray.remote(num_cpus=cluster.cpus, num_gpus=cluster.gpus, max_retries=RETRIES, retry_exceptions=False)(_run)
        titles: dict[Any, str] = {}
        shared: dict[int, Any] = {}
        for step in zip_longest(*planned):  # the first run of every seed, the second one of every seed, ...
            for seed, run in enumerate(step):
                if run:
                    running = task.remote(run, os.getcwd(), shared.get(seed) if run.fork else None)
                    shared.setdefault(seed, running)
                    titles[running] = run.title
        _wait(ray, titles, reporter)
    finally:
        if began:
            ray.shutdown()


def connect(ray: Any, address: str, where: str = "--ray") -> None:
    """Start a cluster on this machine ("local") or join one. Raises T2TError if there is none."""
    try:
        if address == "local":
            ray.init(address="local", include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
        else:
            ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise T2TError(f"no Ray cluster at {address}", where=where, cause=str(error)[:300], next="ray start --head") from None


def _run(run: PlannedRun, folder: str, shared: Any) -> None:
    """In a worker: do one run, from the folder that the sweep was started in, since paths may be relative."""
    os.chdir(folder)
    run.run(Reporter())


def _wait(ray: Any, titles: Mapping[Any, str], reporter: Reporter) -> None:
    waiting, failed = list(titles), dict[str, str]()
    while waiting:
        done, waiting = ray.wait(waiting, num_returns=1)
        for each in done:
            try:
                ray.get(each)
                reporter.say(f"{titles[each]}: done, {len(waiting)} runs to go")
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                failed[titles[each]] = cause.what if isinstance(cause, T2TError) else str(cause).strip().splitlines()[-1][:300]
                reporter.say(f"{titles[each]}: failed, {len(waiting)} runs to go")
    if failed:
        title, cause = next(iter(failed.items()))
        what = f"{len(failed)} of {len(titles)} runs failed"
        raise T2TError(what, where=title, cause=cause, next="fix that and repeat the command: finished runs are kept")
