"""The adaptive weights of the length-aware reward in a checkpoint: a round begins with those that the one before left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from t2t_core.length_reward import AdaptiveWeights
from t2t_core.store import folders

WEIGHTS_FILE = "adaptive_weights.json"
Share = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class WeightsRecord:
    """`adaptive_weights.json`: the moving average of the share of short responses, and how fast it forgets."""

    share: Share
    decay: Share


def read_weights(folder: Path) -> AdaptiveWeights:
    """The weights that stand in a checkpoint, those of the start where none do; T2TError names the field that is wrong."""
    path = folder / WEIGHTS_FILE
    if not path.exists():
        return AdaptiveWeights()
    record = folders.read_record(path, WeightsRecord)
    return AdaptiveWeights(record.share, record.decay)
