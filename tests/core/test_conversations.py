"""Conversations: games run side by side, every turn is written to disk at once, and a killed game continues in the middle."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import guessing
from addition import t2t
from t2t_core.conversation import judge, play
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS, LOG
from t2t_core.evaluation.demonstrations import Request, collect, read
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.records import Message, Sampling
from t2t_core.testing import check_testbed

SCRIPT = Path(guessing.__file__)


@pytest.fixture(autouse=True)
def _guessing():
    guessing.register()


def games(samples=1, format=""):
    testbed = guessing.Guessing()
    return Evaluation(testbed, testbed.load_set("numbers").instances, samples, Sampling(), format)


def held(folder):
    return [json.loads(line) for line in (folder / ANSWERS).read_text().splitlines()]


def test_a_testbed_in_turns_keeps_the_contract():
    check_testbed(guessing.Guessing(), solve=guessing.solve)


@pytest.mark.parametrize("settings", [{}, {"size": "3"}, {"size": "1"}, {"live": "4"}, {"live": "100"}])
def test_however_a_policy_is_asked_the_games_are_the_same(tmp_path, settings):
    policy = guessing.Bisector(settings=settings)
    outcome = evaluate(games(samples=2), policy, tmp_path)
    assert outcome.progress.done == outcome.progress.asked == 40
    assert len(policy.asked) == len(set(policy.asked)) == sum(len(row["turns"]) for row in held(tmp_path))
    plain = tmp_path / "plain"
    evaluate(games(samples=2), guessing.Bisector(), plain)
    assert (tmp_path / ANSWERS).read_bytes() == (plain / ANSWERS).read_bytes()
    if "live" in settings:
        assert policy.calls == 1 and policy.most_open == min(40, int(settings["live"])), "a finished game makes room"
    verdicts = [s.verdict for s in scored(games(samples=2), tmp_path / ANSWERS)]
    assert all(v.valid for v in verdicts if v.cost is not None) and sum(v.valid for v in verdicts) >= 30


def test_a_conversation_holds_what_was_said_and_what_it_cost(tmp_path):
    evaluate(games(), guessing.Bisector(settings={"tool": "yes"}), tmp_path)
    game = next(s for s in scored(games(), tmp_path / ANSWERS) if s.instance.number == 5 and s.instance.span == "near")
    words = [(m.role, m.content, [c.name for c in m.tool_calls]) for m in game.messages]
    assert words == [
        ("assistant", "", ["even"]),
        ("tool", "false", []),
        ("assistant", "3", []),
        ("user", "3 is too low", []),
        ("assistant", "5", []),
    ]
    assert game.verdict.valid and game.verdict.cost == 3
    assert game.response.completion_tokens == 6 and game.response.cost_usd == pytest.approx(0.003)
    assert game.response.text == "5"


def test_in_a_memoryless_format_the_policy_sees_the_latest_message_alone(tmp_path):
    seen = []

    class Looker(guessing.Bisector):
        def _answer(self, task):
            seen.append([m.content for m in task.messages])
            return super()._answer(task)

    evaluate(games(format="last"), Looker(), tmp_path)
    assert all(len(messages) == 1 for messages in seen) and any("too" in messages[0] for messages in seen)


def test_an_error_in_the_middle_is_asked_again_and_nothing_else(tmp_path):
    faulty = guessing.Bisector(settings={"every": "7"})
    outcome = evaluate(games(), faulty, tmp_path)
    assert outcome.progress.errors and outcome.progress.done == 20
    unfinished = [row for row in held(tmp_path) if row["error"]]
    assert len(unfinished) == outcome.progress.errors
    assert all("verdict" in row for row in unfinished)
    again = guessing.Bisector()
    evaluate(games(), again, tmp_path)
    finished_before = {(row["instance"], 0, turn) for row in map(json.loads, (tmp_path / LOG).read_text().splitlines())
                       for turn in [row["turn"]] if not row["error"]}  # fmt: skip
    assert len(again.asked) + len(faulty.asked) - outcome.progress.errors == len(finished_before)
    evaluate(games(), guessing.Bisector(), tmp_path / "calm")
    calm, mended = held(tmp_path / "calm"), held(tmp_path)
    assert [row["turns"] for row in calm] == [row["turns"] for row in mended]


@pytest.mark.parametrize("cut", [1, 40, 200, 1000])
def test_cut_off_anywhere_a_game_goes_on_where_it_was(tmp_path, cut):
    evaluate(games(), guessing.Bisector(settings={"size": "3"}), tmp_path / "whole")
    part = tmp_path / "part"
    part.mkdir()
    log = (tmp_path / "whole" / LOG).read_bytes()
    (part / LOG).write_bytes(log[: len(log) - cut])
    policy = guessing.Bisector()
    evaluate(games(), policy, part)
    assert (part / ANSWERS).read_bytes() == (tmp_path / "whole" / ANSWERS).read_bytes()
    assert len(policy.asked) <= cut // 100 + 2, "no finished turn is asked again"


def test_a_log_that_was_tampered_with_is_refused(tmp_path):
    evaluate(games(), guessing.Bisector(), tmp_path)
    lines = (tmp_path / LOG).read_text().splitlines()
    row = json.loads(lines[0])
    for change, match in (
        ({"turn": 1}, "does not follow"),
        ({"turn": None}, "does not follow"),
        ({"replies": [{"role": "user", "content": "you win"}]}, "replies otherwise"),
        ({"replies": [{"role": "assistant", "content": "I win"}]}, r"replies\[0\]\.role: invalid enum value"),
        ({"replies": "no"}, "replies: expected `array`, got `str`"),
        ({"tool_calls": [{"name": "even"}]}, r"tool_calls\[0\]\.id is|tool_calls\[0\]\.id: is missing"),
    ):
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        (other / LOG).write_text("\n".join([json.dumps({**row, **change}), *lines[1:]]) + "\n")
        with pytest.raises(T2TError, match=match):
            evaluate(games(), guessing.Bisector(), other)


def test_what_the_environment_says_is_checked():
    testbed = guessing.Guessing()
    instance = testbed.load_set("numbers").instances[0]
    messages = play(testbed, instance, "plain", lambda seen: Message("assistant", "no number"))
    assert sum(m.role == "assistant" for m in messages) == testbed.turns, "it ends after the last turn"
    assert not judge(testbed, instance, messages).valid
    testbed.reply = lambda instance, messages, format: ["higher"]
    with pytest.raises(T2TError, match="not a Message"):
        play(testbed, instance, "plain", lambda seen: Message("assistant", "1"))


def test_a_bench_of_games_is_verified_and_a_forged_reply_is_found(tmp_path):
    out = tmp_path / "out"
    assert t2t("bench", "--testbed", "guessing", "--policy", "bisector", "--out", out).exit_code == 0
    assert "verified" in t2t("verify", out).output
    answers = next(out.rglob(ANSWERS))
    text = answers.read_text()
    answers.write_text(text.replace("is too low", "is too high", 1))
    result = t2t("verify", out)
    assert "replies otherwise" in result.output


@pytest.mark.thorough
def test_killed_in_the_middle_of_games_it_ends_in_the_same_bytes(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def command(out, slow):
        policy = f"bisector:slow={slow},size=4"
        return [sys.executable, str(SCRIPT), "bench", "--testbed", "guessing", "--policy", policy, "--out", str(out)]

    calm = tmp_path / "calm"
    subprocess.run(command(calm, 0.02), env=environment, check=True, capture_output=True)
    killed = tmp_path / "killed"
    for _ in range(4):
        process = subprocess.Popen(command(killed, 0.02), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        logs, begun = [], time.monotonic()
        before = sum(len(p.read_bytes()) for p in killed.rglob(LOG))
        while time.monotonic() - begun < 60 and process.poll() is None:
            logs = list(killed.rglob(LOG))
            if logs and logs[0].stat().st_size > before + 1500:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    subprocess.run(command(killed, 0.02), env=environment, check=True, capture_output=True)
    for name in (ANSWERS, "leaderboard.json"):
        calm_bytes, other = (next(side.rglob(name)).read_bytes() for side in (calm, killed))
        assert calm_bytes == other, name
    rows = [json.loads(line) for line in next(killed.rglob(LOG)).read_text().splitlines()]
    turns = [(row["instance"], row["sample"], row["turn"]) for row in rows]
    assert len(turns) == len(set(turns)), "no finished turn was asked twice"


def test_a_task_whose_prompt_is_replaced_asks_the_new_one():
    task = games().task(0)
    worded = dataclasses.replace(task, prompt="Which number?")
    assert [m.content for m in worded.messages] == ["Which number?"] and worded.messages[0].role == "user"


def test_demonstrations_hold_whole_conversations(tmp_path):
    testbed, out = guessing.Guessing(), tmp_path / "games.jsonl"
    testbed.protected_sets = lambda: ()
    counts = collect(testbed, games().instances, Request("bisector:tool=yes", prompt_format="plain"), out)
    assert counts.kept == counts.valid > 10
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(line["prompt_format"] == "plain" and line["completion"][0]["tool_calls"] for line in lines)
    back = list(read(testbed, out))
    assert len(back) == counts.kept and all(d.verdict.valid and d.messages[-1].content == d.answer for d in back)
    line = next(line for line in lines if len(line["completion"]) > 3)
    for change, match in (
        ({"completion": [*line["completion"][:1], *line["completion"][2:]]}, "would not have held"),
        ({"completion": line["completion"][:-2]}, "would not have held"),
        ({"completion": [{**line["completion"][0], "tool_calls": [{"id": 3}]}]}, r"tool_calls\[0\]\.id: expected `str`"),
        ({"prompt_format": "sung"}, "prompt format"),
    ):
        out.write_text(json.dumps({**line, **change}) + "\n")
        with pytest.raises(T2TError, match=match):
            list(read(testbed, out))
