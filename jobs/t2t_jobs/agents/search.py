"""Agents that search without reading the task: random jobs, and successive halving. They know the bounds and the rewards of
earlier episodes, and nothing else. In a final episode they submit the best job so far."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import EpisodeState, Tried
from t2t_core.records import AgentTurn
from t2t_core.seeding import Stream
from t2t_core.settings import integer, read_settings
from t2t_jobs.agents.drawing import draw, submit
from t2t_jobs.family import Family, Value

FIDELITY = "generation.samples"  # lowering it makes a job cheaper


def _nothing(argument: str, name: str) -> None:
    if argument:
        raise T2TError(f"the agent {name} takes no argument", where=f"agent {name}:{argument[:60]}")


class RandomSearch:
    """A random job in every episode."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        _nothing(argument, "random-search")
        read_settings(settings or {}, "agent random-search", {})

    def act(self, state: EpisodeState) -> AgentTurn:
        if state.final and state.past:
            best = max(state.past, key=lambda tried: tried.reward)
            return submit(best.values, "the best job so far")
        number = len(state.exchanges)
        return submit(draw(state.family, Stream.of(state.seed, "random search", number)), "a random job")

    def describe(self) -> Mapping[str, Any]:
        return {}


class SuccessiveHalving:
    """Runs many random jobs on few samples, and the best of them on more (Jamieson and Talwalkar, 2016; the sizes are our
    choice).

    Args:
        settings: `jobs`, the number of episodes (27 + 9 + 3 = 39); `keep` (3): one in so many jobs moves on to the next rung,
            with so many times the samples; `rungs` (3).
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        _nothing(argument, "successive-halving")
        readers = {"jobs": integer(1, 1_000_000), "keep": integer(2, 100), "rungs": integer(1, 10)}
        values = {"jobs": 39, "keep": 3, "rungs": 3, **read_settings(settings or {}, "agent successive-halving", readers)}
        self.keep, self.widths = values["keep"], _widths(values["jobs"], values["keep"], values["rungs"])

    def act(self, state: EpisodeState) -> AgentTurn:
        past = state.past
        rung, index = self._rung(len(past))
        if (state.final or rung == len(self.widths)) and past:
            top = past[sum(self.widths[:-1]) :] or past
            return submit(_best(top)[0].values, "the best job of the highest rung")
        if rung == 0:
            number = len(past) + 1000 * len(state.exchanges)
            drawn: Mapping[str, Any] = draw(state.family, Stream.of(state.seed, "successive halving", number))
        else:
            begin = sum(self.widths[: rung - 1])
            below = past[begin : begin + self.widths[rung - 1]]
            drawn = {**_best(below)[index].values, **self._full(_best(below)[index].values, rung - 1)}
        return submit(self._cheaper(state.family, drawn, rung), f"rung {rung + 1} of {len(self.widths)}")

    def _rung(self, count: int) -> tuple[int, int]:
        """The rung of the next episode, and its index there."""
        for rung, width in enumerate(self.widths):
            if count < width:
                return rung, count
            count -= width
        return len(self.widths), count

    def _share(self, rung: int) -> float:
        return float(self.keep) ** (rung + 1 - len(self.widths))

    def _full(self, values: Mapping[str, Any], rung: int) -> Mapping[str, Any]:
        """The samples that a job of this rung would have on the highest rung."""
        return {FIDELITY: values[FIDELITY] / self._share(rung)} if FIDELITY in values else {}

    def _cheaper(self, family: Family, values: Mapping[str, Any], rung: int) -> dict[str, Value]:
        bound = family.bounds.get(FIDELITY)
        if bound is None:
            return dict(values)
        full = float(values.get(FIDELITY, family.start["generation"]["samples"]))
        samples = min(max(round(full * self._share(rung)), int(bound.low)), int(bound.high))
        return {**values, FIDELITY: samples}

    def describe(self) -> Mapping[str, Any]:
        return {"rungs": json.dumps(self.widths)}


def _widths(jobs: int, keep: int, rungs: int) -> list[int]:
    """How many jobs each rung has. The first rung is as large as the total allows; every rung has at least one job."""
    whole = sum(keep**-rung for rung in range(rungs))
    first = max(1, int(jobs / whole + 1e-9))
    return [max(1, first // keep**rung) for rung in range(rungs)]


def _best(tried: Sequence[Tried]) -> list[Tried]:
    return sorted(tried, key=lambda trial: -trial.reward)
