"""Gymnasium's functional interface agrees with the environment, and never changes its arguments."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import t2t_envs  # noqa: F401
from t2t_envs.frozen_lake.gym.functional import MAPFFrozenLakeFuncEnv


@pytest.mark.parametrize("on_hole", ["terminate", "block"])
@pytest.mark.parametrize("on_conflict", ["terminate", "block"])
def test_it_does_what_the_environment_does(on_hole: str, on_conflict: str) -> None:
    given = {"size": 4, "num_agents": 3, "hole_ratio": 0.2, "on_hole": on_hole, "on_conflict": on_conflict}
    functions = MAPFFrozenLakeFuncEnv(**given)
    env = gym.make("MAPFFrozenLake-v0", reward="success", **given)
    env.action_space.seed(1)
    ends = []
    for seed in range(40):
        observation, _ = env.reset(seed=seed)
        state = functions.state_of(env.unwrapped.instance)
        ended = False
        while not ended:
            before = repr(state)
            np.testing.assert_equal(functions.observation(state), observation)
            assert functions.observation(state) in functions.observation_space
            action = env.action_space.sample()
            after = functions.transition(state, action)
            observation, reward, terminated, truncated, _ = env.step(action)
            assert functions.reward(state, action, after) == reward and functions.terminal(after) == terminated
            assert repr(state) == before and truncated == (not terminated and after.step == functions.max_steps)
            state, ended = after, terminated or truncated
        ends.append(truncated)
    assert any(ends) or "terminate" in (on_hole, on_conflict)  # a blocked agent wanders until the clock stops it


def test_equal_generators_draw_equal_lakes() -> None:
    functions = MAPFFrozenLakeFuncEnv(size=5, num_agents=2)
    states = [functions.initial(np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert states[0] == states[1] != states[2] and not functions.terminal(states[0])


def test_a_search_may_try_moves_out() -> None:
    """Breadth first over joint states finds the optimum that the solver proves."""
    functions = MAPFFrozenLakeFuncEnv(size=3, num_agents=2, hole_ratio=0.1)
    env = gym.make("MAPFFrozenLake-v0", size=3, num_agents=2, hole_ratio=0.1)
    for seed in range(5):
        env.reset(seed=seed)
        frontier, seen, steps = {functions.state_of(env.unwrapped.instance)._replace(step=0)}, set(), 0
        while not any(state.positions == state.goals for state in frontier):
            moves = ((state, (a, b)) for state in frontier for a in range(5) for b in range(5))
            after = {functions.transition(state, action)._replace(step=0) for state, action in moves}
            seen |= frontier
            frontier, steps = {state for state in after if not state.failed} - seen, steps + 1
        assert steps == env.unwrapped.optimum
