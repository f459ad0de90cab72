"""Commands that depend on the testbed named on their command line: it adds options, or has its own form of the command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import click

from t2t_core.plugins import installed
from t2t_core.records import Option
from t2t_core.registry import Entry, Spec


class _Default(click.Option):
    """The option --testbed. Its default is the first testbed that was registered."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        return installed().testbeds.default


_SHOWN: dict[str, Any] = {"metavar": "NAME", "help": "The task (see t2t plugins; default: the first one registered)."}


def testbed_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --testbed; the command gets its value by keyword."""
    return click.option("--testbed", cls=_Default, **_SHOWN)(command)


def named(args: Sequence[str]) -> str:
    """The value of --testbed, before click parses the rest of the line."""
    for index, word in enumerate(args):
        if word == "--testbed" and index + 1 < len(args):
            return args[index + 1]
        if word.startswith("--testbed="):
            return word.partition("=")[2]
    return installed().testbeds.default


def options_of(testbed: str) -> list[Option]:
    """The options that the testbed adds; none if it is not installed, which the command itself will report."""
    known = Spec.parse(testbed).name in installed().testbeds
    return list(installed().testbeds.make(testbed).options()) if known else []


class WithOptions(click.Command):
    """A command that gets the options of the named testbed. Their values arrive by keyword, as `testbed_NAME`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read --testbed first, because the other options depend on it."""
        ctx.meta["t2t.testbed"] = named(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's parameters with those that the testbed adds, the latter after the first two."""
        params = super().get_params(ctx)
        own = [_as_click(option) for option in options_of(ctx.meta.get("t2t.testbed", installed().testbeds.default))]
        return [*params[:2], *own, *params[2:]]


def _as_click(option: Option) -> click.Option:
    names = [f"--{option.name.replace('_', '-')}", f"testbed_{option.name}"]
    return click.Option(names, default=option.default, show_default=True, help=option.help)


class WithForms(click.Command):
    """A command that a testbed may replace with its own form (`Testbed.commands`). This one serves the others."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the line by the testbed's own form of the command, if it brings one."""
        own = self._form_of(named(args))
        if own is None:
            return super().make_context(info_name, args, parent, **extra)
        return own.make_context(info_name, args, parent, **extra)

    def _form_of(self, testbed: str) -> click.Command | None:
        """The testbed's own command, with the option that named the testbed; None if it has none. Raises T2TError if there is
        no such testbed, or if what it names cannot be imported."""
        if not testbed:
            return None
        target = installed().testbeds.make(testbed).commands.get(str(self.name))
        if target is None:
            return None
        brought_by = installed().testbeds.find(Spec.parse(testbed).name)
        name = f"t2t {self.name} --testbed {testbed}"
        command: click.Command = copy(Entry(name, target, "", brought_by.distribution, brought_by.plugin).load())
        command.params = [_Default(["--testbed"], expose_value=False, **_SHOWN), *command.params]
        return command
