"""A training stream that a designer redesigns while another framework's trainer runs; no framework is imported here.

    stream = DesignedStream(Settings(testbed="NAME", designer="rule", count=1024))
    for instance in stream.instances: ...                 # train on them
    stream.answered(instance, text)                       # each of the policy's answers, as it arrives
    stream.redesign()                                     # fresh instances from the designer's next configuration

A redesign ends a round: failures of the answers so far -> the designer's proposal -> Project -> the next configuration. Unlike
`t2t run`, which validates on a frozen set after each round, the designer sees how the *training* instances were answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, Brief, RoundState
from t2t_core.loop import context, design_step
from t2t_core.plugins import installed
from t2t_core.records import Response, Round, Scored
from t2t_core.run.sets import requested
from t2t_core.seeding import key
from t2t_core.store import jsonlines

ROUNDS = "rounds.jsonl"


@dataclass(frozen=True)
class Settings:
    """What to train on, and who designs it.

    Args:
        testbed: its name; its questions must be answered in one turn.
        designer: as `t2t plugins` lists them. One that asks the policy itself (`checkpoint`, `base`) needs a run of `t2t run`; a
            model behind an endpoint is `llm:endpoint:NAME,base_url=...`.
        context: what the designer is told, V1 to V6 or letters.
        count: instances per round.
        seed: for the instances and the first configuration.
        prompt_format: how questions are worded; "": the testbed's first.
        design_seconds: how long a design may take; if it takes longer, the configuration stays.
        out: a folder for the record of the rounds, from which a stopped training continues; "": none.
        generation: options of the testbed's request, such as {"agents": 2}.
    """

    testbed: str = ""
    designer: str = "rule"
    context: str = "V6"
    count: int = 1024
    seed: int = 0
    prompt_format: str = ""
    design_seconds: float = 600.0
    out: str = ""
    generation: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Mapping[str, Any], where: str) -> Settings:
        """Read the settings from another framework's configuration. Raises T2TError for an unknown name."""
        known = [each.name for each in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise T2TError(f"there is no setting {unknown[0]!r}", where=where, next=f"use {', '.join(known)}")
        return cls(**given)


class DesignedStream:
    """The rounds of one training. `instances` are the current round's, and `configuration` is what they were drawn from."""

    def __init__(self, settings: Settings) -> None:
        plugins = installed()
        self.settings = settings
        self.testbed: AnyTestbed = plugins.testbeds.make(settings.testbed or plugins.testbeds.default)
        if self.testbed.turns > 1:
            what = f"{self.testbed.name} is played in turns, and this stream asks once"
            raise T2TError(what, next="use a testbed of one answer, or `t2t run`, whose trainer plays")
        self.form = settings.prompt_format or self.testbed.prompt_formats[0]
        if self.form not in self.testbed.prompt_formats:
            raise T2TError(f"there is no prompt format {self.form!r}", next=f"use {', '.join(self.testbed.prompt_formats)}")
        self.designer = plugins.designers.make(settings.designer)
        self.modules = context.modules(settings.context, plugins.contexts)
        self.request = requested(self.testbed, settings.count, settings.generation, "generation")
        self.configuration = self.testbed.random_configuration(self.request, settings.seed)
        self.rounds: list[Round] = []
        self._take_up()
        self._begin()

    @property
    def index(self) -> int:
        """The current round, from 0."""
        return len(self.rounds)

    def answered(self, instance: Any, text: str) -> Scored:
        """Judge an answer to one of the instances, and remember it for the designer."""
        verdict = self.testbed.verify(instance, text, self.form)
        scored = Scored(instance, 0, Response(text), verdict)
        self._scored.append(scored)
        return scored

    def redesign(self) -> str:
        """End the round: ask the designer and draw the next instances. Returns the outcome in a word ("proposed", "unchanged",
        "unreadable", "failed", "timed out"). Whatever the designer does, there is a next round."""
        breakdown = self.testbed.breakdown(self._scored)
        ended = Round(self.index, self.configuration.to_dict(), breakdown, self._summary)
        rounds = [*self.rounds, ended]
        failures = [scored for scored in self._scored if not scored.verdict.valid][:20]
        told = {"samples_per_round": self.settings.count}
        state = RoundState(self.testbed, rounds, failures, {"round_index": self.index}, told, self.testbed.knobs(self.request))
        brief = Brief(
            text=context.prompt(self.modules, state, self.configuration, self.request),
            state=state,
            previous=self.configuration,
            request=self.request,
            seed=key(self.settings.seed, "design", self.index) >> 1,
            compact=context.compact(self.modules, state),
        )
        step = design_step.propose(self.designer, brief, self.settings.design_seconds)
        decision = design_step.decide(self.testbed, step, self.configuration, self.request)
        step, projection = decision.step, decision.projection
        record = {
            "round": self.index,
            "configuration": ended.configuration,
            "breakdown": breakdown,
            "outcome": step.outcome,
            "proposal": step.proposal.parsed,
            "summary": step.proposal.summary,
            "notes": list(step.proposal.notes),
            "changes": [asdict(change) for change in projection.changes],
            "next": projection.configuration.to_dict(),
        }
        if self.settings.out:
            with jsonlines.Appender(Path(self.settings.out) / ROUNDS) as file:
                file.append(record)
        self._end(ended, record, projection.configuration)
        self._begin()
        return step.outcome

    def _end(self, ended: Round, record: Mapping[str, Any], configuration: Any) -> None:
        self.rounds.append(ended)
        self.configuration = configuration
        self._summary: str | None = record["summary"]

    def _begin(self) -> None:
        self._scored: list[Scored] = []
        seed = key(self.settings.seed, "generate", self.index) >> 1
        self.instances = self.testbed.generate(self.configuration, self.request, seed)

    def _take_up(self) -> None:
        """Continue after the last round on record."""
        self._summary = None
        path = Path(self.settings.out) / ROUNDS
        if not self.settings.out or not path.is_file():
            return
        for line in jsonlines.read(path, torn=[]):
            record = line.value
            try:
                ended = Round(record["round"], record["configuration"], record["breakdown"], self._summary)
                configuration = self.testbed.read_configuration(record["next"])
            except (KeyError, T2TError) as error:
                where = f"{path}, line {line.number}"
                raise T2TError("this is no record of a round of this testbed", where=where, cause=str(error)) from None
            self._end(ended, record, configuration)
