"""Stable-Baselines3: any of its algorithms as a trainer, and its policies on the board.

In training, all agents of all lakes share one policy: every agent is a slot of SB3's `VecEnv` and sees its own padded
observation. A checkpoint holds the policy's weights (safetensors) and the names that it is built from, so that no code in it is
run. SB3's own zips contain pickles, so only their weights are read unless you say that you trust them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from t2t_core.errors import T2TError
from t2t_core.evaluation.demonstrations import refuse_protected
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.records import Response, Sampling, Task, TrainingResult
from t2t_core.seeding import Stream, key
from t2t_core.settings import AT_LEAST_ONE, POSITIVE, THREADS, Range, check_settings, no_argument, one_of, read_settings
from t2t_core.store import archives, folders

from .orders import check_order
from .playing import MAX_SIZE, StepPolicy

TRAINER, POLICY = "trainer sb3", "policy sb3"
WEIGHTS, ARCHITECTURE = "model.safetensors", "sb3.json"
MAX_WEIGHTS = 1 << 30  # bytes; our choice
ALGORITHMS = ("PPO", "A2C", "DQN")  # the algorithms of stable-baselines3 for discrete actions
PADDED: dict[str, Any] = {"observation": "padded", "max_size": MAX_SIZE}


@dataclass(frozen=True)
class Settings:
    """Every setting.

    Args:
        algorithm: PPO, A2C or DQN; its other settings keep SB3's defaults.
        layers: widths of the policy's layers, as in "128-128".
        steps: agent steps in a round's training.
        lakes: environments side by side; each agent in each of them is an environment to SB3.
        learning_rate, gamma: the algorithm's.
        threads: the number of torch's threads.
    """

    algorithm: str = "PPO"
    layers: str = "128-128"
    steps: int = 100_000
    lakes: int = 32
    learning_rate: float = 3e-4
    gamma: float = 0.99
    threads: int = 1

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {"algorithm": ALGORITHMS}
    RANGES: ClassVar[Mapping[str, Range]] = {
        **dict.fromkeys(("steps", "lakes"), AT_LEAST_ONE), "threads": THREADS, "learning_rate": POSITIVE, "gamma": Range(0, 1)
    }  # fmt: skip


class Sb3:
    """The trainer `sb3`; its settings stand in a run's file under [training]."""

    policies = ("sb3",)

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, TRAINER)
        self._settings = dict(settings or {})
        self.defaults = asdict(check_settings(Settings, self._settings, TRAINER))
        self.facts = {"algorithm": "an algorithm of Stable-Baselines3, one policy shared by all agents"}

    def check(self, order: TrainingOrder) -> None:
        """Raise T2TError for whatever `train` would refuse, before a run has begun."""
        check_order(order, ARCHITECTURE, TRAINER)
        layers_of(check_settings(Settings, {**self._settings, **order.settings}, TRAINER).layers, TRAINER)

    def ready(self, order: TrainingOrder) -> None:
        """Raise T2TError if something that the trainer needs is not installed."""
        needs_sb3(TRAINER)

    def train(self, job: TrainingJob) -> TrainingResult:
        import safetensors.torch
        import torch

        settings = check_settings(Settings, {**self._settings, **job.settings}, TRAINER)
        refuse_protected(job.testbed, job.instances)
        threads = torch.get_num_threads()
        torch.set_num_threads(settings.threads)
        envs = every_agent_a_slot(job.instances, settings.lakes, settings.gamma)
        model = algorithm_of(settings.algorithm)(
            "MlpPolicy", envs, learning_rate=settings.learning_rate, gamma=settings.gamma, device="cpu",
            seed=key(job.seed, "sb3") >> 33, policy_kwargs={"net_arch": layers_of(settings.layers, TRAINER)},
        )  # fmt: skip
        if job.checkpoint is not None:
            model.policy.load_state_dict(weights_of(job.checkpoint / WEIGHTS))
        model.learn(settings.steps)
        folders.make_folder(job.folder)
        folders.write_atomic(job.folder / WEIGHTS, safetensors.torch.save(model.policy.state_dict()))
        folders.write_json(job.folder / ARCHITECTURE, {"algorithm": settings.algorithm, "layers": settings.layers})
        torch.set_num_threads(threads)
        solved = envs.solved / max(envs.ended, 1)
        return TrainingResult(job.folder, {"solved": solved}, samples=int(model.num_timesteps), updates=int(model._n_updates))


