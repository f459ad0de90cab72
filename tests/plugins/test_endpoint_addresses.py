"""One model behind several addresses: work moves away from addresses that fail, and back to them when they recover."""

import asyncio
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from fake_server import FakeServer, completion
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.plugins import load
from t2t_core.records import Response, Sampling, Task
from t2t_plugins.policies.endpoint.addresses import Addresses
from t2t_plugins.policies.endpoint.exchange import Patience
from t2t_plugins.policies.endpoint.kinds import ANSWER, PASSING
from t2t_plugins.policies.endpoint.reply import Judged, fault

sys.path.append(str(Path(__file__).parents[1]))

import addition  # noqa: E402
import lake  # noqa: E402

POLICIES = load().policies
ANSWERED = Judged(ANSWER, Response("fine"))
QUICK = {"backoff": "0.02", "max_wait": "0.1", "timeout": "20", "attempts": "3", "concurrency": "8"}


def nobody():
    """An address where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def served(*scripts):
    stack = ExitStack()
    servers = [stack.enter_context(FakeServer(script)) for script in scripts]
    return stack, servers


def fine(prompt, nth):
    return "fine"


def slowly(prompt, nth):
    time.sleep(0.005)
    return "fine"


def policy(*urls, **settings):
    return POLICIES.make("endpoint:m", base_url=",".join(urls), **{**QUICK, **settings})


def ask(policy, count):
    """The answers, none of which may be an error, and the policy's notes."""
    answers = dict(policy.respond([Task(f"i{n}", 0, f"question {n}", None, n) for n in range(count)], Sampling()))
    assert sorted(answers) == list(range(count))
    return [answers[n] for n in range(count)], policy.notes()


def all_fine(answers):
    return {(a.text, a.error) for a in answers} == {("fine", None)}


def test_the_questions_are_shared():
    stack, servers = served(slowly, slowly, slowly)
    with stack:
        answers, notes = ask(policy(*(s.url for s in servers)), 90)
        assert all_fine(answers)
        assert sum(len(s.requests) for s in servers) == 90 and all(len(s.requests) > 10 for s in servers)
        assert [note.split(" requests")[0] for note in notes] == [f"{s.url}: {len(s.requests)}" for s in servers]
        assert not any("left out" in note for note in notes)


@pytest.mark.parametrize("attempts", ["1", "3"])
def test_an_address_where_nobody_is_costs_no_question(attempts):
    stack, (server,) = served(fine)
    with stack:
        gone = nobody()
        answers, notes = ask(policy(gone, server.url, attempts=attempts), 60)
        assert all_fine(answers) and len(server.requests) == 60
        assert notes[0].startswith(f"{gone}: ") and ", 0 answers; left out" in notes[0] and "the connection failed" in notes[0]
        assert notes[1].startswith(f"{server.url}: 60 requests, 60 answers")


@pytest.mark.parametrize("told", ["401", "402", "403", "404", "429", "500", "503", "529", "html", "no_choices", "drop", "junk"])
def test_an_address_that_fails_in_any_way_is_left_out(told):
    """Also one that refuses every request, which would end the evaluation if it were alone."""
    stack, (bad, good) = served(lambda prompt, nth: told, fine)
    with stack:
        answers, notes = ask(policy(bad.url, good.url, backoff="5", max_wait="60", concurrency="1"), 6)
        assert all_fine(answers)
        assert len(bad.requests) == 1 and len(good.requests) == 6
        assert "1 requests, 0 answers; left out once" in notes[0]


def test_one_that_dies_on_the_way_and_comes_back_gets_its_share_again():
    def script(prompt, nth):
        return "500" if 10 < len(dying.requests) <= 14 else slowly(prompt, nth)

    stack, (dying, other) = served(script, slowly)
    with stack:
        answers, notes = ask(policy(dying.url, other.url, concurrency="4"), 150)
        assert all_fine(answers)
        assert len(dying.requests) > 30, "it is asked again after its failures"
        assert "left out" in notes[0] and "HTTP 500" in notes[0] and "left out" not in notes[1]


@pytest.mark.thorough
def test_one_that_hangs_holds_up_only_what_it_has():
    stack, (hanging, good) = served(lambda prompt, nth: "never", fine)
    with stack:
        answers, notes = ask(policy(hanging.url, good.url, timeout="1.5", backoff="30", max_wait="30", concurrency="4"), 200)
        assert all_fine(answers) and len(good.requests) == 200
        assert 1 <= len(hanging.requests) <= 4
        assert "no complete answer within 1.5 s" in notes[0]


def test_after_a_failure_one_request_tries_it_at_a_time():
    """Once a request is answered, the address gets its full share again."""

    async def scenario():
        addresses, asked, held, fails = Addresses(["a", "b"], Patience(backoff=0)), [], asyncio.Event(), [True]

        async def ask(address):
            asked.append(address.url)
            if address.url == "a" and fails and fails.pop():
                return fault(PASSING, "no")
            await held.wait()
            return ANSWERED

        async def begin(count):
            asked.clear()
            running = [asyncio.create_task(addresses.put(ask)) for _ in range(count)]
            while len(asked) < count:
                await asyncio.sleep(0)
            return running

        running = await begin(1)  # it fails at a and moves to b
        running += await begin(6)
        assert asked.count("a") == 1
        held.set()
        assert await asyncio.gather(*running) == [ANSWERED] * 7
        held.clear()
        running = await begin(4)
        assert sorted(asked) == ["a", "a", "b", "b"]
        held.set()
        await asyncio.gather(*running)

    asyncio.run(scenario())


