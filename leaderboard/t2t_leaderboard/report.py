"""Writes what a bench folder shows: Markdown, HTML and the verification's record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_core import runs
from t2t_leaderboard import html, markdown


def write(folder: Path, board: Mapping[str, Any], verification: Mapping[str, Any] | None) -> None:
    """Write `leaderboard.md`, `leaderboard.html` and, where there is one, `verification.json`."""
    if verification is not None:
        runs.write_json(folder / "verification.json", verification)
    runs.write_atomic(folder / "leaderboard.md", markdown.render(board, verification))
    runs.write_atomic(folder / "leaderboard.html", html.render(board, verification))
