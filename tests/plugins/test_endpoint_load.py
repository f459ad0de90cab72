"""The endpoint client during an evaluation: nothing is lost or doubled, errors never count as wrong answers, and Ctrl-C works at
any time."""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import lake
from fake_server import FakeServer, completion
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.plugins import load
from t2t_core.seeding import Stream
from t2t_core.store import jsonlines

POLICIES = load().policies
FAULTS = ["429", "500", "503", "drop", "drop_mid", "empty", "junk", "html", "no_choices", "error_200", "never", "huge", "400"]
FAULTS += ["broke_off", "bomb", "gzip_bomb"]


def evaluation(count):
    return Evaluation(lake.Lake(), [lake.Number(f"n{i:05d}", "3", i, i) for i in range(count)])


def policy(server, **settings):
    usual = {"backoff": "0.005", "max_wait": "0.01", "timeout": "1.0", "attempts": "2", "max_bytes": "200000"}
    return POLICIES.make("endpoint:fake", base_url=server.url, **{**usual, "concurrency": "16", **settings})


def faulty(share, faults):
    """The right answer, but a fault for `share` of the requests, and a wrong answer for every hundredth number."""

    def script(prompt, nth):
        number = int(prompt.split()[-1])
        stream = Stream.of(number, "fault", nth)
        if stream.uniform() < share:
            return faults[(number + nth) % len(faults)]
        return completion(str(number + (number % 100 == 99)))

    return script


def records(folder):
    return [line.value for line in jsonlines.read(folder / "answers.jsonl")]


def check(folder, count):
    """One answer or one error each; an error has no text and no verdict of an answer."""
    rows = records(folder)
    assert [r["instance"] for r in rows] == [f"n{i:05d}" for i in range(count)]
    for number, row in enumerate(rows):
        if row["error"]:
            assert row["text"] == "" and row["finish_reason"] == "error" and not row["verdict"]["valid"]
        else:
            assert row["text"] == str(number + (number % 100 == 99))
            assert row["verdict"]["valid"] is (number % 100 != 99)
    return rows


@pytest.mark.thorough
def test_every_fault_and_still_one_answer_or_error_each(tmp_path):
    count = 240
    with FakeServer(faulty(0.5, FAULTS)) as server:
        outcome = evaluate(evaluation(count), policy(server), tmp_path)
        rows = check(tmp_path, count)
        errors = sum(1 for r in rows if r["error"])
        assert outcome.progress.done == count and outcome.stopped is None
        assert 0 < errors < count / 2
        billed = sum(len(r.get("earlier", ())) for r in rows)
        assert len(list(jsonlines.read(tmp_path / "log.jsonl"))) == count + billed and billed > 0
        server.script = faulty(0, FAULTS)
        asked = len(server.requests)
        evaluate(evaluation(count), policy(server, timeout="60"), tmp_path)  # the same again asks only for the errors
        assert len(server.requests) - asked == errors
    assert not any(r["error"] for r in check(tmp_path, count))


def test_ctrl_c_loses_no_answer_that_came(tmp_path):
    count = 300

    def script(prompt, nth):
        if int(prompt.split()[-1]) > 60:
            server.closing.wait(60)
        return faulty(0, [])(prompt, nth)

    with FakeServer(script) as server:

        def press():
            while len(server.requests) < 76:
                time.sleep(0.01)
            time.sleep(0.3)
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        pressed = []
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            evaluate(evaluation(count), policy(server, timeout="60"), tmp_path)
        assert time.monotonic() - pressed[0] < 5
        kept = list(jsonlines.read(tmp_path / "log.jsonl"))
        assert len(kept) == 61  # 0..60 were answered
        asked = len(server.requests)
        server.script = faulty(0, [])
        evaluate(evaluation(count), policy(server, timeout="60"), tmp_path)
        assert len(server.requests) - asked == count - 61
    assert not any(r["error"] for r in check(tmp_path, count))


def serve(pipe):
    """The faulty server in a process of its own, so that the memory measured is the client's."""
    with FakeServer(faulty(0.1, FAULTS)) as server:
        server.requests = _Counter()
        pipe.send(server.url)
        pipe.recv()
        pipe.send(server.requests.count)


@pytest.mark.slow
def test_soak(tmp_path):
    """Memory stays flat over many answers, a tenth of the requests failing in every way. T2T_SOAK sets how many (default
    20,000; more than some 50,000 need `--timeout 0`)."""
    count = int(os.environ.get("T2T_SOAK", "20000"))
    memory = []

    def watch(progress):
        if progress.done % (count // 10) == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            memory.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)

    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    begin = time.monotonic()
    evaluate(evaluation(count), policy(SimpleNamespace(url=pipe.recv()), attempts="6"), tmp_path, progress=watch)
    seconds = time.monotonic() - begin
    pipe.send("end")
    requests = pipe.recv()
    server.join(10)
    rows = check(tmp_path, count)
    print(f"{count} answers, {sum(1 for r in rows if r['error'])} errors, {requests} requests, "
          f"{count / seconds:.0f} answers/s, resident MiB by tenth {[round(m) for m in memory]}")  # fmt: skip
    assert memory[-1] < memory[0] + 32


class _Counter(list):
    """Counts requests without keeping them."""

    count = 0

    def append(self, request):
        self.count += 1
