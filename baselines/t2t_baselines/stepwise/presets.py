"""The configurations of `t2t run` that train step policies, as files to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def ppo(argument: str, settings: Mapping[str, str]) -> Path:
    return Path(__file__).resolve().parent / "ppo.toml"
