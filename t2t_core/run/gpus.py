"""The GPUs that a run has, or is planned for."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from t2t_core.errors import T2TError


@dataclass(frozen=True)
class Gpus:
    """`count` identical GPUs of `gigabytes` (10^9 bytes) each."""

    count: int
    gigabytes: float

    def __str__(self) -> str:
        return f"{self.count} x {self.gigabytes:.0f} GB"


def read_gpus(text: str) -> Gpus:
    """Parse `4x80`: four GPUs of 80 GB. Raises T2TError for anything else."""
    form = re.fullmatch(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3}(?:\.[0-9]+)?)", text.strip().lower())
    if not form:
        raise T2TError(f"these are no GPUs: {ascii(text)[:60]}", where="--gpus", next="--gpus 4x80 means four of 80 GB each")
    return Gpus(int(form[1]), float(form[2]))


def gpus_here() -> Gpus | None:
    """This machine's GPUs as nvidia-smi sees them, each as large as the smallest; None if there are none."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        sizes = [float(line) for line in output.split()]
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Gpus(len(sizes), min(sizes) * 2**20 / 1e9) if sizes else None
