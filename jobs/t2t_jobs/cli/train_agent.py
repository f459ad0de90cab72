"""`t2t train-agent`: the outer loop."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.report import html
from t2t_core.settings import check_settings
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_jobs.cli.options import folder_of, opener, room_options, words

PRESETS = ("tiny", "llm-lora")


@click.command(no_args_is_help=True)
@click.option(
    "--agent", default="tiny", show_default=True, help="The agent to train: tiny, tiny:FOLDER, or llm:hf:MODEL,protocol=text."
)
@click.option("--families", default="", help="Families, separated by spaces (default: all but those held out).")
@click.option("--preset", default="tiny", show_default=True, type=click.Choice(PRESETS), help="The settings to begin with.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a setting, e.g. steps=20.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of families, evaluations and jobs.")
@click.option("--dry-run", is_flag=True, help="Print the settings and exit.")
@room_options
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The training's folder.")
def train_agent(
    agent: str,
    families: str,
    preset: str,
    overrides: tuple[str, ...],
    seed: int,
    dry_run: bool,
    out: Path | None,
    **room_settings: Any,
) -> None:
    """Train an agent by RL on what its jobs achieve. GRPO compares the episodes of a group, which share a family and a hidden
    evaluation; importance sampling corrects for episodes that are a few updates old.

    \b
    the toy agent, on two cores       t2t train-agent --out DIR
    from where another one ended      t2t train-agent --agent tiny:OTHER/versions/10 --out DIR
    a language model, LoRA, one GPU   t2t train-agent --agent llm:hf:MODEL,protocol=text --preset llm-lora --pool ray --out DIR

    If it was interrupted, the same command continues where the last one stopped. OUT/versions/N is the agent after N updates;
    OUT/report.html has the figures.
    """
    from t2t_jobs.training.outer import OuterPlan, train_agent
    from t2t_jobs.training.settings import PRESETS as settings_of
    from t2t_jobs.training.settings import OuterSettings

    settings = check_settings(OuterSettings, {**settings_of[preset], **_overrides(overrides)}, "t2t train-agent --set")
    named = words(families) or [
        entry.name for entry in installed().families if not installed().families.make(entry.name).held_out
    ]
    plan = OuterPlan(agent, named, seed, settings)
    if dry_run:
        for name, value in plan.to_dict()["settings"].items():
            click.echo(f"{name} = {value}")
        click.echo(f"{settings.steps * settings.groups * settings.group} episodes on {', '.join(named)}")
        return
    if out is None:
        raise T2TError("the training needs a folder", where="t2t train-agent", next="add --out DIR")
    folder = folder_of(out)

    def say(line: str) -> None:
        click.echo(line)
        _write_page(plan, folder)

    train_agent(plan, folder, opener(**room_settings), say)
    click.echo(f"written {_write_page(plan, folder)}")


def _write_page(plan: Any, folder: SafePath) -> SafePath:
    from t2t_jobs.training.document import training_document
    from t2t_jobs.training.outer import read_steps

    page = folder / "report.html"
    folders.write_atomic(page, html.render(training_document(plan.agent, plan.families, read_steps(folder))))
    return page


def _overrides(texts: tuple[str, ...]) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise T2TError(f"--set wants key=value, not {ascii(text)[:80]}", next="for example --set steps=20")
        try:
            overrides[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            overrides[key.strip()] = value
    return overrides
