"""`t2t show --testbed tictactoe`: a whole game with its transcript, as text, SVG or an HTML page."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from t2t_core.cli.show import IDENTITY, OUT, SET, SOURCE, chosen_instance, read_answer, recorded_answer, verdict_lines
from t2t_core.conversation import opening, replies, said
from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import read_sampling
from t2t_core.evaluation.lines import read_turns
from t2t_core.evaluation.questions import Evaluation
from t2t_core.plugins import installed
from t2t_core.records import Message, Sampling
from t2t_core.registry import Spec
from t2t_core.store import folders
from t2t_core.text import plain_lines

if TYPE_CHECKING:
    from t2t_envs.tictactoe.instance import Instance
    from t2t_envs.tictactoe.testbed import TicTacToe


@click.command(no_args_is_help=True)
@SOURCE
@SET
@IDENTITY
@click.option("--policy", metavar="SPEC", help="Who plays the game now (see t2t plugins).")
@click.option("--answer", "answers", multiple=True, type=click.Path(path_type=Path, allow_dash=True),
              help="What the policy says: a text file a turn, - for standard input; or a bench's answers.jsonl.")  # fmt: skip
@click.option("--prompt-format", default="", help="The form of the game's messages.  [default: the policy's own, else think]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the policy's random choices.")
@click.option("--format", "form", type=click.Choice(["terminal", "svg", "html"]), default="terminal", show_default=True)
@OUT
def show(
    source: str | None,
    set_name: str | None,
    identity: str | None,
    policy: str | None,
    answers: tuple[Path, ...],
    prompt_format: str,
    seed: int,
    form: str,
    out: Path | None,
) -> None:
    """Show a game of a JSON Lines file or of a frozen set: its start, or a whole game that a policy plays or has played."""
    if policy is not None and answers:
        raise T2TError("--policy and --answer exclude each other")
    from t2t_envs.tictactoe.testbed import make

    testbed = make()
    instance = chosen_instance(testbed, source, set_name, identity)
    messages: tuple[Message, ...] = ()
    if policy is not None:
        prompt_format, messages = _played(testbed, instance, policy, prompt_format, seed)
    elif answers:
        prompt_format, messages = _recorded(testbed, instance, answers, prompt_format or testbed.prompt_formats[0])
    _write(_drawn(testbed, instance, messages, prompt_format or testbed.prompt_formats[0], form, out is None), form, out)


def _played(testbed: TicTacToe, instance: Instance, policy: str, form: str, seed: int) -> tuple[str, tuple[Message, ...]]:
    """The prompt format, and the transcript of the game that the policy plays in it."""
    spec, sampling = read_sampling(Spec.parse(policy), Sampling())
    player = installed().policies.make(spec)
    form = form or str(player.describe().get("prompt_format") or testbed.prompt_formats[0])
    evaluation = Evaluation(testbed, [instance], 1, sampling, form, seed)
    messages: tuple[Message, ...] = ()
    while True:
        ((_, response),) = player.respond([evaluation.turn(0, messages)], sampling)
        if response.error is not None:
            raise T2TError(f"the policy did not answer: {response.error}", where=policy)
        messages = (*messages, said(response))
        answer = replies(testbed, instance, messages, form)
        if not answer:
            return form, messages
        messages = (*messages, *answer)


def _recorded(testbed: TicTacToe, instance: Instance, answers: Sequence[Path], form: str) -> tuple[str, tuple[Message, ...]]:
    """The game from a bench's answers, or from one text per turn."""
    spoken: list[Message] = []
    for path in answers:
        if path.suffix == ".jsonl":
            record: dict[str, Any] = recorded_answer(instance, path)
            spoken += [said(response) for response, _ in read_turns(record, str(path))]
        else:
            spoken.append(Message("assistant", read_answer(path).strip("\n")))
    messages: tuple[Message, ...] = ()
    for message in spoken:
        messages = (*messages, message)
        messages = (*messages, *replies(testbed, instance, messages, form))
    return form, messages


def _drawn(
    testbed: TicTacToe, instance: Instance, messages: Sequence[Message], prompt_format: str, form: str, shown: bool
) -> str:
    from t2t_envs.tictactoe import render_ansi, render_html, render_svg, replay
    from t2t_envs.tictactoe.draw.frames import opponent_text

    game = replay(instance, messages, prompt_format) if messages else None
    if form == "svg":
        return render_svg(instance, game) + "\n"
    transcript = (*opening(testbed, instance, prompt_format), *messages)
    verdict = testbed.verify(instance, tuple(messages), prompt_format)
    if form == "html":
        return render_html(instance, game or replay(instance, (), prompt_format), verdict, transcript)
    about = plain_lines(f"{instance.id}: {opponent_text(instance)}".removeprefix(": "))
    color = shown and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    told = [f"--- {message.role}\n{plain_lines(message.content)}" for message in transcript]
    lines = verdict_lines(verdict) if messages else []
    return "\n\n".join([about, render_ansi(instance, game, color).rstrip(), *told, *(["\n".join(lines)] if lines else [])]) + "\n"


def _write(text: str, form: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
    else:
        folders.write_atomic(out, text.encode("utf-8", "backslashreplace"))
        click.echo(f"wrote {out}", err=True)
