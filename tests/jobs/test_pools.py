"""Pools of workers: as many workers as there are jobs, none if there are no jobs, and a message if workers do not survive."""

import sys
import time

import pytest

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_jobs.job import document, make_job
from t2t_jobs.pools import local
from t2t_jobs.queue import Queue


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path / "queue", secret=3)


def submit(queue, tmp_path, count, **changes):
    family = installed().families.make("draw-optimal")
    folder = tmp_path / "job"
    folder.mkdir(exist_ok=True)
    (folder / "job.toml").write_text(document(make_job(family, changes).values))
    for number in range(count):
        queue.submit(f"j{number}", folder, "draw-optimal", "e")


def worker_is(monkeypatch, code):
    monkeypatch.setattr(local, "COMMAND", (sys.executable, "-c", code))


def test_no_worker_without_a_job_and_never_more_than_the_pool(queue, tmp_path, monkeypatch):
    worker_is(monkeypatch, "import time; time.sleep(600)")
    pool = installed().pools.make("local:2")
    pool.start(queue.folder.path)
    assert len(pool._workers) == 0
    submit(queue, tmp_path, 5)
    for _ in range(3):
        pool.start(queue.folder.path)
        assert len(pool._workers) == 2
    first = pool._workers[0].process
    first.kill()
    first.wait()
    pool.start(queue.folder.path)
    assert len(pool._workers) == 2 and first not in [begun.process for begun in pool._workers]
    processes = [begun.process for begun in pool._workers]
    pool.stop()
    assert all(process.poll() is not None for process in processes)


def test_workers_that_do_not_live_are_told_with_what_they_said(queue, tmp_path, monkeypatch):
    worker_is(monkeypatch, "import sys; sys.exit('no module named torch')")
    submit(queue, tmp_path, 1)
    pool = installed().pools.make("local")
    with pytest.raises(T2TError, match="failed one after another") as raised:
        for _ in range(2000):
            pool.start(queue.folder.path)
            time.sleep(0.02)
    assert "no module named torch" in str(raised.value)


@pytest.mark.parametrize("spec", ["local:0", "local:x", "local:1,speed=2", "ray:none"])
def test_a_pool_of_nonsense_is_refused(spec):
    with pytest.raises(T2TError):
        installed().pools.make(spec)


def wait_for(queue, pool, count):
    for _ in range(2400):
        pool.start(queue.folder.path)
        if queue.counts()["done"] == count:
            return
        time.sleep(0.1)
    pytest.fail(f"{queue.counts()}")


@pytest.mark.train
def test_local_workers_train_and_score(queue, tmp_path):
    strong = {"base": "large", "generation.samples": 128, "training.group": 8, "training.learning_rate": 1e-3,
              'configuration."0.75-1".share': 0.0, 'configuration."0-0.25".share': 1.0}  # fmt: skip
    submit(queue, tmp_path, 2, **strong)
    pool = installed().pools.make("local:1,idle=0")
    try:
        wait_for(queue, pool, 2)
    finally:
        pool.stop()
    first, second = queue.result("j0"), queue.result("j1")
    assert first.succeeded and first.updates == 8 and first.base == "large"
    assert first.post > max(first.pre.values()) > 0
    assert (first.pre, first.post) == (second.pre, second.post), "the same job twice comes to the same"


@pytest.mark.slow
@pytest.mark.train
def test_workers_on_ray_train_and_score(queue, tmp_path):
    pytest.importorskip("ray")
    submit(queue, tmp_path, 1)
    pool = installed().pools.make("ray:1,idle=0")
    try:
        wait_for(queue, pool, 1)
    finally:
        pool.stop()
    assert queue.result("j0").succeeded
