"""Every agent of the suite fulfils the contract, and for an agent that breaks it the check says how."""

import desks
import pytest
from chat_model import ChatModel

from t2t_core.errors import T2TError
from t2t_core.hookspecs import EpisodeState
from t2t_core.plugins import installed
from t2t_core.records import AgentTurn, ToolCall
from t2t_core.testing import CheckFailed, check_agent
from t2t_jobs.playing import play

FAMILY = desks.family()


@pytest.mark.parametrize("spec", ["random-search", "successive-halving:jobs=13", "rule"])
def test_the_searches_and_the_rule(spec):
    check_agent(installed().agents.make(spec), FAMILY)


def test_a_language_model():
    with ChatModel() as server:
        spec = f"llm:endpoint:fake,base_url={server.url},price_in=0,price_out=0,attempts=1"
        check_agent(installed().agents.make(spec), FAMILY)
        assert len(server.requests) == 8  # each of the four states alone, and all at once


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


class Batching(Agent):
    def __init__(self, act_all):
        super().__init__(lambda state: AgentTurn(""))
        self._act_all = act_all

    def act_all(self, states):
        return self._act_all(states)


def test_turns_of_many_episodes_at_once():
    check_agent(Batching(lambda states: [AgentTurn(str(state.turns)) for state in states]), FAMILY)


@pytest.mark.parametrize(
    ("act_all", "why"),
    [
        (lambda states: [AgentTurn("")], "1 turns for 4 states"),
        (lambda states: [], "0 turns for 4 states"),
        (lambda states: "four", "returned str, not a list"),
        (lambda states: (AgentTurn("") for state in states), "returned generator, not a list"),
        (lambda states: ["turn"] * len(states), r"act_all\(\) returned str, not an AgentTurn"),
        (lambda states: [states.pop() and AgentTurn("") for _ in range(len(states))], "changed its states"),
        (lambda states: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_what_breaks_it_for_many_at_once_is_told(act_all, why):
    with pytest.raises(CheckFailed, match=why):
        check_agent(Batching(act_all), FAMILY)


@pytest.mark.parametrize(
    ("name", "act_all", "why"),
    [
        ("silent", lambda states: [], "job agent silent> returned 0 turns for 1 episodes"),
        ("wordy", lambda states: ["turn"], r"job agent wordy returned a list from act_all\(\), which is no list of AgentTurn"),
    ],
)
def test_an_agent_that_breaks_it_for_many_episodes_is_named(name, act_all, why):
    class Going:
        over = None

        def state(self):
            return EpisodeState(FAMILY, "")

    installed().agents.add(name, lambda argument, settings: Batching(act_all), "an agent for tests")
    with pytest.raises(T2TError, match=why):
        play([Going()], installed().agents.make(name))


def test_an_agent_that_breaks_it_in_an_episode_is_named():
    installed().agents.add("odd", lambda argument, settings: Agent(lambda state: "submit"), "an agent for tests")
    with pytest.raises(T2TError, match="the job agent odd returned a str from act"):
        installed().agents.make("odd").act(EpisodeState(FAMILY, ""))
