"""How replies are read: one table for all servers."""

import json
import re
from pathlib import Path

import pytest
from odd_replies import GOOD, REPLIES, USAGE, completion, delta, error, events, ok, openai_error

from fake_server import FakeServer
from t2t_core.errors import T2TError
from t2t_core.plugins import load
from t2t_core.records import Message, Sampling, Task, Tool, ToolCall
from t2t_plugins.policies.endpoint import kinds
from t2t_plugins.policies.endpoint.client import HttpReply
from t2t_plugins.policies.endpoint.reply import Prices, judge

POLICIES = load().policies
DOCS = Path(__file__).resolve().parents[2] / "docs" / "endpoints.md"
QUICK = {"backoff": "0.01", "max_wait": "0.05", "timeout": "5", "attempts": "3"}


def judged(reply, prices=Prices(), redact=lambda text: text):  # noqa: B008
    return judge(HttpReply(*reply), prices, redact)


def ask(script, count=1, sampling=Sampling(), spec="endpoint:m", path="/v1", **settings):  # noqa: B008
    """The responses, the requests, and what ended it."""
    tasks = [Task(f"i{n}", 0, f"question {n}", None, n) for n in range(count)]
    responses, end = {}, None
    with FakeServer(script) as server:
        policy = POLICIES.make(spec, base_url=server.url.replace("/v1", path), **{**QUICK, **settings})
        try:
            responses.update(policy.respond(tasks, sampling))
        except T2TError as stopped:
            end = stopped
        return responses, server.requests, end


@pytest.mark.parametrize("name", REPLIES)
def test_every_reply_is_what_it_is(name):
    reply, kind, said, tokens = REPLIES[name]
    judgement = judged(reply, Prices(1, 1))
    response = judgement.response
    assert judgement.kind.name == kind
    assert (response.prompt_tokens, response.completion_tokens) == tokens
    assert (response.error is not None) is judgement.kind.fault and response.finish_reason == judgement.kind.finish
    if judgement.kind.fault:
        assert said in f"{response.error}; try {judgement.remedy}" and response.text == ""
    else:
        assert response.text == said
    if tokens == (100, 20):
        assert response.cost_usd == pytest.approx(120 / 1e6) and response.model == "m-2026"
    assert response.lasting is (judgement.kind.fault and not judgement.kind.again)


def test_the_table_in_the_docs_is_the_one_in_the_code():
    rows = [f"| {k.what} | {k.recorded} | {k.then} |" for k in kinds.KINDS]
    assert "\n".join(rows) in DOCS.read_text()


def test_every_kind_has_a_reply_here():
    assert {kind for _, kind, *_ in REPLIES.values()} == {k.name for k in kinds.KINDS}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept(field):
    assert judged(ok(completion(message={field: "first I\nthink"}))).response.reasoning == "first I\nthink"
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": GOOD}]
    assert judged(ok(completion(parts))).response.reasoning == "hm"
    details = [{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.encrypted", "data": "x"}]
    assert judged(ok(completion(message={"reasoning_details": details}))).response.reasoning == "hm"
    assert judged(ok(completion())).response.reasoning is None


@pytest.mark.parametrize("reasoning", [["first ", {"text": "then"}], {"content": "first then"}, {"text": "first then"}])
def test_reasoning_in_whatever_shape_is_kept(reasoning):
    assert judged(ok(completion(message={"reasoning": reasoning}))).response.reasoning == "first then"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("timeout", "passing"),
        ("time-limit", "passing"),
        ("RATE_LIMIT", "passing"),
        ("internal_server_error", "passing"),
        ("preempted", "passing"),
        ("context_length_exceeded", "cut"),
        ("max_new_tokens_limit", "cut"),
        ("OUTPUT_TOKEN_LIMIT", "cut"),
        ("image_safety", "refusal"),
        ("moderation_blocked", "refusal"),
    ],
)
@pytest.mark.parametrize("text", [GOOD, ""])
def test_a_finish_reason_that_nobody_lists_is_known_by_its_words(reason, kind, text):
    assert judged(ok(completion(text, reason))).kind.name == kind


def test_a_finish_reason_that_says_nothing_is_kept():
    judgement = judged(ok(completion(finish="pause_turn")))
    assert judgement.kind.name == "answer" and judgement.response.detail == "finish_reason 'pause_turn'"
    assert judged(ok(completion())).response.detail is None


def test_what_came_before_a_stream_failed_is_kept():
    broken = events(delta(content=GOOD[:9], reasoning="hm"), {"error": {"code": 502, "message": "died"}, "usage": USAGE})
    response = judged(broken).response
    assert (response.text, response.detail, response.reasoning, response.completion_tokens) == ("", GOOD[:9], "hm", 20)


