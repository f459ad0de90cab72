"""`t2t solve`: exact optima, for testbeds that have a solver."""

from __future__ import annotations

import click

from t2t_core.cli.by_testbed import WithForms, testbed_option
from t2t_core.errors import T2TError


@click.command(cls=WithForms, context_settings={"ignore_unknown_options": True})
@testbed_option
@click.argument("arguments", metavar="[FILE]...", nargs=-1, type=click.UNPROCESSED)
def solve(testbed: str, arguments: tuple[str, ...]) -> None:
    """Solve instances exactly. Only testbeds with a solver have this command; --testbed NAME --help shows the options of
    one."""
    raise T2TError(
        f"the testbed {testbed} has no solver",
        cause="it has no command solve (Testbed.commands)",
        next=f"t2t bench --testbed {testbed} asks policies for answers",
    )
