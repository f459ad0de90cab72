"""The lake's configurations for `t2t run`, as readable files. `published.toml` holds the values that the paper gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def tiny(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "tiny.toml"


def paper(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "paper.toml"


def paper_lora(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "paper-lora.toml"


def single_gpu(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "single-gpu.toml"


def api_designer(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "api-designer.toml"


def short_rounds(argument: str, settings: Mapping[str, str]) -> Path:
    return _FOLDER / "short-rounds.toml"