@pytest.mark.parametrize(
    "said, remedy",
    [
        ({"detail": [{"loc": ["body", "temperature"], "msg": "ensure this value is greater than 0"}]}, "temperature=none"),
        ({"detail": [{"loc": ["body", "top_p"], "msg": "Input should be less than or equal to 1"}]}, "top_p=none"),
        ({"error": {"message": "This model only support stream mode, please enable the stream parameter"}}, "stream"),
    ],
)
def test_what_a_server_would_take_is_named(said, remedy):
    judgement = judged(error(422, said))
    assert judgement.kind is kinds.STOP and remedy in judgement.remedy


def test_what_came_of_a_broken_answer_is_kept_but_is_no_answer():
    response = judged(ok(completion(GOOD, "abort"))).response
    assert (response.text, response.detail, response.finish_reason) == ("", GOOD, "aborted")


def test_a_refusal_by_an_error_says_why():
    response = judged(REPLIES["400 content_filter (Azure)"][0]).response
    assert response.error is None and "content management policy" in response.detail


@pytest.mark.parametrize(
    ("usage", "headers", "cost"),
    [
        ({"cost": 0.0125}, {}, 0.0125),
        ({"cost": {"total_cost": 0.5}}, {}, 0.5),
        ({}, {"x-litellm-response-cost": "0.25"}, 0.25),
        ({}, {"x-litellm-response-cost": "None"}, None),
        ({"cost": "0.0125"}, {}, 0.0125),
        ({"cost": "free"}, {}, None),
        ({"cost": True}, {}, None),
        ({"cost": -1}, {}, None),
        ({"cost": float("inf")}, {}, None),
    ],
)
def test_a_cost_that_is_reported(usage, headers, cost):
    assert judged(ok(completion(usage=usage), **headers)).response.cost_usd == cost
    assert judged(ok(completion(usage=usage), **headers), Prices(0, 0)).response.cost_usd == 0, "a given price comes first"


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        ({"retry-after": "7"}, {}, 7),
        ({"retry-after": "500ms"}, {}, 0.5),
        ({"retry-after": "1m30s"}, {}, 90),
        ({"retry-after": "-5"}, {}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}, 0),
        ({"retry-after": "soon"}, {}, None),
        ({"retry-after": "nan"}, {}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, {}, 0.25),
        ({}, {"error": {"message": "quota", "details": [{"@type": "x"}, {"retryDelay": "34s"}]}}, 34),
        ({}, openai_error("Rate limit reached. Please try again in 1.5s. Visit us."), 1.5),
        ({}, {}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers, body, wait):
    assert judged(error(429, body, **headers)).wait == (wait if wait is None else pytest.approx(wait, abs=0.01))


@pytest.mark.parametrize(
    "name", ["temperature (OpenAI)", "max_tokens (OpenAI)", "401", "404 no model", "max_completion_tokens (FastAPI)"]
)
def test_what_is_wrong_for_all_is_asked_once(name):
    told = REPLIES[name][0]
    responses, requests, end = ask(lambda prompt, nth: told, 200, concurrency="64")
    assert not responses and len(requests) == 1
    assert "refuses every request" in end.what and (name == "401" or name == "404 no model" or "=" in end.next)


def test_a_designer_asks_once_for_what_is_refused():
    """A temperature that a server refuses is refused again; so is a question that is too long."""
    for name, ends in (("temperature (OpenAI)", True), ("400 too long (vLLM)", False)):
        with FakeServer(lambda prompt, nth, told=REPLIES[name][0]: told) as server:
            from t2t_core.hookspecs import Brief, RoundState

            designer = load().designers.make("llm:endpoint:m", base_url=server.url, backoff="0.01")
            brief = Brief("design a lake", RoundState(None, []), None, None, 1)
            if ends:
                with pytest.raises(T2TError, match="refuses every request"):
                    designer.propose(brief)
            else:
                assert "max-model-len" in designer.propose(brief).notes[0]
            assert len(server.requests) == 1


def test_an_address_without_v1():
    told = [
        error(404, "404 page not found"),
        error(405, {"detail": "Method Not Allowed"}),
        (200, {"Content-Type": "text/html"}, b"<html>"),
    ]
    for reply in told:
        responses, _, end = ask(lambda prompt, nth, reply=reply: reply, path="", give_up="1", attempts="1")
        hint = end.next if "base_url" in end.next else end.cause
        assert re.search(r"base_url=http://127\.0\.0\.1:[0-9]+/v1", hint), end
    _, _, end = ask(lambda prompt, nth: told[0])
    assert "/v1/v1" not in str(end)


def test_an_address_with_too_much_at_its_end():
    _, requests, _ = ask(lambda prompt, nth: "fine", path="/v1/chat/completions/")
    assert requests[0]["path"] == "/v1/chat/completions"


