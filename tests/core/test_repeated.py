"""Several answers to one instance: pass@k, the majority's plan, the best of k."""

from __future__ import annotations

import itertools
import json
import statistics
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import addition
from addition import Addition, Sum, t2t
from t2t_core.conversation import plan_of
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.repeated import best_of_k, majority, pass_at_k, sizes
from t2t_core.evaluation.tables import tabulate
from t2t_core.records import Message, Response, Scored
from t2t_core.store import schema
from t2t_envs.frozen_lake import testbed as lake
from t2t_leaderboard import rescoring, submission

FLAGS = st.lists(st.booleans(), min_size=1, max_size=8)


@given(FLAGS, st.data())
def test_pass_at_k_is_the_share_of_draws_of_k_with_a_right_answer(right: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(right)))
    draws = [any(draw) for draw in itertools.combinations(right, k)]
    assert pass_at_k(len(right), sum(right), k) == pytest.approx(sum(draws) / len(draws))


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=7), st.data())
def test_best_of_k_is_the_mean_over_draws_of_k_of_their_highest(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    draws = [max(draw) for draw in itertools.combinations(values, k)]
    assert best_of_k(values, k) == pytest.approx(statistics.fmean(draws), abs=1e-9)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=8), st.data())
def test_of_rewards_that_are_0_or_1_the_best_of_k_is_pass_at_k(values: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    assert best_of_k(values, k) == pytest.approx(pass_at_k(len(values), sum(values), k))


@pytest.mark.parametrize(
    ("plans", "values", "worth"),
    [
        ("aab", [1, 1, 0], 1.0),
        ("abb", [1, 0, 0], 0.0),
        ("ab", [1, 0], 0.5),  # a tie: either with the same chance
        ([None, None, "a"], [0, 0, 1], 1.0),  # what cannot be read has no vote
        ([None, None], [0, 0], 0.0),
        ("aab", [1, 0, 0], 0.5),  # one plan, two verdicts (one of them cut off, say)
    ],
)
def test_the_majority_counts_plans(plans: list[str | None], values: list[float], worth: float) -> None:
    assert majority(plans, values) == worth


def test_the_sizes_shown_are_powers_of_two_and_all() -> None:
    assert [sizes(n) for n in (1, 2, 3, 4, 6, 8)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 4, 6], [1, 2, 4, 8]]


def test_plans_are_equal_where_they_propose_the_same() -> None:
    world, sums = lake.make(), Addition()
    instance = world.load_set("3agents").instances[0]
    right_first = "Agent 0: (0,0) -> (0,1)\nAgent 1: (1,1)"
    other = "Well:\n<answer>\nAgent 1: (1,1) -> (1,1)\nAgent 0: (0,0) -> (0,1)\n</answer>"
    assert plan_of(world, instance, (), right_first) == plan_of(world, instance, (Message("assistant", other),))
    assert plan_of(world, instance, (), right_first.replace("(0,1)", "(1,0)")) != plan_of(world, instance, (), right_first)
    assert plan_of(world, instance, (), "I do not know.") is None
    assert plan_of(sums, None, (), " 1\n 2 ") == plan_of(sums, None, (), "1 2") and plan_of(sums, None, (), " ") is None


def scored(texts: list[list[str]]) -> list[Scored]:
    testbed = Addition()
    sums = [Sum(f"s{i}", 1, 2 * i, 1 + 2 * i) for i in range(len(texts))]
    answers = [(s, n, text) for s, own in zip(sums, texts, strict=True) for n, text in enumerate(own)]
    return [Scored(s, n, Response(text), testbed.verify(s, text)) for s, n, text in answers]


