"""`t2t export`: write a testbed's sets, or the instances of a file, in a format that other tools read."""

from __future__ import annotations

from pathlib import Path

import click

from t2t_core.cli.by_testbed import testbed_option
from t2t_core.cli.generate import check_form
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.store import formats, instance_files
from t2t_core.store.formats import About


@click.command(no_args_is_help=True)
@testbed_option
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--set", "names", multiple=True, metavar="NAME", help="These sets of the testbed, or `all`, instead of a file.")
@click.option(
    "--format", "form", required=True, metavar="NAME", help="As in `t2t generate`; an unknown name lists the known ones."
)
@click.option("--prompt-format", default="", help="The wording of the questions.  [default: the testbed's first]")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file or folder to write.")
def export(testbed: str, file: Path | None, names: tuple[str, ...], form: str, prompt_format: str, out: Path) -> None:
    """Write sets, or the instances of FILE, in another format.

    Several sets become a folder. `bench --instances` and `show` read the result, if the format can be read back.
    """
    world = installed().testbeds.make(testbed)
    check_form(world, form, out, asking=False)
    if (file is None) == (not names):
        raise T2TError("name a file or sets", next=f"t2t export --testbed {world.name} --set all --format {form} --out {out}")
    known = tuple(world.protected_sets())
    set_names = known if names == ("all",) else names
    sets = [world.load_set(name) for name in set_names] if file is None else [instance_files.file_set(world, file)]
    formats.write(world, form, sets, out, About(prompt_format))
    total = sum(len(each.instances) for each in sets)
    click.echo(f"{total} instances of {', '.join(each.name for each in sets)} in {out}", err=True)
