"""The settings of `t2t run` for tic-tac-toe, as files to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def _preset(name: str) -> Callable[[str, Mapping[str, str]], Path]:
    """The factory of a preset: it takes no argument and no setting, and returns the file of this folder."""
    return lambda argument, settings: Path(__file__).resolve().parent / f"{name}.toml"


road = _preset("road")
stage1 = _preset("stage1")
stage2 = _preset("stage2")
