"""`t2t bench-agents`: agents x families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.report import html, terminal
from t2t_core.store import folders
from t2t_jobs.cli.options import folder_of, opener, room_options, words


@click.command(no_args_is_help=True)
@click.option("--agents", required=True, help="Agents, separated by spaces: 'random-search rule llm:openai:MODEL'.")
@click.option("--families", default="", help="Families, separated by spaces (default: all; those held out are listed apart).")
@click.option(
    "--episodes", default=4, show_default=True, type=click.IntRange(1), help="Final episodes for each agent, family and seed."
)
@click.option("--tries", default=0, show_default=True, type=click.IntRange(0), help="Earlier episodes the agent may learn from.")
@click.option("--tries-cpu-seconds", type=click.FloatRange(min=0), help="End the tries once their jobs have taken this long.")
@click.option("--seeds", default="0", show_default=True, help="Seeds, separated by spaces.")
@room_options
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the bench.")
def bench_agents(
    agents: str,
    families: str,
    episodes: int,
    tries: int,
    tries_cpu_seconds: float | None,
    seeds: str,
    out: Path,
    **room_settings: Any,
) -> None:
    """Compare agents: reward, hidden score and gain with intervals, and what they cost, also on families that no agent was
    trained on.

    \b
    the searches with 40 jobs each     t2t bench-agents --agents "random-search successive-halving:jobs=40" --tries 40 --out DIR
    a trained agent before and after   t2t bench-agents --agents "tiny tiny:OUT/versions/10" --out DIR

    If it was interrupted, the same command continues where the last one stopped.
    """
    from t2t_jobs.bench import BenchPlan, run_bench
    from t2t_jobs.bench_document import bench_document

    named = words(families) or [entry.name for entry in installed().families]
    plan = BenchPlan(words(agents), named, episodes, tries, [_seed(word) for word in words(seeds)], tries_cpu_seconds)
    if not plan.agents or not plan.seeds:
        raise T2TError("there is nobody to compare", where="t2t bench-agents", next='--agents "random-search rule" --seeds "0"')
    folder = folder_of(out)
    document = bench_document(run_bench(plan, folder, opener(**room_settings), click.echo))
    folders.write_atomic(folder / "report.html", html.render(document))
    terminal.show(document, terminal.console())
    click.echo(f"written {folder / 'report.html'}")


def _seed(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 19):
        raise T2TError(f"--seeds wants whole numbers, not {ascii(word)[:60]}", where="t2t bench-agents", next='--seeds "0 1 2"')
    return int(word)
