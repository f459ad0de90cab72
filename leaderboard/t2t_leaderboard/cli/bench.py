"""`t2t bench`: the valid/optimal leaderboard."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from t2t_core.cli.by_testbed import WithOptions, options_of, testbed_option
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import Progress
from t2t_core.evaluation.evaluate import Outcome
from t2t_core.records import Sampling
from t2t_core.settings import refuse_secrets
from t2t_core.store.folders import read_text
from t2t_core.store.interrupts import Interrupts
from t2t_core.store.parts import Shard
from t2t_core.text import one_line

if TYPE_CHECKING:
    from t2t_leaderboard.runner import Request

_MAX_SYSTEM_PROMPT = 1 << 20  # bytes
_PLAIN_SECONDS = 10.0  # between two lines if no bar can be drawn


_OPTIONS: list[Callable[[Any], Any]] = [
    testbed_option,
    click.option("--policy", "policies", multiple=True, metavar="SPEC",
                 help="Who answers (see t2t plugins). Repeatable.  [default: the testbed's own baselines]"),  # fmt: skip
    click.option("--limit", type=int, help="Only the first N instances of each column (they are balanced)."),
    click.option("--samples", type=int, default=1, show_default=True,
                 help="Answers per instance; several give pass@k, the majority's plan and the best of k."),  # fmt: skip
    click.option("--temperature", type=float, default=0.0, show_default=True, help="0 is greedy."),
    click.option("--max-tokens", type=int, default=4096, show_default=True, help="The most response tokens per answer."),
    click.option("--thinking/--no-thinking", default=None, help="The model's switch, if it has one.  [default: the model's]"),
    click.option("--concurrency", type=int, help="Requests to an endpoint at once."),
    click.option("--base-url", "base_urls", multiple=True, metavar="URL",
                 help="Address of an OpenAI-compatible endpoint. Repeatable, for the servers of one model."),  # fmt: skip
    click.option("--max-usd", type=float, help="Stop before the next answer once this much is spent."),
    click.option("--prompt-format", default="", help="How the question is worded.  [default: the testbed's first]"),
    click.option("--system-prompt", default="", metavar="TEXT|@FILE",
                 help="System message given to every policy before the question."),  # fmt: skip
    click.option("--instances", type=click.Path(path_type=Path), help="Your own set: JSON Lines, or a form of `t2t export`."),
    click.option("--shard", metavar="I/N", help="Ask only about the I-th of N equal parts; `t2t merge` joins their folders."),
    click.option("--twin", type=int, metavar="SEED", help="A fresh set of the same distribution instead of the frozen one."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed for policies that draw."),
    click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: runs/bench-..., named after the command]"),
    click.option("--reported/--no-reported", default=True, help="Rows of the paper beside the measured ones.  [default: yes]"),
    click.option("--answer-pages/--no-answer-pages", default=None,
                 help="A page of every row's answers, each with its picture.  [default: up to 5,000 answers]"),  # fmt: skip
    click.option("--export-prompts", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
                 help="Write what would be asked, and ask nobody; --policy answers:FILE takes the answers back."),  # fmt: skip
    click.option("--format", "form", type=click.Choice(["jsonl", "openai-batch"]), default="jsonl", show_default=True,
                 help="Of --export-prompts."),  # fmt: skip
    click.option("--model", default="", help="The model that an openai-batch asks."),
]


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(cls=WithOptions)
@_with_options
def bench(**given: Any) -> int:
    """Ask policies for answers to the evaluation sets and print the leaderboard.

    Every answer is on disk as it comes; Ctrl-C loses none, and the same command asks only for what is missing. Writes
    leaderboard.json, .md and .html into the folder, and pages of the answers. Settings of one policy go into its SPEC, e.g.
    `endpoint:my-model,base_url=http://localhost:8000/v1,temperature=0.6`. Keys come from the environment only.
    """
    from t2t_core.report import terminal
    from t2t_leaderboard import runner
    from t2t_leaderboard.board_document import board_document

    if given["export_prompts"]:
        return _export(given)
    console = terminal.console()
    listener = Display(Console(stderr=True))
    with Interrupts():
        try:
            result = runner.run(_request(given), listener)
        finally:
            listener.close()
    terminal.show(board_document(result.board, result.verification.record()), console)
    console.print(f"\n{result.folder}/leaderboard.html", soft_wrap=True, highlight=False, markup=False)
    for policy in result.ended.stopped:
        console.print(f"the budget ended {policy} early; the same command with a larger --max-usd continues", markup=False)
    for policy in result.ended.unanswered:
        console.print(f"no question to {policy} was answered; the same command asks again", markup=False)
    for policy in result.ended.failed:
        reason = f" ({listener.reasons[policy]})" if policy in listener.reasons else ""
        console.print(f"{policy} failed before it finished{reason}; the same command continues", markup=False)
    return 1 if result.ended.failed or result.ended.unanswered or not result.verification.verified else 0


def _export(given: Mapping[str, Any]) -> int:
    from t2t_leaderboard import prompts, runner

    if given["policies"]:
        raise T2TError("--export-prompts asks no policy", next="leave --policy out; --policy answers:FILE takes the answers back")
    path = given["export_prompts"]
    count = prompts.export(runner.questions(_request(given)), path, given["form"], given["model"])
    click.echo(f"{count:,} questions in {path}")
    return 0


def _request(given: Mapping[str, Any]) -> Request:
    from t2t_leaderboard.runner import Request

    for name in ("temperature", "max_usd"):
        if given[name] is not None and not (math.isfinite(given[name]) and given[name] >= 0):
            raise T2TError(f"--{name.replace('_', '-')} must be a number of at least 0")
    for name in ("max_tokens", "concurrency"):
        if given[name] is not None and given[name] < 1:
            raise T2TError(f"--{name.replace('_', '-')} must be at least 1")
    shard = Shard.parse(given["shard"]) if given["shard"] is not None else None
    shared = {"base_url": ",".join(given["base_urls"])} if given["base_urls"] else {}
    shared |= {"concurrency": str(given["concurrency"])} if given["concurrency"] is not None else {}
    return Request(
        testbed=given["testbed"],
        policies=given["policies"],
        options={o.name: o.parse(given[f"testbed_{o.name}"]) for o in options_of(given["testbed"])},
        sampling=Sampling(given["temperature"], given["max_tokens"], given["thinking"]),
        shared=shared,
        system_prompt=_system_prompt(given["system_prompt"]),
        shard=(shard.number, shard.of) if shard else None,
        **{name: given[name] for name in _AS_GIVEN},
    )


_AS_GIVEN = ("limit", "samples", "prompt_format", "seed", "twin", "instances", "out", "max_usd", "reported", "answer_pages")


def _system_prompt(text: str) -> str:
    """The text of `--system-prompt`, or of the file that it names. Raises T2TError if it is empty or contains part of a key."""
    said = read_text(Path(text[1:]), _MAX_SYSTEM_PROMPT).strip() if text.startswith("@") else text.strip()
    if text and not said:
        raise T2TError("the system prompt is empty", where="--system-prompt", next="leave it out, or give it words")
    refuse_secrets({"system_prompt": said}, "--system-prompt")
    return said


class Display:
    """Progress: a bar on a terminal, else a line from time to time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._next_line = 0.0
        self.reasons: dict[str, str] = {}  # why policies failed, repeated under the tables

    def start(self, policy: str, number: int, of: int) -> None:
        self._label = f"{policy[:40]} ({number}/{of})"
        self._next_line = time.monotonic() + _PLAIN_SECONDS
        if self._console.is_terminal:
            columns = [TextColumn("{task.description}", markup=False), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn()]
            self._bar = Bar(*columns, TextColumn("{task.fields[facts]}", markup=False), console=self._console, transient=True)
            self._task = self._bar.add_task(self._label, total=None, facts="")
            self._bar.start()

    def progress(self, progress: Progress) -> None:
        if self._bar and self._task is not None:
            self._bar.update(self._task, total=progress.total, completed=progress.done, facts=_facts(progress))
        elif time.monotonic() > self._next_line:
            self._next_line = time.monotonic() + _PLAIN_SECONDS
            eta = f", {progress.eta:.0f} s to go" if progress.eta is not None else ""
            self.note(f"{self._label}: {progress.done}/{progress.total}, {_facts(progress)}{eta}")

    def close(self) -> None:
        """Give the terminal back, whatever happened."""
        self._stop()

    def _stop(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None

    def end(self, policy: str, outcome: Outcome) -> None:
        self._stop()
        for note in outcome.notes:
            self.note(note)
        p = outcome.progress
        end = f"; {outcome.stopped}" if outcome.stopped else ""
        self.note(f"{self._label}: {p.done}/{p.total}, {p.asked} asked now, {_facts(p)}{end}")
        if p.errors and p.last_error:
            self.note(f"  the last error: {one_line(p.last_error)}; the same command asks for these answers again")

    def failed(self, policy: str, error: T2TError) -> None:
        self._stop()
        self.reasons[policy] = error.what
        self.note(f"{self._label}: {error}")

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _facts(progress: Progress) -> str:
    facts = [f"{progress.rate:,.1f}/s", f"{progress.errors} errors"]
    if progress.tokens:
        facts.append(f"{progress.tokens:,} tokens")
    if progress.cost_usd:
        facts.append(f"${progress.cost_usd:,.4f}")
    return ", ".join(facts)
