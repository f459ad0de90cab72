"""The hundred answers that every framework scores: their stored verdicts are those of `t2t bench` and `t2t verify`."""

from __future__ import annotations

import json
from pathlib import Path

import hundred
import pytest
from click.testing import CliRunner

from t2t_core.cli import cli


def test_bench_and_verify_say_of_the_hundred_what_the_file_says(tmp_path: Path) -> None:
    lakes = tmp_path / "hundred.jsonl"
    lakes.write_text("".join(json.dumps(lake.to_dict()) + "\n" for lake in hundred.instances()))
    words = ["bench", "--instances", str(lakes), "--policy", f"answers:{hundred.FILE}", "--no-reported"]
    words += ["--out", str(tmp_path / "b")]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    checked = CliRunner().invoke(cli, ["verify", str(tmp_path / "b")], catch_exceptions=False)
    assert checked.exit_code == 0 and "100 answers" in checked.output
    (row,) = (tmp_path / "b" / "rows").iterdir()
    ours = {line["instance"]: line["verdict"] for line in map(json.loads, (row / "answers.jsonl").read_text().splitlines())}
    said = {answer["id"]: answer for answer in hundred.answers()}
    assert ours.keys() == said.keys() and len(said) == 100
    for name, verdict in ours.items():
        assert verdict["valid"] == said[name]["valid"] and (verdict["optimal"] is True) == said[name]["optimal"]
        assert verdict["checks"] == said[name]["checks"]
    total = json.loads((tmp_path / "b" / "leaderboard.json").read_text())["tables"][0]["rows"][0]
    answers = said.values()
    for size, cell in total["cells"].items():
        here = [answer["valid"] for answer in answers if f"_{size}_" in answer["id"]]
        assert cell["valid"]["value"] == pytest.approx(100 * sum(here) / len(here))
    valid, optimal = (sum(answer[name] for answer in answers) for name in ("valid", "optimal"))
    assert 40 < optimal < valid - 9 < 70  # else the comparisons show little
    assert len({next((name for name, held in a["checks"].items() if not held), "") for a in answers}) >= 5


def test_the_file_holds_what_the_verifier_says_today() -> None:
    lakes = {lake.id: lake for lake in hundred.instances()}
    for answer in hundred.answers():
        figures = hundred.judged(lakes[answer["id"]], answer["text"])
        assert {name: answer[name] for name in figures} == figures
