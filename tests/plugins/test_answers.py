"""Stored answers: JSON Lines from anybody, which the reader does not trust."""

import json

import pytest

import lake
from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.plugins import load
from t2t_core.records import Sampling, Task

POLICIES = load().policies


def stored(tmp_path, *rows, end="\n"):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + end)
    return path


def ask(path, *asked):
    tasks = [Task(id, sample, "prompt", None, 0) for id, sample in asked]
    answers = list(POLICIES.make(f"answers:{path}").respond(tasks, Sampling()))
    assert [position for position, _ in answers] == list(range(len(tasks)))
    return [response for _, response in answers]


def test_the_names_people_use(tmp_path):
    path = stored(
        tmp_path,
        {"id": "a", "text": "1"},
        {"instance_id": "b", "completion": "2", "tokens": 7, "model": "mine"},
        {"instance": "c", "response": "3", "completion_tokens": 8, "finish_reason": "length", "cost_usd": 0.5},
        {"id": "d", "answer": "4", "sample": 0},
        {"id": "d", "answer": "5", "sample": 1},
        {"id": "e", "error": "HTTP 500"},
    )
    got = ask(path, ("a", 0), ("b", 0), ("c", 0), ("d", 0), ("d", 1), ("e", 0), ("f", 0))
    assert [r.text for r in got] == ["1", "2", "3", "4", "5", "", ""]
    assert [r.completion_tokens for r in got] == [None, 7, 8, None, None, None, None]
    assert (got[2].finish_reason, got[2].cost_usd) == ("length", 0.5)
    assert [r.error for r in got] == [None] * 5 + ["HTTP 500", "no stored answer"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"text": "2"}, "which instance"),
        ({"id": ["b"], "text": "2"}, "which instance"),
        ({"id": "b", "text": "2", "sample": -1}, "which sample"),
        ({"id": "b"}, "has no answer"),
        ({"id": "b", "text": None}, "has no answer"),
        ({"id": "b", "text": [2]}, "holds int, not a text"),
        ({"id": "b", "text": "2", "tokens": -3}, "completion_tokens"),
        ({"id": "b", "text": "2", "finish_reason": "won"}, "finish_reason"),
        ("{nonsense", "no JSON object"),
        ("[1]", "a JSON object is expected, not list"),
        ('{"id": "b", "text": "2", "text": "3"}', "one key twice"),
        ('{"id": "b", "text": "2", "tokens": ' + "9" * 5000 + "}", "an integer of 5000 digits"),
        ('{"id": "b", "x": ' + "[" * 100_000 + "}", "nested too deeply|Expecting value"),
    ],
)
def test_a_bad_line_is_named_and_costs_its_own_answer_alone(tmp_path, bad, why):
    path = stored(tmp_path, {"id": "a", "text": "1"}, bad, {"id": "c", "text": "3"})
    with pytest.warns(UserWarning, match=why) as warned:
        answers = ask(path, ("a", 0), ("b", 0), ("c", 0))
    assert str(warned[0].message).startswith(f"{path}, line 2: ")
    assert [r.text for r in answers] == ["1", "", "3"] and [bool(r.error) for r in answers] == [False, True, False]
    with pytest.raises(T2TError, match="no answer of the file can be read") as error:
        POLICIES.make(f"answers:{stored(tmp_path, bad)}")
    assert error.value.where in (f"{path}, line 1", f"{path}, element 0 of the array") and error.value.cause


def test_two_answers_to_one_question_count_as_none(tmp_path):
    path = stored(tmp_path, *({"id": i, "text": t} for i, t in (("a", "1"), ("b", "2"), ("a", "3"), ("a", "4"))))
    with pytest.warns(UserWarning, match="line 3: a second answer to a, sample 0: the first is in .*line 1"):
        first, second = ask(path, ("a", 0), ("b", 0))
    assert "second answer" in first.error and second.text == "2"


def test_a_torn_last_line_is_warned_of(tmp_path):
    path = stored(tmp_path, {"id": "a", "text": "1"}, '{"id": "b", "te', end="")
    with pytest.warns(UserWarning, match="line 2: the last line was cut off"):
        assert [r.error for r in ask(path, ("a", 0), ("b", 0))] == [None, "no stored answer"]


def test_answers_to_other_instances_are_warned_of(tmp_path):
    path = stored(tmp_path, {"id": "a", "text": "1"}, {"id": "who", "text": "2"}, {"id": "else", "text": "3"})
    with pytest.warns(UserWarning, match="line 2: 2 of 3 answers are not asked for now, first 'who'"):
        ask(path, ("a", 0))


def test_samples_that_are_not_asked_are_warned_of(tmp_path):
    path = stored(tmp_path, *({"id": "a", "sample": n, "text": str(n)} for n in range(3)))
    with pytest.warns(UserWarning, match="line 3: 1 of 3 answers are not asked for now, first 'a', sample 2"):
        assert [r.text for r in ask(path, ("a", 0), ("a", 1))] == ["0", "1"]


def test_the_mark_that_an_editor_puts_before_a_file_is_no_part_of_it(tmp_path):
    path = stored(tmp_path, {"id": "a", "text": "1"}, {"id": "b", "text": "2"})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [r.text for r in ask(path, ("a", 0), ("b", 0))] == ["1", "2"]


@pytest.mark.parametrize("argument", ["", "/nowhere.jsonl", "/", "/dev/zero"])
def test_no_such_file(argument):
    with pytest.raises(T2TError):
        POLICIES.make(f"answers:{argument}")


def test_the_answers_of_an_evaluation_replay_to_the_same_verdicts(tmp_path):
    evaluation = Evaluation(lake.Lake(), [lake.Number(f"n{i}", "3", i, i) for i in range(60)], samples=2)
    evaluate(evaluation, lake.Repeater(), tmp_path / "first")
    again = POLICIES.make(f"answers:{tmp_path / 'first' / 'answers.jsonl'}")
    evaluate(evaluation, again, tmp_path / "second")
    first, second = (list(scored(evaluation, tmp_path / n / "answers.jsonl")) for n in ("first", "second"))
    assert [(s.response.text, s.verdict) for s in first] == [(s.response.text, s.verdict) for s in second]
    assert len(again.describe()["sha256"]) == 64
