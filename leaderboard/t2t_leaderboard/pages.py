"""Do a bench folder's Markdown and HTML show what its answers give? `t2t verify` asks; what does not, it leaves as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_leaderboard import html, markdown

Json = Mapping[str, Any]
PAGES: Mapping[str, Callable[[Json, Json | None], str]] = {"leaderboard.md": markdown.render, "leaderboard.html": html.render}
VERIFICATION = "verification.json"
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,39}")
_AROUND = 20  # characters shown before the first that differs
_SHOWN = 80
_ANEW = "the same t2t bench writes it anew; so does t2t verify, once it is deleted"


def page_problems(folder: SafePath, board: Json, empty: Json, fresh: Json) -> dict[str, str]:
    """By file, what is wrong with each page that is there and is not `board` under a status that the suite can have written.

    Such a status is `fresh` (what was found now), what was found before this (verification.json; where that was a fault, the page
    may be `empty`), or none yet. Another version of the suite may lay a page out its own way: its page is not called changed, and
    not vouched for either.
    """
    before = _before(folder, fresh) or fresh
    problems = {}
    for name, render in PAGES.items():
        path = folder / name
        if not path.exists():
            continue
        try:
            shown = folders.read_bytes(path).decode("utf-8", "backslashreplace")
        except T2TError as error:
            problems[name] = f"{path}: it cannot be read: {error.cause or error.what}"
            continue
        wanted = [render(board, status) for status in (before, fresh, None)]
        if shown in wanted or (not before["verified"] and shown == render(empty, before)):
            continue
        if before["version"] != fresh["version"]:
            problems[name] = (
                f"{path}: written by t2t-core {before['version']}, says {VERIFICATION}, which may lay it out another way than "
                f"this {fresh['version']}: whether it was changed since, only that version can tell; {_ANEW}"
            )
        else:
            problems[name] = f"{path}: {_difference(shown, wanted[0])}; changed, or left by a bench that was stopped; {_ANEW}"
    return problems


def _before(folder: SafePath, fresh: Json) -> Json | None:
    """The last outcome on record, where it can be one: verified as now (perhaps by another version), or not verified."""
    try:
        record = folders.read_json(folder / VERIFICATION)
    except T2TError:  # missing or damaged; t2t verify writes it anew
        return None
    version, problems = record.get("version"), record.get("problems")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        return None
    failed = record.get("verified") is False and isinstance(problems, list) and problems and isinstance(problems[0], str)
    return record if failed or record == {**fresh, "version": version} else None


def _difference(shown: str, wanted: str) -> str:
    """The first line that differs, around where it does."""
    there, made = shown.split("\n"), wanted.split("\n")
    number = next((n for n, pair in enumerate(zip(there, made, strict=False)) if pair[0] != pair[1]), min(len(there), len(made)))
    a, b = (lines[number] if number < len(lines) else "" for lines in (there, made))
    at = max(0, next((n for n, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b))) - _AROUND)
    return f"line {number + 1}: {ascii(a[at : at + _SHOWN])} there, {ascii(b[at : at + _SHOWN])} from the answers"
