"""Workers that are killed: every job still has one result, and its cost is known."""

import contextlib
import os
import random
import signal
import sys
import time

import pytest

from t2t_core.errors import NotReady, T2TError
from t2t_core.store import folders
from t2t_jobs import worker
from t2t_jobs.ledger import Cost, Ledger
from t2t_jobs.queue import Queue
from t2t_jobs.running import Outcome


@pytest.fixture
def queue(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "warm", lambda: None)
    return Queue(tmp_path / "queue", secret=7)


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "job.toml").write_text("rounds = 1\n")
    return folder


def jobs_do(monkeypatch, run):
    well = Outcome(base="b", pre={"b": 0.1}, post=0.5)
    monkeypatch.setattr(worker, "run_job", lambda queue, order, work: run(order, work) or well)


def submit(queue, job, count=1):
    for number in range(count):
        queue.submit(f"j{number}", job, "draw-optimal", "e")


def test_a_worker_does_what_waits_and_ends(queue, job, monkeypatch):
    jobs_do(monkeypatch, lambda order, work: None)
    submit(queue, job, 3)
    assert worker.work(queue) == 3 and worker.work(queue) == 0
    result = queue.result("j0")
    assert result.succeeded and result.post == 0.5 and result.versions["packages"] and result.attempts == 1
    assert queue.counts() == {"queued": 0, "running": 0, "done": 3}


RAISED = [(ValueError("boo"), "fault"), (T2TError("no room"), "worker"), (SystemExit(3), "died"), (MemoryError(), "fault")]


@pytest.mark.parametrize("error, code", RAISED)
def test_a_job_that_raises_has_a_result_that_says_so(queue, job, monkeypatch, error, code):
    def run(order, work):
        raise error

    jobs_do(monkeypatch, run)
    submit(queue, job)
    assert worker.work(queue) == 1
    result = queue.result("j0")
    assert (result.succeeded, result.failure_code) == (False, code) and result.failure


def test_a_job_beyond_its_cpu_seconds_dies_and_says_so(queue, job, monkeypatch):
    def run(order, work):
        while True:
            pass

    jobs_do(monkeypatch, run)
    monkeypatch.setattr(worker, "_allowed", lambda claim: 0.5)
    monkeypatch.setattr(worker, "WALL", 10_000)
    submit(queue, job)
    assert worker.work(queue) == 1
    result = queue.result("j0")
    assert result.failure_code == "budget" and result.cpu_seconds >= 0.5


def test_a_job_that_sleeps_for_ever_is_ended(queue, job, monkeypatch):
    jobs_do(monkeypatch, lambda order, work: time.sleep(600))
    monkeypatch.setattr(worker, "WALL", 0.001)
    monkeypatch.setattr(worker, "BEAT", 0.01)
    submit(queue, job)
    worker.work(queue)
    assert queue.result("j0").failure_code == "time"


def test_a_job_that_fills_the_disk_is_ended(queue, job, monkeypatch):
    def run(order, work):
        for number in range(10_000):
            folders.write_atomic(work / f"file{number}", b"x" * 10_000)
            time.sleep(0.001)

    jobs_do(monkeypatch, run)
    monkeypatch.setattr(worker, "MAX_DISK", 1 << 20)
    monkeypatch.setattr(worker, "BEAT", 0.05)
    submit(queue, job)
    worker.work(queue)
    assert queue.result("j0").failure_code == "disk"
    assert not (queue.folder / "work" / "j0").exists(), "what it wrote is gone"


@pytest.mark.thorough
def test_what_a_job_started_ends_with_it(queue, job, monkeypatch, tmp_path):
    def run(order, work):
        if not os.fork():
            time.sleep(600)
        (tmp_path / "group").write_text(str(os.getpgid(0)))
        time.sleep(600)

    jobs_do(monkeypatch, run)
    monkeypatch.setattr(worker, "WALL", 0.03)
    monkeypatch.setattr(worker, "BEAT", 0.01)
    submit(queue, job)
    worker.work(queue)
    group = int((tmp_path / "group").read_text())
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process of the job lives on")


def test_an_order_that_nobody_can_read_has_a_result(queue, job, monkeypatch):
    jobs_do(monkeypatch, lambda order, work: None)
    (queue.folder / "queued" / "odd.json").path.write_text("{")
    queue.submit("lost", job, "no-such-family", "e")
    worker.work(queue)
    assert queue.result("odd").failure_code == "order" and queue.result("lost").failure_code == "worker"


def test_a_stop_puts_the_job_back(queue, job, monkeypatch):
    jobs_do(monkeypatch, lambda order, work: time.sleep(600))
    submit(queue, job)
    stopped = os.fork()
    if not stopped:
        with contextlib.suppress(KeyboardInterrupt):
            worker.work(queue, 600)
        os._exit(0)
    while queue.state("j0") != "running":
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(stopped, signal.SIGTERM)
    os.waitpid(stopped, 0)
    assert queue.state("j0") == "queued"


def killed_until_done(queue, kills, seed, quick=(0.0, 0.3)):
    """Two workers on the queue, killed at random moments until so many were, then left alone; how many were killed."""
    chance, done = random.Random(seed), 0
    living = []
    while True:
        while len(living) < 2:
            child = os.fork()
            if not child:
                with contextlib.suppress(BaseException):
                    worker.work(queue, 0.2)
                os._exit(0)
            living.append(child)
        time.sleep(chance.uniform(*quick))
        if done < kills:
            victim = living.pop(chance.randrange(len(living)))
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            done += 1
        ended = [child for child in living if os.waitpid(child, os.WNOHANG)[0]]
        living = [child for child in living if child not in ended]
        counts = queue.counts()
        if done >= kills and counts["queued"] + counts["running"] == 0:
            for child in living:
                os.waitpid(child, 0)
            return done


