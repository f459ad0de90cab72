"""The stream that a designer redesigns for foreign trainers, without any of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from t2t.designed import DesignedStream, Settings

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import format_answer, solve


def stream(**settings: Any) -> DesignedStream:
    return DesignedStream(Settings(count=24, prompt_format="compact", **settings))


def play(stream: DesignedStream, rounds: int) -> None:
    for _ in range(rounds):
        for lake in stream.instances:
            stream.answered(lake, format_answer(solve(lake).paths) if lake.size < 6 else "")
        stream.redesign()


def test_a_stopped_stream_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole, first = stream(out=str(tmp_path / "a")), stream(out=str(tmp_path / "b"))
    play(whole, 3)
    play(first, 1)
    second = stream(out=str(tmp_path / "b"))
    assert second.index == 1 and second.instances == first.instances
    play(second, 2)
    assert (tmp_path / "a" / "rounds.jsonl").read_bytes() == (tmp_path / "b" / "rounds.jsonl").read_bytes()
    assert second.instances == whole.instances != first.instances


def test_the_designer_moves_the_budget_to_what_is_half_solved() -> None:
    rule = stream()
    before = rule.configuration.to_dict()
    play(rule, 1)
    after = rule.configuration.to_dict()
    assert after != before and sum(knobs["data_ratio"] for knobs in after.values()) == pytest.approx(1)


@pytest.mark.parametrize("record", [{"round": 0}, {"round": 0, "configuration": {}, "breakdown": {}, "next": {"3": 1}}])
def test_a_foreign_record_is_named(record: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rounds.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(T2TError, match="no record of a round|the configuration") as caught:
        stream(out=str(tmp_path))
    assert "line 1" in caught.value.where


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"designer": "rul"}, "rul"),
        ({"context": "V99"}, "V99"),
        ({"generation": {"agent": 2}}, "agent"),
        ({"testbed": "tictactoe"}, "in turns"),
    ],
)
def test_what_there_is_not_is_said(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(T2TError, match=what):
        DesignedStream(Settings(count=8, **settings))
