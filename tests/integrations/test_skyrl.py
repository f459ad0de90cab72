"""SkyRL-gym, for real: rows of the exported table become environments, which pay what `t2t verify` says.

    bash .ci/integrations skyrl
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import hundred
import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.plugins import installed
from t2t_core.records import Message

skyrl_gym = pytest.importorskip("skyrl_gym")
parquet = pytest.importorskip("pyarrow.parquet")


def rows(*words: Any, out: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["export", *map(str, words), "--format", "skyrl", "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0
    table: list[dict[str, Any]] = parquet.read_table(out).to_pylist()
    return table


def environment(row: dict[str, Any]) -> Any:
    """As SkyRL makes it: by the row's class, with the other columns as extras."""
    import t2t.skyrl  # noqa: F401  (registers)

    return skyrl_gym.make(row["env_class"], env_config={}, extras={k: v for k, v in row.items() if k != "prompt"})


def test_the_hundred_answers_pay_what_t2t_verify_says(tmp_path: Path) -> None:
    lakes = tmp_path / "hundred.jsonl"
    lakes.write_text("".join(json.dumps(lake.to_dict()) + "\n" for lake in hundred.instances()))
    said = {answer["id"]: answer for answer in hundred.answers()}
    for row in rows(lakes, out=tmp_path / "h.parquet"):
        env, answer = environment(row), said[row["extra_info"]["id"]]
        assert env.init(row["prompt"])[0] == row["prompt"]
        result = env.step(answer["text"])
        assert result["done"] and result["reward"] == pytest.approx(answer["reward"]) and not result["observations"]
        metrics = env.get_metrics()
        assert (metrics["valid"], metrics["optimal"]) == (answer["valid"], answer["optimal"])


def test_a_game_is_played_in_turns(tmp_path: Path) -> None:
    bed = installed().testbeds.make("tictactoe")
    games = {game.id: game for game in bed.load_set("random").instances}
    for row in rows("--testbed", "tictactoe", "--set", "random", out=tmp_path / "g.parquet")[:6]:
        env, said, done = environment(row), list[Message](), False
        heard = row["prompt"]
        while not done:
            free = re.findall("[0-8]", "".join(re.findall(r"^[0-8XO] [0-8XO] [0-8XO]$", heard[-1]["content"], re.MULTILINE)[-3:]))
            text = f"<think>the first</think>\n<move>{free[0]}</move>"
            result = env.step(text)
            heard, done = result["observations"], result["done"]
            said += [Message("assistant", text), *(Message("user", message["content"]) for message in heard)]
            assert done or result["reward"] == 0
        verdict = bed.verify(games[row["extra_info"]["id"]], tuple(said), row["extra_info"]["prompt_format"])
        terms = bed.reward_terms(None, verdict)
        assert result["reward"] == pytest.approx(sum(bed.rubric[name] * value for name, value in terms.items()))
        assert env.get_metrics()["win"] == verdict.figures["win"] and env.turns == verdict.figures["turns"]
