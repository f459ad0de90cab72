"""The environments of tic-tac-toe: conformance, seeds, masks, rewards, and agreement with the testbed's own verdicts."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
import ttt_oracle as oracle
from gymnasium.utils.env_checker import check_env, data_equivalence
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.test import api_test, render_test, seed_test

import t2t_envs  # noqa: F401
from t2t_core.conversation import opening, replies
from t2t_core.errors import T2TError
from t2t_core.records import Message
from t2t_core.reward import reward
from t2t_core.seeding import Stream
from t2t_envs.tictactoe import Configuration, Instance, format_move, replay
from t2t_envs.tictactoe.testbed import TicTacToe

BED = TicTacToe()
OPTIONS: list[dict[str, Any]] = [
    {},
    {"p": 1.0, "first": 1.0},
    {"p": (0.2, 0.7), "mid_game": 0.5, "opponent": "second", "weights": {"draw": 0.2}},
    {"configuration": Configuration.uniform(0.0, 0.25).to_dict()},
]


def make(**options: Any) -> gym.Env[Any, Any]:
    return gym.make("T2TTicTacToe-v0", disable_env_checker=False, **options)


def text(**options: Any) -> gym.Env[Any, Any]:
    return gym.make("TicTacToeText-v0", disable_env_checker=False, **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_gymnasiums_checker_has_nothing_to_say(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**options).unwrapped)
        check_env(text(**options).unwrapped)
        check_env(text(prompt_format="compact", **options).unwrapped)


def test_pettingzoos_suites_pass(capsys: pytest.CaptureFixture[str]) -> None:
    for options in ({}, {"rewards": "zero-sum"}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="Observation is not a NumPy array")
            warnings.filterwarnings("ignore", message="Observation space for each agent probably should be")
            warnings.filterwarnings("ignore", message="Observation numpy array is all zeros")  # so is an empty board
            api_test(pettingzoo.make("aec", "TicTacToe-v0", **options), num_cycles=200)
            seed_test(lambda options=options: pettingzoo.make("aec", "TicTacToe-v0", **options), num_cycles=30)
            render_test(lambda options=options, **mode: pettingzoo.make("aec", "TicTacToe-v0", **options, **mode))


def episodes(env: gym.Env[Any, Any], seed: int, count: int = 6) -> list[Any]:
    """Whole games of random play over all cells: everything the environment returned."""
    env.action_space.seed(seed)
    seen: list[Any] = [env.reset(seed=seed)]
    for _ in range(count):
        done = False
        while not done:
            seen.append(env.step(env.action_space.sample()))
            done = seen[-1][2] or seen[-1][3]
        seen.append(env.reset())
    return seen


@pytest.mark.parametrize("options", OPTIONS)
def test_whole_games_follow_from_the_seed(options: dict[str, Any]) -> None:
    assert data_equivalence(episodes(make(**options), 7), episodes(make(**options), 7), exact=True)
    assert not data_equivalence(episodes(make(**options), 7), episodes(make(**options), 8), exact=True)


@given(seed=st.integers(0, 2**32), legal=st.floats(0, 1))
def test_games_are_those_of_the_testbed(seed: int, legal: float) -> None:
    """The same moves, by board, by text and in a conversation: the same messages, ends and rewards."""
    stream = Stream(seed)
    board, words = gym.make("T2TTicTacToe-v0", mid_game=0.5), gym.make("TicTacToeText-v0", mid_game=0.5)
    observation, info = board.reset(seed=seed % 1000)
    instance = board.unwrapped.instance  # type: ignore[attr-defined]
    message, _ = words.reset(options={"instance": instance})
    assert message == opening(BED, instance, "think")[0].content
    said: tuple[Message, ...] = ()
    total = 0.0
    while True:
        mask = observation["action_mask"]
        assert (mask == (observation["board"].ravel() == 0)).all() and (mask == info["action_mask"]).all()
        free = [cell for cell in range(9) if mask[cell] or stream.uniform() > legal]
        cell = stream.choice(free)
        observation, gain, *ended, info = board.step(cell)
        answer = format_move(cell, thought="so")
        message, worth, *text_ended, text_info = words.step(answer)
        said = (*said, Message("assistant", answer))
        replied = replies(BED, instance, said, "think")
        total += gain
        over = oracle.over(replay(instance, said, "think").board)
        assert ended == text_ended == [over, not replied and not over]
        if not replied:
            break
        assert replied[0].content == message and worth == 0
        said = (*said, *replied)
    verdict = BED.verify(instance, said, "think")
    assert worth == pytest.approx(reward(BED, instance, verdict)) == pytest.approx(total + 0.2)
    assert text_info["valid"] == info["valid"] == verdict.valid and verdict.figures[info["result"]] == 1
    assert info.get("failure") == verdict.failure
    with pytest.raises(T2TError, match="has ended"):
        board.step(0)
    with pytest.raises(T2TError, match="has ended"):
        words.step("4")


def test_a_move_on_a_taken_cell_costs_once_and_eight_turns_end_the_game() -> None:
    env = make(p=0.0, first=1.0)
    env.reset(seed=1)
    env.step(4)
    rewards = [env.step(4)[1:4] for _ in range(7)]
    assert rewards == [(-0.1, False, False), *[(0.0, False, False)] * 5, (0.0, False, True)]
    words = text(p=0.0, first=1.0, prompt_format="compact")
    words.reset(seed=1)
    last = [words.step("?") for _ in range(8)][-1]
    assert last[1:4] == (-0.1, False, True) and last[4]["result"] == "loss" and last[4]["failure"] == "format"


def test_rewards_can_be_weighed_otherwise() -> None:
    instance = Instance("XX.OO....", p=0.0, seed=1)
    for env, action in ((make(weights={"win": 3}), 2), (text(weights={"win": 3, "format": 0}), "<move>2</move>")):
        env.reset(options={"instance": instance})
        assert env.step(action)[1:3] == (3.0, True)


def test_starts_are_those_that_were_asked_for(tmp_path: Path) -> None:
    env = make(p=(0.3, 0.4), first=0.0, mid_game=1.0)
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        game = env.unwrapped.instance  # type: ignore[attr-defined]
        assert 0.3 <= game.p <= 0.4 and game.mover == "opponent" and not game.starts_empty
        assert info["instance"] == game.id and (observation["board"] != 0).sum() == 10 - game.board.count(".")
    games = [Instance(seed=seed, id=f"g{seed}") for seed in range(3)]
    path = tmp_path / "games.jsonl"
    path.write_text("".join(json.dumps(game.to_dict()) + "\n" for game in games))
    for env in (make(pool=str(path)), text(pool=games), make(pool=[game.to_dict() for game in games])):
        ids = {env.reset(seed=seed)[1]["instance"] for seed in range(20)}
        assert ids == {"g0", "g1", "g2"}
    assert make().reset(options={"pool": path})[1]["instance"] in {"g0", "g1", "g2"}


@pytest.mark.parametrize(
    "options",
    [
        {"p": 2.0},
        {"p": (0.5, 0.2)},
        {"p": "0.5"},
        {"p": (1,)},
        {"first": -1},
        {"opponent": "third"},
        {"configuration": {"0-0.25": {}}},
        {"pool": []},
        {"pool": [{"board": "no"}]},
        {"weights": {"luck": 1}},
        {"weights": {"win": "1"}},
    ],
)
def test_wrong_options_are_named(options: dict[str, Any]) -> None:
    for name in ("T2TTicTacToe-v0", "TicTacToeText-v0"):
        with pytest.raises(T2TError):
            gym.make(name, **options).reset()


def test_misuse_is_named() -> None:
    env = gym.make("T2TTicTacToe-v0").unwrapped
    for call in (lambda: env.step(0), env.render, lambda: env.instance, lambda: env.action_masks()):  # type: ignore[attr-defined]
        with pytest.raises(T2TError):
            call()
    env.reset(seed=0)
    for action in (9, -1, "4", None, 1.5, np.array([1, 2])):
        with pytest.raises(T2TError, match="no cell"):
            env.step(action)
    assert env.step(np.int64(0)) and env.step(np.array(1))
    with pytest.raises(T2TError, match="unknown reset option"):
        env.reset(options={"sed": 1})
    with pytest.raises(T2TError, match="either an instance or a pool"):
        env.reset(options={"instance": Instance(), "pool": [Instance()]})
    words = gym.make("TicTacToeText-v0").unwrapped
    words.reset(seed=0)
    with pytest.raises(T2TError, match="is a text"):
        words.step(4)  # type: ignore[arg-type]
    with pytest.raises(T2TError, match="prompt_format"):
        gym.make("TicTacToeText-v0", prompt_format="loud")
    with pytest.raises(T2TError, match="unknown rewards"):
        pettingzoo.make("aec", "TicTacToe-v0", rewards="gold")


def test_a_copy_goes_its_own_way() -> None:
    env = make().unwrapped
    env.reset(seed=3)
    twin = copy.deepcopy(env)
    cell = int(np.flatnonzero(env.action_masks())[0])  # type: ignore[attr-defined]
    first, second = env.step(cell), twin.step(cell)
    assert data_equivalence(first, second, exact=True)
    twin.step(int(np.flatnonzero(twin.action_masks())[0]))  # type: ignore[attr-defined]
    assert (env.action_masks() == second[0]["action_mask"]).all()  # type: ignore[attr-defined]


def play_aec(cells: list[int], **options: Any) -> tuple[Any, dict[str, float]]:
    env = pettingzoo.make("aec", "TicTacToe-v0", **options)
    env.reset(seed=0)
    totals = dict.fromkeys(env.possible_agents, 0.0)
    waiting = iter(cells)
    for agent in env.agent_iter():
        observation, gain, terminated, truncated, info = env.last()
        totals[agent] += gain
        if terminated or truncated:
            env.step(None)
        else:
            assert (observation["action_mask"] == info["action_mask"]).all()
            env.step(next(waiting))
    return env, totals


def test_two_players_play_a_game() -> None:
    env, totals = play_aec([0, 3, 1, 4, 2])
    assert totals == {"player_0": 1.0, "player_1": 0.0} and env.unwrapped.board == "XXXOO...."
    _, totals = play_aec([0, 3, 1, 4, 2], rewards="zero-sum")
    assert totals == {"player_0": 1.0, "player_1": -1.0}
    _, totals = play_aec([0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert totals == {"player_0": 0.5, "player_1": 0.5}


def test_a_taken_cell_in_a_game_of_two_costs_once_and_eight_turns_lose() -> None:
    _, totals = play_aec([0, 0, 0, 3, 1, 4, 2])
    assert totals == pytest.approx({"player_0": 1.0, "player_1": -0.1})
    env, totals = play_aec([0, *[0] * 8])
    assert totals == pytest.approx({"player_0": 1.0, "player_1": -0.1}) and env.unwrapped.board == "X........"


def test_two_players_masks_belong_to_who_moves() -> None:
    env = pettingzoo.make("aec", "TicTacToe-v0").unwrapped
    env.reset(options={"instance": Instance("X...O....", "opponent")})
    assert env.agent_selection == "player_1" and env.infos["player_0"]["action_mask"].sum() == 0
    assert list(env.infos["player_1"]["action_mask"]) == [0, 1, 1, 1, 0, 1, 1, 1, 1]
    own, other = env.observe("player_1")["observation"].transpose(2, 0, 1)
    assert own[1, 1] == 1 and other[0, 0] == 1 and own.sum() == other.sum() == 1


def test_environments_show_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    instance = Instance("X...O....", seed=1)
    for env in (make(render_mode="ansi"), text(render_mode="ansi")):
        env.reset(options={"instance": instance})
        assert env.render() == " X  1  2\n 3  O  5\n 6  7  8\n"
    env = make(render_mode="rgb_array")
    env.reset(options={"instance": instance})
    picture = env.render()
    assert picture.shape == (192, 192, 3) and picture.dtype == np.uint8
    assert tuple(picture[32, 32]) != tuple(picture[96, 160]), "a stone and a free cell"
    for env, move in ((make(render_mode="human"), 8), (text(render_mode="human"), "<move>8</move>")):
        env.reset(options={"instance": instance})
        env.step(move)
        assert capsys.readouterr().out.count("X  1  2") >= 1
