"""`t2t show --testbed tictactoe`: a whole game with its transcript, in the terminal, as a picture and as a page."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli

START = ("show", "--testbed", "tictactoe", "--set", "random")


def t2t(*words: object) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_game_that_a_policy_plays_is_shown_to_its_end() -> None:
    text = t2t(*START, "--policy", "minimax")
    assert text.count("--- assistant") >= 3 and "--- user" in text
    assert "pass  legal" in text and t2t(*START, "--policy", "minimax") == text


@pytest.mark.parametrize("form", ["svg", "html"])
def test_it_is_a_picture_and_a_page(tmp_path: Path, form: str) -> None:
    out = tmp_path / f"game.{form}"
    t2t(*START, "--policy", "minimax", "--format", form, "--out", out)
    text = out.read_text("utf-8")
    if form == "svg":
        ElementTree.fromstring(text)
    else:
        assert text.startswith("<!doctype html>") and "<script" not in text


def test_a_game_of_given_answers_and_of_a_bench(tmp_path: Path) -> None:
    first = tmp_path / "first.txt"
    first.write_text("<think>the middle</think><move>4</move>")
    assert "<move>4</move>" in t2t(*START, "--answer", first)
    out = tmp_path / "bench"
    t2t("bench", "--testbed", "tictactoe", "--policy", "minimax", "--limit", 1, "--out", out)
    (answers,) = out.glob("rows/*/answers.jsonl")
    asked = json.loads(answers.read_text().splitlines()[0])["instance"]
    shown = t2t(*START, "--id", asked, "--answer", answers)
    assert shown.count("--- assistant") >= 3