def test_what_several_answers_are_worth_stands_in_the_table_with_intervals() -> None:
    table = tabulate(Addition(), scored([["1", "1", "99", "no"], ["90", "91", "92", "no"], ["5", "6", "6", "5"]]), 4)
    worth = table["one digit"].repeated.total
    optimal = {k: figure.value for k, figure in worth.passes["optimal"].items()}
    assert optimal["1"] == pytest.approx(100 * (2 / 4 + 0 + 2 / 4) / 3, abs=1e-3)
    assert optimal["2"] == pytest.approx(100 * (5 / 6 + 0 + 5 / 6) / 3, abs=1e-3)
    assert optimal["4"] == pytest.approx(200 / 3, abs=1e-3)
    assert worth.majority["optimal"].value == pytest.approx(100 * (1 + 0 + 0.5) / 3, abs=1e-3)
    assert worth.best["1"].value == pytest.approx(0.5) and worth.best["4"].value == pytest.approx(2 / 3, abs=1e-4)
    assert worth.plans == pytest.approx((3 + 4 + 2) / 3, abs=1e-4)
    for figure in (*worth.passes["valid"].values(), *worth.majority.values(), *worth.best.values()):
        assert figure.low < figure.value < figure.high
    assert worth.passes["valid"]["1"].value == table["one digit"].total["valid"].value


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["1", "5", "no"]), min_size=4, max_size=4), min_size=1, max_size=6))
def test_more_answers_are_never_worth_less(texts: list[list[str]]) -> None:
    (table,) = tabulate(Addition(), scored(texts), 4).values()
    worth = table.repeated.total
    for curve in (*worth.passes.values(), worth.best):
        values = [figure.value for figure in curve.values()]
        assert values == sorted(values) and all(f.low <= f.value <= f.high for f in curve.values())


def test_one_answer_has_no_such_figures() -> None:
    (table,) = tabulate(Addition(), scored([["1"], ["3"]]), 1).values()
    assert "repeated" not in schema.plain(table)


def test_errors_have_no_plan_and_answers_that_are_not_there_yet_leave_a_gap() -> None:
    answers = scored([["1", "1"], ["3", "3"]])
    from dataclasses import replace

    from t2t_core.evaluation.answers import NOT_ASKED

    answers[1] = replace(answers[1], response=replace(answers[1].response, error="HTTP 500"))
    (table,) = tabulate(Addition(), answers, 2).values()
    assert table.repeated.total.passes["valid"]["1"].value == 75.0
    assert table.repeated.total.majority["valid"].value == 100.0, "the one that can be read decides"
    answers[3] = replace(answers[3], response=NOT_ASKED)
    (table,) = tabulate(Addition(), answers, 2).values()
    assert table.repeated.total.passes["valid"]["2"].value is None
    assert table.repeated.total.majority["valid"].value is None


class Fickle(addition.Adder):
    """Adds, or is off by three, by its sample; a model to the suite, which says that it is not deterministic."""

    def describe(self):
        return {**super().describe(), "deterministic": False}

    def respond(self, tasks, sampling):
        self.systems = [task.messages[0].content for task in tasks if task.messages[0].role == "system"]
        for position, task in enumerate(tasks):
            off = 3 * (task.sample % 2)
            yield position, Response(str(task.instance.a + task.instance.b + off), completion_tokens=2, cost_usd=0.001)


@pytest.fixture(autouse=True)
def _fickle() -> None:
    from t2t_core.plugins import installed

    addition.register()
    if "fickle" not in installed().policies:
        installed().policies.add("fickle", Fickle, "adds now and then")


ASK = ("bench", "--testbed", "addition", "--policy", "fickle", "--limit", 3, "--samples", 2)