def every_agent_a_slot(instances: Sequence[Any], lakes: int, gamma: float) -> Any:
    """SB3's `VecEnv` over the vector environment: agent a of lake i is its environment i * k + a."""
    from gymnasium.vector import AutoresetMode
    from stable_baselines3.common.vec_env import VecEnv

    from t2t_envs.frozen_lake.gym.vector_env import MAPFFrozenLakeVectorEnv

    class Slots(VecEnv):
        solved = ended = 0

        def __init__(self) -> None:
            self.lakes = MAPFFrozenLakeVectorEnv(
                lakes, pool=list(instances), reward="shaped", gamma=gamma, on_hole="block", on_conflict="block", labels=False,
                autoreset_mode=AutoresetMode.SAME_STEP, **PADDED,
            )  # fmt: skip
            self.agents = instances[0].num_agents
            self.render_mode = None
            super().__init__(lakes * self.agents, *spaces_of_an_agent())

        def reset(self) -> Any:
            seeds = [seed for seed in self._seeds if seed is not None]
            observation, _ = self.lakes.reset(seed=int(seeds[0]) if seeds else None)
            self._reset_seeds()
            return self._apart(observation)

        def _apart(self, observation: Any) -> Any:
            return observation.reshape(self.num_envs, *observation.shape[2:])

        def step_async(self, actions: Any) -> None:
            self._actions = np.asarray(actions).reshape(-1, self.agents)

        def step_wait(self) -> Any:
            observation, reward, terminated, truncated, infos = self.lakes.step(self._actions)
            done = terminated | truncated
            told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            for lake in np.flatnonzero(done).tolist():
                self.ended += 1
                self.solved += bool(infos["final_info"]["valid"][lake])
                for agent in range(self.agents):
                    last = infos["final_obs"][lake][agent]
                    cut = bool(truncated[lake])
                    told[lake * self.agents + agent] = {"terminal_observation": last, "TimeLimit.truncated": cut}
            return self._apart(observation), *(np.repeat(part, self.agents) for part in (reward, done)), told

        def close(self) -> None:
            self.lakes.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(self.lakes, attr_name) for _ in self._get_indices(indices)]

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            setattr(self.lakes, attr_name, value)

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **named: Any) -> list[Any]:
            return [getattr(self.lakes, method_name)(*args, **named)]

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False for _ in self._get_indices(indices)]

    return Slots()


def spaces_of_an_agent() -> tuple[Any, Any]:
    """What one agent sees, whatever the number of agents, and what it may do."""
    from gymnasium import spaces

    from t2t_envs.frozen_lake.gym.observation_spaces import observation_space
    from t2t_envs.frozen_lake.gym.options import EnvOptions

    return observation_space(EnvOptions(size=MAX_SIZE, **PADDED), joint=False), spaces.Discrete(5)


