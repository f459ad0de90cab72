"""Whole games of tic-tac-toe by every kind of language policy: a local model, a stand-in for vLLM, an endpoint."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fake_server import FakeServer
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.plugins import installed
from t2t_core.records import Sampling, Scored
from t2t_envs.tictactoe.parser import format_move
from t2t_envs.tictactoe.prompt import read_board

TESTBED = installed().testbeds.make("tictactoe")
GAMES = [game for name in ("random", "optimal", "second") for game in TESTBED.load_set(name).instances[:4]]


def first_free(message: str) -> str:
    """The move on the first free cell of the board in a message, in the form that the opening asks for."""
    seen = read_board(message)
    assert seen is not None, message
    return format_move(seen.board.index("."), "think", "the first free cell")


def played(policy: Any, folder: Path, form: str = "think", tokens: int = 40) -> list[Scored]:
    evaluation = Evaluation(TESTBED, GAMES, sampling=Sampling(max_tokens=tokens), prompt_format=form)
    outcome = evaluate(evaluation, policy, folder)
    assert outcome.progress.done == len(GAMES) and not outcome.progress.errors
    return list(scored(evaluation, folder / ANSWERS))


def moves(games: list[Scored]) -> dict[str, list[str]]:
    return {game.instance.id: [message.content for message in game.messages if message.role == "assistant"] for game in games}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Scored]:
    """The games of the policy `first-free`."""
    return played(installed().policies.make("first-free"), tmp_path_factory.mktemp("first_free"))


def same_games(games: list[Scored], expected: list[Scored]) -> None:
    """The same cells in every turn, hence the same games to their ends."""
    boards = [[message.content for message in game.messages if message.role == "user"] for game in games]
    assert boards == [[message.content for message in game.messages if message.role == "user"] for game in expected]
    assert [game.verdict.figures for game in games] == [game.verdict.figures for game in expected]


def test_an_endpoint_plays_whole_games(expected: list[Scored], tmp_path: Path) -> None:
    with FakeServer(lambda prompt, nth: first_free(prompt)) as server:
        policy = installed().policies.make("endpoint:m", base_url=server.url, concurrency="4")
        games = played(policy, tmp_path)
        asked = [request["body"]["messages"] for request in server.requests]
    same_games(games, expected)
    assert len(asked) == sum(len(said) for said in moves(games).values()), "every turn was asked once"
    longest = max(asked, key=len)
    assert [message["role"] for message in longest] == ["user", *["assistant", "user"] * (len(longest) // 2)]
    assert all(game.response.completion_tokens == 20 * len(said) for game, said in zip(games, moves(games).values(), strict=True))


class PretendLLM:
    """vLLM's offline engine as far as the policy uses it: a token is a character, and the answer is the first free cell."""

    model_config = SimpleNamespace(max_model_len=10_000)

    def __init__(self, model: str) -> None:
        self.calls: list[int] = []

    def get_tokenizer(self) -> Any:
        class Tokenizer:
            chat_template = ""

            def __call__(self, texts: list[str], add_special_tokens: bool) -> dict[str, Any]:
                return {"input_ids": [[ord(character) for character in text] for text in texts]}

        return Tokenizer()

    def generate(self, prompts: list[Any], params: list[Any], use_tqdm: bool, lora_request: Any) -> Iterator[Any]:
        self.calls.append(len(prompts))
        for prompt in prompts:
            board = "".join(map(chr, prompt["prompt_token_ids"]))[-17:]  # the newest is the last thing that was said
            text = first_free(board)
            yield SimpleNamespace(outputs=[SimpleNamespace(text=text, token_ids=[ord(c) for c in text], finish_reason="stop")])


def test_vllm_plays_whole_games(expected: list[Scored], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("vllm")
    module.__spec__ = ModuleSpec("vllm", None)
    module.LLM, module.SamplingParams = PretendLLM, SimpleNamespace
    monkeypatch.setitem(sys.modules, "vllm", module)
    policy = installed().policies.make("vllm:m")
    games = played(policy, tmp_path)
    same_games(games, expected)
    assert sum(policy._load().calls) == sum(len(said) for said in moves(games).values()), "every turn was asked once"


@pytest.mark.train
def test_a_local_model_plays_whole_games(tmp_path: Path) -> None:
    """A Qwen of random weights says nothing that is a move: eight turns, each asked about all that was said before."""
    pytest.importorskip("transformers")
    from qwen import random_model

    random_model(tmp_path / "model")
    games = played(installed().policies.make(f"hf:{tmp_path / 'model'},threads=1"), tmp_path / "out", tokens=6)
    for line in (tmp_path / "out" / ANSWERS).read_text().splitlines():
        turns = [turn["prompt_tokens"] for turn in json.loads(line)["turns"]]
        assert len(turns) <= 8 and turns == sorted(set(turns)), "the conversation grows"
    assert all(game.verdict.figures["turns"] == 8 and game.verdict.figures["loss"] == 1 for game in games)


@pytest.mark.train
def test_the_toy_policys_checkpoint_plays_the_same_games_as_a_local_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    toy = installed().policies.make("tiny:tictactoe")
    plain = played(installed().policies.make(f"hf:{toy.checkpoint},threads=1"), tmp_path / "hf", "compact", 2)
    assert moves(plain) == moves(played(toy, tmp_path / "tiny", "compact", 2))
