"""The queue: every job has exactly one result, whichever worker dies. The ledger: every cost once, and hard budgets."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from t2t_core.errors import BudgetSpent, T2TError
from t2t_jobs.ledger import Cost, Ledger, Limits
from t2t_jobs.queue import JobResult, Queue


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path / "queue", secret=7)


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "job.toml").write_text("rounds = 1\n")
    return folder


def result_of(claim, post=0.5):
    return JobResult(job_id=claim.order.id, family="draw-optimal", episode="e", succeeded=True, base="small", pre={}, post=post)


def test_a_job_goes_through_the_folders_once(queue, job):
    assert queue.state("a") == "unknown"
    assert queue.submit("a", job, "draw-optimal", "e") == queue.submit("a", job, "draw-optimal", "e") == "a"
    assert queue.counts() == {"queued": 1, "running": 0, "done": 0}
    claim = queue.claim("w")
    assert queue.state("a") == "running" and queue.claim("w") is None
    assert queue.finish(claim, result_of(claim))
    assert queue.state("a") == "done" and queue.result("a").post == 0.5
    assert queue.counts() == {"queued": 0, "running": 0, "done": 1}
    queue.submit("a", job, "draw-optimal", "e")
    assert queue.counts()["queued"] == 0


def test_each_job_has_one_of_many_workers(queue, job):
    ids = [f"j{n}" for n in range(20)]
    for name in ids:
        queue.submit(name, job, "draw-optimal", "e")
    with ThreadPoolExecutor(8) as pool:
        claims = [claim for claim in pool.map(lambda n: queue.claim(f"w{n}"), range(40)) if claim]
    claims += iter(lambda: queue.claim("last"), None)
    assert sorted(claim.order.id for claim in claims) == sorted(ids)


def test_a_worker_that_was_slow_cannot_give_a_second_result(queue, job):
    queue.submit("a", job, "draw-optimal", "e")
    slow = queue.claim("slow")
    assert queue.requeue_dead(older_than=-1) == ["a"]
    assert not queue.heartbeat(slow)
    fast = queue.claim("fast")
    assert queue.finish(fast, result_of(fast, 0.9))
    assert not queue.finish(slow, result_of(slow, 0.1))
    assert queue.result("a").post == 0.9 and queue.counts() == {"queued": 0, "running": 0, "done": 1}


def test_a_job_that_came_back_after_its_result_is_not_done_again(queue, job):
    queue.submit("a", job, "draw-optimal", "e")
    slow = queue.claim("slow")
    queue.requeue_dead(older_than=-1)
    assert queue.finish(slow, result_of(slow))
    assert queue.claim("fast") is None and queue.counts() == {"queued": 0, "running": 0, "done": 1}


def test_a_living_worker_keeps_its_job_and_a_dead_process_does_not(queue, job):
    queue.submit("a", job, "draw-optimal", "e")
    child = os.fork()
    if not child:
        queue.claim("killed")
        os._exit(0)
    os.waitpid(child, 0)
    assert queue.requeue_dead() == ["a"]
    claim = queue.claim("alive")
    assert queue.requeue_dead() == [] and queue.heartbeat(claim, 2.5)
    assert [attempt.cpu_seconds for attempt in queue.attempts("a") if attempt.worker == "alive"] == [2.5]


def test_hidden_draws_come_from_the_queues_secret(tmp_path):
    first, same, other = (Queue(tmp_path / name, secret=s) for name, s in (("a", 1), ("b", 1), ("c", 2)))
    assert first.hidden_seed("e1") == same.hidden_seed("e1") != other.hidden_seed("e1")
    assert first.hidden_seed("e1") != first.hidden_seed("e2")
    assert Queue(tmp_path / "a").hidden_seed("e1") == first.hidden_seed("e1")
    with pytest.raises(T2TError, match="another secret"):
        Queue(tmp_path / "a", secret=2)


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a" * 101, "a\n"])
def test_no_id_leads_out_of_the_queue(queue, job, name):
    with pytest.raises(T2TError, match="no id of a job"):
        queue.submit(name, job, "draw-optimal", "e")


# --- the ledger


def test_costs_are_charged_once_and_budgets_are_hard(tmp_path):
    ledger = Ledger(tmp_path, Limits(usd=1.0), Limits(usd=1.5))
    ledger.reserve("c1", "call", "e1", Cost(usd=0.8))
    with pytest.raises(BudgetSpent, match="episode e1"):
        ledger.reserve("c2", "call", "e1", Cost(usd=0.3))
    assert ledger.charge("c1", "call", "e1", Cost(usd=0.1, tokens_in=5))
    assert not ledger.charge("c1", "call", "e1", Cost(usd=0.1, tokens_in=5))
    with pytest.raises(T2TError, match="charged another cost before"):
        ledger.charge("c1", "call", "e1", Cost(usd=0.2))
    ledger.reserve("c2", "call", "e1", Cost(usd=0.3))
    ledger.reserve("d1", "call", "e2", Cost(usd=1.0))
    with pytest.raises(BudgetSpent, match="everything"):
        ledger.reserve("f1", "call", "e3", Cost(usd=0.5))
    assert ledger.total("e1").usd == pytest.approx(0.4) and ledger.total().usd == pytest.approx(1.4)
    assert ledger.left("e1") is None


def test_a_ledger_reconciles_with_its_logs(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.charge("a", "job", "e", Cost(cpu_seconds=3.0))
    ledger.reserve("b", "job", "e", Cost(cpu_seconds=20.0))
    assert ledger.reconcile({"a": Cost(cpu_seconds=3.0)}) == ["b was reserved, but no log has it"]
    ledger.charge("b", "job", "e", Cost(cpu_seconds=4.0))
    assert ledger.reconcile({"a": Cost(cpu_seconds=3.0), "b": Cost(cpu_seconds=4.0)}) == []
    assert len(ledger.reconcile({"a": Cost(cpu_seconds=1.0), "c": Cost()})) == 3


def test_a_torn_last_line_is_cut_off(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.charge("a", "call", "e", Cost(usd=1.0))
    with (tmp_path / "costs.jsonl").open("a") as file:
        file.write('{"id": "b", "ki')
    ledger.charge("c", "call", "e", Cost(usd=2.0))
    assert set(ledger.entries()) == {"a", "c"}


def test_many_writers_lose_no_line(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: Ledger(tmp_path).charge(f"c{n}", "call", "e", Cost(usd=1.0)), range(40)))
    assert Ledger(tmp_path).total().usd == 40
