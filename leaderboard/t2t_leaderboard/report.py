"""Writes what a bench folder shows: Markdown, HTML and the verification's record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_leaderboard.pages import PAGES, VERIFICATION


def write(folder: SafePath, board: Mapping[str, Any], verification: Mapping[str, Any] | None, keep: Collection[str] = ()) -> None:
    """Write `leaderboard.md`, `leaderboard.html` (but those to `keep`) and, where there is one, `verification.json`."""
    if verification is not None:
        folders.write_json(folder / VERIFICATION, verification)
    for name, render in PAGES.items():
        if name not in keep:
            folders.write_atomic(folder / name, render(board, verification))
