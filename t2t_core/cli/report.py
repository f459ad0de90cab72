"""`t2t report`: a run as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from t2t_core.report import html
from t2t_core.report.run_document import page_document
from t2t_core.store import folders
from t2t_core.store.paths import SafePath


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write (default: RUN/report.html).")
def report(folder: Path, out: Path | None) -> None:
    """A run as one self-contained HTML page: tables, plots, what each designer saw and said."""
    path = out or SafePath(folder) / "report.html"
    folders.write_atomic(path, html.render(page_document(folder)))
    click.echo(f"written {path}")
