"""Every agent that the suite brings fulfils the contract, and an agent that breaks it is told how."""

import desks
import pytest
from chat_model import ChatModel

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import AgentTurn, ToolCall
from t2t_core.testing import CheckFailed, check_agent

FAMILY = desks.family()


@pytest.mark.parametrize("spec", ["random-search", "successive-halving:jobs=13", "rule"])
def test_the_searches_and_the_rule(spec):
    check_agent(installed().agents.make(spec), FAMILY)


def test_a_language_model():
    with ChatModel() as server:
        spec = f"llm:endpoint:fake,base_url={server.url},price_in=0,price_out=0,attempts=1"
        check_agent(installed().agents.make(spec), FAMILY)
        assert len(server.requests) == 4


class Agent:
    def __init__(self, act):
        self._act = act

    def act(self, state):
        return self._act(state)

    def describe(self):
        return {}


def changing(state):
    state.family.bounds.clear()
    return AgentTurn("")


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda state: "submit", "not an AgentTurn"),
        (lambda state: AgentTurn("", ["submit_job"]), "no ToolCall"),
        (lambda state: AgentTurn("", [ToolCall("1", "submit_job", {})]), "arguments are no texts"),
        (lambda state: AgentTurn(None), "no text"),
        (lambda state: 1 / 0, "raised ZeroDivisionError"),
        (changing, "changed its state"),
    ],
)
def test_what_breaks_the_contract_is_told(act, why, monkeypatch):
    family = desks.family()
    object.__setattr__(family, "bounds", dict(family.bounds))
    with pytest.raises(CheckFailed, match=why):
        check_agent(Agent(act), family)


def test_an_agent_that_breaks_it_in_an_episode_is_named():
    installed().agents.add("odd", lambda argument, settings: Agent(lambda state: "submit"), "an agent for tests")
    from t2t_core.hookspecs import EpisodeState

    with pytest.raises(T2TError, match="the job agent odd returned a str from act"):
        installed().agents.make("odd").act(EpisodeState(FAMILY, ""))
