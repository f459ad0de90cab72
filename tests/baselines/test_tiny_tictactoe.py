"""The toy policy of tic-tac-toe: its vocabulary, its recipe, and that the shipped policy plays."""

from __future__ import annotations

import json
from itertools import product

import pytest

from t2t_baselines.tiny.tictactoe import warmup
from t2t_core.plugins import installed
from t2t_envs.tictactoe import Instance, sets
from t2t_envs.tictactoe.instance import POLICY, stones
from t2t_envs.tictactoe.rules import CELLS, free_cells, optimal_moves

TESTBED = installed().testbeds.make("tictactoe")


@pytest.fixture(scope="module")
def moves():
    return warmup.demonstrations(0, 60)


def test_the_teacher_is_mediocre_and_its_moves_are_legal(moves):
    boards = [(stones(board, POLICY), stones(board, "O"), cell) for board, cell in moves]
    assert all(cell in free_cells(own | other) for own, other, cell in boards)
    best = sum(cell in optimal_moves(own, other) for own, other, cell in boards) / len(boards)
    assert 0.5 < best < 0.95


def test_a_move_is_learnt_in_all_eight_views_of_its_board():
    views = set(warmup.views([("X........", 1)]))
    corners = {board.index("X") for board, _ in views}
    assert len(views) == 8 and corners == {0, 2, 6, 8}
    for board, cell in views:
        assert abs(board.index("X") - cell) in (1, 3), "the move stays beside the stone"


@pytest.mark.train
def test_every_board_is_three_words_and_every_move_one():
    from t2t_baselines.tiny.tictactoe.model import make_tokenizer

    tokenizer = make_tokenizer()
    for line in product(".XO", repeat=3):
        text = "".join(line) * 3
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text and len(tokenizer(text)["input_ids"]) == 3
    chat = [{"role": "user", "content": "." * 9}]
    assert len(tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)) == 4
    assert [len(tokenizer(str(cell))["input_ids"]) for cell in CELLS] == [1] * 9


@pytest.mark.train
def test_the_warm_up_is_one_command_and_repeats_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(warmup, "measure", lambda folder, games: {})
    for name in ("a", "b"):
        warmup.main(["--out", str(tmp_path / name), "--games", "20", "--steps", "3"])
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "b")]
    assert files[0] == files[1]
    recipe = json.loads((tmp_path / "a" / "recipe.json").read_text())
    assert recipe["games"] == 20 and recipe["excluded_sets"] == {name: sets.load_set(name).sha256 for name in sets.NAMES}


@pytest.mark.train
def test_the_shipped_one_plays_as_its_recipe_says(tmp_path):
    policy = installed().policies.make("tiny:tictactoe")
    assert policy.describe()["prompt_format"] == "compact" and policy.describe()["caveat"] == "toy policy"
    recipe = json.loads((policy.checkpoint / "recipe.json").read_text())
    assert recipe["measured"] == warmup.measure(policy.checkpoint, tmp_path)
    assert sum(file.stat().st_size for file in policy.checkpoint.iterdir()) < 500_000
    assert TESTBED.prompt(Instance(), "compact") == "." * 9


@pytest.mark.train
def test_trl_sft_learns_games_turn_by_turn(tmp_path):
    """A file of `t2t generate --answers-from`: every turn of the policy is a row, with the board it saw."""
    from t2t_core.evaluation import demonstrations
    from t2t_core.hookspecs import TrainingJob
    from t2t_core.records import Sampling
    from t2t_envs.tictactoe import Configuration
    from t2t_plugins.trainers.trl_sft import Settings, Sft, from_file

    games = TESTBED.generate(Configuration.uniform(1.0, 1.0), TESTBED.request(12), 3)
    asked = demonstrations.Request("minimax:p=1", "valid", 1, Sampling(), "compact", 1)
    counts = demonstrations.collect(TESTBED, games, asked, tmp_path / "games.jsonl")
    assert 0 < counts.kept < 12, "a player at random loses some"
    start = installed().policies.make("tiny:tictactoe").checkpoint
    values = {"answers_file": str(tmp_path / "games.jsonl"), "epochs": 1, "batch": 16, "threads": 1}
    order = TrainingJob(start, games, TESTBED, values, tmp_path / "out", seed=1)
    examples = from_file(order, Settings(answers_file=values["answers_file"]))
    for example in examples:
        (board,) = example.prompt  # memoryless: the latest message alone
        own, other = (stones(board["content"], mark) for mark in "XO")
        assert int(example.answer["content"]) in free_cells(own | other)
    held = list(demonstrations.read(TESTBED, tmp_path / "games.jsonl"))
    assert len(examples) == sum(message.role == "assistant" for conversation in held for message in conversation.messages)
    result = Sft().train(order)
    assert result.samples == len(examples) and (result.checkpoint / "model.safetensors").exists()


@pytest.mark.train
def test_games_of_another_format_are_not_learnt(tmp_path):
    from t2t_core.errors import T2TError
    from t2t_core.evaluation import demonstrations
    from t2t_core.hookspecs import TrainingJob
    from t2t_core.records import Sampling
    from t2t_envs.tictactoe import Configuration
    from t2t_plugins.trainers.trl_sft import Settings, from_file

    games = TESTBED.generate(Configuration.uniform(1.0, 1.0), TESTBED.request(3), 3)
    demonstrations.collect(
        TESTBED, games, demonstrations.Request("minimax", "valid", 1, Sampling(), "think", 1), tmp_path / "f.jsonl"
    )
    order = TrainingJob(installed().policies.make("tiny:tictactoe").checkpoint, games, TESTBED, {}, tmp_path / "out", seed=1)
    with pytest.raises(T2TError, match="held in the prompt format think"):
        from_file(order, Settings(answers_file=str(tmp_path / "f.jsonl")))


@pytest.mark.train
def test_it_answers_in_the_form_that_is_asked_for():
    from t2t_core.evaluation.questions import Evaluation
    from t2t_core.records import Sampling

    policy, sampling = installed().policies.make("tiny:tictactoe"), Sampling(max_tokens=2)
    asked = [Evaluation(TESTBED, [Instance(id="game")], 1, sampling, form).task(0) for form in ("think", "compact")]
    texts = [response.text for task in asked for _, response in policy.respond([task], sampling)]
    assert texts[1] in tuple("012345678")
    assert texts[0].endswith(f"</think>\n<move>{texts[1]}</move>")
