"""Which family a model belongs to, so that its sizes and trainings are shown together: Qwen3-4B and Qwen3-32B are both Qwen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.registry import Spec

_WORD = re.compile(r"[^\W\d_]+")


def family(name: str) -> str:
    """The first word of a model's name, without its owner: `Qwen/Qwen3-4B` and `Qwen3-4B + GRPO` -> `qwen`. A name without
    letters is its own family."""
    own = name.rsplit("/", 1)[-1]
    word = _WORD.search(own)
    return word[0].lower() if word else own[:40]


def family_of(policy: str, describe: Mapping[str, Any]) -> str:
    """The family of a measured row: that of the model its policy names, else of the policy itself."""
    model = describe.get("model")
    if isinstance(model, str) and model:
        return family(model)
    try:
        return family(Spec.parse(policy).name)
    except T2TError:  # somebody else's submission may call its policy anything
        return family(policy)
