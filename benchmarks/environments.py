"""How fast the environments step and reset, each compared with its peer on the same core.

    python benchmarks/environments.py                      # about a minute; ours beside Gymnasium's FrozenLake-v1
    python benchmarks/environments.py --pogema PYTHON      # and beside pogema, under the Python that has it

Every row alternates its sides `--repeats` times on one pinned core and prints the median rate of each with its range, and the
ratio of the medians. Rates are per second of processor time, so that other work on the machine does not count. The wall rates,
which are the same on an idle machine, are in the JSON. pogema 1.4 requires other versions of Gymnasium, numpy and pydantic than
ours, so it runs in a process of its own that sleeps while the others are measured (`python -m venv p`, then
`p/bin/pip install pogema==1.4.0`, then `--pogema p/bin/python`). A joint step moves all agents of one environment; in the vector
rows, an autoreset does not count as a step. Each run writes one JSON file to benchmarks/results/.
"""

from __future__ import annotations

import gc
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pettingzoo
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from measuring import arguments, pin, spread, text, write

import t2t_envs  # noqa: F401 - registers the environments

ENV = "MAPFFrozenLake-v0"
FATAL: dict[str, Any] = {"size": 10, "num_agents": 5, "hole_ratio": 0.2}
OPEN: dict[str, Any] = {"size": 10, "num_agents": 5, "hole_ratio": 0, "on_conflict": "block"}


class Timing(NamedTuple):
    """Units of work done, processor and wall seconds taken, and restarts if those are counted separately."""

    units: int
    processor: float
    wall: float
    resets: int = 0


Side = Callable[[float], Timing]  # takes the seconds of processor time to run for


def timed(seconds: float, batch: Callable[[], int]) -> Timing:
    """Call `batch`, which returns how many units it did, for the given seconds of processor time."""
    units, wall, begin = 0, time.perf_counter(), time.process_time()
    while (taken := time.process_time() - begin) < seconds:
        units += batch()
    return Timing(units, taken, time.perf_counter() - wall)


def joint_steps(**options: Any) -> Side:
    env = gym.make(ENV, **options)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(2000)]
    env.reset(seed=0)

    def batch() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return len(actions)

    return lambda seconds: timed(seconds, batch)


def frozen_lake_steps() -> Side:
    env = gym.make("FrozenLake-v1", map_name="8x8")
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(2000)]
    env.reset(seed=0)

    def batch() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return len(actions)

    return lambda seconds: timed(seconds, batch)


def parallel_steps(env: Any) -> Side:
    env.reset(seed=0)
    for index, name in enumerate(env.possible_agents):
        env.action_space(name).seed(index)
    actions = [{name: env.action_space(name).sample() for name in env.possible_agents} for _ in range(500)]

    def batch() -> int:
        for action in actions:
            env.step(action)
            if not env.agents:
                env.reset()
        return len(actions)

    return lambda seconds: timed(seconds, batch)


class EmptyParallelEnv(pettingzoo.ParallelEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """The floor: five agents in an environment where nothing happens."""

    metadata: dict[str, Any] = {"name": "empty"}

    def __init__(self) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(5)]
        self._space = spaces.Discrete(5)

    def action_space(self, agent: str) -> Any:
        return self._space

    observation_space = action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, 0), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        names = self.agents
        flags = dict.fromkeys(names, False)
        return dict.fromkeys(names, 0), dict.fromkeys(names, 0.0), flags, dict(flags), {name: {} for name in names}


def makes_and_resets() -> Side:
    def batch() -> int:
        for _ in range(50):
            gym.make(ENV, size=10, num_agents=5, hole_ratio=0.2).reset()
        return 50

    return lambda seconds: timed(seconds, batch)


def resets() -> Side:
    env = gym.make(ENV, size=10, num_agents=5, hole_ratio=0.2)

    def batch() -> int:
        for _ in range(50):
            env.reset()
        return 50

    return lambda seconds: timed(seconds, batch)


def frozen_lake_makes_and_resets() -> Side:
    def batch() -> int:
        for _ in range(10):
            gym.make("FrozenLake-v1", desc=generate_random_map(size=10)).reset()
        return 10

    return lambda seconds: timed(seconds, batch)


