"""A curriculum inside an environment: a designer looks at how the episodes ended and chooses which lakes are drawn next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, RoundState
from t2t_core.plugins import installed
from t2t_core.records import Response, Round, Scored, Verdict
from t2t_core.seeding import key

from ..generation.request import Request
from ..solver import solve_many
from ..verifier import CHECKS
from .episode import FAILURES
from .lakes import ConfigurationSource, read_configuration

SAMPLES = 10_000  # our choice: the number of lakes in the request that a proposal is projected for


class CurriculumWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Asks a designer or a curriculum every `every` episodes. It shows it the verdicts of the episodes since the last time and
    the rounds before, and draws lakes of its proposal from the next reset on.

    Args:
        env: a step or text environment, made with a `configuration` or with `max_size`.
        designer: any that `t2t plugins` lists and that needs no model from a run: "learnability", "level-replay", "rule", ...
        configuration: the configuration that lakes are drawn from at first.
        every: the number of episodes in a round.
        seed: the seed of the designer's random draws.

    `history` holds the rounds: each configuration with the breakdown of its episodes.

    Example:
        env = CurriculumWrapper(gym.make("MAPFFrozenLake-v0", max_size=10, observation="padded"), "learnability",
                                Configuration.uniform(), every=500)

    Raises:
        T2TError: the designer is unknown or fails, or a size does not fit the environment's spaces.
    """

    def __init__(
        self, env: gym.Env[Any, Any], designer: str, configuration: ConfigurationSource, every: int = 500, seed: int = 0
    ) -> None:
        super().__init__(env)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise T2TError("every must be a positive integer", where="CurriculumWrapper")
        self.testbed = installed().testbeds.make("mapf-frozenlake")
        self.designer = installed().designers.make(designer)
        self.configuration = read_configuration(configuration)
        self.every, self.seed = every, seed
        self.history: list[Round] = []
        self._scored: list[Scored] = []
        self.get_wrapper_attr("set_configuration")(self.configuration)

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            instance = self.get_wrapper_attr("instance")
            self._scored.append(Scored(instance, 0, Response(""), _verdict(info)))
            if len(self._scored) == self.every:
                self._design(instance.num_agents, instance.objective)
        return observation, reward, terminated, truncated, info

    def _design(self, num_agents: int, objective: str) -> None:
        index = len(self.history)
        breakdown = self.testbed.breakdown(_with_kinds(self._scored))
        self.history.append(Round(index, self.configuration.to_dict(), breakdown))
        self._scored = []
        request = Request(SAMPLES, num_agents, objective, repeats="allow")
        state = RoundState(self.testbed, tuple(self.history), knobs=self.testbed.knobs(request))
        brief = Brief("", state, self.configuration, request, key(self.seed, "design", index) >> 1)
        proposal = self.designer.propose(brief)
        if proposal.parsed is not None:
            self.configuration = self.testbed.project(proposal.parsed, self.configuration, request).configuration
            self.get_wrapper_attr("set_configuration")(self.configuration)


def _with_kinds(scored: list[Scored]) -> list[Scored]:
    """Fill in whether each lake requires a wait, because curricula tell cells apart by it."""
    labels = solve_many([answer.instance for answer in scored], wait=True)
    kinds = [replace(answer.instance, requires_wait=label.requires_wait) for answer, label in zip(scored, labels, strict=True)]
    return [replace(answer, instance=instance) for answer, instance in zip(scored, kinds, strict=True)]


def _verdict(info: dict[str, Any]) -> Verdict:
    """The verdict that an episode's last info encodes."""
    valid = bool(info["valid"])
    failure = CHECKS[info["failure"] - 1] if "checks" in info and not valid else FAILURES[info.get("failure", 0)]
    checks = dict(info["checks"]) if "checks" in info else {name: name != failure for name in CHECKS}
    optimal = info.get("optimal")
    return Verdict(checks, valid, None if optimal is None else bool(optimal), info.get("cost"), gap=info.get("gap"))