class Sb3Policy:
    """A policy of Stable-Baselines3 that all agents share, each with its own padded observation.

    Args:
        argument: a folder of the trainer `sb3`, or a zip that SB3 has saved for such a policy, from which only the weights are
            read; or, with `trust_code=true`, a zip that is loaded whole. That runs whatever code is in it.
        settings: `trust_code`; for a zip, its `algorithm` (PPO) and the widths of its `layers` as in "64-64", SB3's default.
            Without these, only trusted code can say what the weights fit into.
    """

    talks = False

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        readers: dict[str, Any] = {"trust_code": one_of(("true", "false")), "algorithm": one_of(ALGORITHMS), "layers": str}
        self.settings = read_settings(settings or {}, POLICY, readers)
        self.path, self.trusted = Path(argument), self.settings.get("trust_code") == "true"
        if not argument or not self.path.exists():
            told = f"there is no policy in {argument or '(nothing)'}"
            raise T2TError(told, where=POLICY, next="name a folder of the trainer sb3")
        if "layers" in self.settings:
            layers_of(self.settings["layers"], POLICY)
        if not self.path.is_dir() and not self.trusted and "layers" not in self.settings:
            raise T2TError(
                "a zip of Stable-Baselines3 runs the code in it when it is loaded",
                where=f"{POLICY}:{argument}",
                next="name its layers, e.g. layers=64-64, and its weights alone are read; or add trust_code=true where you know "
                "who made it",
            )
        needs_sb3(POLICY)
        self._policy: StepPolicy | None = None

    def describe(self) -> Mapping[str, Any]:
        return self._made().describe()

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        return self._made().respond(tasks, sampling)

    def _made(self) -> StepPolicy:
        if self._policy is None:
            facts: dict[str, Any] = {"policy": "sb3"}
            if self.path.is_dir() or not self.trusted:
                predict = self._from_weights(facts)
            else:
                facts |= {"algorithm": self.settings.get("algorithm", "PPO"), "caveat": "runs its own code"}
                predict = algorithm_of(facts["algorithm"]).load(self.path, device="cpu").predict
            self._policy = StepPolicy(shared(predict), PADDED, facts, deterministic=False)
        return self._policy

    def _from_weights(self, facts: dict[str, Any]) -> Any:
        whole, weights = self.path.is_dir(), self.path
        said = {"algorithm": "PPO", **self.settings}
        if whole:
            said, weights = folders.read_json(self.path / ARCHITECTURE), self.path / WEIGHTS
        if said.get("algorithm") not in ALGORITHMS or not isinstance(said.get("layers"), str):
            raise T2TError("this is no architecture of sb3", where=str(self.path / ARCHITECTURE))
        facts |= {"algorithm": said["algorithm"], "layers": said["layers"]}
        kind = algorithm_of(said["algorithm"]).policy_aliases["MlpPolicy"]
        policy = kind(*spaces_of_an_agent(), lambda _: 0.0, net_arch=layers_of(said["layers"], POLICY))
        try:
            policy.load_state_dict(weights_of(weights) if whole else weights_in_zip(weights))
        except RuntimeError as error:
            raise T2TError("the weights don't fit the architecture", where=str(self.path), cause=str(error)[:200]) from None
        return policy.predict


def shared(predict: Any) -> Any:
    """Acts for all agents with one agent's policy, on all observations at once. It draws from torch's generator, which the
    streams seed, so an answer depends on the other tasks in its batch."""

    def act(observations: Sequence[Any], masks: Sequence[Any], streams: Sequence[Stream]) -> list[Any]:
        import torch

        sizes = [len(observation) for observation in observations]
        with torch.random.fork_rng():
            torch.manual_seed(sum(stream.next() for stream in streams) >> 1 & ((1 << 62) - 1))
            actions, _ = predict(np.concatenate(observations), deterministic=False)
        return np.split(actions, np.cumsum(sizes)[:-1])

    return act


def layers_of(text: str, where: str) -> list[int]:
    """Widths of layers: "128-128" -> [128, 128]. Raises T2TError for anything else."""
    parts = text.split("-")
    if not (1 <= len(parts) <= 8 and all(part.isascii() and part.isdecimal() and 1 <= int(part[:5]) <= 4096 for part in parts)):
        raise T2TError(f"layers are widths such as 128-128, not {ascii(text)[:40]}", where=where)
    return [int(part) for part in parts]


def weights_of(path: Path) -> Any:
    """The weights of a checkpoint."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(folders.read_bytes(path))
    except SafetensorError as error:
        raise T2TError("these are no weights", where=str(path), cause=str(error)[:200]) from None


def weights_in_zip(path: Path) -> Any:
    """The policy's weights in a zip of SB3, and nothing else: torch reads tensors and refuses whatever would run code."""
    import torch

    data = dict(archives.members(io.BytesIO(folders.read_bytes(path)), path, "policy.pth".__eq__, MAX_WEIGHTS)).get("policy.pth")
    if data is None:
        raise T2TError("there is no policy.pth in it", where=str(path), cause="it is no zip that Stable-Baselines3 has saved")
    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # an untrusted file may raise anything
        raise T2TError("these are no weights", where=str(path), cause=ascii(error)[:200]) from None


def algorithm_of(name: str) -> Any:
    """The algorithm's class in Stable-Baselines3."""
    import stable_baselines3

    return getattr(stable_baselines3, name)


def needs_sb3(where: str) -> None:
    """Raise T2TError, with how to install it, unless Stable-Baselines3 is there."""
    from importlib.util import find_spec

    if find_spec("stable_baselines3") is None:
        raise T2TError("stable_baselines3 is not installed", where=where, next="pip install stable-baselines3")
