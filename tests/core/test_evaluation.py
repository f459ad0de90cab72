import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from addition import Adder, Addition, Sum
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import AnswerIndex
from t2t_core.evaluation.evaluate import evaluate, read_sampling
from t2t_core.evaluation.export import export
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.records import Response, Sampling
from t2t_core.registry import Spec
from t2t_core.store import jsonlines
from t2t_core.store.paths import SafePath

SUMS = [Sum(f"s{i:03d}", i, 2 * i, 3 * i) for i in range(20)]


def evaluation(instances=SUMS, **options):
    return Evaluation(Addition(), instances, **options)


def lines(path):
    return [line.value for line in jsonlines.read(path)]


class Scripted(Adder):
    """Yields what the script says."""

    def __init__(self, script, **options):
        super().__init__(**options)
        self.script = script

    def respond(self, tasks, sampling):
        yield from self.script(tasks)


def test_every_question_is_answered_once_in_instance_order(tmp_path):
    outcome = evaluate(evaluation(samples=2), Adder(batch_size=7), tmp_path)
    assert outcome.stopped is None
    assert outcome.progress.done == outcome.progress.asked == 40
    records = lines(tmp_path / "answers.jsonl")
    assert [(r["instance"], r["sample"]) for r in records] == [(s.id, k) for s in SUMS for k in (0, 1)]
    assert all(r["verdict"]["optimal"] for r in records)
    assert [s.verdict.optimal for s in scored(evaluation(samples=2), tmp_path / "answers.jsonl")] == [True] * 40


def test_policy_never_sees_a_label(tmp_path):
    corrupted = [replace(s, label=-999) for s in SUMS]
    seen = []

    def spy(tasks):
        seen.extend((t.instance.label, t.prompt) for t in tasks)
        yield from Adder().respond(tasks, None)

    evaluate(evaluation(), Scripted(spy), tmp_path / "a")
    evaluate(evaluation(corrupted), Scripted(spy), tmp_path / "b")
    assert {label for label, _ in seen} == {None}
    assert seen[:20] == seen[20:]
    texts = [[r["text"] for r in lines(tmp_path / x / "answers.jsonl")] for x in "ab"]
    assert texts[0] == texts[1]


def test_resume_asks_only_what_is_missing_and_errors_again(tmp_path):
    first = Adder("", {"every": "3"})
    outcome = evaluate(evaluation(), first, tmp_path)
    assert outcome.progress.errors == 6
    second = Adder()
    evaluate(evaluation(), second, tmp_path)
    assert [i for i, _ in second.asked] == [s.id for i, s in enumerate(SUMS) if (i + 1) % 3 == 0]
    assert len(lines(tmp_path / "log.jsonl")) == 26, "earlier errors stay on record"
    third = Adder()
    evaluate(evaluation(), third, tmp_path)
    assert third.asked == []
    evaluate(evaluation(), Adder(), tmp_path / "undisturbed")
    assert (tmp_path / "answers.jsonl").read_bytes() == (tmp_path / "undisturbed/answers.jsonl").read_bytes()


def test_hostile_text_is_kept_word_for_word(tmp_path):
    text = '\x1b[31m</script>\u2028\ud800\x00"\\\r\n{"text": "x"}\n\U0001f600'
    evaluate(evaluation(SUMS[:1]), Scripted(lambda tasks: [(0, Response(text))]), tmp_path)
    assert lines(tmp_path / "answers.jsonl")[0]["text"] == text
    assert (tmp_path / "log.jsonl").read_bytes().isascii()


WEIRD = ["", "\ud800 \u2028\r\n\x00", "3", "1e400", '{"a": NaN}', "ß" * 500, "\\u0041"]