def check_one_result_each(queue, jobs):
    ledger = Ledger(queue.folder)
    for number in range(jobs):
        result = queue.result(f"j{number}")
        assert result is not None and result.succeeded, result
        ledger.charge(result.job_id, "job", "e", Cost(cpu_seconds=result.cpu_seconds))
        ledger.charge(result.job_id, "job", "e", Cost(cpu_seconds=result.cpu_seconds))
    logs = {f"j{n}": Cost(cpu_seconds=sum(a.cpu_seconds for a in queue.attempts(f"j{n}"))) for n in range(jobs)}
    assert {id: round(cost.cpu_seconds, 3) for id, cost in logs.items()} == {
        id: entry.cost.cpu_seconds for id, entry in ledger.entries().items()
    }
    assert queue.counts() == {"queued": 0, "running": 0, "done": jobs}


def busy(order, work):
    """A job that does something, and goes on from where a killed worker left it."""
    for step in range(5):
        place = work / f"step{step}"
        if not place.exists():
            time.sleep(0.02)
            folders.write_atomic(place, b"done")


@pytest.mark.thorough
@pytest.mark.parametrize("kills, jobs", [(12, 6), pytest.param(300, 60, marks=pytest.mark.slow)])
def test_every_job_has_one_result_whatever_is_killed(queue, job, monkeypatch, kills, jobs):
    jobs_do(monkeypatch, busy)
    monkeypatch.setattr(worker, "MOST_WORKERS", 10_000)
    submit(queue, job, jobs)
    killed_until_done(queue, kills, seed=kills)
    check_one_result_each(queue, jobs)


def test_the_command_does_the_jobs_of_a_queue(queue, job, monkeypatch):
    from click.testing import CliRunner

    from t2t_core.cli import cli

    jobs_do(monkeypatch, lambda order, work: None)
    submit(queue, job, 2)
    shown = CliRunner().invoke(cli, ["worker", "--queue", str(queue.folder), "--idle-exit", "0"])
    assert shown.exit_code == 0 and "2 jobs done" in shown.output and "hidden score 0.500" in shown.output
    missing = CliRunner().invoke(cli, ["worker", "--queue", str(queue.folder) + "x"])
    assert isinstance(missing.exception, T2TError) and not (queue.folder.parent / "queuex").exists()


def test_a_run_is_kept_where_somebody_asks_for_it(queue, job, monkeypatch):
    jobs_do(monkeypatch, lambda order, work: folders.write_atomic(work / "weights", b"w"))
    submit(queue, job)
    worker.work(queue)
    queue.submit("kept", job, "draw-optimal", "e")
    worker.work(queue, keep=True)
    assert [path.name for path in (queue.folder / "work").entries()] == ["kept"]
    assert folders.read_bytes(queue.folder / "work" / "kept" / "weights") == b"w"


@pytest.mark.parametrize("named, held", [("", 0), ("0", 1), ("0,1", 2), ("-1", 0), ("GPU-8f, GPU-9a", 2)])
def test_a_jobs_gpu_seconds_are_those_that_its_worker_held(queue, job, monkeypatch, named, held):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert worker.gpus_held() == held
    jobs_do(monkeypatch, lambda order, work: time.sleep(0.1))
    submit(queue, job)
    worker.work(queue)
    result = queue.result("j0")
    assert held * 0.1 <= result.gpu_seconds <= held * result.wall_seconds


@pytest.mark.slow
@pytest.mark.train
def test_real_jobs_have_one_result_each_whatever_is_killed(tmp_path):
    """Worker processes are killed while they train; the result is the one that an undisturbed worker gets for the same job."""
    from t2t_core.plugins import installed
    from t2t_jobs.job import document, make_job
    from t2t_jobs.pools import local

    family, folder = installed().families.make("draw-optimal"), tmp_path / "job"
    folder.mkdir()
    changes = {"base": "large", "generation.samples": 256, "training.learning_rate": 1e-3}
    (folder / "job.toml").write_text(document(make_job(family, changes).values))
    calm = Queue(tmp_path / "calm", secret=9)
    calm.submit("j0", folder, "draw-optimal", "e")
    assert worker.work(calm) == 1
    queue, chance = Queue(tmp_path / "queue", secret=9), random.Random(3)
    submit(queue, folder, 3)
    pool, kills = local.LocalPool("2", {"idle": "0"}), 0
    while queue.counts()["done"] < 3:
        pool.start(queue.folder.path)
        time.sleep(chance.uniform(1.0, 9.0))
        if kills < 8 and pool._workers:
            pool._workers[chance.randrange(len(pool._workers))].process.kill()
            kills += 1
    pool.stop()
    for number in range(3):
        result = queue.result(f"j{number}")
        assert (result.pre, result.post) == (calm.result("j0").pre, calm.result("j0").post)
    assert queue.counts() == {"queued": 0, "running": 0, "done": 3}


def test_a_worker_without_the_library_leaves_the_job_to_others(queue, job, monkeypatch):
    """A machine without torch is not the job's fault, so the job must not get a result that says it failed."""
    jobs_do(monkeypatch, lambda order, work: None)
    submit(queue, job, 2)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(NotReady, match="training extra"):
            worker.work(queue)
        assert queue.counts() == {"queued": 2, "running": 0, "done": 0}
    assert worker.work(queue) == 2