def test_where_every_address_refuses_the_evaluation_ends():
    stack, (first, other) = served(lambda prompt, nth: "401", lambda prompt, nth: "402")
    with stack, pytest.raises(T2TError, match="refuses every request") as end:
        list(policy(first.url, other.url).respond([Task("i", 0, "question", None, 0)], Sampling()))
    assert first.url in end.value.where and other.url in end.value.where
    assert "status 401 as told" in end.value.cause and "status 402 as told" in end.value.cause
    assert len(first.requests) == len(other.requests) == 1


def test_where_every_address_is_dead_it_gives_up_as_with_one():
    tasks = [Task(f"i{n}", 0, f"question {n}", None, n) for n in range(50)]
    with pytest.raises(T2TError, match="4 questions in a row failed"):
        list(policy(nobody(), nobody(), give_up="4").respond(tasks, Sampling()))


def test_a_question_at_fault_is_not_the_servers_fault():
    def script(prompt, nth):
        return "413" if prompt.endswith("7") else "fine"

    stack, servers = served(script, script)
    with stack:
        answers, notes = ask(policy(*(s.url for s in servers)), 40)
        assert [bool(a.error) for a in answers] == [n % 10 == 7 for n in range(40)]
        assert sum(len(s.requests) for s in servers) == 40 and not any("left out" in note for note in notes)


def test_what_may_have_been_billed_counts_as_an_attempt():
    """A question is not sent round all servers by faults that each may cost something."""
    broken = completion("half", "error", completion_tokens=20)
    stack, servers = served(lambda prompt, nth: broken, lambda prompt, nth: broken, lambda prompt, nth: broken)
    with stack:
        tasks = [Task("i", 0, "question", None, 0)]
        ((_, response),) = policy(*(s.url for s in servers), attempts="2", give_up="0").respond(tasks, Sampling())
        assert response.error and sum(len(s.requests) for s in servers) == 2


def test_one_address_tells_nothing():
    stack, (server,) = served(fine)
    with stack:
        assert ask(policy(server.url), 3)[1] == []


def test_the_figures_are_among_the_notes_of_an_evaluation_and_begin_anew(tmp_path):
    stack, servers = served(fine, fine)
    with stack:
        both = policy(*(s.url for s in servers))
        for number in range(2):
            questions = Evaluation(lake.Lake(), [lake.Number(f"n{i:05d}", "3", i, i) for i in range(10)])
            notes = evaluate(questions, both, tmp_path / str(number)).notes
            assert sum(int(note.split(": ")[1].split()[0]) for note in notes) == 10


@pytest.mark.parametrize(
    ("urls", "complaint"),
    [
        ("http://h/v1,http://h/v1/", "twice"),
        ("http://h/v1,", "must begin with http"),
        ("http://h/v1,h:8000/v1", "must begin with http"),
        ("http://h/v1,http://user:pass@h/v1", "holds a key"),
        ("http://h/v1,http://g/v1?key=1", "holds a key"),
        ("http://h/v1,http://h:0/v1", "no host and port"),
    ],
)
def test_addresses_that_are_none(urls, complaint):
    with pytest.raises(T2TError, match=complaint) as error:
        POLICIES.make(f"endpoint:m,base_url={urls}")
    assert "pass@" not in str(error.value)


def test_a_providers_own_key_goes_to_no_list_that_holds_another_address(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890abcdefghijkl")
    stack, (server,) = served(fine)
    with stack:
        ask(POLICIES.make("openai:m", base_url=f"{server.url},https://api.openai.com/v1", proxy=server.url[:-3], **QUICK), 1)
        assert "sk-1234" not in str([request["headers"] for request in server.requests])


def test_the_option_repeats_and_addresses_may_change_on_resume(tmp_path):
    addition.register()

    def bench(*urls):
        options = [part for url in urls for part in ("--base-url", url)]
        command = ["bench", "--testbed", "addition", "--limit", "2", "--policy", "endpoint:m,attempts=1", "--out", tmp_path / "o"]
        return CliRunner().invoke(cli, [*map(str, command), *options], standalone_mode=False)

    stack, (server, later) = served(lambda prompt, nth: "7", lambda prompt, nth: "7")
    with stack:
        gone = nobody()
        first = bench(gone, server.url)
        assert first.return_value == 0, first.output
        assert f"{gone}: " in first.output and f"{server.url}: " in first.output
        asked = len(server.requests)
        again = bench(later.url, server.url)
        assert again.return_value == 0 and not later.requests and len(server.requests) == asked
    (row,) = (tmp_path / "o").glob("rows/*/row.json")
    assert f"{gone},{server.url}" in row.read_text()
