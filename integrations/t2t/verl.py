"""A testbed's reward for verl; `t2t.verl_dataset` has the data set that a designer redesigns.

    python -m verl.trainer.main_ppo data.train_files=train.parquet \\
        reward.custom_reward_function.path=pkg://t2t.verl reward.custom_reward_function.name=compute_score ...

`t2t generate --format verl` writes the table. Nothing of verl is imported here, so reward workers start quickly.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.reward import reward


@functools.cache
def _testbed(name: str) -> AnyTestbed:
    bed: AnyTestbed = installed().testbeds.make(name)
    return bed


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None, **others: Any
) -> dict[str, float]:
    """The reward of an answer; verl logs the other figures beside it.

    Args:
        data_source: "t2t/NAME" of the testbed. solution_str: the answer. ground_truth: the instance as JSON.
        extra_info: the row's; its `prompt_format` says how the question was worded.
    """
    bed = _testbed(str(data_source).removeprefix("t2t/"))
    instance = bed.read_instance(json.loads(ground_truth))
    verdict = bed.verify(instance, solution_str, (extra_info or {}).get("prompt_format", ""))
    return {"score": reward(bed, instance, verdict), "valid": float(verdict.valid), "optimal": float(verdict.optimal is True)}