def vector_steps(count: int, **options: Any) -> Side:
    envs = gym.make_vec(ENV, num_envs=count, vectorization_mode="vector_entry_point", size=10, num_agents=5, **options)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(50)]
    envs.reset(seed=0)
    ended = np.zeros(count, bool)

    def measure(seconds: float) -> Timing:
        restarted = 0

        def batch() -> int:
            nonlocal restarted
            before = restarted
            for action in actions:
                restarted += int(np.count_nonzero(ended))  # these steps begin an episode instead
                _, _, terminated, truncated, _ = envs.step(action)
                np.logical_or(terminated, truncated, out=ended)
            return count * len(actions) - (restarted - before)

        return timed(seconds, batch)._replace(resets=restarted)

    return measure


def vector_resets(count: int) -> Side:
    """The rate of episodes that a vector with `reuse=1` begins while it steps."""
    steps = vector_steps(count, reuse=1)

    def measure(seconds: float) -> Timing:
        timing = steps(seconds)
        return timing._replace(units=timing.resets, resets=0)

    return measure


def draws(count: int) -> Side:
    """The floor: fresh lakes from the core, with no observation, step or info."""
    envs = gym.make_vec(ENV, num_envs=count, vectorization_mode="vector_entry_point", reuse=1, **FATAL).unwrapped
    envs.reset(seed=0)
    every, no_keys = np.ones(count, bool), np.zeros(0, np.uint64)

    def batch() -> int:
        envs._stepper.reset(every, no_keys)
        return count

    return lambda seconds: timed(seconds, batch)


def sync_frozen_lake_steps(count: int) -> Side:
    envs = gym.make_vec("FrozenLake-v1", num_envs=count, vectorization_mode="sync", map_name="8x8")
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(20)]
    envs.reset(seed=0)

    def batch() -> int:
        for action in actions:
            envs.step(action)
        return count * len(actions)

    return lambda seconds: timed(seconds, batch)


# The peer's side, run by its own Python: reads lines "<row> <seconds>", answers "<units> <processor seconds> <wall seconds>".
POGEMA = """
import sys, time
from pogema import GridConfig, pogema_v0
def config(density, **more):
    return GridConfig(num_agents=5, size=10, density=density, max_episode_steps=80, on_target="nothing", **more)
joint = pogema_v0(grid_config=config(0.0)); joint.reset(seed=0)
twin = pogema_v0(grid_config=config(0.0, integration="PettingZoo")); twin.reset(seed=0)
moves = [[joint.action_space.sample() for _ in range(5)] for _ in range(200)]
named = [dict(zip(twin.possible_agents, move)) for move in moves]
def steps():
    for move in moves:
        _, _, ended, cut, _ = joint.step(move)
        if all(ended) or all(cut): joint.reset()
    return len(moves)
def parallel():
    for move in named:
        twin.step(move)
        if not twin.agents: twin.reset()
    return len(named)
def resets():
    for _ in range(10): pogema_v0(grid_config=config(0.2)).reset()
    return 10
for line in sys.stdin:
    row, seconds = line.split()
    units, wall, begin = 0, time.perf_counter(), time.process_time()
    while time.process_time() - begin < float(seconds): units += globals()[row]()
    print(units, time.process_time() - begin, time.perf_counter() - wall, flush=True)
"""


