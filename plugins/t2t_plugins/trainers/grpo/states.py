"""The states that `grpo` saves between updates, to continue an interrupted round."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.length_reward import AdaptiveWeights
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.store.schema import Count
from t2t_plugins.trainers.common import UPDATES
from t2t_plugins.trainers.facts import CellRecord
from t2t_plugins.trainers.weights import WeightsRecord

STATE, OPTIMIZER = "state.json", "optimizer.pt"


@dataclass(frozen=True, kw_only=True)
class StateRecord:
    """`state.json` beside a model's weights: the updates done, the tokens trained on, the adaptive weights, the figures of the
    last update, and the facts by cell."""

    done: Count
    tokens: Count
    weights: WeightsRecord
    last: dict[str, Any]
    facts: dict[str, CellRecord]

    @property
    def adaptive_weights(self) -> AdaptiveWeights:
        """The adaptive weights of the reward as they were when the state was saved."""
        return AdaptiveWeights(self.weights.share, self.weights.decay)


def read_state(folder: Path) -> StateRecord:
    """Read the state saved in that folder. A T2TError names the field that is wrong."""
    return folders.read_record(folder / STATE, StateRecord)


def kept_optimizer(before: Path) -> Path:
    """The file with the previous round's optimizer state. Raises T2TError if there is none."""
    saved = last_state(before / UPDATES)
    if saved is None or not (saved / OPTIMIZER).is_file():
        raise T2TError(
            "the optimizer's state of the round before is not there",
            where=str(before / UPDATES),
            cause="that round was trained with optimizer=reset, or the folder was removed",
            next="set training.optimizer=reset",
        )
    return saved / OPTIMIZER


def last_state(updates: Path) -> Path | None:
    """The last complete state in the folder; None if there is none."""
    folder = SafePath.of(updates)
    numbers = [int(match[1]) for entry in folder.entries() if (match := re.fullmatch(r"update-(\d{1,9})", entry.name))]
    whole = [number for number in numbers if (folder / f"update-{number}" / STATE).exists()]
    return (folder / f"update-{max(whole)}").path if whole else None