def test_an_export_made_while_answers_come_is_what_the_log_gives(tmp_path):
    """This holds for odd texts, failed attempts that cost something, and errors, in any order of arrival."""

    def script(tasks):
        for position in reversed(range(len(tasks))):
            text = WEIRD[position % len(WEIRD)]
            failed = Response("half", error="busy", finish_reason="error", cost_usd=0.1 + 0.2, completion_tokens=3)
            earlier = (failed,) * (position % 3)
            error = {"error": "broken", "finish_reason": "error"} if position % 5 == 4 else {}
            yield position, Response(text, cost_usd=1e-7 * position, seconds=1.5, reasoning=text, earlier=earlier, **error)

    evaluate(evaluation(samples=2), Scripted(script), tmp_path)
    evaluate(evaluation(samples=2), Scripted(script), tmp_path)
    log = AnswerIndex(tmp_path / "log.jsonl", [s.id for s in SUMS], 2)
    export(evaluation(samples=2), log, SafePath.of(tmp_path) / "again.jsonl")
    assert (tmp_path / "answers.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()
    assert sum(record["error"] is not None for record in lines(tmp_path / "again.jsonl")) == 1  # of the eight asked again


def test_a_full_temporary_folder_costs_no_answer(tmp_path, monkeypatch):
    """Lines made ahead are kept in a file without a name. /dev/full behaves like a full disk."""
    monkeypatch.setattr("t2t_core.store.folders.scratch", lambda: Path("/dev/full").open("w+b"))  # noqa: SIM115
    evaluate(evaluation(samples=30), Adder(), tmp_path)
    records = lines(tmp_path / "answers.jsonl")
    assert [(r["instance"], r["sample"]) for r in records] == [(s.id, k) for s in SUMS for k in range(30)]
    assert all(r["verdict"]["optimal"] for r in records)


def test_a_verdict_that_fails_costs_no_answer(tmp_path):
    class Unsure(Addition):
        def verify(self, instance, text, format):
            raise ValueError("no idea")

    with pytest.raises(ValueError, match="no idea"):
        evaluate(Evaluation(Unsure(), SUMS), Adder(), tmp_path)
    policy = Adder()
    evaluate(evaluation(), policy, tmp_path)
    assert policy.asked == [] and len(lines(tmp_path / "answers.jsonl")) == 20


def test_key_in_an_echoing_answer_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED_API_KEY", "sk-planted-0123456789")
    response = Response("you sent sk-planted-0123456789", error="bad key sk-planted-0123456789", finish_reason="error")
    evaluate(evaluation(SUMS[:1]), Scripted(lambda tasks: [(0, response)]), tmp_path)
    for file in tmp_path.iterdir():
        assert b"sk-planted" not in file.read_bytes()


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        (lambda tasks: [(0, Response("0")), (0, Response("0"))], "position 0 twice"),
        (lambda tasks: [(20, Response("0"))], "no position 20"),
        (lambda tasks: [(-1, Response("0"))], "no position -1"),
        (lambda tasks: [(True, Response("0"))], "no position True"),
        (lambda tasks: [(0, "0")], "type is str"),
        (lambda tasks: [Response("0")], "it yielded Response"),
        (lambda tasks: [(0, Response(None))], "text is NoneType"),
        (lambda tasks: [(0, Response("0", cost_usd=float("nan")))], "cost_usd"),
        (lambda tasks: [(0, Response("0", completion_tokens=-1))], "completion_tokens"),
        (lambda tasks: [(0, Response("0", finish_reason="fine"))], "finish_reason"),
    ],
)
def test_broken_contract_is_named(tmp_path, script, complaint):
    with pytest.raises(T2TError, match=complaint):
        evaluate(evaluation(), Scripted(script), tmp_path)


def test_silent_policy_leaves_errors_not_wrong_answers(tmp_path):
    outcome = evaluate(evaluation(), Scripted(lambda tasks: [(3, Response("9"))]), tmp_path)
    assert outcome.progress.errors == 19
    records = lines(tmp_path / "answers.jsonl")
    assert [r["error"] for r in records].count("the policy gave no answer") == 19


def test_exception_in_the_middle_keeps_what_is_there(tmp_path):
    def script(tasks):
        yield 0, Response("0")
        raise RuntimeError("boom")

    with pytest.raises(T2TError, match="RuntimeError: boom"):
        evaluate(evaluation(), Scripted(script), tmp_path)
    policy = Adder()
    evaluate(evaluation(), policy, tmp_path)
    assert len(policy.asked) == 19


def test_budget_stops_cleanly_and_counts_what_was_spent_before(tmp_path):
    outcome = evaluate(evaluation(), Adder(), tmp_path, max_usd=0.0045)
    assert outcome.progress.done == 5
    assert "0.0045 USD" in outcome.stopped
    records = lines(tmp_path / "answers.jsonl")
    assert [r["error"] for r in records][5:] == ["not asked yet"] * 15
    again = Adder()
    assert evaluate(evaluation(), again, tmp_path, max_usd=0.0045).stopped
    assert again.asked == []
    with pytest.raises(T2TError, match="no price"):
        priceless = Scripted(lambda tasks: [(0, Response("0", completion_tokens=1))])
        evaluate(evaluation(), priceless, tmp_path / "x", max_usd=1)


def test_torn_last_line_is_reported_and_asked_again(tmp_path):
    evaluate(evaluation(), Adder(), tmp_path)
    log = tmp_path / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[:-40])
    policy = Adder()
    outcome = evaluate(evaluation(), policy, tmp_path)
    assert f"{log}, line 20" in outcome.notes[0]
    assert policy.asked == [("s019", 0)]
    assert log.read_bytes().count(b"\n") == 20
    log.write_bytes(whole[:-1])  # only the newline is gone: the answer is whole
    policy = Adder()
    assert not evaluate(evaluation(), policy, tmp_path).notes
    assert policy.asked == []
    assert log.read_bytes() == whole


