"""`t2t episode`: one agent writes one job."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from t2t_core.closing import close
from t2t_core.plugins import installed
from t2t_core.report import html, terminal
from t2t_core.store import folders, locks
from t2t_jobs.cli.options import folder_of, opener, room_options


@click.command(no_args_is_help=True)
@click.option("--agent", "spec", required=True, help="The agent that writes the job (t2t plugins), e.g. llm:openai:MODEL.")
@click.option("--family", "family_name", required=True, help="The task family that the job is for (t2t plugins).")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the agent and of its job.")
@click.option("--final", is_flag=True, help="Have the agent submit the best job it knows; a model answers greedily.")
@room_options
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the episode.")
def episode(spec: str, family_name: str, seed: int, final: bool, out: Path, **room_settings: Any) -> None:
    """Let one agent write one training job: it reads the task, edits job.toml, submits it, and is rewarded by how much the
    trained model gained on a hidden evaluation.

    Every call is recorded as it happens, in OUT/episode/calls.jsonl; the report is OUT/report.html. If it was interrupted, the
    same command continues where the last one stopped.
    """
    from t2t_jobs.episode import Setup
    from t2t_jobs.episode_document import episode_document
    from t2t_jobs.hidden import make_family
    from t2t_jobs.playing import play

    folder, agent = folder_of(out), installed().agents.make(spec)
    setup = Setup("episode", make_family(family_name), spec, seed, final=final)
    try:
        with locks.locked(folder), opener(**room_settings)(folder) as room:
            with closing(room.begin(folder / "episode", setup, f"episode-{seed}")) as made:
                play([made], agent, room.usd_left)
                if made.result() is None:
                    click.echo("the job is queued; once a worker has trained it, it is scored", err=True)
                list(room.results([made]))
            document = episode_document(folder / "episode")
            folders.write_atomic(folder / "report.html", html.render(document))
    finally:
        close(agent)
    terminal.show(document, terminal.console())
    click.echo(f"written {folder / 'report.html'}")
