"""`t2t compare`: the paired difference of two rows."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(a: Path, b: Path, seed: int, as_json: bool) -> None:
    """The paired difference A - B on the same instances, with a bootstrap interval and an exact test.

    A and B are bench folders with one row, rows (DIR/rows/ROW) or submissions. Different instances are refused.
    """
    from rich.table import Table

    from t2t_leaderboard import comparison, terminal
    from t2t_leaderboard.wording import number, visible

    ours, theirs = comparison.read_side(a), comparison.read_side(b)
    found = comparison.compare(ours, theirs, seed)
    if as_json:
        sides = {"a": ours.label, "b": theirs.label}
        rows = [one.to_dict() for one in found]
        click.echo(json.dumps({**sides, "assumptions": comparison.ASSUMPTIONS, "comparisons": rows}, indent=2, allow_nan=False))
        return
    console = terminal.console()
    console.print(f"A: {visible(ours.label, 90)}\nB: {visible(theirs.label, 90)}", markup=False, highlight=False)
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("table", "metric"):
        table.add_column(name)
    for name in ("A", "B", "A - B", "95 %", "n", "A higher / lower", "p", "p (Holm)"):
        table.add_column(name, justify="right")
    for one in found:
        d = one.difference
        between = f"{d.low:+.2f} to {d.high:+.2f}"
        figures = [number(one.a, 2), number(one.b, 2), f"{d.value:+.2f}", between, f"{d.instances:,}", f"{d.higher} / {d.lower}"]
        table.add_row(visible(one.table, 16), visible(one.metric, 16), *figures, _p(d.p), _p(one.holm))
    console.print(table)
    tests = sorted({one.difference.test for one in found})
    for line in (*comparison.ASSUMPTIONS, f"tests used: {', '.join(tests)}"):
        console.print(f"  {line}", style="dim", markup=False, highlight=False)


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
