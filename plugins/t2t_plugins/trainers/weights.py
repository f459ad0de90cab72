"""The length-aware reward's adaptive weights, stored in a checkpoint so that each round begins with those of the round before."""

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
    """`adaptive_weights.json`: the moving average of the share of short responses, and its decay."""

    share: Share
    decay: Share


def read_weights(folder: Path) -> AdaptiveWeights:
    """The weights stored in a checkpoint, or the initial ones if there are none. A T2TError names the field that is wrong."""
    path = folder / WEIGHTS_FILE
    if not path.exists():
        return AdaptiveWeights()
    record = folders.read_record(path, WeightsRecord)
    return AdaptiveWeights(record.share, record.decay)
