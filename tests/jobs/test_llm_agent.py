"""`llm:POLICY`: a chat model on a local server that uses tool calls, one that uses plain text, and what each is told."""

import json
from contextlib import closing
from dataclasses import replace

import desks
import pytest
from chat_model import ChatModel

from fake_server import FakeServer, completion
from t2t_core.errors import T2TError
from t2t_core.records import Response, Sampling
from t2t_core.store.paths import SafePath
from t2t_jobs.agents.compact import Compact, question, wrong_keys
from t2t_jobs.agents.llm import LanguageModelAgent, llm
from t2t_jobs.episode import Episode, Setup
from t2t_jobs.playing import play

FAMILY = desks.family()
FREE = {"price_in": "0", "price_out": "0"}


def played(place, agent, budget=None, **setup):
    family = desks.family(budget=budget) if budget else FAMILY
    with closing(
        Episode(SafePath(place) / "episode", Setup("e", family, "llm", 7, **setup), desks.PretendDesk(family))
    ) as episode:
        play([episode], agent)
        return episode.result()


def endpoint(server, **settings):
    return llm(f"endpoint:fake,base_url={server.url}", {"attempts": "2", "backoff": "0.01", **FREE, **settings})


def test_a_chat_model_writes_mends_and_submits_a_job_by_tool_calls(tmp_path):
    with ChatModel() as server:
        result = played(tmp_path, endpoint(server, price_in="1", price_out="5"))
        bodies = [request["body"] for request in server.requests]
    assert (result.ended, result.valid_at, result.base, result.turns) == ("submitted", 2, "large", 3)
    assert [fault.where for fault in result.submissions[0].faults] == [
        "job.toml, training.learning_rate",
        "job.toml, generation.samples",
    ]
    assert result.values["training.learning_rate"] == 1e-3 and result.values["generation.samples"] == 128
    assert result.tokens == 3 * 120 and result.usd == pytest.approx(3 * (100 * 1 + 20 * 5) / 1e6)
    assert [tool["function"]["name"] for tool in bodies[0]["tools"]][:2] == ["read_file", "write_file"]
    asked, answered = bodies[1]["messages"][1:3]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == "call_0" and answered["role"] == "tool"
    assert FAMILY.description in bodies[0]["messages"][0]["content"]


def test_in_plain_text_no_tool_is_offered_and_the_calls_are_tags(tmp_path):
    turns = [
        "Let me see. <get_baseline_scores/>",
        '<write_file path="job.toml">\nbase = "large"\n[training]\nlearning_rate = 1e-3\n</write_file>\n<submit_job/>',
    ]
    with FakeServer(lambda prompt, nth: turns["1. get_baseline" in prompt]) as server:
        result = played(tmp_path, endpoint(server, protocol="text"))
        first, second = (request["body"] for request in server.requests)
    assert (result.valid_at, result.base) == (1, "large")
    assert "tools" not in first and "<submit_job/>" in first["messages"][0]["content"]
    assert second["messages"][-1]["content"] == "1. get_baseline_scores:\nsmall: 0.100\nlarge: 0.250"


def test_a_server_whose_model_takes_no_tools_is_asked_in_plain_text(tmp_path):
    refusal = 400, {}, json.dumps({"error": {"message": "the model tiny-chat does not support tools"}}).encode()

    def script(prompt, nth):
        return (
            refusal
            if "tools" in server.requests[-1]["body"]
            else '<write_file path="job.toml">base = "large"</write_file><submit_job/>'
        )

    with FakeServer(script) as server:
        result = played(tmp_path, endpoint(server))
        assert "<submit_job/>" in server.requests[-1]["prompt"] and len(server.requests) == 2
    assert (result.valid_at, result.base) == (1, "large")


def test_a_model_that_only_talks_is_reminded_and_ends(tmp_path):
    with FakeServer(lambda prompt, nth: "What a nice task.") as server:
        result = played(tmp_path, endpoint(server), replace(desks.BUDGET, turns=3))
        assert "No tool was called" in server.requests[-1]["prompt"]
    assert (result.ended, result.total) == ("turns", -0.1)


