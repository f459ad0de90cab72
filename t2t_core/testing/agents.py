"""check_agent"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import EpisodeState, Exchange, Tried
from t2t_core.records import AgentTurn, Response, ToolCall
from t2t_core.testing.base import as_json, calling, mapping, require, short


def check_agent(agent: Any, family: Any) -> None:
    """The contract of `hookspecs.JobAgent`: at the beginning, after scores were told, after a submission that was refused, and
    in an episode that counts, it returns an `AgentTurn` of the right types, and leaves its state as it was. If it has `act_all`,
    it returns one such turn for each of these states when it is asked about all of them at once.

    Args:
        agent: what your factory makes.
        family: a task family, made by its name, `installed().families.make(NAME)`.
    """
    with calling("describe()"):
        as_json(dict(mapping(agent.describe(), "describe()")), "describe()")
    states = list(_states(family))
    for when, state in states:
        before = repr(state)
        with calling(f"act() {when}"):
            turn = agent.act(state)
        require(repr(state) == before, f"act() {when} changed its state", next="copy before you edit")
        _turn(turn, f"act() {when}")
    if hasattr(agent, "act_all"):
        _all_at_once(agent, [state for _, state in states])


def _all_at_once(agent: Any, states: Sequence[EpisodeState]) -> None:
    before = repr(states)
    with calling("act_all()"):
        turns = agent.act_all(states)
    require(repr(states) == before, "act_all() changed its states", next="copy before you edit")
    listed = isinstance(turns, Sequence) and not isinstance(turns, str)
    require(listed, f"act_all() returned {type(turns).__name__}, not a list of AgentTurn")
    fault = f"act_all() returned {len(turns)} turns for {len(states)} states"
    require(len(turns) == len(states), fault, next="return one turn for each state, in their order")
    for turn in turns:
        _turn(turn, "act_all()")


def _turn(turn: Any, called: str) -> None:
    require(isinstance(turn, AgentTurn), f"{called} returned {type(turn).__name__}, not an AgentTurn")
    require(isinstance(turn.text, str), f"AgentTurn.text is {short(turn.text)}, no text")
    for call in turn.calls:
        require(isinstance(call, ToolCall), f"AgentTurn.calls holds {short(call)}, no ToolCall")
        texts = isinstance(call.name, str) and isinstance(call.arguments, str)
        require(texts, f"a call's name or arguments are no texts: {short(call)}", next="arguments are JSON text")
    answered = turn.response is None or isinstance(turn.response, Response)
    require(answered, f"AgentTurn.response is {short(turn.response)}, no Response")


def _states(family: Any) -> Iterator[tuple[str, EpisodeState]]:
    budget = family.budget
    start = EpisodeState(family, family.description, (), (), budget.submissions, budget.tokens, budget.turns, seed=7)
    yield "at the beginning", start
    told = "\n".join(f"{base}: 0.{number}00" for number, base in enumerate(family.bases, 1))
    scores = Exchange(AgentTurn("", (ToolCall("1", "get_baseline_scores", "{}"),)), (told,))
    heard = replace(start, exchanges=(scores,), turns=start.turns - 1)
    yield "after the scores of the bases", heard
    key = next(iter(family.bounds))
    refused = Exchange(AgentTurn("", (ToolCall("1", "submit_job", "{}"),)), (f"1 thing is wrong with the job: {key}",))
    faults = (T2TError(f"{key} is out of bounds", where=f"job.toml, {key}", next="write another value"),)
    yield "after a submission that was refused", replace(heard, exchanges=(scores, refused), failures=faults, submissions=1)
    past = (Tried({"base": next(iter(family.bases))}, 0.4, 0.1), Tried({}, 0.5, 0.2))
    yield "in an episode that counts", replace(start, past=past, final=True)
