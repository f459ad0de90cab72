"""Commands that depend on the testbed named on their own command line: its options, or its own form of the command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import click

from t2t_core.plugins import installed
from t2t_core.records import Option
from t2t_core.registry import Entry, Spec


class _Default(click.Option):
    """The option --testbed; without it, the first testbed that was registered is meant."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        return installed().testbeds.default


_SHOWN: dict[str, Any] = {"metavar": "NAME", "help": "Which task (see t2t plugins; default: the first of them registered)."}


def testbed_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --testbed; the command gets its value by keyword."""
    return click.option("--testbed", cls=_Default, **_SHOWN)(command)


def named(args: Sequence[str]) -> str:
    """The value of --testbed, before click reads the rest."""
    for place, word in enumerate(args):
        if word == "--testbed" and place + 1 < len(args):
            return args[place + 1]
        if word.startswith("--testbed="):
            return word.partition("=")[2]
    return installed().testbeds.default


def options_of(testbed: str) -> list[Option]:
    """What the testbed adds; nothing if it is not installed (the command itself will say so)."""
    known = Spec.parse(testbed).name in installed().testbeds
    return list(installed().testbeds.make(testbed).options()) if known else []


class WithOptions(click.Command):
    """A command that gets the options of the testbed named; their values come by keyword, `testbed_NAME`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["t2t.testbed"] = named(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        own = [_as_click(option) for option in options_of(ctx.meta.get("t2t.testbed", installed().testbeds.default))]
        return [*params[:2], *own, *params[2:]]


def _as_click(option: Option) -> click.Option:
    names = [f"--{option.name.replace('_', '-')}", f"testbed_{option.name}"]
    return click.Option(names, default=option.default, show_default=True, help=option.help)


class WithForms(click.Command):
    """A command that a testbed may bring its own form of (`Testbed.commands`); this one is for the others."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        own = self._form_of(named(args))
        if own is None:
            return super().make_context(info_name, args, parent, **extra)
        return own.make_context(info_name, args, parent, **extra)

    def _form_of(self, testbed: str) -> click.Command | None:
        """What the testbed brings, with the option that named it; None if it brings nothing. T2TError if there is no such
        testbed, or what it names cannot be imported."""
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