@pytest.mark.parametrize(
    "change",
    [lambda whole: whole[:10], lambda whole: b"", lambda whole: b"".join(whole.splitlines(keepends=True)[::-1])],
    ids=["cut", "emptied", "in another order"],
)
def test_a_log_that_is_changed_under_the_evaluation_gives_no_answer_to_another_question(tmp_path, change):
    log = tmp_path / "log.jsonl"

    class Meddler(Adder):
        def respond(self, tasks, sampling):
            yield from super().respond(tasks, sampling)
            log.write_bytes(change(log.read_bytes()))

    with pytest.raises(T2TError, match="changed while this process") as error:
        evaluate(evaluation(), Meddler(), tmp_path)
    assert str(log) in error.value.where
    if change(b"ab\ncd\n") == b"cd\nab\n":
        assert not evaluate(evaluation(), Adder(), tmp_path).progress.errors, "read anew, every answer is its own"


@pytest.mark.parametrize(
    "damage",
    [
        "not json",
        '{"instance": "s000"',
        "[]",
        '{"instance": "zzz", "sample": 0, "text": ""}',
        '{"instance": "s000", "sample": 7, "text": ""}',
        '{"instance": "s000", "sample": 0, "text": 1}',
        '{"a": NaN}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": ' + "[" * 100_000 + "}",
    ],
)
def test_damaged_line_is_refused_with_file_and_line(tmp_path, damage):
    evaluate(evaluation(), Adder(), tmp_path)
    log = tmp_path / "log.jsonl"
    rows = log.read_text().splitlines()
    rows[4] = damage
    log.write_text("\n".join(rows) + "\n")
    with pytest.raises(T2TError, match=r"log.jsonl, line 5"):
        evaluate(evaluation(), Adder(), tmp_path)


def test_instances_need_distinct_ids():
    with pytest.raises(T2TError, match="occurs twice"):
        evaluation([SUMS[0], SUMS[0]])


def test_settings_of_one_policy_override_the_sampling():
    spec, sampling = read_sampling(Spec.parse("adder:x,temperature=0.6,thinking=off,off=1"), Sampling(max_tokens=9))
    assert (sampling.temperature, sampling.max_tokens, sampling.thinking) == (0.6, 9, False)
    assert spec == Spec("adder", "x", {"off": "1"})


def test_full_disk_keeps_whole_lines(tmp_path):
    """A file size limit simulates a full disk: the write fails half way."""
    script = f"""
import resource, signal, sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parent.parent), *sys.path]!r}
from pathlib import Path
from addition import Adder
from test_evaluation import evaluation
from t2t_core.evaluation.evaluate import evaluate
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
evaluate(evaluation(), Adder(), Path({str(tmp_path)!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "cannot be written" in done.stderr
    log = (tmp_path / "log.jsonl").read_bytes()
    assert log.endswith(b"\n") and 0 < len(log) <= 1000
    policy = Adder()
    evaluate(evaluation(), policy, tmp_path)
    assert len(policy.asked) == 20 - log.count(b"\n")


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_stopped_at_any_moment_nothing_is_lost(tmp_path, number):
    script = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parent.parent), *sys.path]!r}
from pathlib import Path
from addition import Adder
from test_evaluation import evaluation
from t2t_core.evaluation.evaluate import evaluate
class Telling(Adder):
    def respond(self, tasks, sampling):
        for pair in super().respond(tasks, sampling):
            yield pair
            print(pair[0], flush=True)   # the answer before was recorded
evaluate(evaluation(samples=100), Telling(), Path({str(tmp_path)!r}))
"""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    for _ in range(100):
        process.stdout.readline()
    time.sleep(0.01)
    process.send_signal(number)
    told = 99 + process.communicate()[0].count("\n")
    if number == signal.SIGKILL:
        told -= 1  # the pipe may hold half a line
    log = (tmp_path / "log.jsonl").read_bytes()
    assert log.count(b"\n") >= told
    records = [json.loads(row) for row in log.splitlines(keepends=True) if row.endswith(b"\n")]
    assert len({(r["instance"], r["sample"]) for r in records}) == len(records)
    policy = Adder()
    evaluate(evaluation(samples=100), policy, tmp_path)
    assert len(policy.asked) == 2_000 - len(records)
    evaluate(evaluation(samples=100), Adder(), tmp_path / "calm")
    assert (tmp_path / "answers.jsonl").read_bytes() == (tmp_path / "calm/answers.jsonl").read_bytes()


def test_memory_stays_flat(tmp_path):
    class Wordy(Adder):
        def respond(self, tasks, sampling):
            for position, _ in enumerate(tasks):
                yield position, Response("x" * 10_000)

    tracemalloc.start()
    try:
        evaluate(evaluation(samples=100), Wordy(), tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000, "2,000 answers of 10 kB came through"
