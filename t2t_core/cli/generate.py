"""`t2t generate`: instances of any testbed from a configuration as JSON Lines, or answers to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from t2t_core.cli import answer_options
from t2t_core.cli.by_testbed import WithForms, testbed_option
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, Testbed
from t2t_core.plugins import installed
from t2t_core.records import ConfigurationT, InstanceSet
from t2t_core.run.sets import protected, requested
from t2t_core.settings import assignment
from t2t_core.store import folders, formats, instance_files, jsonlines, parts
from t2t_core.store.formats import About
from t2t_core.store.instance_files import digest_of
from t2t_core.store.parts import Shard
from t2t_core.testbed import RequestT

COUNT = click.option("--count", type=click.IntRange(1), default=1000, show_default=True, help="Number of instances.")
SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed gives the same bytes.")
EXCLUDE = click.option("--exclude", type=click.Path(path_type=Path), multiple=True,
                       help="Never draw the instances in this file (repeatable).")  # fmt: skip
FORMAT = click.option("--format", "form", metavar="NAME", default="jsonl", show_default=True,
                      help="jsonl, parquet, hf (a data set with its card), verl, skyrl, or one of the testbed's.")  # fmt: skip
SHARD = click.option("--shard", metavar="I/N", help="Draw only part I of N; `t2t merge` joins the parts' files.")
OUT = click.option("--out", type=click.Path(path_type=Path, allow_dash=True), help="The file to write; - for standard output.")


@click.command(cls=WithForms, no_args_is_help=True)
@testbed_option
@click.option("--configuration", help='A JSON file for the testbed\'s generator, or "random" (from --seed).')
@COUNT
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="As under [generation] of a run (repeatable).")
@SEED
@EXCLUDE
@FORMAT
@SHARD
@OUT
@answer_options.answer_options
def generate(
    testbed: str,
    configuration: str | None,
    count: int,
    settings: tuple[str, ...],
    seed: int,
    exclude: tuple[Path, ...],
    form: str,
    shard: str | None,
    out: Path | None,
    **answers: Any,
) -> None:
    """Draw instances from a configuration; never one of an evaluation or validation set.

    With --answers-from POLICY, that policy is asked about the instances, and OUT gets the answers that the verifier passed, as
    chat messages to learn from (the trainer trl-sft reads the file). Every answer is kept in OUT.asked as it arrives, so the
    same command continues after a kill.
    """
    world, asking = installed().testbeds.make(testbed), answers["answers_from"] is not None
    given = answer_options.read_instances(world, answers)
    out = checked(configuration, out, given is not None, asking, testbed)
    check_form(world, form, out, asking)
    part = check_shard(shard, form, out, asking)
    if given is None:
        options = dict(assignment(text, "--set") for text in settings)
        if exclude:
            own = [i for path in exclude for i in instance_files.read_instances(world, path)]
            options["exclude"] = protected(world, own)
        request = requested(world, count, options, "--set")
        drawn_from = configured(world, str(configuration), request, seed)
        given = world.generate(drawn_from, request, seed)
        order_settings = {"count": count, "seed": seed, **dict(assignment(text, "--set") for text in settings)}
        about = About(answers["prompt_format"], order_settings, drawn_from.to_dict())
        if part:  # this generator has no parts: draw everything and keep every n-th instance
            order = parts.Order.of(about, options.get("exclude", ()))
            pairs = list(enumerate(given))[part.number - 1 :: part.of]
            parts.write(world, pairs, len(given), part, order, about, out)
            given = [instance for _, instance in pairs]
        elif not asking:
            write_instances(world, given, out, form, about)
        click.echo(_table(world, given, "drawn" if asking else where(out)), err=True)
    if asking:
        answer_options.ask(world, given, answers, seed, out)


def checked(configuration: str | None, out: Path | None, given: bool, asking: bool, testbed: str = "") -> Path:
    """The file to write. Raises T2TError if an option is missing or superfluous."""
    if given and configuration is not None:
        raise T2TError(
            "--configuration and --instances exclude each other", cause="instances are either drawn or read from a file"
        )
    required = (("--configuration", configuration or given), ("--out", out))
    missing = [name for name, value in required if not value]
    if missing or out is None:
        named = "" if testbed in ("", installed().testbeds.default) else f"--testbed {testbed} "
        raise T2TError(
            f"{' and '.join(missing)} must be given",
            next=f"t2t generate {named}--configuration random --count 1000 --out instances.jsonl",
        )
    folders.refuse_device(out)
    if asking and str(out) == "-":
        raise T2TError("answers need a file: the log of the questions is kept beside it", next="--out answers.jsonl")
    return out


def configured(testbed: Testbed[Any, ConfigurationT, RequestT], name: str, request: RequestT, seed: int) -> ConfigurationT:
    """The configuration in a JSON file, or a random one, which is then printed to standard error."""
    if name == "random":
        drawn = testbed.random_configuration(request, seed)
        click.echo(jsonlines.dumps(drawn.to_dict()), err=True)
        return drawn
    return configuration_in(testbed, Path(name))


def configuration_in(testbed: Testbed[Any, ConfigurationT, Any], path: Path) -> ConfigurationT:
    """The configuration in a JSON file; T2TError says what is wrong with it."""
    try:
        data = folders.read_json(path)
    except T2TError as error:
        raise T2TError(
            "the configuration cannot be read",
            where=error.where,
            cause=error.cause or error.what,
            next=f"give a JSON file; groups of {testbed.name}: {', '.join(testbed.groups)[:200]}",
        ) from None
    try:
        return testbed.read_configuration(data)
    except T2TError as error:
        at = f"{path}, {error.where}" if error.where else str(path)
        raise T2TError(error.what, where=at, cause=error.cause, next=error.next) from None


def check_form(testbed: AnyTestbed, form: str, out: Path, asking: bool) -> None:
    """Raise T2TError, before anything is drawn, if the format is unknown or does not fit the other options."""
    known = [name for name, each in formats.of(testbed).items() if each.write]
    if form not in known:
        raise T2TError(f"there is no format {ascii(form)[:60]}", where="--format", next=f"use {', '.join(known)}")
    if form != "jsonl" and (asking or str(out) == "-"):
        what = "answers are written as JSON Lines" if asking else "only JSON Lines go to standard output"
        raise T2TError(what, where=f"--format {form}", next="leave --format out" if asking else "--out NAME")


def check_shard(text: str | None, form: str, out: Path, asking: bool) -> Shard | None:
    """The part that --shard asks for, None for the whole. Raises T2TError if it does not go with the other options."""
    if text is None:
        return None
    if asking:
        raise T2TError(
            "--shard is for drawing", next="draw the parts, merge them, and pass the file with --instances to --answers-from"
        )
    if form != "jsonl" or str(out) == "-":
        raise T2TError("a part has its own file format", where="--shard", next="give --out FILE, and --format to `t2t merge`")
    return Shard.parse(text)


def write_instances(testbed: AnyTestbed, instances: Sequence[Any], out: Path, form: str, about: About) -> None:
    """Write in the format named, or as JSON Lines to standard output if `out` is a dash."""
    if str(out) == "-":
        click.echo("".join(jsonlines.dumps(instance.to_dict()) + "\n" for instance in instances), nl=False)
    else:
        formats.write(testbed, form, [InstanceSet("default", "train", digest_of(instances), instances)], out, about)


def where(out: Path) -> str:
    """Where the instances went, in words."""
    return f"in {'standard output' if str(out) == '-' else out}"


def _table(testbed: AnyTestbed, instances: Sequence[Any], target: str) -> str:
    """How many instances each group has, as text for people."""
    counts = Counter(testbed.place(instance).group for instance in instances)
    width = max(map(len, [testbed.group, *testbed.groups]))
    rows = [f"{group:<{width}} {counts[group]:>10}" for group in testbed.groups if counts[group]]
    return "\n".join([f"{testbed.group:<{width}} {'instances':>10}", *rows, f"{len(instances)} instances {target}"])
