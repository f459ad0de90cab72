"""`t2t bench` without its printing: choose the instances, ask every policy, keep every answer, write the leaderboard."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from t2t_core.closing import close
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import Progress
from t2t_core.evaluation.evaluate import Outcome, evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Sampling
from t2t_core.store import jsonlines, locks
from t2t_core.store.instance_files import file_set
from t2t_core.store.paths import SafePath
from t2t_leaderboard import answer_pages, board, defaults, pages, rescoring
from t2t_leaderboard.folder import Bench, SelectedSet, choose, read_bench
from t2t_leaderboard.growth import grow, level, question
from t2t_leaderboard.planned import Planned, greedy, open_row, prepare, refuse_twice, row_folder
from t2t_leaderboard.records import Board
from t2t_leaderboard.schemas import MAX_SAMPLES, BenchSettings


@dataclass(frozen=True)
class Request:
    """What `t2t bench` was asked for. `options` are the testbed's own, parsed. `shared` are settings for every policy that
    declares them (`shared_settings` of its factory), e.g. base_url. `answer_pages`: whether to write pages of the answers; None
    writes them if there are not too many. `shard` (i, n): ask only about every n-th instance, starting with the i-th."""

    testbed: str
    policies: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    samples: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    prompt_format: str = ""
    system_prompt: str = ""
    seed: int = 0
    twin: int | None = None
    instances: Path | None = None
    out: Path | None = None
    max_usd: float | None = None
    shared: Mapping[str, str] = field(default_factory=dict)
    reported: bool = True
    answer_pages: bool | None = None
    shard: tuple[int, int] | None = None


class Listener(Protocol):
    """Is told about the progress of a bench."""

    def start(self, policy: str, number: int, of: int) -> None:
        """A policy is asked from now on, the `number`-th `of` so many."""
        ...
    def progress(self, progress: Progress) -> None:
        """Answers have come."""
        ...
    def end(self, policy: str, outcome: Outcome) -> None:
        """The policy has been asked everything, or its budget is spent."""
        ...
    def failed(self, policy: str, error: T2TError) -> None:
        """The policy cannot be asked; the bench goes on with the next."""
        ...
    def note(self, text: str) -> None:
        """A line for the user."""
        ...


@dataclass(frozen=True)
class Result:
    """The folder, the leaderboard, its verification, and how the policies ended."""

    folder: SafePath
    board: Board
    verification: rescoring.Verification
    ended: Ended


@dataclass(frozen=True)
class Ended:
    """The policies that failed before they finished, those that the budget stopped, and those that answered none of this
    session's questions."""

    failed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)


def run(request: Request, listener: Listener) -> Result:
    """Evaluate every policy on the chosen instances and write the leaderboard. The same request resumes.

    Raises:
        T2TError: a mistake in the request (before anything is asked), or a folder that holds another bench.
        KeyboardInterrupt: on Ctrl-C or SIGTERM; every answer is kept.
    """
    if not 1 <= request.samples <= MAX_SAMPLES:
        raise T2TError(f"--samples must lie in 1..{MAX_SAMPLES}, not {request.samples}")
    testbed: AnyTestbed = installed().testbeds.make(request.testbed)
    policies = request.policies or defaults.policies(testbed)
    planned = [prepare(text, request.sampling, request.shared) for text in policies]
    refuse_twice(planned)
    for entry in planned:
        if warning := greedy(entry, request.samples):
            listener.note(warning)
    settings, _ = _plan(testbed, request, request.limit, request.samples)
    named = _folder(settings, planned if request.policies else [], request.sampling)
    part = "-{}-of-{}".format(*request.shard) if request.shard else ""
    folder = SafePath(request.out or named.with_name(named.name + part))
    with locks.locked(folder) as stale:
        if stale:
            listener.note(stale)
        grow(folder, partial(_plan, testbed, request), request.limit, request.samples, testbed.reader)
        bench = read_bench(folder)
        level(bench)
        try:
            ended = _ask(bench, planned, request, listener)
        except KeyboardInterrupt:
            write(folder, request.reported, with_pages=False)  # what there is so far, marked as partial, and quickly
            listener.note(f"a partial leaderboard is in {folder}")
            raise
        made, verification = write(folder, request.reported, request.answer_pages)
    return Result(folder, made, verification, ended)


def questions(request: Request) -> Evaluation:
    """The questions that the request would ask; nothing is asked."""
    testbed: AnyTestbed = installed().testbeds.make(request.testbed)
    every = [i for c in _choose(testbed, request) for i in c.instances]
    return _evaluation(testbed, request, every, request.samples)


def write(folder: SafePath, reported: bool, with_pages: bool | None = None) -> tuple[Board, rescoring.Verification]:
    """Write the leaderboard of whatever the folder holds, checked, and its pages."""
    bench = read_bench(folder)
    shown = (reported, _with_answers(bench, with_pages))
    verification = rescoring.verify_answers(bench, *shown)
    made = verification.board or board.build(bench, *shown)
    board.write(folder, made)
    pages.write(folder, made, verification.record())
    if verification.board:  # there are no pages of answers that do not hold
        pages.write_answers(bench, made)
    return made, verification