def test_a_server_that_fails_is_no_answer(tmp_path):
    with FakeServer(lambda prompt, nth: "500") as server, pytest.raises(T2TError, match="could not be asked"):
        played(tmp_path, endpoint(server))
    with ChatModel() as server:
        assert played(tmp_path, endpoint(server)).ended == "submitted"


def test_no_question_goes_beyond_the_episodes_money(tmp_path):
    """A question may cost at most what is left: the third one of 0.03 USD is not sent."""
    body = completion("", "tool_calls", {"tool_calls": [{"id": "1", "function": {"name": "list_files", "arguments": "{}"}}]},
                      completion_tokens=2048)  # fmt: skip
    with FakeServer(lambda prompt, nth: body) as server:
        agent = endpoint(server, price_in="0", price_out="15")
        result = played(tmp_path, agent, replace(desks.BUDGET, usd=0.07, tokens=10**6))
    assert result.ended == "usd" and result.usd == pytest.approx(2 * 2048 * 15 / 1e6) and len(server.requests) == 2


def test_what_is_left_of_the_tokens_limits_an_answer(tmp_path):
    with ChatModel() as server:
        played(tmp_path, endpoint(server, max_tokens="1000"), replace(desks.BUDGET, tokens=400))
        limits = [request["body"]["max_tokens"] for request in server.requests]
    assert limits == [400, 280, 160]


class Writer:
    """A toy policy that was taught to write a job and nothing else."""

    def __init__(self, *texts):
        self.texts, self.asked, self.sampling = list(texts), [], []

    def respond(self, tasks, sampling):
        self.asked += [[message.content for message in task.messages] for task in tasks]
        self.sampling.append(sampling)
        for position, task in enumerate(tasks):
            yield position, Response(self.texts[min(task.turn, len(self.texts) - 1)], 5, 10)

    def describe(self):
        return {"brief": "compact"}


def test_a_toy_policy_writes_the_text_of_the_job_alone(tmp_path):
    writer = Writer('base = "huge"\n[training]\nlearning_rate = 5\n', 'base = "large"\n')
    result = played(tmp_path, LanguageModelAgent(writer))
    assert (result.valid_at, result.base, result.turns) == (2, "large", 2)
    assert writer.asked == [
        ["job tictactoe pretend"],
        ["job tictactoe pretend\nagain\nwrong base\nwrong training.learning_rate"],
    ]


def test_many_episodes_are_asked_at_once_and_the_final_one_greedily(tmp_path):
    writer, family = Writer('base = "large"\n'), FAMILY
    episodes = [
        Episode(SafePath(tmp_path / str(n)) / "e", Setup(f"e{n}", family, "x", n, final=n == 2), desks.PretendDesk(family))
        for n in range(3)
    ]
    play(episodes, LanguageModelAgent(writer, Sampling(temperature=0.7)))
    assert [sampling.temperature for sampling in writer.sampling] == [0.7, 0.0]
    assert all(episode.result().valid_at == 1 for episode in episodes)


def test_the_keys_that_were_complained_of():
    assert wrong_keys(FAMILY, 'training.learning_rate must be; configuration."0.5-0.75".share: no') == [
        "training.learning_rate",
        'configuration."0.5-0.75".share',
    ]
    assert wrong_keys(FAMILY, "the database is full") == [], "a part of a word is no key"
    assert question("w", "f") == "job w f" and not Compact().tools


def test_who_can_be_an_agent():
    with pytest.raises(T2TError, match="needs a policy"):
        llm("", {})
    with pytest.raises(T2TError, match="no words"):
        llm("ppo", {})
    with pytest.raises(T2TError, match="protocol"):
        llm("endpoint:x", {"protocol": "morse"})
    described = llm("endpoint:x,base_url=http://localhost:1/v1", {"protocol": "text"}).describe()
    assert described["protocol"] == "text" and described["model"] == "x"


def test_a_price_must_be_known_for_a_budget_to_hold(tmp_path):
    with ChatModel() as server, pytest.raises(T2TError, match="no price of this model is known") as error:
        played(tmp_path, llm(f"endpoint:fake,base_url={server.url}", {}))
    assert "price_in=0" in str(error.value)
