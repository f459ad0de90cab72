"""The endpoint client against a server that misbehaves: every question ends in exactly one answer or one error."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

import lake
from fake_server import FakeServer, completion
from t2t_core.errors import T2TError
from t2t_core.plugins import load
from t2t_core.records import Sampling, Task
from t2t_core.testing import check_policy

POLICIES = load().policies
GREEDY = Sampling()
BARE = {"temperature": "none", "max_tokens": "none"}
QUICK = {"backoff": "0.01", "max_wait": "0.05", "timeout": "5", "attempts": "3"}


def tasks(count, name="question"):
    return [Task(f"i{n}", 0, f"{name} {n}", None, n) for n in range(count)]


def endpoint(server, provider="endpoint", **settings):
    return POLICIES.make(f"{provider}:fake", base_url=server.url, **{**QUICK, **settings})


def ask(server, count=1, sampling=GREEDY, **settings):
    answers = list(endpoint(server, **settings).respond(tasks(count), sampling))
    assert sorted(position for position, _ in answers) == list(range(count))
    return [response for _, response in sorted(answers, key=lambda pair: pair[0])]


def replied(told, **settings):
    with FakeServer(lambda prompt, nth: told) as server:
        return ask(server, give_up="0", **settings)[0], server


def sent(sampling=GREEDY, provider="endpoint", **settings):
    """The request body that a setting leads to."""
    with FakeServer(lambda prompt, nth: "ok") as server:
        list(endpoint(server, provider, **settings).respond(tasks(1), sampling))
        return server.requests[0]["body"]


def test_an_answer_with_its_tokens():
    body = completion("the answer", completion_tokens=20, completion_tokens_details={"reasoning_tokens": 15})
    response, server = replied(body, price_in="2", price_out="10")
    assert (response.text, response.finish_reason, response.error) == ("the answer", "stop", None)
    assert (response.prompt_tokens, response.completion_tokens, response.reasoning_tokens) == (100, 20, 15)
    assert response.cost_usd == pytest.approx((100 * 2 + 20 * 10) / 1e6)
    assert 0 < response.seconds < 5
    request = server.requests[0]
    assert request["path"] == "/v1/chat/completions"
    assert request["body"]["messages"] == [{"role": "user", "content": "question 0"}]


def test_reasoning_that_only_the_total_counts_is_part_of_the_completion():
    response, _ = replied(completion("x", total_tokens=620))
    assert (response.completion_tokens, response.reasoning_tokens) == (520, 500)


@pytest.mark.parametrize("count", [-1, "twenty", 1.5, True, None, 10**30, {}])
def test_token_counts_of_the_wrong_kind_are_not_known(count):
    response, _ = replied(completion("x", completion_tokens=count, total_tokens=count))
    assert response.completion_tokens is None and response.text == "x" and response.error is None


@pytest.mark.parametrize(
    ("told", "requests"),
    [("429", 3), ("500", 3), ("503", 3), ("408", 3), ("drop", 3), ("drop_mid", 3), ("empty", 3), ("junk", 3), ("html", 3)]
    + [("array", 3), ("null", 3), ("no_choices", 3), ("bomb", 3), ("digits", 3), ("error_200", 3), ("broke_off", 3)]
    + [("400", 1), ("413", 1), ("422", 1), ("redirect", 1)],
)
def test_what_is_no_answer_is_an_error_and_never_a_wrong_answer(told, requests):
    response, server = replied(told)
    assert response.error and response.text == "" and response.finish_reason == "error"
    assert response.completion_tokens == (20 if told == "broke_off" else None), "what a reply used is recorded, answered or not"
    assert len(server.requests) == requests


@pytest.mark.parametrize("told", ["huge", "gzip_bomb"])
def test_a_huge_body_is_not_read(told):
    begin = time.process_time()
    response, server = replied(told, max_bytes="1000000", timeout="120")
    assert "longer than 1000000 bytes" in response.error and len(server.requests) == 1
    assert time.process_time() - begin < 5


def test_a_huge_error_is_not_read():
    response, _ = replied((500, {}, b"x" * (30 << 20)))
    assert response.error.startswith("HTTP 500") and len(response.error) < 400


@pytest.mark.parametrize("told", ["never", "drip"])
def test_a_server_that_never_ends_meets_the_deadline(told):
    begin = time.monotonic()
    response, server = replied(told, timeout="0.3", attempts="2")
    assert "within 0.3 s" in response.error and len(server.requests) == 2
    assert time.monotonic() - begin < 3


def test_refused_and_cut_answers_are_answers_counted_apart():
    assert (replied("refusal")[0].finish_reason, replied("refusal")[0].error) == ("refusal", None)
    assert replied("refusal")[0].text == "I cannot help with that."
    assert (replied("filtered")[0].finish_reason, replied("filtered")[0].text) == ("refusal", "")
    cut, _ = replied("cut")
    assert (cut.finish_reason, cut.text, cut.error) == ("length", "<answer>\nAgent 0: (0,0)", None)


def test_text_in_parts_and_lone_surrogates():
    assert (
        replied(completion([{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))[
            0
        ].text
        == "ab"
    )
    replied(completion("\ud800x"))[0].text.encode()


def test_a_failure_that_passes_is_forgotten():
    with FakeServer(lambda prompt, nth: ["500", "drop", "fine"][nth]) as server:
        response = ask(server)[0]
    assert (response.text, response.error, len(server.requests)) == ("fine", None, 3)


@pytest.mark.parametrize(
    "header", [{"Retry-After": "0.3"}, {"retry-after-ms": "300"}, {"Retry-After": "x"}, {"Retry-After": "1e999"}, {}]
)
def test_retry_after_is_honoured_and_capped(header):
    begin = time.monotonic()
    with FakeServer(lambda prompt, nth: (429, header, b"") if nth == 0 else "fine") as server:
        assert ask(server, max_wait="0.4")[0].text == "fine"
    waited = time.monotonic() - begin
    asked = "300" in str(header) or "0.3" in str(header) or "999" in str(header)
    assert (0.28 if asked else 0) < waited < 3


def test_retry_after_as_a_date():
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    begin = time.monotonic()
    with FakeServer(lambda prompt, nth: (429, {"Retry-After": later}, b"") if nth == 0 else "fine") as server:
        assert ask(server, max_wait="0.3")[0].text == "fine"
    assert 0.28 < time.monotonic() - begin < 3


@pytest.mark.parametrize("told", ["401", "402", "403", "404", "quota_200"])
def test_a_wrong_key_stops_at_once(told):
    with FakeServer(lambda prompt, nth: told) as server:
        with pytest.raises(T2TError, match="refuses every request") as error:
            list(endpoint(server, concurrency="2").respond(tasks(200), Sampling()))
        assert len(server.requests) <= 4
    assert "fake at http://127.0.0.1" in error.value.where


def test_one_forbidden_question_among_answered_ones_is_an_error_of_its_own():
    with FakeServer(lambda prompt, nth: "403" if prompt.endswith(" 3") else "fine") as server:
        responses = ask(server, 6, concurrency="1")
    assert [bool(r.error) for r in responses] == [False, False, False, True, False, False]


def test_a_dead_server_ends_the_evaluation_and_keeps_what_came():
    def script(prompt, nth):
        return "fine" if int(prompt.split()[1]) < 5 else "500"

    got = []
    with FakeServer(script) as server, pytest.raises(T2TError, match="4 questions in a row failed"):
        for pair in endpoint(server, give_up="4", concurrency="1").respond(tasks(500), Sampling()):
            got.append(pair)  # noqa: PERF402
    assert [r.error is None for _, r in got] == [True] * 5 + [False] * 4


def test_nobody_there():
    policy = POLICIES.make("endpoint:fake,base_url=http://127.0.0.1:9/v1", **QUICK, give_up="2")
    with pytest.raises(T2TError, match="in a row failed") as error:
        list(policy.respond(tasks(50), Sampling()))
    assert "connection failed" in error.value.cause


def test_requests_run_at_once_up_to_the_limit():
    def script(prompt, nth):
        time.sleep(0.05)
        return "fine"

    with FakeServer(script) as server:
        ask(server, 40, concurrency="10")
        assert 5 <= server.most_running <= 10


def test_answers_come_while_others_are_still_asked():
    with FakeServer(lambda prompt, nth: "never" if prompt.endswith(" 0") else "fine") as server:
        answers = endpoint(server, concurrency="3").respond(tasks(5), Sampling())
        assert {next(answers)[0] for _ in range(4)} == {1, 2, 3, 4}
        begin = time.monotonic()
        answers.close()
        assert time.monotonic() - begin < 2


def test_a_reader_that_stops_stops_the_requests():
    with FakeServer(lambda prompt, nth: "fine") as server:
        answers = endpoint(server, concurrency="2").respond(tasks(1000), Sampling())
        next(answers)
        time.sleep(0.3)
        assert len(server.requests) <= 8
        answers.close()


def test_no_tasks_no_request():
    with FakeServer(lambda prompt, nth: "fine") as server:
        assert ask(server, 0) == [] and server.requests == []


def test_it_works_inside_a_running_event_loop():
    import asyncio

    async def main(server):
        return ask(server, 3)

    with FakeServer(lambda prompt, nth: "fine") as server:
        assert [r.text for r in asyncio.run(main(server))] == ["fine"] * 3


@pytest.mark.parametrize(
    ("settings", "sampling", "expected"),
    [
        ({}, Sampling(0.6, 100), {"temperature": 0.6, "max_tokens": 100}),
        ({"temperature": "none"}, Sampling(0.6, 100), {"max_tokens": 100}),
        ({"limit_field": "max_completion_tokens"}, Sampling(0, 7), {"temperature": 0, "max_completion_tokens": 7}),
        (BARE, Sampling(0.6, 7, top_p=0.9), {"top_p": 0.9}),
        (BARE, Sampling(0.6, 7, top_p=1.0, top_k=20, min_p=0.05), {"top_k": 20, "min_p": 0.05}),
        ({**BARE, "top_p": "none", "top_k": "none", "min_p": "none"}, Sampling(0.6, 7, None, 0.9, 20, 0.05), {}),
        ({**BARE, "top_k": "none", "extra_body": '{"top_k": 5}'}, Sampling(0.6, 7, top_k=20), {"top_k": 5}),
        (BARE, Sampling(thinking=False), {"chat_template_kwargs": {"enable_thinking": False}}),
        ({**BARE, "thinking_switch": "effort"}, Sampling(thinking=True), {"reasoning_effort": "medium"}),
        ({**BARE, "thinking_switch": "type"}, Sampling(thinking=False), {"thinking": {"type": "disabled"}}),
        ({**BARE, "reasoning_effort": "high"}, Sampling(), {"reasoning_effort": "high"}),
        ({**BARE, "extra_body": '{"seed": 1, "temperature": 2}'}, Sampling(), {"seed": 1, "temperature": 2}),
    ],
)
def test_the_request_body(settings, sampling, expected):
    body = sent(sampling, **settings)
    del body["model"], body["messages"]
    assert body == expected


def test_providers_speak_their_own_dialect(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-my-own-key-000")
    think = Sampling(max_tokens=5000, thinking=True)
    assert sent(think, "openai", api_key_env="MY_KEY")["max_completion_tokens"] == 5000
    assert sent(think, "openrouter", api_key_env="MY_KEY")["reasoning"] == {"enabled": True}
    assert sent(think, "anthropic", api_key_env="MY_KEY")["thinking"] == {"type": "enabled", "budget_tokens": 2500}
    assert sent(think, "deepseek", api_key_env="MY_KEY")["thinking"] == {"type": "enabled"}


def test_thinking_where_there_is_no_switch():
    with FakeServer(lambda prompt, nth: "fine") as server, pytest.raises(T2TError, match="no switch"):
        list(endpoint(server, thinking_switch="none").respond(tasks(1), Sampling(thinking=True)))


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ("openai:gpt", "OPENAI_API_KEY is not set"),
        ("gemini:g", "GEMINI_API_KEY is not set"),
        ("openrouter:g", "OPENROUTER_API_KEY is not set"),
        ("endpoint:x", "needs its address"),
        ("endpoint:,base_url=http://h/v1", "which model"),
        ("endpoint:x,base_url=ftp://h/v1", "http://"),
        ("endpoint:x,base_url=http://h:99999/v1", "(?i)port"),
        ("endpoint:x,base_url=http://h:0/v1", "no host and port"),
        ("endpoint:x,base_url=http://a..b/v1", "no host and port"),
        ("endpoint:x,base_url=http://h/v1 x", "blank"),
        ("endpoint:x,base_url=http://h\0/v1", "no letter"),
        ("endpoint:x,base_url=http://[::1/v1", "base_url"),
        ("endpoint:x,base_url=http://h/v1,proxy=http://h:99999", "(?i)port"),
        ("endpoint:x,base_url=http://user:pass@h/v1", "holds a key"),
        ("endpoint:x,base_url=http://h/v1?key=1", "holds a key"),
        ("endpoint:x,base_url=http://h/v1,api_key_env=NOT_THERE", "NOT_THERE is not set"),
        ("endpoint:x,base_url=http://h/v1,concurency=3", "concurency"),
        ("endpoint:x,base_url=http://h/v1,timeout=nan", "timeout"),
        ("endpoint:x,base_url=http://h/v1,extra_body=[1]", "JSON object"),
        ('endpoint:x,base_url=http://h/v1,extra_body={"stream": true}', "stream is not for it"),
        ('endpoint:x,base_url=http://h/v1,extra_body={"temperature": 2}', "extra_body sets temperature"),
        ('endpoint:x,base_url=http://h/v1,temperature=none,extra_body={"max_completion_tokens": 9}', "max_tokens says"),
        ("endpoint:x,base_url=http://h/v1,prices=/nowhere.json", "no such file"),
    ],
)
def test_mistakes_are_named(spec, match, monkeypatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "T2T_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(T2TError, match=match):
        POLICIES.make(spec)


def test_prices_from_a_file(tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"endpoint:fake": {"in": 1, "out": 3.5}, "other": {"in": "x"}}')
    response, _ = replied("fine", prices=str(prices))
    assert response.cost_usd == pytest.approx((100 + 20 * 3.5) / 1e6)
    with pytest.raises(T2TError, match="no price for endpoint:unknown"):
        POLICIES.make(f"endpoint:unknown,base_url=http://h/v1,prices={prices}")
    with pytest.raises(T2TError, match="missing or no number"):
        POLICIES.make(f"endpoint:other,base_url=http://h/v1,prices={prices}")


def test_a_cost_the_service_reports():
    assert replied(completion("x", cost=0.0125))[0].cost_usd == 0.0125
    assert replied(completion("x", cost=-1))[0].cost_usd is None
    assert replied(completion("x"))[0].cost_usd is None


def test_it_keeps_the_contract_of_policies():
    with FakeServer(lambda prompt, nth: ["fine", "429", "400"][nth % 3]) as server:
        check_policy(endpoint(server), lake.Lake())
