"""The rules as pure functions: Gymnasium's functional interface, for searches and other code that keeps states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium.experimental.functional import FuncEnv

from .. import rules
from ..instance import Instance
from .episode import Lobby, restart, stream_of
from .observation_spaces import joint_action_space, observation_space
from .stepper import stepping_core


class LakeState(NamedTuple):
    """Everything that decides what happens next. It is never changed in place.

    `holes`, `positions` and `goals` are cells (row, column), the last two in the order of the agents. `step` counts the steps
    taken. `failed` says whether an agent fell or two agents conflicted in the last step.
    """

    holes: frozenset[tuple[int, int]]
    goals: tuple[tuple[int, int], ...]
    positions: tuple[tuple[int, int], ...]
    step: int = 0
    failed: bool = False


class MAPFFrozenLakeFuncEnv(FuncEnv[LakeState, Any, Any, float, bool, None, None]):
    """
    MAPF-FrozenLake without a state of its own: `initial(rng)` draws a lake that is proven solvable, `transition(state, action)`
    performs one joint action, and neither changes its arguments. The rules are those of `MAPFFrozenLakeEnv`.

    Args:
        given: `size`, `num_agents`, `hole_ratio`, `require_wait`, `on_hole`, `on_conflict` and `max_steps` of that environment.

    The observation is that environment's dict. The reward is 1.0 for the step that solves the lake, otherwise 0. `terminal` says
    whether an episode has ended by itself. The interface has no truncation, so the caller must stop at `max_steps`.
    `state_of(instance)` starts a given lake. Gymnasium calls the interface experimental.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self._lobby = Lobby(given, None, None, None)
        self._options = self._lobby.options
        self.max_steps = self._options.steps
        self.observation_space = observation_space(self._options)
        self.action_space = joint_action_space(self._options)

    def initial(self, rng: np.random.Generator, params: None = None) -> LakeState:
        """A fresh lake; equal generators draw equal lakes."""
        stepper = stepping_core().Stepper(self._lobby.core_options(), self._lobby.source())
        stepper.seed(stream_of(int(rng.integers(1 << 63))).fork(0).next())
        restart(stepper)
        return self.state_of(self._lobby.instance(stepper.lake()))

    @staticmethod
    def state_of(instance: Instance) -> LakeState:
        """The start of an instance."""
        return LakeState(frozenset(instance.holes), tuple(instance.goals), tuple(instance.starts))

    def transition(self, state: LakeState, action: Any, rng: Any = None, params: None = None) -> LakeState:
        """The state after a joint action. It is deterministic."""
        blocks = self._options.on_hole == "block", self._options.on_conflict == "block"
        made = rules.move(self._options.size, state.holes, state.positions, [int(a) for a in action], *blocks)
        failed = bool(made.fell) or made.conflict is not None
        return state._replace(positions=made.positions, step=state.step + 1, failed=failed)

    def observation(self, state: LakeState, rng: Any = None, params: None = None) -> dict[str, Any]:
        holes = np.zeros((self._options.size, self._options.size), np.uint8)
        for cell in state.holes:
            holes[cell] = 1
        cells = {name: np.array(getattr(state, name), np.int32) for name in ("positions", "goals")}
        return {"holes": holes, **cells, "step": state.step}

    def reward(self, state: LakeState, action: Any, next_state: LakeState, rng: Any = None, params: None = None) -> float:
        return float(next_state.positions == next_state.goals and not next_state.failed)

    def terminal(self, state: LakeState, rng: Any = None, params: None = None) -> bool:
        return state.failed or (state.step > 0 and state.positions == state.goals)
