"""The options that `t2t run` and `t2t sweep` share, and the experiment they describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from t2t_core.errors import T2TError
from t2t_core.loop.preparation import prepare
from t2t_core.plugins import installed
from t2t_core.report import terminal
from t2t_core.report.document import Column, Row, Table
from t2t_core.run.experiment import Experiment, read_published, resolve, resolved
from t2t_core.run.forks import Fork
from t2t_core.run.gpus import Gpus, gpus_here
from t2t_core.run.round_files import open_run
from t2t_core.run.tracking import AUTO
from t2t_core.settings import flat
from t2t_core.text import plain_lines

NOT_GIVEN = "not given in the paper"
_OVERRIDES = ("testbed", "policy", "checkpoint", "designer", "context", "trainer", "rounds", "seed", "report_to")
_OPTIONS = (
    click.option("--testbed", metavar="NAME", help="The task (default: that of the preset or file)."),
    click.option("--preset", help="Settings by name (default: the testbed's own, unless --config or --fork is given)."),
    click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="A TOML file that overrides the preset."),
    click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override, e.g. training.epochs=2 (repeatable)."),
    click.option(
        "--policy", metavar="SPEC", help="The policy that is trained; {checkpoint} stands for its checkpoint: hf:{checkpoint}."
    ),
    click.option(
        "--checkpoint", help="Where training starts: a folder, a model id, or a policy that has a checkpoint; '' for none."
    ),
    click.option("--designer", help="The designer: random, fixed, rule, base, checkpoint, llm:POLICY, ..."),
    click.option("--context", help="V1 .. V6, or modules: F,G,H:no_round_0,T:bookkeeping."),
    click.option("--trainer", help="trl-grpo, trl-sft, none, ..."),
    click.option("--rounds", type=click.IntRange(1, 10_000), help="Rounds (design runs after every one but the last)."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="The seed of all randomness."),
    click.option("--report-to", metavar="NAMES", help="Trackers: tensorboard wandb mlflow trackio, none (default: auto)."),
)


def experiment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that make an experiment."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def gather(given: Mapping[str, Any], fork: Fork | None = None) -> tuple[Experiment, dict[str, Any]]:
    """The experiment that the options describe, and the published values that its preset names for comparison."""
    preset = preset_of(given, fork)
    below = open_run(fork.source)[1].to_dict() if fork and not preset else {}
    options = {name: given.get(name) for name in _OVERRIDES}
    if given["policy"] and given["checkpoint"] is None and "{checkpoint}" not in given["policy"]:
        options["checkpoint"] = ""  # a policy without a checkpoint has nothing to train
    experiment = resolve(preset, given["config"], given["overrides"], options, below)
    evaluation = {**experiment.evaluation, **testbed_options(experiment.testbed, given["testbed_options"])}
    watched = {"report_to": experiment.report_to or AUTO}
    experiment = Experiment.from_dict({**experiment.to_dict(), "evaluation": evaluation, **watched})
    compared = preset or installed().testbeds.make(experiment.testbed).preset
    return experiment, read_published(compared) if compared else {}


def preset_of(given: Mapping[str, Any], fork: Fork | None = None) -> str:
    """The preset that the options start from: the one named, else the testbed's own; "" if a file or a fork takes its place.
    Raises T2TError if the testbed has none."""
    if given["preset"] or given["config"] or fork:
        return str(given["preset"] or "")
    testbed = given["testbed"] or installed().testbeds.default
    preset: str = installed().testbeds.make(testbed).preset
    if not preset:
        raise T2TError(
            f"the testbed {testbed} has no preset", next="give --config FILE, or --preset NAME (t2t plugins lists them)"
        )
    return preset


def testbed_options(testbed: str, words: Sequence[str]) -> dict[str, str]:
    """Parse `--name value` or `--name=value`. Raises T2TError if the testbed has no such option."""
    if not words:
        return {}
    known = {option.name: option for option in installed().testbeds.make(testbed).options()}
    options, waiting = {}, list(words)
    while waiting:
        word, separator, value = waiting.pop(0).partition("=")
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or name not in known or not (separator or waiting):
            shown = ", ".join(f"--{n}" for n in known) or "none"
            raise T2TError(
                f"there is no option {ascii(word)[:60]}", cause=f"options of {testbed}: {shown}", next="t2t run --help"
            )
        options[name] = value if separator else waiting.pop(0)
        known[name].parse(options[name])
    return options


def print_dry_run(experiment: Experiment, published: Mapping[str, Any], gpus: Gpus | None) -> None:
    """Print every hyperparameter beside the published value, including the trainer's defaults and constants and how the
    designer is asked, then the trainer's plan. Raises T2TError for what no run would accept, and for what the GPUs could not
    hold."""
    parts, theirs = prepare(experiment, dry=True), dict(flat(published))
    columns = ("setting", "this run", "paper") if theirs else ("setting", "this run")  # few testbeds have a paper
    ours = resolved(
        experiment, parts.testbed, parts.trainer, parts.designer, {module.spec: module.module for module in parts.context}
    )
    rows = []
    for key, value in flat(ours):
        rows.append(Row([key, str(value), str(theirs.pop(key, NOT_GIVEN))][: len(columns)]))
    rows += [Row([key, "(no such setting here)", str(value)]) for key, value in theirs.items()]
    table = Table([Column(name, words=True) for name in columns], rows)
    terminal.print_table(table, terminal.console())
    plan = getattr(parts.trainer, "plan", None)
    text = plan(parts.order, gpus or gpus_here()) if plan else ""
    if text:
        click.echo("\n" + plain_lines(text))
