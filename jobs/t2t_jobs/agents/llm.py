"""`llm:POLICY`: any policy that talks, as a job agent. It acts by the tool calls of chat models, in plain text, or, if it is a
toy policy that was taught to, by writing nothing but the job's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from t2t_core import closing
from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import read_sampling
from t2t_core.hookspecs import EpisodeState
from t2t_core.plugins import installed
from t2t_core.records import AgentTurn, Message, Response, Sampling, Task
from t2t_core.registry import Spec
from t2t_core.settings import one_of, read_settings
from t2t_jobs.agents.compact import Compact
from t2t_jobs.protocol import Manner, PlainText, ToolCalls

MANNERS: Mapping[str, Callable[[], Manner]] = {"tools": ToolCalls, "text": PlainText, "compact": Compact}
_TOOLS = re.compile(r"\btools?\b|function.call", re.IGNORECASE)
_READERS = {"protocol": one_of(("auto", *MANNERS))}
_SAMPLING = Sampling(temperature=1.0, max_tokens=2048)  # an agent that explores; our choice


class LanguageModelAgent:
    """Asks a policy for its turns.

    Args:
        policy: the policy to ask.
        sampling: how it answers; in a final episode it answers greedily.
        protocol: "tools", "text", "compact", or "auto". "auto" uses the form that the policy was taught (`brief` in its
            `describe()`), else tools, and changes to text once a server reports that its model does not support tools.
    """

    def __init__(self, policy: Any, sampling: Sampling = _SAMPLING, protocol: str = "auto") -> None:
        self.policy, self._sampling = policy, sampling
        self._may_change = protocol == "auto"
        taught = "compact" if policy.describe().get("brief") == "compact" else "tools"
        self.protocol = taught if protocol == "auto" else protocol
        self.manner: Manner = MANNERS[self.protocol]()
        if callable(getattr(policy, "spend_at_most", None)):
            self.spend_at_most = policy.spend_at_most

    def act(self, state: EpisodeState) -> AgentTurn:
        return self.act_all([state])[0]

    def act_all(self, states: Sequence[EpisodeState]) -> list[AgentTurn]:
        """A turn for each state, in their order. States with the same sampling are asked about in one call."""
        turns: list[AgentTurn] = [AgentTurn()] * len(states)
        kinds: dict[Sampling, list[int]] = {}
        for index, state in enumerate(states):
            kinds.setdefault(self.sampling_of(state), []).append(index)
        for sampling, indices in kinds.items():
            tasks = [self._task(states[index]) for index in indices]
            for position, response in self.policy.respond(tasks, sampling):
                turns[indices[position]] = AgentTurn(response.text, self.manner.calls(response), response)
        if self._may_change and self.protocol == "tools" and any(_refuses_tools(turn.response) for turn in turns):
            self.protocol, self.manner = "text", PlainText()
            return self.act_all(states)
        return turns

    def sampling_of(self, state: EpisodeState) -> Sampling:
        """How the policy should answer next: within the tokens that are left, and greedily if the episode is final."""
        limit = min(self._sampling.max_tokens, max(1, state.tokens))
        made = replace(self._sampling, max_tokens=limit)
        return replace(made, temperature=0.0) if state.final else made

    def _task(self, state: EpisodeState) -> Task:
        messages, turn = self.manner.messages(state), len(state.exchanges)
        return Task(state.family.name, turn, messages[-1].content, None, (state.seed + turn) & (2**63 - 1), messages, turn,
                    tuple(self.manner.tools), turn + state.turns)  # fmt: skip

    def messages(self, state: EpisodeState) -> list[Message]:
        """The conversation that the policy is asked to continue."""
        return self.manner.messages(state)

    def describe(self) -> Mapping[str, Any]:
        return {**self.policy.describe(), "protocol": self.protocol}

    def close(self) -> None:
        closing.close(self.policy)


def _refuses_tools(response: Response | None) -> bool:
    """Whether a server reported that its model does not support tools."""
    return response is not None and response.lasting and bool(_TOOLS.search(response.error or ""))


def llm(argument: str, settings: Mapping[str, str]) -> LanguageModelAgent:
    """`llm:<policy>`. The agent keeps `protocol` and the sampling settings (`temperature`, `max_tokens`, ...); the policy gets
    the others."""
    spec = Spec.parse(argument)
    if not spec.name:
        raise T2TError("the agent llm needs a policy", next="write llm:<policy>, for example llm:openai:gpt-5.4")
    own = {name: value for name, value in settings.items() if name in _READERS}
    values = read_settings(own, "agent llm", _READERS)
    if not getattr(installed().policies.find(spec.name).load(), "talks", True):
        raise T2TError(f"the policy {spec.name} cannot write a job: it has no words of its own", where=f"agent llm:{spec.name}")
    others = {**spec.settings, **{name: value for name, value in settings.items() if name not in _READERS}}
    to_policy, sampling = read_sampling(Spec(spec.name, spec.argument, others), _SAMPLING)
    return LanguageModelAgent(installed().policies.make(to_policy), sampling, values.get("protocol", "auto"))
