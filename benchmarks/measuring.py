"""What all benchmarks share: the packages on the path, one pinned core, medians with their spread, and one JSON per run."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [str(ROOT / room) for room in ("", "envs", "plugins", "baselines", "leaderboard")]
sys.path[:0] = ROOMS  # so that a plain checkout runs

from t2t_core.store import folders  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
LOAD_AT_START = os.getloadavg()


def arguments(text: str | None, repeats: int = 5) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark: --repeats and --out."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=repeats, help="how often the sides take turns")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the JSON")
    return parser


def pin() -> None:
    """Keep this process, and those it starts from now on, on its last core, because the first one serves most interrupts."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def spread(values: Sequence[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "all": list(values)}


def text(values: dict[str, Any], digits: int = 0) -> str:
    """`median (least to most)`."""
    return f"{values['median']:,.{digits}f} ({values['least']:,.{digits}f} to {values['most']:,.{digits}f})"


def write(name: str, folder: Path, result: dict[str, Any]) -> None:
    """Write `NAME-TIME.json`: the result, the time, the machine, and how busy it was before and after (load averages)."""
    at = folders.now()
    machine = {
        "processor": _processor(),
        "load_average_before": LOAD_AT_START,
        "load_average_after": os.getloadavg(),
        "environment": folders.environment(),
    }
    path = folder / f"{name}-{at.replace(':', '')}.json"
    folders.write_json(path, {"what": name, "at": at, **result, "machine": machine})
    print(f"load average {LOAD_AT_START[0]:.1f} before, {os.getloadavg()[0]:.1f} after; written to {path}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
