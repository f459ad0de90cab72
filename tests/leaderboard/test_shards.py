"""Merging the shards of a bench makes the folder that a single bench would have left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import addition
import guessing
from addition import t2t
from t2t_core.errors import T2TError
from t2t_leaderboard import merging

LASTING = ("answers.jsonl", "leaderboard.json", "leaderboard.md", "leaderboard.html")


@pytest.fixture(autouse=True)
def _worlds() -> None:
    addition.register()
    guessing.register()


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.name in LASTING}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ("--testbed", "addition", "--policy", "adder", "--policy", "adder:off=1"),
        ("--testbed", "addition", "--policy", "adder", "--limit", 5, "--samples", 3),
        ("--testbed", "guessing", "--policy", "bisector"),
        ("--testbed", "tictactoe", "--policy", "random", "--limit", 4),
    ],
)
@pytest.mark.parametrize("parts", [2, 5])
def test_merged_shards_are_the_whole_bench_byte_for_byte(words: tuple[Any, ...], parts: int, tmp_path: Path) -> None:
    t2t("bench", *words, "--out", tmp_path / "whole")
    shards = [tmp_path / f"part-{n}" for n in range(1, parts + 1)]
    for number, shard in enumerate(shards, 1):
        t2t("bench", *words, "--shard", f"{number}/{parts}", "--out", shard)
    t2t("merge", *reversed(shards), "--out", tmp_path / "merged")
    assert files(tmp_path / "merged") == files(tmp_path / "whole") and len(files(tmp_path / "whole")) >= 4
    assert t2t("verify", tmp_path / "merged").exit_code in (0, None)


def test_what_a_shard_lacks_is_asked_later_and_an_answer_goes_before_an_error(tmp_path: Path) -> None:
    words = ("bench", "--testbed", "addition", "--policy", "adder")
    t2t(*words, "--out", tmp_path / "whole")
    t2t(*words, "--shard", "1/2", "--out", tmp_path / "a")
    t2t(*words, "--shard", "2/3", "--out", tmp_path / "b")  # parts that overlap and leave some out
    t2t("merge", tmp_path / "b", tmp_path / "a", "--out", tmp_path / "merged")
    (log,) = (tmp_path / "merged").glob("rows/*/log.jsonl")
    asked = [json.loads(line)["instance"] for line in log.read_text().splitlines()]
    assert len(asked) == len(set(asked))
    t2t(*words, "--out", tmp_path / "merged")
    assert files(tmp_path / "merged") == files(tmp_path / "whole")


@pytest.mark.parametrize("place", ["export", "_merge_row", "runner.write"])
def test_a_merge_that_is_stopped_leaves_nothing_and_the_same_command_makes_it(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bench", "--testbed", "addition", "--policy", "adder", "--limit", 2)
    shards = [tmp_path / "a", tmp_path / "b"]
    for number, shard in enumerate(shards, 1):
        t2t(*words, "--shard", f"{number}/2", "--out", shard)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"t2t_leaderboard.merging.{place}", stop)
        with pytest.raises(KeyboardInterrupt):
            merging.merge(shards, tmp_path / "merged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    t2t("merge", *shards, "--out", tmp_path / "merged")
    t2t(*words, "--out", tmp_path / "whole")
    assert files(tmp_path / "merged") == files(tmp_path / "whole")


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    words = ("bench", "--testbed", "addition", "--policy", "adder")
    t2t(*words, "--shard", "1/2", "--out", tmp_path / "a")
    t2t(*words, "--shard", "2/2", "--seed", 5, "--out", tmp_path / "b")
    with pytest.raises(T2TError, match="seed"):
        t2t("merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "m")
    with pytest.raises(T2TError, match="nothing to merge"):
        t2t("merge", tmp_path / "a", "--out", tmp_path / "m")
    with pytest.raises(T2TError, match="holds something already"):
        t2t("merge", tmp_path / "a", tmp_path / "a", "--out", tmp_path / "b")


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "x", "1/2/3", "", "-1/2", "1/999999"])
def test_a_strange_shard_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="no part of a whole"):
        t2t("bench", "--testbed", "addition", "--policy", "adder", "--shard", text, "--out", tmp_path / "a")
