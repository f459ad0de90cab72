"""The settings of `t2t run` that train step policies, as files to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def ppo(argument: str, settings: Mapping[str, str]) -> Path:
    """The closed loop with a PPO policy; it takes no argument and no setting."""
    return Path(__file__).resolve().parent / "ppo.toml"
