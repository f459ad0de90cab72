"""The configurations of `t2t run` for tic-tac-toe, as files to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def road(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "road.toml"


def stage1(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "stage1.toml"


def stage2(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "stage2.toml"