def test_a_bench_of_several_answers_shows_verifies_and_submits_them(tmp_path: Path) -> None:
    result = t2t(*ASK, "--out", tmp_path / "out")
    assert "WARNING: fickle is asked 2 times at temperature 0" in result.stderr
    for word in ("pass@1", "pass@2", "majority", "best of 2", "per solved"):
        assert word in result.stdout, word
    assert t2t("verify", tmp_path / "out").return_value == 0
    sent = submission.make(tmp_path / "out", "fickle", tmp_path, None, "2026-07-31")
    assert submission.verify(sent).verified
    for path, verify in ((tmp_path / "out" / "leaderboard.json", rescoring.verify), (sent / "metadata.json", submission.verify)):
        text = path.read_text()
        record = json.loads(text)
        tables = record["tables"]
        row = tables[0]["rows"][0] if isinstance(tables, list) else next(iter(tables.values()))
        row["repeated"]["total"]["majority"]["optimal"]["value"] = 99.0
        path.write_text(json.dumps(record))
        assert any("majority" in problem for problem in verify(path.parent).problems)
        del row["repeated"]
        if path.name == "leaderboard.json":
            assert any("repeated" in problem for problem in verify(path.parent).problems)
            record["format"] = 1
        path.write_text(json.dumps(record))
        assert not any("repeated" in problem for problem in verify(path.parent).problems), "earlier versions wrote none"
        path.write_text(text)


def test_a_warning_only_where_a_model_repeats_itself(tmp_path: Path) -> None:
    assert "WARNING" not in t2t(*ASK, "--temperature", 0.7, "--out", tmp_path / "warm").stderr
    assert "WARNING" not in t2t(*ASK[:-2], "--out", tmp_path / "once").stderr
    assert "WARNING" not in t2t(*ASK[:4], "adder", *ASK[5:], "--out", tmp_path / "adder").stderr


def test_a_system_prompt_comes_first_and_names_the_question(tmp_path: Path) -> None:
    testbed, file = Addition(), tmp_path / "system.txt"
    sums = testbed.load_set("one_digit").instances[:2]
    plain, told = (Evaluation(testbed, sums, system_prompt=text) for text in ("", "Be brief."))
    assert [m.role for m in told.task(0).messages] == ["system", "user"] and told.task(0).prompt == plain.task(0).prompt
    assert told.prompts_sha256() != plain.prompts_sha256()
    file.write_text("Be brief.\n")
    for number, text in enumerate(("Be brief.", f"@{file}")):
        t2t(*ASK, "--system-prompt", text, "--out", tmp_path / f"{number}")
        assert json.loads((tmp_path / f"{number}" / "run.json").read_text())["settings"]["system_prompt"] == "Be brief."
        assert t2t("verify", tmp_path / f"{number}").return_value == 0
    with pytest.raises(Exception, match="another bench|differ"):
        t2t(*ASK, "--out", tmp_path / "0")
    with pytest.raises(Exception, match="empty"):
        t2t(*ASK, "--system-prompt", "  ", "--out", tmp_path / "x")
    with pytest.raises(Exception, match="holds a key"):
        t2t(*ASK, "--system-prompt", "use sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "--out", tmp_path / "x")
    t2t(*ASK[:3], "--limit", 1, "--system-prompt", "Be brief.", "--export-prompts", tmp_path / "ask.jsonl")
    assert json.loads((tmp_path / "ask.jsonl").read_text().splitlines()[0])["messages"][0]["content"] == "Be brief."


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_the_interval_of_pass_at_k_holds_the_truth_about_as_often_as_it_says(k: int) -> None:
    """Sixty instances of many difficulties, eight answers each; the truth is the mean of 1 - (1 - p)^k over the difficulties."""
    import numpy as np

    from t2t_core.evaluation.stats import Rate

    random, held, rounds = np.random.default_rng(7), 0, 400
    truth = float(np.mean(1 - (1 - np.random.default_rng(8).beta(0.5, 1.5, 200_000)) ** k))
    for _ in range(rounds):
        rate = Rate(8 / k)
        for right in random.binomial(8, random.beta(0.5, 1.5, 60)):
            rate.add(pass_at_k(8, int(right), k))
        estimate = rate.estimate()
        held += estimate.low <= truth <= estimate.high
    assert 0.92 <= held / rounds <= 0.99
