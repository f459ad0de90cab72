"""The configurations of `t2t run` that ship with the suite, as files to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def tiny(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "tiny.toml"


def paper(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "paper.toml"
