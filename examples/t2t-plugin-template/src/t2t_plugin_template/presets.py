"""The settings of `t2t run` in this distribution, as files to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def change(argument: str, settings: Mapping[str, str]) -> Path:
    return Path(__file__).with_name("change.toml")
