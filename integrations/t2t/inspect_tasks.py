"""The testbeds as tasks of Inspect AI: `inspect eval t2t/mapf_frozenlake -T agents=3,4 --model openai/gpt-5`.

The sets, the questions and the verifier are those of `t2t bench`, so the figures are the same. `t2t bench --policy answers:LOG`
puts a log on our board. A game is played turn by turn. The log contains the sets' hashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import Metric, Score, Scorer, Target, grouped, mean, metric, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from t2t_core import __version__
from t2t_core.conversation import judge, opening, replies
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message, Response
from t2t_core.reward import reward

MAX_TOKENS = 4096  # the default of `t2t bench`


@task
def mapf_frozenlake(
    agents: str | int | list[int] = "3,4,5",
    limit_per_column: int | None = None,
    prompt_format: str = "",
    max_tokens: int = MAX_TOKENS,
) -> Task:
    """Multi-agent path finding on frozen lakes: the frozen sets with 3, 4 and 5 agents.

    Args:
        agents: which of the sets. limit_per_column: the most instances of each map size. prompt_format: how it is asked.
        max_tokens: the most tokens in an answer.
    """
    return testbed("mapf-frozenlake", limit_per_column, prompt_format, max_tokens, agents=agents)


@task
def tictactoe(limit_per_column: int | None = None, prompt_format: str = "", max_tokens: int = MAX_TOKENS) -> Task:
    """Tic-tac-toe in turns, against a random, an optimal and a second optimal opponent."""
    return testbed("tictactoe", limit_per_column, prompt_format, max_tokens)


@task
def testbed(
    name: str, limit_per_column: int | None = None, prompt_format: str = "", max_tokens: int = MAX_TOKENS, **options: Any
) -> Task:
    """Any installed testbed, by its name. `options` are its own, as `t2t bench --testbed NAME --help` lists them."""
    bed: AnyTestbed = installed().testbeds.make(name)
    formats = [form for form in bed.prompt_formats if form not in bed.memoryless]
    form = prompt_format or formats[0]
    if form not in formats:
        raise T2TError(f"there is no prompt format {form!r} here", where="-T prompt_format", next=f"use {', '.join(formats)}")
    sets = [bed.load_set(each) for each in bed.set_names(_parsed(bed, options))]
    samples = [sample for frozen in sets for sample in _samples(bed, frozen, form, limit_per_column)]
    return Task(
        dataset=MemoryDataset(samples, name=bed.name),
        solver=conversation(name, form) if bed.turns > 1 else generate(),
        scorer=_scorer(bed, form),
        config=GenerateConfig(temperature=0.0, max_tokens=max_tokens),
        version=__version__,
        metadata={"sets": {frozen.name: frozen.sha256 for frozen in sets}, "reader": bed.reader, "prompt_format": form},
    )


def _parsed(bed: AnyTestbed, options: dict[str, Any]) -> dict[str, Any]:
    """The testbed's options; `-T agents=3,4` arrives as a list, `-T agents=3` as a number."""
    known = {option.name: option for option in bed.options()}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise T2TError(f"{bed.name} has no option {unknown[0]!r}", where="-T", next=f"use {', '.join(known) or 'none'}")
    texts = {name: ",".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in options.items()}
    return {name: option.parse(texts.get(name, option.default)) for name, option in known.items()}


def _samples(bed: AnyTestbed, given: Any, form: str, limit: int | None) -> Sequence[Sample]:
    taken: Counter[tuple[str, str]] = Counter()
    samples = []
    for instance in given.instances:
        place = bed.place(instance)
        taken[place.table, place.column] += 1
        if limit is None or taken[place.table, place.column] <= limit:
            where = {"table": place.table, "place": f"{place.table}, {place.column}"}
            facts = {"set": given.name, **where, "instance": instance.to_dict()}
            samples.append(Sample(id=instance.id, input=_messages(opening(bed, instance, form)), metadata=facts))
    return samples


def _messages(messages: Sequence[Message]) -> list[Any]:
    kinds = {"user": ChatMessageUser, "tool": ChatMessageUser, "system": ChatMessageSystem}
    return [kinds[message.role](content=message.content) for message in messages]


@solver
def conversation(name: str, form: str) -> Solver:
    """Plays a game to its end: the model moves, the testbed replies."""
    bed = installed().testbeds.make(name)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        instance, said = bed.read_instance(state.metadata["instance"]), list[Message]()
        while True:
            state = await generate(state)
            said.append(Message("assistant", state.output.completion))
            answer = replies(bed, instance, said, form)
            if not answer:
                return state
            said += answer
            state.messages.extend(_messages(answer))

    return solve


@metric
def table() -> Metric:
    """The mean over each table of the board."""
    return grouped(mean(), "table", all=False)


@metric
def column() -> Metric:
    """The mean over each column of each table."""
    return grouped(mean(), "place", all=False)


def _scorer(bed: AnyTestbed, form: str) -> Scorer:
    rates = [metric for metric in bed.metrics if metric.kind == "rate"]
    named = {rate.name: [mean(), stderr(), table(), column()] for rate in rates}

    @scorer(metrics={**named, "reward": [mean()], "*": [mean()]})
    def verdict() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            instance = bed.read_instance(state.metadata["instance"])
            judgement = judge(bed, instance, _said(state, len(opening(bed, instance, form))), form)
            response = Response(state.output.completion)
            value = {rate.name: float(rate.value(judgement, response) or 0.0) for rate in rates}
            checks = {f"check_{name}": float(held) for name, held in judgement.checks.items()}
            told = "\n".join(f"{name}: {fault.message}" for name, fault in judgement.faults.items()) or "all checks hold"
            worth = reward(bed, instance, judgement, {})
            return Score(value={**value, "reward": worth, **checks}, answer=response.text[-600:], explanation=told)

        return score

    return verdict()


def _said(state: TaskState, opened: int) -> tuple[Message, ...]:
    """What was said after the opening. The environment's part is played again from the model's words."""
    spoken = [m for m in state.messages[opened:] if m.role in ("assistant", "user")]
    return tuple(Message("assistant" if m.role == "assistant" else "user", m.text) for m in spoken)
