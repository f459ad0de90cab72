"""`MAPFFrozenLakeText-v0`: a prompt in, an answer out, the verifier's verdict."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from play import TINY

import t2t_envs  # noqa: F401
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake.parser import format_answer
from t2t_envs.frozen_lake.prompt import FORMATS, make_prompt
from t2t_envs.frozen_lake.solver import solve
from t2t_envs.frozen_lake.verifier import CHECKS, verify


def make(**options: Any) -> gym.Env[Any, Any]:
    return gym.make("MAPFFrozenLakeText-v0", disable_env_checker=False, **options)


@pytest.mark.parametrize("options", [{}, {"size": 3, "num_agents": 3, "objective": "sum_of_costs", "prompt_format": "compact"}])
def test_gymnasiums_checker_has_nothing_to_say(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**options).unwrapped)


@pytest.mark.parametrize("name", FORMATS)
def test_one_prompt_one_answer(name: str) -> None:
    env = make(num_agents=2, prompt_format=name)
    for seed in range(3):
        prompt, info = env.reset(seed=seed)
        instance = env.unwrapped.instance
        assert prompt == make_prompt(instance, name) and prompt in env.observation_space
        assert info == {} and instance.optimum in (None, env.unwrapped.optimum)
        answer = "<think>→ é 冰</think>\n" + format_answer(solve(instance).paths)
        assert answer in env.action_space
        after, reward, terminated, truncated, verdict = env.step(answer)
        assert (after, reward, terminated, truncated) == (prompt, 1.0, True, False)
        assert verdict["optimal"] is True and verdict["gap"] == 0 and all(verdict["checks"].values())


@pytest.mark.parametrize("answer", ["", "no path here", "Agent 0: (0,0) -> (0,1)\nAgent 1: (0,1) -> (0,0)", "\x00" * 99])
def test_every_answer_gets_the_verifiers_verdict(answer: str) -> None:
    env = make(size=3, names=True)
    env.reset(options={"instance": TINY})
    _, reward, *_, info = env.step(answer)
    verdict = verify(TINY, answer)
    assert reward == 0.0 and info["valid"] is False and CHECKS[info["failure"] - 1] == verdict.failure
    assert info["checks"] == verdict.checks and list(info["checks"]) == list(CHECKS)
    assert info["faults"].keys() == verdict.faults.keys()


def test_misuse_is_named() -> None:
    env = make(size=3)
    env.reset(options={"instance": TINY})
    with pytest.raises(T2TError, match="text"):
        env.step(7)
    env.step("x")
    with pytest.raises(T2TError, match="ended"):
        env.step("x")
    for options in ({"observation": "flat"}, {"desc": ["S" + "." * 40 + "G"]}):
        with pytest.raises(T2TError):
            make(**options)
    with pytest.raises(T2TError, match="prompt_format"):
        make(prompt_format="poem")


def test_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    make(size=3, render_mode="human").reset(options={"instance": TINY})
    assert capsys.readouterr().out.startswith("step 0")
    env = make(size=3, render_mode="ansi")
    env.reset(options={"instance": TINY})
    assert env.render().startswith("step 0")
