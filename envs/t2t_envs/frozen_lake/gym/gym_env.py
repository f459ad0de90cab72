"""`MAPFFrozenLake-v0`: the joint environment for Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..instance import Cell, Instance
from .episode import Episode, Lobby, check_reset_options
from .lakes import ConfigurationSource, PoolSource
from .observation_spaces import joint_action_space, observation_space
from .options import with_steps
from .rendering import FPS, RENDER_MODES, check_render_mode, render_frame


class MAPFFrozenLakeEnv(gym.Env[Any, Any]):
    """
    Several agents cross a frozen lake at once: each walks from its start to its goal without falling into a hole or running
    into another agent. One joint action moves all of them.

    ## Description
    The lake is an N x N grid; some of its cells are holes. Each of the k agents has its own start and its own goal. At every
    step all agents move at once. Nothing slips: the environment is deterministic.

    Two agents must not be on the same cell at the same time (a vertex conflict) and must not swap cells (an edge conflict). An
    agent may move into a cell that another agent is just leaving, even if the agents move around in a circle. An agent on its
    goal still occupies the cell and may leave it again.

    The task is MAPF-FrozenLake of "From Trainee to Trainer" (Chen et al. 2026, arXiv:2606.17682), where a language model
    answers with whole paths (`MAPFFrozenLakeText-v0`). Playing it step by step is our addition, and so is every rule marked
    (ours) below. If you give the paths of an episode to the verifier, you get the same verdict as the episode.

    ## Action Space
    `MultiDiscrete([5] * k)`, one action per agent, numbered as in FrozenLake:

    - 0: Move left
    - 1: Move down
    - 2: Move right
    - 3: Move up
    - 4: Wait

    A move off the grid leaves the agent where it is (ours). `env.unwrapped.action_masks()`, `(k, 5)` int8, is 0 if an action
    would move off the grid or into a hole, otherwise 1; `action_masks=True` puts it into every info as `action_mask`. Its rows
    go into `env.action_space.sample(tuple(masks))`, the flat array into sb3-contrib's MaskablePPO.

    ## Observation Space
    With `observation="dict"` (default) a `Dict` of

    | key | space | meaning |
    |---|---|---|
    | `holes` | `Box(0, 1, (N, N), uint8)` | 1 if there is a hole |
    | `positions` | `Box(0, N-1, (k, 2), int32)` | (row, column) of each agent, from the top left |
    | `goals` | `Box(0, N-1, (k, 2), int32)` | (row, column) of each goal; with `relative_goals=True` the steps to it |
    | `step` | `Discrete(max_steps + 1)` | steps taken |

    The other forms are single arrays:

    | `observation=` | space | meaning |
    |---|---|---|
    | `"planes"` | `Box(0, 1, (1 + 2k, N, N), uint8)` | holes, a plane per position, a plane per goal |
    | `"flat"` | `Box(-1, 1, ((1 + 2k) N^2 + 2k + 1,), float32)` | planes, steps to the goals / (N - 1), time / `max_steps` |
    | `"image"` | `Box(0, 255, (S, S, 3), uint8)` | S = `image_size`; red holes, green agents, blue goals |
    | `"padded"` | `Box(0, 1, (k, 6, N, N), uint8)` | per agent: the lake, holes, itself, its goal, the others, their goals |

    Only the first axis of `"padded"` depends on the number of agents. One policy, shared by all agents, can therefore play
    every size up to `max_size` with any number of agents.

    `max_size=M` makes all arrays as large as an M x M lake, whatever the size of the lake: a smaller lake is in the upper left
    corner, and cells off the lake look like holes (N above is then M).

    `view=r` limits each agent to a window of w x w cells around it, w = 2r + 1. Cells off the grid look like holes.
    The dict then has `holes` and `others` (the other agents), both `(k, w, w)`, beside each agent's own position and goal.
    The planes are `(k, 3, w, w)`: holes, other agents, own goal (if it is outside the window, the nearest cell of the window's
    border); images are `(k, S, S, 3)`. A flat observation holds the agents' windows one after the other.

    Every array is fresh: the environment never changes an array that it has returned.

    ## Starting State
    Every `reset()` draws a fresh random lake that is proven solvable. It has floor(hole_ratio * N^2 + 1/2) holes; every agent's
    start differs from its goal and can reach it. The lake depends on the seed given to `reset` and on the number of resets
    since, and different seeds start independent streams. The same seed starts the same stream in every form of the environment
    (in a vector, it is the stream of the first environment). You can choose the lakes instead:

    - `reset(options={"instance": instance})` starts an `Instance`, or its dict form.
    - `reset(options={"pool": pool})` draws from a JSON Lines file of instances, or from a list of them, for this one reset.
    - The argument `pool` does the same for every reset. It may also be a MovingAI scenario (`.scen`, beside its `.map`); every
      `num_agents` of its lines then make one instance.
    - `desc` is a map: rows of text such as `["S.#.", "...G"]`, where `S` is a start and `G` a goal, or with a letter per agent,
      `["a.#B", "b..A"]`: agent a goes from `a` to `A`. If the map has no agents, they are drawn. A rectangle is filled up with
      holes to a square. `desc` may also be a MovingAI `.map` file. Maps and pools may have up to 256 x 256 cells. The solver
      takes up to 32 x 32, so larger lakes have no optimum, and agents are not drawn on them.
    - `configuration` is one of the generator's: a `Configuration`, its dict form or a JSON file. Every reset then draws a size by
      the data ratios, takes the size's hole count, and draws a lake that requires a wait with the wait ratio. `max_size` is by
      default the largest size in the configuration. `env.unwrapped.set_configuration(other)` changes the configuration from the
      next reset on; wrappers and workers reach it by name (`env.get_wrapper_attr("set_configuration")`,
      `envs.call("set_configuration", other)`, SB3's `env_method`).
      `t2t_envs.frozen_lake.gym.curriculum.CurriculumWrapper` asks any designer or curriculum of the suite for the next
      configuration after a number of episodes.

    `reuse=m` plays every drawn lake m times (1 by default; 32 in the vector environment): each time under another symmetry of the
    grid and order of the agents and, if only the makespan counts, perhaps backwards. The optimum stays the same.

    ## Rewards
    0 at every step but the last. The episode is solved once all agents stand on their goals at the same time and the step there
    had no fall and no conflict:

    - `reward="accuracy"` (default): the accuracy reward of the paper. 1.0 at the optimum, falling linearly to 0.3 at a cost
      gap of twice the optimum, 0.3 beyond; 0.5 if the optimum is not known.
    - `reward="success"`: 1.0.
    - `reward="shaped"` (ours): the accuracy reward and, at every step, gamma * phi(after) - phi(before). phi is the share of
      the way that the agents have already covered, 1 - (sum of the steps that each needs alone to its goal) / (the same at the
      start), and 0 at the end. The discounted return of every episode is therefore the same as without shaping, and so are the
      optimal policies (Ng, Harada, Russell 1999). `gamma` must equal the learner's discount.

    The cost is that of the instance's objective: the makespan (the last step at which any agent arrives on its goal for
    good), or the sum of costs (the sum of all agents' final arrival steps).

    ## Episode End
    - Termination:
        1. All agents stand on their goals at once.
        2. An agent moves into a hole. With `on_hole="block"` it stays where it is instead.
        3. Two agents conflict. With `on_conflict="block"` the agents concerned stay where they are instead; this is repeated
           until no conflict is left.
    - Truncation: after `max_steps` steps, by default 8 N (ours); `env.spec.max_episode_steps` holds the limit.

    A step after the end raises `T2TError`.

    ## Information
    Infos hold only numbers and arrays by default, so that libraries can stack them. The info of `reset()` is empty by default;
    `labels=True` adds the `optimum` (if it is found within `max_nodes`) and `names=True` the name of the `instance`. The info of
    `step()` is empty until the episode ends and then holds the verdict:

    | key | when | meaning |
    |---|---|---|
    | `valid` | always | the episode was solved |
    | `optimal` | unless valid without an optimum | solved at the optimum |
    | `cost`, `makespan`, `sum_of_costs` | valid | costs in steps; `cost` is that of the objective |
    | `gap` | valid, optimum known | cost minus optimum |
    | `failure` | not valid | the check that failed first: 1 `hole_free`, 2 `conflict_free`, 3 `goal_reached` |
    | `conflict` | not valid | 0 none, 1 vertex, 2 edge |

    `env.unwrapped.instance` is the instance, `env.unwrapped.optimum` its exact optimum, `env.unwrapped.paths` the agents'
    paths so far.

    ## Arguments
    ```python
    import gymnasium as gym
    import t2t_envs

    gym.make(
        "MAPFFrozenLake-v0",
        size=5,                 # N, 3..32 (the paper: 3..10); a map, pool or configuration sets its own
        num_agents=2,           # k, 1..16
        hole_ratio=0.2,         # share of the cells that are holes, 0..0.5
        require_wait=None,      # True: every optimal solution waits; False: some does not; None: either
        objective="makespan",   # or "sum_of_costs"
        max_steps=None,         # 8 N
        on_hole="terminate",    # or "block"
        on_conflict="terminate",  # or "block"
        reward="accuracy",      # or "success", "shaped"
        gamma=0.99,             # of the shaped reward
        observation="dict",     # or "planes", "flat", "image", "padded"
        view=None,              # radius of each agent's window, 0..N-1; None: the whole grid
        relative_goals=False,   # goals of the dict as steps from the agent
        max_size=None,          # the largest lake to be shown; None: N
        image_size=42,          # pixels a side
        action_masks=False,     # masks in every info (True for PettingZoo)
        names=False,            # the instance's name in reset's info
        labels="lazy",          # find the optimum when an episode is solved or you ask; True: at every reset; False: never
        max_nodes=2_000_000,    # search nodes of the solver before an optimum counts as not known
        reuse=1,                # how often a drawn lake is played
        pool=None,              # path or list of instances to draw from
        desc=None,              # a map
        configuration=None,     # of the generator
        render_mode=None,       # "ansi", "rgb_array" or "human"
    )
    ```

    `require_wait` is exact, for the objective. Wrong arguments raise `T2TError`. `gym.make_vec(...,
    vectorization_mode="vector_entry_point")` makes many environments at once (`MAPFFrozenLakeVectorEnv`). The environment is
    registered without Gymnasium's passive checker, because the checker would double the time to make an environment and checks
    only the environment itself, not your code. `gym.make(..., disable_env_checker=False)` switches it on.

    Render modes: `ansi` returns text, `rgb_array` an image `(height, width, 3)` uint8. `human` prints the text to the
    terminal after every step and opens no window. For a window, wrap `rgb_array` in `gymnasium.wrappers.HumanRendering`,
    which needs pygame.

    Environments can be pickled and copied, even in the middle of an episode.

    ## Version History
    * v0: Initial version release
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": FPS}

    def __init__(
        self,
        *,
        pool: PoolSource | None = None,
        desc: Any = None,
        configuration: ConfigurationSource | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        self._episode = Episode(Lobby(options, pool, desc, configuration))
        self.observation_space = observation_space(self._episode.options)
        self.action_space = joint_action_space(self._episode.options)
        self._spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """The spec that made the environment; its `max_episode_steps` are the `max_steps` in force."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = None if spec is None else with_steps(spec, self._episode.options.steps)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        check_reset_options(options)
        self._episode.seed(seed)
        info = self._episode.start(options)
        if self._episode.options.action_masks:
            info["action_mask"] = self.action_masks()
        if self.render_mode == "human":
            self.render()
        return self._episode.stepper.observation(-1), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        episode = self._episode
        try:
            observation, terminated, truncated = episode.stepper.step(action)
        except (TypeError, ValueError) as error:
            raise episode.misuse(error) from None
        if terminated or truncated or episode.shaped:
            reward, info = episode.reward(terminated or truncated)
        else:
            reward, info = 0.0, {}
        if episode.options.action_masks:
            info["action_mask"] = self.action_masks()
        if self.render_mode == "human":
            self.render()
        return observation, reward, terminated, truncated, info

    @property
    def instance(self) -> Instance:
        """The instance being played, with its known labels."""
        return self._episode.instance

    @property
    def optimum(self) -> int | None:
        """The exact optimum of the instance being played, searched for on first use; None if it isn't found in `max_nodes`."""
        return self._episode.optimum()

    @property
    def paths(self) -> list[list[Cell]]:
        """Each agent's cells (row, column) so far, from its start: an answer that `verify_paths` can judge."""
        return self._episode.paths

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.int8]]:
        """(k, 5) int8, 0 if an action moves off the grid or into a hole, otherwise 1. `MultiDiscrete.sample` takes the rows as
        masks, and sb3-contrib's MaskablePPO takes the flattened array."""
        self._episode.check_started()
        masks: np.ndarray[Any, np.dtype[np.int8]] = self._episode.stepper.masks()
        return masks

    def set_configuration(self, configuration: ConfigurationSource) -> None:
        """Draw lakes of this configuration from the next reset on; its sizes must fit the spaces (see `max_size`)."""
        self._episode.set_configuration(configuration)

    def render(self) -> Any:
        return render_frame(self.instance, self._episode.recent, self._episode.stepper.steps, self.render_mode)
