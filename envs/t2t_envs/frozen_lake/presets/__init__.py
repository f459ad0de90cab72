"""The lake's settings for `t2t run`, as readable files. `published.toml` holds the values that the paper gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def _preset(name: str) -> Callable[[str, Mapping[str, str]], Path]:
    """The factory of a preset: it takes no argument and no setting, and returns the file of this folder."""
    return lambda argument, settings: Path(__file__).resolve().parent / f"{name}.toml"


tiny = _preset("tiny")
paper = _preset("paper")
paper_lora = _preset("paper-lora")
single_gpu = _preset("single-gpu")
api_designer = _preset("api-designer")
short_rounds = _preset("short-rounds")
