"""`t2t compare`: the paired difference between two rows."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of the bootstrap.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(a: Path, b: Path, seed: int, as_json: bool) -> None:
    """The paired difference A - B on the same instances, with a bootstrap interval and an exact test.

    A and B are bench folders with one row, rows (DIR/rows/ROW) or submissions. Only instances that both answered are compared.
    """
    from t2t_core.report import terminal
    from t2t_leaderboard import comparison
    from t2t_leaderboard.comparison_document import comparison_document

    ours, theirs = comparison.read_side(a), comparison.read_side(b)
    differences = comparison.compare(ours, theirs, seed)
    if as_json:
        sides = {"a": ours.label, "b": theirs.label, "in_common": comparison.in_common(ours, theirs)}
        rows = [difference.to_dict() for difference in differences]
        click.echo(json.dumps({**sides, "assumptions": comparison.ASSUMPTIONS, "comparisons": rows}, indent=2, allow_nan=False))
        return
    both = comparison.in_common(ours, theirs)
    terminal.show(comparison_document(ours.label, theirs.label, differences, both), terminal.console())
