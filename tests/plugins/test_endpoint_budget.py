"""Everything that is paid for is recorded, and a budget is kept; checked against a server that keeps its own books."""

import itertools
import json
import os
import signal
import threading

import pytest
from odd_replies import GOOD, USAGE, ZERO, completion, ok

import lake
from fake_server import FakeServer
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import AnswerIndex
from t2t_core.evaluation.evaluate import Evaluation, evaluate
from t2t_core.evaluation.scoring import scored
from t2t_core.plugins import load
from t2t_core.records import Sampling
from t2t_core.store import jsonlines
from t2t_plugins.policies.endpoint.budget import Budget

POLICIES = load().policies
PRICES = {"price_in": "1", "price_out": "10"}
COST = (100 * 1 + 20 * 10) / 1e6  # of one reply with the usual usage


def evaluation(count, max_tokens=100):
    return Evaluation(lake.Lake(), [lake.Number(f"n{i:05d}", "3", i, i) for i in range(count)], sampling=Sampling(0, max_tokens))


def policy(server, **settings):
    usual = {"backoff": "0.005", "max_wait": "0.01", "timeout": "5", "attempts": "4", "give_up": "0"}
    return POLICIES.make("endpoint:m", base_url=server.url, **{**usual, **settings})


class Books:
    """A server that bills every reply with a usage, also those that are no answer."""

    def __init__(self, *replies):
        self.replies, self.billed, self.lock = itertools.cycle(replies), 0.0, threading.Lock()

    def __call__(self, prompt, nth):
        with self.lock:
            reply = next(self.replies)
            if reply[0] == 200:
                self.billed += COST
            return reply


EMPTY, BROKEN, FINE = ok(completion(choices=[])), ok(completion(GOOD[:9], "abort")), ok(completion("7"))


@pytest.mark.thorough
def test_every_reply_counts_answered_or_not(tmp_path):
    books = Books(EMPTY, BROKEN, (500, {}, b""), FINE)
    with FakeServer(books) as server:
        outcome = evaluate(evaluation(20), policy(server, concurrency="1", **PRICES), tmp_path)
    answers = list(scored(evaluation(20), tmp_path / "answers.jsonl"))
    assert all(a.response.error is None for a in answers)
    assert outcome.progress.cost_usd == pytest.approx(books.billed) == pytest.approx(60 * COST)
    exported = sum(r.cost_usd for a in answers for r in (a.response, *a.response.earlier))
    assert exported == pytest.approx(books.billed), "also in what a leaderboard is made of"
    lines = [line.value for line in jsonlines.read(tmp_path / "log.jsonl")]
    assert [line["finish_reason"] for line in lines[:3]] == ["error", "aborted", "stop"]
    assert {line["model"] for line in lines} == {"m-2026"}


def test_what_was_paid_for_before_a_stop_is_on_record(tmp_path):
    replies = iter([EMPTY, BROKEN, (401, {}, b"{}")])
    with FakeServer(lambda prompt, nth: next(replies)) as server, pytest.raises(T2TError, match="refuses every request"):
        evaluate(evaluation(3), policy(server, concurrency="1", **PRICES), tmp_path)
    index = AnswerIndex(tmp_path / "log.jsonl", [f"n{i:05d}" for i in range(3)], 1)
    assert index.progress.cost_usd == pytest.approx(2 * COST)


@pytest.mark.thorough
@pytest.mark.parametrize("replies", [[FINE], [EMPTY, FINE], [EMPTY, BROKEN, (500, {}, b""), FINE]], ids=["fine", "empty", "odd"])
@pytest.mark.parametrize("max_usd", [0.004, 0.01, 0.03])
def test_a_budget_is_never_gone_beyond(tmp_path, replies, max_usd):
    books = Books(*replies)
    with FakeServer(books) as server:
        asked = policy(server, concurrency="32", **PRICES)
        outcome = evaluate(evaluation(200), asked, tmp_path, max_usd=max_usd)
        assert books.billed <= max_usd + 1e-9
        assert outcome.progress.cost_usd == pytest.approx(books.billed)
        assert outcome.stopped is None or "budget" in outcome.stopped
        spent = books.billed
        outcome = evaluate(evaluation(200), asked, tmp_path, max_usd=max_usd)
        assert books.billed <= max_usd + 1e-9, "nor by the same command again"
        outcome = evaluate(evaluation(200), asked, tmp_path, max_usd=10)
    assert outcome.stopped is None and books.billed > spent
    assert outcome.progress.cost_usd == pytest.approx(books.billed)


def test_a_question_that_cannot_fit_is_not_asked(tmp_path):
    with FakeServer(Books(FINE)) as server:
        outcome = evaluate(evaluation(5, max_tokens=100_000), policy(server, **PRICES), tmp_path, max_usd=0.5)
        assert not server.requests and "the next one may cost 1" in outcome.stopped