class Pogema:
    """pogema under another Python; it sleeps unless it is asked."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, "-c", POGEMA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def side(self, row: str) -> Side:
        def measure(seconds: float) -> Timing:
            asked, answered = self.process.stdin, self.process.stdout
            if asked is None or answered is None:
                raise SystemExit("pogema's process has no pipes")
            print(row, seconds, file=asked, flush=True)
            units, processor, wall = answered.readline().split()
            return Timing(int(units), float(processor), float(wall))

        return measure


def rows(pogema: Pogema | None) -> Iterator[tuple[str, float, dict[str, Side]]]:
    """(what, goal per second, sides); the first side is ours."""

    def other(row: str) -> dict[str, Side]:
        return {"pogema 1.4": pogema.side(row)} if pogema else {}

    yield "joint steps, 10x10, 5 agents, no holes, blocking", 100e3, {
        "gym.make": joint_steps(**OPEN), "FrozenLake-v1 (one agent)": frozen_lake_steps(), **other("steps")
    }  # fmt: skip
    yield "joint steps, PettingZoo parallel, the same", 60e3, {
        "pettingzoo.make": parallel_steps(pettingzoo.make("parallel", ENV, **OPEN)),
        "an empty ParallelEnv (the floor)": parallel_steps(EmptyParallelEnv()), **other("parallel"),
    }  # fmt: skip
    yield "joint steps, episodes of some three steps: 20 % holes, the default (fatal) modes, a fresh lake each", 50e3, {
        "gym.make": joint_steps(**FATAL), "FrozenLake-v1 (one agent)": frozen_lake_steps()
    }  # fmt: skip
    yield "joint steps, PettingZoo parallel, the same", 30e3, {
        "pettingzoo.make": parallel_steps(pettingzoo.make("parallel", ENV, **FATAL)),
        "FrozenLake-v1 (one agent)": frozen_lake_steps(),
    }  # fmt: skip
    yield "make + reset, a fresh 10x10 lake, 20 % holes, 5 agents", 5e3, {
        "gym.make(...).reset()": makes_and_resets(), "FrozenLake-v1, random 10x10 map": frozen_lake_makes_and_resets(),
        **other("resets"), "our reset() alone": resets(),
    }  # fmt: skip
    sync = sync_frozen_lake_steps(64)
    yield "joint steps, 1,024 environments, 10x10, 20 % holes, 5 agents, blocking", 5e6, {
        "make_vec": vector_steps(1024, on_hole="block", on_conflict="block"), "SyncVectorEnv of 64 FrozenLake-v1": sync
    }  # fmt: skip
    yield "joint steps, the same with the default (fatal) modes, each lake drawn in the measured time and played 32 times", 5e6, {
        "make_vec": vector_steps(1024), "SyncVectorEnv of 64 FrozenLake-v1": sync
    }  # fmt: skip
    yield "resets, the same with a fresh lake for each (reuse=1)", 100e3, {
        "make_vec, while it steps": vector_resets(1024), "drawing and proving lakes, and nothing else": draws(1024)
    }  # fmt: skip


def measure(what: str, goal: float, sides: dict[str, Side], repeats: int, seconds: float) -> dict[str, Any]:
    """Alternate the sides, print the row, and return it."""
    timings: dict[str, list[Timing]] = {name: [] for name in sides}
    for side in sides.values():
        side(seconds / 10)  # warm-up
    for _ in range(repeats):
        for name, side in sides.items():
            gc.collect()
            timings[name].append(side(seconds))
    rates = {name: [t.units / t.processor for t in taken] for name, taken in timings.items()}
    first = next(iter(rates.values()))
    met = spread(first)["median"] >= goal
    print(f"\n{what}; goal {goal:,.0f} /s: {'met' if met else 'MISSED'}")
    results: dict[str, Any] = {}
    for name, taken in timings.items():
        ratios = [a / b for a, b in zip(first, rates[name], strict=True)]
        resets = sum(t.resets for t in taken) / sum(t.processor for t in taken)
        results[name] = {
            "per_s": spread(rates[name]),
            "per_wall_s": spread([t.units / t.wall for t in taken]),
            "ours_over_it": spread(ratios),
            "resets_per_s": resets,
        }
        line = f"  {name:>34}: {text(results[name]['per_s'], 0)} /s, ours over it {text(results[name]['ours_over_it'], 1)}"
        print(line + (f", and {resets:,.0f} resets/s" if resets else ""))
    return {"what": what, "goal_per_s": goal, "met": met, "sides": results}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="per side and repeat")
    parser.add_argument("--pogema", metavar="PYTHON", help="a Python that has pogema")
    given = parser.parse_args()
    pin()
    pogema = Pogema(given.pogema) if given.pogema else None
    results = [measure(*row, given.repeats, given.seconds) for row in rows(pogema)]
    write("environments", given.out, {"rows": results})
    if pogema:
        pogema.process.terminate()


if __name__ == "__main__":
    main()
