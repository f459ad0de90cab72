"""How lm-evaluation-harness scores an answer: the functions that `t2t export --format lm-eval` refers to."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Response
from t2t_core.reward import reward


@functools.cache
def _testbed(name: str) -> AnyTestbed:
    bed: AnyTestbed = installed().testbeds.make(name)
    return bed


def scores(testbed: str, prompt_format: str, doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """The board's rates and the reward of the first answer to a row of the exported table."""
    bed = _testbed(testbed)
    instance = bed.read_instance(json.loads(doc["instance"]))
    verdict = bed.verify(instance, results[0], prompt_format)
    response = Response(results[0])
    rates = {rate.name: float(rate.value(verdict, response) or 0.0) for rate in bed.metrics if rate.kind == "rate"}
    return {**rates, "reward": reward(bed, instance, verdict)}