@pytest.mark.thorough
def test_questions_that_are_too_long_do_not_end_the_others():
    told = REPLIES["400 too long (vLLM)"][0]
    responses, _, end = ask(lambda prompt, nth: told, 60, give_up="3", concurrency="1")
    assert len(responses) == 3 and "max-model-len" in end.cause, "where none was answered yet, three in a row are enough"
    responses, _, end = ask(lambda prompt, nth: "fine" if prompt.endswith(" 0") else told, 60, give_up="3", concurrency="1")
    assert end is None and sum(r.error is None for r in responses.values()) == 1 and len(responses) == 60


def test_replies_that_were_no_answer_are_on_record():
    replies = [ok(completion(choices=[])), ok(completion(GOOD[:9], "abort")), error(500, ""), ok(completion())]
    responses, _, _ = ask(lambda prompt, nth: replies[nth], price_in="1", price_out="2", attempts="4")
    assert responses[0].text == GOOD and responses[0].error is None
    assert [(r.completion_tokens, r.cost_usd, r.finish_reason) for r in responses[0].earlier] == [
        (20, 140e-6, "error"), (20, 140e-6, "aborted")
    ]  # fmt: skip
    assert "(request 2 of 4)" in responses[0].earlier[1].error and responses[0].earlier[1].detail == GOOD[:9]


CALLS = [{"id": "c1", "type": "function", "function": {"name": "move", "arguments": '{"to": 3}'}}]
PIECES = [
    {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "move", "arguments": '{"to"'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": ": 3}"}}]},
]


@pytest.mark.parametrize(
    "reply",
    [
        ok(completion(None, "tool_calls", message={"tool_calls": CALLS})),
        ok(completion(None, "stop", message={"tool_calls": CALLS})),
        events(*(delta(**piece) for piece in PIECES), delta("tool_calls")),
    ],
    ids=["tool_calls", "stop", "stream"],
)
def test_tool_calls_are_passed_on(reply):
    judgement = judged(reply)
    assert judgement.kind.name == "answer" and judgement.response.tool_calls == (ToolCall("c1", "move", '{"to": 3}'),)


@pytest.mark.parametrize("calls", [{}, [1], [{}], [{"function": 1}], [{"function": {"name": 1}}], "x"])
def test_tool_calls_that_are_none(calls):
    assert judged(ok(completion(GOOD, message={"tool_calls": calls}))).response.tool_calls == ()


@pytest.mark.parametrize("depth", [300, 900, 960, 990, 100_000])
def test_deep_nesting_is_no_crash(depth):
    nested = "[" * depth + "]" * depth
    for text in ('{"error": {"message": %s}}', '{"error": {"message": "x", "metadata": {"a": %s}}}', '{"choices": %s}'):
        for status in (200, 400):
            assert judged((status, {}, (text % nested).encode())).kind.fault


def test_a_stream_with_line_separators_in_its_text():
    text = "one\u2028two\x85three"
    event = json.dumps(delta("stop", content=text), ensure_ascii=False)
    reply = (200, {}, f"data: {event}\n\ndata: [DONE]".encode())
    assert judged(reply).response.text == text


def test_a_single_function_call_is_a_tool_call():
    call = {"name": "read_file", "arguments": '{"path": "job.toml"}'}
    response = judged(ok(completion(None, "function_call", message={"function_call": call}))).response
    assert [(c.name, c.arguments) for c in response.tool_calls] == [("read_file", '{"path": "job.toml"}')]


def test_arguments_that_are_no_text():
    calls = [{"function": {"name": "move", "arguments": {"to": 3}}}, {"function": {"name": "wait"}}]
    calls_read = judged(ok(completion(None, message={"tool_calls": calls}))).response.tool_calls
    assert calls_read == (ToolCall("", "move", '{"to": 3}'), ToolCall("", "wait", "{}"))


def test_a_conversation_is_sent_as_it_is():
    messages = (
        Message("system", "be brief"),
        Message("user", "play"),
        Message("assistant", "", (ToolCall("c1", "move", "{}"),)),
        Message("tool", "done", tool_call_id="c1"),
    )
    tool = Tool("move", "move to a cell", {"type": "object", "properties": {"to": {"type": "integer"}}})
    task = Task("i", 0, "done", None, 0, messages, 1, (tool,))
    with FakeServer(lambda prompt, nth: "fine") as server:
        policy = POLICIES.make("endpoint:m", base_url=server.url, **QUICK)
        assert dict(policy.respond([task], Sampling()))[0].text == "fine"
        body = server.requests[0]["body"]
    function = {"name": "move", "description": "move to a cell", "parameters": tool.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "move", "arguments": "{}"}
    assert body["messages"][3] == {"role": "tool", "content": "done", "tool_call_id": "c1"}
