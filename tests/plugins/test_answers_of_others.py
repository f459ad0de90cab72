"""Answers stored by other programs, each in its own shape, are read alike; a bench's questions are exported and read back."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Response, Sampling, Task

FILES = Path(__file__).parent / "answers_of_others"
SET = FILES / "set.jsonl"
IDS = [json.loads(line)["id"] for line in SET.read_text().splitlines()]
TEXTS = {row["id"]: row["text"] for row in json.loads((FILES / "array.json").read_text())}


def ask(path: Path, *asked: tuple[str, int], turns: int = 1, turn: int = 0) -> list[Response]:
    places = {name: index for index, name in enumerate(dict.fromkeys(name for name, _ in asked))}
    tasks = [Task(name, sample, "?", None, 0, turns=turns, turn=turn, index=places[name]) for name, sample in asked]
    return [response for _, response in installed().policies.make(f"answers:{path}").respond(tasks, Sampling())]


ALIKE = ("array.json", "batch.jsonl", "generation.jsonl", "lighteval.jsonl", "messages.jsonl", "nan_field.jsonl")


@pytest.mark.parametrize("name", ALIKE)
def test_every_shape_holds_the_same_five_answers(name: str) -> None:
    answers = ask(FILES / name, *((i, 0) for i in TEXTS))
    assert [r.text for r in answers] == list(TEXTS.values()) and not any(r.error for r in answers)
    assert [r.completion_tokens for r in answers] == [{"batch.jsonl": 5, "lighteval.jsonl": 1}.get(name)] * 5


def test_a_text_of_null_costs_one_answer_and_an_answer_cut_before_its_first_word_is_empty() -> None:
    with pytest.warns(UserWarning, match="none_text.jsonl, line 3: it has no answer"):
        answers = ask(FILES / "none_text.jsonl", *((i, 0) for i in TEXTS))
    assert [r.text for r in answers if not r.error] == [text for n, text in enumerate(TEXTS.values()) if n != 2]
    (cut,) = ask(FILES / "null_length.jsonl", (IDS[0], 0))
    assert (cut.text, cut.finish_reason, cut.error) == ("", "length", None)


def test_numbers_are_names_or_else_places_which_is_said() -> None:
    assert [r.text for r in ask(FILES / "intid.jsonl", ("3", 0), ("0", 0))] == [list(TEXTS.values())[n] for n in (3, 0)]
    with pytest.warns(UserWarning, match=f"number 0 is taken for the first that is asked, {IDS[0]}"):
        answers = ask(FILES / "intid.jsonl", *((i, 0) for i in IDS))
    assert [r.text for r in answers[:5]] == list(TEXTS.values()) and answers[5].error == "no stored answer"
    with pytest.raises(T2TError, match="its numbers are no names") as error:
        ask(FILES / "intid.jsonl", *((i, 0) for i in IDS[:4]))  # five answers to four questions: whose is the fifth?
    assert "5 of them, and 4 instances are asked" in error.value.cause


def wrapped(text: str, shape: str, name: str = "a", repeat: int = 0) -> Mapping[str, Any]:
    """One answer as a program writes it."""
    message = {"role": "assistant", "content": text}
    asked = [{"role": "user", "content": "?"}]
    choice, usage = {"message": message, "finish_reason": "stop", "stop_reason": "stop"}, {"input_tokens": 3, "output_tokens": 4}
    return {
        "openai": {"custom_id": name, "response": {"status_code": 200, "body": {"choices": [choice]}}},
        "lm-eval": {"doc_id": 7, "doc": {"id": name}, "resps": [[text]], "filtered_resps": [text[:3]], "target": "-"},
        "inspect": {
            "id": name,
            "epoch": repeat + 1,
            "messages": [*asked, message],
            "output": {"model": "m", "choices": [choice], "usage": usage},
        },
        "verifiers": {"example_id": 3, "info": {"id": name}, "prompt": asked, "completion": [message], "reward": 1.0},
        "verifiers, info as text": {"example_id": 3, "info": json.dumps({"id": name}), "prompt": asked, "completion": [message]},
        "chat": {"id": name, "messages": [{"role": "system", "content": "!"}, *asked, message]},
        "chat, in parts": {"id": name, "messages": [*asked, {**message, "content": [{"type": "text", "text": text}]}]},
        "list": {"instance_id": name, "completions": [text]},
    }[shape]


SHAPES = ("openai", "lm-eval", "inspect", "verifiers", "verifiers, info as text", "chat", "chat, in parts", "list")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["lines", "array"])
def test_a_shape_is_read_from_lines_and_from_an_array(shape: str, kind: str, tmp_path: Path) -> None:
    rows = [wrapped(f"one\u2028 {n}", shape, name) for n, name in enumerate("abc")]
    path = tmp_path / "answers"
    path.write_text("\n".join(map(json.dumps, rows)) if kind == "lines" else json.dumps(rows, indent=1))
    assert [r.text for r in ask(path, ("c", 0), ("a", 0), ("b", 0))] == ["one\u2028 2", "one\u2028 0", "one\u2028 1"]


def test_samples_are_told_by_their_number_their_epoch_their_name_or_their_place_in_a_list(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [wrapped("1", "inspect", "a", 1), wrapped("0", "inspect", "a", 0)]
    rows += [wrapped("3", "openai", "b#1"), wrapped("2", "openai", "b#0")]
    rows += [{"id": "c", "completions": ["4", "5"]}, {"id": "d", "text": "7", "sample": 1}, {"id": "d", "text": "6", "sample": 0}]
    rows += [{"doc": {"id": "e"}, "resps": [["8", "9"]]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [r.text for r in ask(path, *((name, n) for name in "abcde" for n in (0, 1)))] == list("0123456789")


def test_logs_of_inspect_are_read_in_both_of_their_formats(tmp_path: Path) -> None:
    samples = [wrapped(f"text {n}", "inspect", name) for n, name in enumerate("ab")]
    failed = {"id": "c", "epoch": 1, "error": {"message": "out of memory"}, "output": {"choices": []}}
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"version": 2, "eval": {}, "samples": [*samples, failed]}, indent=2))
    archive = tmp_path / "log.eval"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", "{}")
        for sample in (*samples, failed):
            file.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    for path in (log, archive):
        first, second, third = ask(path, ("a", 0), ("b", 0), ("c", 0))
        assert (first.text, second.text, first.model, first.completion_tokens) == ("text 0", "text 1", "m", 4)
        assert third.error == "the sample failed: out of memory"


def written_in_order(asked: Sequence[tuple[str, int]]) -> list[Any]:
    """The traces of those rollouts as verifiers wrote them; rollouts of one lake in the order of the file."""
    rows = [json.loads(line) for line in (FILES / "traces.jsonl").read_text().splitlines()]
    return [[row for row in rows if row["task"]["data"]["id"] == name][number] for name, number in asked]


def test_traces_of_verifiers_are_read_and_their_rollouts_numbered() -> None:
    """Two rollouts each of two lakes, written by `vf-eval` of verifiers 0.4.0."""
    bed = installed().testbeds.make("mapf-frozenlake")
    lakes = {i.id: i for i in bed.load_set("3agents").instances[:4]}
    asked = [(name, n) for name in ("3agents_3x3_0000", "3agents_3x3_0003") for n in (0, 1)]
    answers = ask(FILES / "traces.jsonl", *asked)
    assert not any(r.error for r in answers) and {r.model for r in answers} == {"fake"}
    assert [r.completion_tokens for r in answers] == [r["traces"][0]["num_output_tokens"] for r in written_in_order(asked)]
    for (name, _), answer, row in zip(asked, answers, written_in_order(asked), strict=True):
        assert bed.verify(lakes[name], answer.text).valid == bool(row["traces"][0]["metrics"]["valid"])


@pytest.mark.parametrize("data", [b"PK\x03\x04 and nothing more", b"[", b"[1, 2", b"{\n", b'{\n"samples": 3}'])
def test_a_broken_document_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(T2TError):
        ask(tmp_path / "log", ("a", 0))


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2t_plugins.policies.stored.MAX_WHOLE", 100_000)
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("samples/a.json", json.dumps(wrapped("0" * 1_000_000, "inspect")))
    reads: list[str] = []
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda file, n=-1: reads.append(file.name) or b"")
    with pytest.raises(T2TError, match="unpacks to more than 100000 bytes"):
        ask(tmp_path / "log.eval", ("a", 0))
    assert not reads, "it says so itself, so nothing is unpacked"


def test_an_archive_that_lies_about_its_size_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2t_plugins.policies.stored.MAX_WHOLE", 100_000)
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("samples/a.json", json.dumps(wrapped("0" * 1_000_000, "inspect")))
        file.getinfo("samples/a.json").file_size = 10
    with pytest.raises(T2TError, match="unpacks to more than|cannot be read"):
        ask(tmp_path / "log.eval", ("a", 0))


def test_a_refusal_and_a_fault_of_the_batch_are_what_the_endpoint_calls_them(tmp_path: Path) -> None:
    refused = {"status_code": 400, "body": {"error": {"code": "content_filter", "message": "content_filter"}}}
    rows = [{"custom_id": "a", "response": refused}, {"custom_id": "b", "response": None, "error": {"message": "expired"}}]
    (tmp_path / "batch").write_text("\n".join(map(json.dumps, rows)))
    first, second = ask(tmp_path / "batch", ("a", 0), ("b", 0))
    assert (first.finish_reason, first.error) == ("refusal", None)
    assert second.error == "the batch has no reply: expired"


def test_a_transcript_is_a_game_turn_by_turn_and_else_its_last_answer(tmp_path: Path) -> None:
    said = [{"role": role, "content": f"{role} {n}"} for n in range(2) for role in ("user", "assistant")]
    (tmp_path / "chat").write_text(json.dumps({"id": "a", "messages": said}))
    assert ask(tmp_path / "chat", ("a", 0))[0].text == "assistant 1"
    assert [ask(tmp_path / "chat", ("a", 0), turns=8, turn=n)[0].text for n in (0, 1)] == ["assistant 0", "assistant 1"]
    assert "it went another way" in str(ask(tmp_path / "chat", ("a", 0), turns=8, turn=2)[0].error)


def t2t(*arguments: Any) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


@pytest.mark.parametrize("form", ["jsonl", "openai-batch"])
@pytest.mark.parametrize("samples", [1, 2])
def test_questions_go_out_and_their_answers_come_back(form: str, samples: int, tmp_path: Path) -> None:
    asked, answered, out = tmp_path / "questions", tmp_path / "answers", tmp_path / "bench"
    options = ("--instances", SET, "--limit", 1, "--samples", samples)
    t2t("bench", *options, "--export-prompts", asked, "--format", form, "--model", "m")
    questions = [json.loads(line) for line in asked.read_text().splitlines()]
    rows = []
    for question in questions:
        name = question["custom_id"].partition("#")[0] if form == "openai-batch" else question["id"]
        text = TEXTS.get(name, "no idea")
        plain = {**question, "text": text, "messages": None}
        rows.append(wrapped(text, "openai", question["custom_id"]) if form == "openai-batch" else plain)
    answered.write_text("\n".join(map(json.dumps, reversed(rows))))
    t2t("bench", *options, "--policy", f"answers:{answered}", "--out", out)
    board = json.loads((out / "leaderboard.json").read_text())
    row = next(r for r in board["tables"][0]["rows"] if r["kind"] == "measured")
    assert row["answers"]["errors"] == 0 and row["answers"]["asked"] == len(questions) == 8 * samples
    assert row["cells"]["3x3"]["valid"]["value"] == 100.0 and row["cells"]["4x4"]["valid"]["value"] == 0.0


def test_a_game_is_not_written_down_in_advance(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["bench", "--testbed", "tictactoe", "--export-prompts", str(tmp_path / "q")])
    assert isinstance(result.exception, T2TError) and "before they are asked" in result.exception.what
    result = CliRunner().invoke(cli, ["bench", "--export-prompts", str(tmp_path / "q"), "--format", "openai-batch"])
    assert isinstance(result.exception, T2TError) and result.exception.next == "add --model NAME"