def test_a_request_without_a_reply_counts_with_its_most(tmp_path):
    """The server may bill what it wrote before the connection broke."""
    with FakeServer(lambda prompt, nth: "drop") as server:
        settings = {**PRICES, "concurrency": "8", "attempts": "1"}
        outcome = evaluate(evaluation(100), policy(server, **settings), tmp_path, max_usd=0.01)
        assert "ended without saying what they cost" in outcome.stopped and 0 < len(server.requests) < 10


def test_where_only_the_service_knows_the_price(tmp_path):
    reply = ok(completion("7", usage={**USAGE, "cost": 0.01}))
    with FakeServer(lambda prompt, nth: reply) as server:
        outcome = evaluate(evaluation(100), policy(server, concurrency="32"), tmp_path, max_usd=0.105)
        assert "budget" in outcome.stopped and outcome.progress.cost_usd == pytest.approx(0.1) and len(server.requests) == 10


@pytest.mark.parametrize(
    ("usage", "settings", "said"),
    [(None, PRICES, "how many"), (ZERO, PRICES, "how many"), (None, {}, "how many"), (USAGE, {}, "no price")],
)
def test_a_budget_that_cannot_hold_is_said_at_the_first_reply(tmp_path, usage, settings, said):
    with FakeServer(lambda prompt, nth: ok(completion("7", usage=usage))) as server:
        with pytest.raises(T2TError, match=said):
            evaluate(evaluation(100), policy(server, concurrency="32", **settings), tmp_path, max_usd=1)
        assert len(server.requests) == 1
    assert len(list(jsonlines.read(tmp_path / "log.jsonl"))) == 1, "the answer that came is kept"


def test_zero_usage_enters_no_figure(tmp_path):
    with FakeServer(lambda prompt, nth: ok(completion("7", usage=ZERO))) as server:
        evaluate(evaluation(3), policy(server), tmp_path)
    assert all(a.response.completion_tokens is None for a in scored(evaluation(3), tmp_path / "answers.jsonl"))


def test_ctrl_c_while_an_answer_is_recorded_loses_none_that_came(tmp_path):
    """Answers that wait to be recorded when Ctrl-C is pressed were paid for."""
    recorded = []

    def progress(p):
        recorded.append(p.done)
        if p.done == 3:
            for _ in range(500):  # until more have come than were recorded
                if len(server.requests) >= 16:
                    break
                threading.Event().wait(0.01)
            threading.Event().wait(0.2)
            os.kill(os.getpid(), signal.SIGINT)

    with FakeServer(lambda prompt, nth: FINE) as server:
        with pytest.raises(KeyboardInterrupt):
            evaluate(evaluation(200), policy(server, concurrency="8"), tmp_path, progress=progress)
        answered = len(server.requests)
    kept = len(list(jsonlines.read(tmp_path / "log.jsonl")))
    assert kept >= 16 and answered - kept <= 8, "at most those still under way are missing"


def test_a_run_does_not_stop_at_the_same_questions_forever(tmp_path):
    """Twenty questions that always fail, first in the set; each start gets further."""

    def script(prompt, nth):
        return (500, {}, b"") if int(prompt.split()[-1]) < 20 else ok(completion("7"))

    with FakeServer(script) as server:
        asked = policy(server, concurrency="1", attempts="1", give_up="5")
        for _ in range(5):
            with pytest.raises(T2TError, match="in a row failed"):
                evaluate(evaluation(60), asked, tmp_path)
    index = AnswerIndex(tmp_path / "log.jsonl", [f"n{i:05d}" for i in range(60)], 1)
    assert sorted(index.missing()) == list(range(20)), "every question that can be answered is"


def test_budget_by_hand():
    import asyncio

    async def main():
        budget = Budget(1.0)
        first = await budget.take(0.4)
        waiting = asyncio.create_task(budget.take(0.4))
        await asyncio.sleep(0)
        assert not waiting.done(), "until one reply has said what it cost, there is one at a time"
        budget.settle(first, 0.1, False)
        second = await waiting
        third = await budget.take(0.4)
        blocked = asyncio.create_task(budget.take(0.4))
        await asyncio.sleep(0)
        assert not blocked.done(), "0.1 spent, 0.8 under way"
        budget.settle(second, None, True)
        await asyncio.sleep(0)
        assert not blocked.done(), "what is not known to be free is not free"
        budget.settle(third, 0.0, False)
        assert await blocked == 0.4
        return budget

    budget = asyncio.run(main())
    assert (budget.spent, budget.unknown) == (pytest.approx(0.1), 0.4)


def test_the_log_is_json_that_older_readers_know(tmp_path):
    """A plain answer's line has the fields it always had, and no empty ones."""
    with FakeServer(lambda prompt, nth: ok({**completion("7"), "model": None})) as server:
        evaluate(evaluation(1), policy(server), tmp_path)
    record = json.loads((tmp_path / "answers.jsonl").read_text())
    assert set(record) == {"instance", "sample", "text", "prompt_tokens", "completion_tokens", "reasoning_tokens",
                           "finish_reason", "error", "cost_usd", "verdict"}  # fmt: skip
