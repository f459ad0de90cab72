"""`MAPFFrozenLake-v0`: the joint environment for Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from ..instance import Cell, Instance
from .episode import Episode, check_reset_options
from .options import EnvOptions, joint_action_space, observation_space
from .pools import PoolSource
from .rendering import FPS, RENDER_MODES, check_render_mode, render_frame


class MAPFFrozenLakeEnv(gym.Env[Any, Any]):
    """
    Several agents cross a frozen lake at once: each walks from its start to its goal without falling into a hole or running
    into another agent. One joint action moves all of them.

    ## Description
    The lake is an N x N grid; some of its cells are holes. Each of the k agents has its own start and its own goal. At every
    step all agents move at once. Nothing slips: the environment is deterministic.

    Two agents must not be on one cell at one time (a vertex conflict) and must not swap cells (an edge conflict). Following
    into a cell that is being vacated is allowed, also all around a circle. An agent on its goal still occupies it and may
    leave it again.

    The task is MAPF-FrozenLake of "From Trainee to Trainer" (Chen et al. 2026, arXiv:2606.17682), where a language model
    answers with whole paths (`MAPFFrozenLakeText-v0`). Playing it step by step is our addition, and so is every rule marked
    (ours) below. An episode's path, given to the verifier, gets the verdict that the episode got.

    ## Action Space
    `MultiDiscrete([5] * k)`, one action per agent, numbered as in FrozenLake:

    - 0: Move left
    - 1: Move down
    - 2: Move right
    - 3: Move up
    - 4: Wait

    A move off the grid leaves the agent where it is (ours). `env.unwrapped.action_masks()` says which actions are no move
    off the grid or into a hole.

    ## Observation Space
    With `observation="dict"` (default) a `Dict` of

    | key | space | meaning |
    |---|---|---|
    | `holes` | `Box(0, 1, (N, N), uint8)` | 1 where there is a hole |
    | `positions` | `Box(0, N-1, (k, 2), int32)` | (row, column) of each agent, from the top left |
    | `goals` | `Box(0, N-1, (k, 2), int32)` | (row, column) of each agent's goal |
    | `step` | `Discrete(max_steps + 1)` | steps taken |

    With `observation="planes"` a `Box(0, 1, (1 + 2k, N, N), uint8)`: the holes, then one plane per agent's position, then
    one per agent's goal.

    `view=r` limits each agent to a window of w x w cells around it, w = 2r + 1. What lies off the grid looks like a hole.
    The dict then has `holes` and `others` (the other agents), both `(k, w, w)`, beside each agent's own position and goal.
    The planes are `(k, 3, w, w)`: holes, other agents, own goal (if it is further away: the cell of the window's border
    nearest to it).

    Every array is fresh: what is returned never changes later.

    ## Starting State
    Every `reset()` draws a fresh random instance that is solvable, and labels it with its exact optimum. It has
    floor(hole_ratio * N^2 + 1/2) holes; every agent's start differs from its goal and can reach it. The instance depends on
    the seed given to `reset` and on the number of resets since. Instead,

    - `reset(options={"instance": instance})` starts an `Instance`, or its dict form,
    - `reset(options={"pool": pool})` draws from a JSON Lines file of instances, or from a list of them (this one reset),
    - the argument `pool` does so for every reset.

    ## Rewards
    0 at every step but the last. When all agents stand on their goals at once (and nobody has just fallen or run into
    another), the episode is solved:

    - `reward="accuracy"` (default): the accuracy reward of the paper. 1.0 at the optimum, falling linearly to 0.3 at a cost
      gap of twice the optimum, 0.3 beyond; 0.5 where a given instance stores no optimum.
    - `reward="success"`: 1.0.

    The cost is that of the instance's objective: the makespan (the last step at which any agent arrives on its goal for
    good), or the sum of costs (the sum of all agents' final arrival steps).

    ## Episode End
    - Termination:
        1. All agents stand on their goals at once.
        2. An agent moves into a hole. With `on_hole="block"` it stays where it is instead.
        3. Two agents conflict. With `on_conflict="block"` the agents concerned stay where they are instead, again and again
           until no conflict is left.
    - Truncation: after `max_steps` steps, by default 8 N (ours).

    A step after the end raises `T2TError`.

    ## Information
    `reset()` gives `instance` (its id) and, where known, `optimum` (of its own objective). The observation holds no label.
    `step()` gives an empty dict until the episode ends, then the verdict:

    | key | when | meaning |
    |---|---|---|
    | `valid` | always | the episode was solved |
    | `optimal` | unless valid without a stored optimum | solved at the optimum |
    | `cost`, `makespan`, `sum_of_costs` | valid | costs in steps; `cost` is that of the objective |
    | `gap` | valid, optimum stored | cost minus optimum |
    | `failure` | not valid | the first check that failed: `hole_free`, `conflict_free` or `goal_reached` |
    | `conflict` | after a conflict | `vertex` or `edge` |

    `env.unwrapped.instance` is the instance, `env.unwrapped.paths` the agents' paths so far.

    ## Arguments
    ```python
    import gymnasium as gym
    import t2t_envs

    gym.make(
        "MAPFFrozenLake-v0",
        size=5,                 # N, 3..32 (the paper: 3..10)
        num_agents=2,           # k, 1..16
        hole_ratio=0.2,         # share of the cells that are holes, 0..0.5
        require_wait=None,      # True: every optimal solution waits; False: some does not; None: either
        objective="makespan",   # or "sum_of_costs"
        max_steps=None,         # 8 N
        on_hole="terminate",    # or "block"
        on_conflict="terminate",  # or "block"
        reward="accuracy",      # or "success"
        observation="dict",     # or "planes"
        view=None,              # radius of each agent's window, 0..N-1; None: the whole grid
        pool=None,              # path or list of instances to draw from
        render_mode=None,       # "ansi", "rgb_array" or "human"
    )
    ```

    `require_wait` is exact, for the stored objective. Wrong arguments raise `T2TError`. `gym.make_vec(...,
    vectorization_mode="vector_entry_point")` makes many environments at once (`MAPFFrozenLakeVectorEnv`). The environment is
    registered without Gymnasium's passive checker, which would double the time of a fresh environment and looks at the
    environment's own conformance only; `gym.make(..., disable_env_checker=False)` switches it on.

    Render modes: `ansi` returns text, `rgb_array` an image `(height, width, 3)` uint8. `human` prints the text to the
    terminal after every step and opens no window; for a window wrap `rgb_array` in `gymnasium.wrappers.HumanRendering`,
    which needs pygame.

    ## Version History
    * v0: Initial version release
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": FPS}

    def __init__(
        self,
        size: int = 5,
        num_agents: int = 2,
        hole_ratio: float = 0.2,
        require_wait: bool | None = None,
        objective: str = "makespan",
        max_steps: int | None = None,
        on_hole: str = "terminate",
        on_conflict: str = "terminate",
        reward: str = "accuracy",
        observation: str = "dict",
        view: int | None = None,
        pool: PoolSource | None = None,
        render_mode: str | None = None,
    ) -> None:
        options = EnvOptions(
            size, num_agents, hole_ratio, require_wait, objective, max_steps, on_hole, on_conflict, reward, observation, view
        )
        self.render_mode = check_render_mode(render_mode)
        self._episode = Episode(options, pool)
        self.observation_space = observation_space(options)
        self.action_space = joint_action_space(options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        check_reset_options(options)
        info = self._episode.start(self.np_random, options)
        if self.render_mode == "human":
            self.render()
        return self._episode.stepper.observation(-1), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        try:
            observation, terminated, truncated = self._episode.stepper.step(action)
        except (TypeError, ValueError) as error:
            raise self._episode.misuse(error) from None
        reward, info = self._episode.end() if terminated or truncated else (0.0, {})
        if self.render_mode == "human":
            self.render()
        return observation, reward, terminated, truncated, info

    @property
    def instance(self) -> Instance:
        """The instance being played, with its labels."""
        return self._episode.instance

    @property
    def paths(self) -> list[list[Cell]]:
        """Per agent its cells (row, column) so far, the start first: an answer that `verify_paths` judges."""
        return self._episode.paths

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(5k,) flags, False where an action is a move off the grid or into a hole (the form sb3-contrib's MaskablePPO takes)."""
        self._episode.check_started()
        masks: np.ndarray[Any, np.dtype[np.bool_]] = self._episode.stepper.masks().astype(bool).ravel()
        return masks

    def render(self) -> Any:
        return render_frame(self.instance, self._episode.recent, self._episode.stepper.steps, self.render_mode)
