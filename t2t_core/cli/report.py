"""`t2t report`: a run, a sweep or a study as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from t2t_core.errors import T2TError
from t2t_core.report import html
from t2t_core.report.document import Document
from t2t_core.report.run_page import page_document
from t2t_core.report.sweep_page import sweep_page
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.study.study_page import study_page

_PAGES: dict[str, Callable[[Path], Document]] = {"closed loop": page_document, "sweep": sweep_page, "study": study_page}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write (default: FOLDER/report.html).")
def report(folder: Path, out: Path | None) -> None:
    """A run, a sweep or a study as one self-contained HTML page.

    For a run: learning curves with each design marked as an event, heat maps of how the configurations changed, the designer's
    words beside its edits and Project's corrections, failures by type and group, animated examples, and costs. For a sweep or a
    study: every arm and seed, gates, differences with their intervals, and the learning curves that led there.
    """
    path = out or SafePath(folder) / "report.html"
    folders.write_atomic(path, html.render(_page(folder)))
    click.echo(f"written {path}")


def _page(folder: Path) -> Document:
    manifest = SafePath(folder) / folders.MANIFEST
    kind = folders.read_json(manifest).get("kind")
    page = _PAGES.get(kind) if isinstance(kind, str) else None
    if page is None:
        known = "a run (t2t run), or a sweep or study (t2t sweep)"
        written = next((entry.path for entry in SafePath(folder).entries() if entry.name.endswith(".html")), None)
        raise T2TError(
            f"t2t report has no page for a {ascii(kind)[:60]}",
            where=str(manifest),
            cause=f"it makes those of {known}",
            next=f"open {written}, which the command that made the folder wrote" if written else "",
        )
    return page(folder)