def _with_answers(bench: Bench, asked: bool | None) -> bool:
    """Whether the rows' answers get pages: as the user asked, else if there are not too many answers."""
    if asked is None:
        rows = sum(row.finished for row in bench.rows())
        return rows * len(bench.evaluation(Sampling())) <= answer_pages.MOST
    return asked


def _choose(testbed: AnyTestbed, request: Request) -> list[SelectedSet]:
    if request.instances and request.twin is not None:
        raise T2TError("--instances and --twin exclude each other", cause="a twin is drawn from a named set")
    if request.limit is not None and request.limit < 1:
        raise T2TError(f"--limit must be at least 1, not {request.limit}")
    if request.instances:
        return [choose(testbed, file_set(testbed, request.instances), request.limit)]
    names = testbed.set_names(request.options)
    if request.twin is not None:
        return [choose(testbed, testbed.twin(n, request.twin), request.limit, n, request.twin) for n in names]
    return [choose(testbed, testbed.load_set(n), request.limit, n) for n in names]


def _plan(testbed: AnyTestbed, request: Request, limit: int | None, samples: int) -> tuple[BenchSettings, Sequence[SelectedSet]]:
    """The bench's settings and instances for a limit and a number of samples."""
    selected = _choose(testbed, replace(request, limit=limit))
    every = [i for c in selected for i in c.instances]
    evaluation = _evaluation(testbed, request, every, samples)
    settings = BenchSettings(
        testbed=request.testbed,
        sets=[c.record() for c in selected],
        limit=limit,
        samples=samples,
        seed=request.seed,
        prompt_format=evaluation.prompt_format,
        system_prompt=request.system_prompt,
    )
    return settings, selected


def _evaluation(testbed: AnyTestbed, request: Request, instances: Sequence[Any], samples: int) -> Evaluation:
    form, seed, system = request.prompt_format, request.seed, request.system_prompt
    return Evaluation(testbed, instances, samples, request.sampling, form, seed, system)


def _folder(settings: BenchSettings, named: Sequence[Planned], sampling: Sampling) -> Path:
    """The folder's name if the user gives none. The same command gives the same name, so that it finds what it left; so does
    another --limit or --samples, because a folder grows. Without --policy, the name leaves out the policies, because they
    depend on what is installed."""
    rows = [[p.text, p.sampling.recorded(), *([p.label] if p.label else [])] for p in named]
    digest = hashlib.sha256(jsonlines.canonical([question(settings.written()), rows, sampling.recorded()])).hexdigest()
    sets = "-".join(record.name for record in settings.sets)[:60]
    return Path("runs") / f"bench-{sets}-{digest[:8]}"


def _ask(bench: Bench, planned: Sequence[Planned], request: Request, listener: Listener) -> Ended:
    """Ask every policy in turn; one that fails does not stop the others. They share one budget."""
    ended, spent = Ended(), 0.0
    for number, entry in enumerate(planned, 1):
        listener.start(entry.shown, number, len(planned))
        meter = _Meter(listener.progress)
        try:
            left = None if request.max_usd is None else max(0.0, request.max_usd - spent)
            outcome = _row(bench, entry, request, left, meter)
        except locks.FolderLost:
            raise
        except T2TError as error:
            spent += meter.cost_usd
            listener.failed(entry.shown, error)
            ended.failed.append(entry.shown)
            continue
        finally:
            close(entry.policy)  # the next one may want the same GPU
        spent += outcome.progress.cost_usd
        if outcome.stopped:
            ended.stopped.append(entry.shown)
        if outcome.unanswered:
            ended.unanswered.append(entry.shown)
        listener.end(entry.shown, outcome)
    return ended


@dataclass
class _Meter:
    """Passes progress on, and remembers what a row has cost, because that counts against the budget even if the row fails."""

    listener: Callable[[Progress], None]
    cost_usd: float = 0.0

    def __call__(self, progress: Progress) -> None:
        self.cost_usd = progress.cost_usd
        self.listener(progress)


def _row(bench: Bench, entry: Planned, request: Request, max_usd: float | None, progress: Callable[[Progress], None]) -> Outcome:
    """Ask one policy those of the request's questions that the folder has no answer to."""
    evaluation = bench.evaluation(entry.sampling)
    folder = row_folder(bench, entry)
    open_row(bench, folder, entry, request.limit)
    now = {instance.id for instance in bench.first(request.limit)}

    number, shards = request.shard or (1, 1)

    def to_ask(index: int) -> bool:
        mine = index // evaluation.samples % shards == number - 1
        return mine and index % evaluation.samples < request.samples and evaluation.instance(index).id in now

    return evaluate(evaluation, entry.policy, folder, max_usd=max_usd, progress=progress, to_ask=to_ask)
