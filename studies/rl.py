"""Do reinforcement learning algorithms learn the lakes: three ways of PPO beside the planners, on sizes 3 to 10.

    python studies/rl.py run FOLDER [--seeds 21-23] [--arms NAME ...]    a file an arm and seed; continues where it stopped
    python studies/rl.py table FOLDER                                  FOLDER/table.md and FOLDER/curves.svg from the files

Every arm plays fresh lakes of all sizes with 2 agents, half of which take a wait, for as many joint steps, and one policy plays
all sizes. Which lakes of the sets were solved, and which at the optimum, is in the files, a digit a lake, so every figure can be
computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2t_baselines.stepwise import ppo
from t2t_baselines.stepwise.playing import MAX_SIZE, Act, StepPolicy
from t2t_core.evaluation.stats import t_interval, wilson
from t2t_core.plugins import installed
from t2t_core.records import Sampling, Task
from t2t_core.report import svg
from t2t_core.report.charts import Axis, Lines, Series
from t2t_core.report.figures import Figure, percent
from t2t_core.report.figures import share as interval
from t2t_core.seeding import Stream, key
from t2t_core.store import folders, paths
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.instance import Instance
from t2t_envs.frozen_lake.jsonl import read_instances
from t2t_envs.frozen_lake.verifier import verify

ROOT = Path(__file__).resolve().parents[1]
STEPS, POINTS = 245_760, 8  # joint steps of an arm, and how often it is measured on the way
LAKES, HORIZON = 128, 32  # environments side by side; steps of each between two updates
SETTINGS = ppo.Settings(lakes=LAKES, horizon=HORIZON)
WORLD: Mapping[str, Any] = {"num_agents": 2, "reward": "shaped", "gamma": SETTINGS.gamma, "labels": False, "max_size": MAX_SIZE}
BLOCKING: Mapping[str, Any] = {"on_hole": "block", "on_conflict": "block"}  # as where the policies are judged
PLANNERS = ("cbs", "prioritized", "pibt", "independent", "random")
Measure = Callable[[int, Act, str], None]  # (joint steps so far, how the policy acts, what it sees)


def sets() -> dict[str, Sequence[Instance]]:
    """The curves' set, and the table's."""
    curve = installed().testbeds.make("mapf-frozenlake").load_set("validation_2agents").instances
    return {"curve": curve, "final": read_instances(ROOT / "studies" / "tiny" / "held_out_2agents.jsonl")}


# --- the arms


class Shared:
    """The vector environment: the agents of a lake share the reward, and one network."""

    networks = 1

    def __init__(self, seed: int) -> None:
        from gymnasium.vector import AutoresetMode

        from t2t_envs.frozen_lake.gym.vector_env import MAPFFrozenLakeVectorEnv

        self.envs = MAPFFrozenLakeVectorEnv(
            LAKES, configuration=Configuration.uniform(), observation="padded", autoreset_mode=AutoresetMode.SAME_STEP,
            **WORLD, **BLOCKING,
        )  # fmt: skip
        self.seen = self.envs.reset(seed=seed)[0]

    def masks(self) -> Any:
        return self.envs.action_masks()

    def step(self, actions: Any) -> tuple[Any, Any]:
        self.seen, rewards, terminated, truncated, _ = self.envs.step(actions)
        return np.repeat(rewards[:, None], 2, 1), terminated | truncated


class Independent:
    """PettingZoo's parallel environments: each agent has its own reward, for its own way, and its own network."""

    networks = 2

    def __init__(self, seed: int) -> None:
        import pettingzoo

        import t2t_envs  # noqa: F401 - registers the environments

        given = {"configuration": Configuration.uniform(), "observation": "padded", "rewards": "individual", "reuse": 32}
        self.envs = [pettingzoo.make("parallel", "MAPFFrozenLake-v0", **given, **WORLD, **BLOCKING) for _ in range(LAKES)]
        starts = [env.reset(seed=key(seed, i) >> 33)[0] for i, env in enumerate(self.envs)]
        self.names = self.envs[0].possible_agents
        self.seen = np.stack([self._row(start) for start in starts])

    def _row(self, by_agent: Mapping[str, Any]) -> Any:
        return np.stack([by_agent[name] for name in self.names])

    def masks(self) -> Any:
        return np.stack([env.action_masks() for env in self.envs])

    def step(self, actions: Any) -> tuple[Any, Any]:
        rewards, done = np.zeros((LAKES, 2)), np.zeros(LAKES, bool)
        for i, env in enumerate(self.envs):
            seen, reward, *_ = env.step(dict(zip(self.names, actions[i].tolist(), strict=True)))
            rewards[i], done[i] = self._row(reward), not env.agents
            self.seen[i] = self._row(env.reset()[0] if done[i] else seen)
        return rewards, done


def our_ppo(world: type[Shared | Independent]) -> Callable[[int, Measure], None]:
    """PPO by the functions of the trainer `ppo`, with one network for all agents or one for each."""

    def train(seed: int, measure: Measure) -> None:
        import torch

        torch.manual_seed(key(seed, "networks") >> 1)
        envs, ways = world(key(seed, "lakes") >> 33), ppo.Ways()
        networks = [ppo.make_network(SETTINGS.view, SETTINGS.hidden) for _ in range(world.networks)]
        optimizers = [torch.optim.Adam(n.parameters(), lr=SETTINGS.learning_rate, eps=1e-5) for n in networks]
        of_network = [slice(i, i + 1) if world.networks > 1 else slice(0, 2) for i in range(world.networks)]
        updates = STEPS // (LAKES * HORIZON)
        for update in range(updates):
            if update % -(-updates // POINTS) == 0:
                measure(update * LAKES * HORIZON, _acting(networks), "padded")
            for optimizer in optimizers:
                optimizer.param_groups[0]["lr"] = SETTINGS.learning_rate * (1 - 0.9 * update / updates)
            played: list[list[Any]] = [[] for _ in range(7)]

            def seen() -> tuple[Any, Any, Any, Any]:
                now = torch.from_numpy(ppo.features(envs.seen, SETTINGS.view, ways))
                masks = torch.from_numpy(envs.masks().astype(bool))
                parts = [ppo.logits_and_value(n, now[:, a], masks[:, a]) for n, a in zip(networks, of_network, strict=True)]
                return now, masks, *(torch.cat(part, 1) for part in zip(*parts, strict=True))

            with torch.no_grad():
                for _ in range(HORIZON):
                    now, masks, log, value = seen()
                    action = torch.multinomial(log.exp().flatten(0, 1), 1).view(log.shape[:2])
                    rewards, done = envs.step(action.numpy())
                    figures = torch.from_numpy(rewards).float(), torch.from_numpy(done).float()[:, None]
                    moment = now, masks, action, log.gather(-1, action[..., None])[..., 0], value, *figures
                    for part, of_step in zip(played, moment, strict=True):
                        part.append(of_step)
                after = seen()[3]
            *samples, rewards, dones = played
            gains = ppo.advantages(samples[4], rewards, dones, after, SETTINGS)
            for network, optimizer, agents in zip(networks, optimizers, of_network, strict=True):
                own = [torch.stack(parts)[:, :, agents].flatten(0, 2) for parts in (*samples, gains)]
                ppo.learn(network, optimizer, own, SETTINGS)
        measure(STEPS, _acting(networks), "padded")

    return train


def _acting(networks: Sequence[Any]) -> Act:
    """Each agent by its network, drawing from the lake's own stream."""
    import torch

    ways = ppo.Ways()

    def act(observations: Sequence[Any], masks: Sequence[Any], streams: Sequence[Stream]) -> Any:
        seen = torch.from_numpy(ppo.features(np.stack(observations), SETTINGS.view, ways))
        allowed = torch.from_numpy(np.stack(masks).astype(bool))
        with torch.no_grad():
            of_agent = [networks[min(a, len(networks) - 1)] for a in range(2)]
            logs = [ppo.logits_and_value(n, seen[:, a], allowed[:, a])[0] for a, n in enumerate(of_agent)]
        return ppo.draw(torch.stack(logs, 1).double().exp().numpy(), streams)

    return act


def maskable_ppo(seed: int, measure: Measure) -> None:
    """sb3-contrib's, on joint actions and the joint flat observation."""
    import gymnasium as gym
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    import t2t_envs  # noqa: F401 - registers the environments

    given = {"configuration": Configuration.uniform(), "observation": "flat", "reuse": 32, **WORLD, **BLOCKING}
    envs = DummyVecEnv([lambda: gym.make("MAPFFrozenLake-v0", **given)] * 16)
    envs.seed(key(seed, "lakes") >> 33)
    model = MaskablePPO(
        "MlpPolicy", envs, n_steps=LAKES * HORIZON // 16, batch_size=LAKES * HORIZON // SETTINGS.minibatches,
        n_epochs=SETTINGS.epochs, learning_rate=lambda left: SETTINGS.learning_rate * (0.1 + 0.9 * left), gamma=SETTINGS.gamma,
        gae_lambda=SETTINGS.gae, ent_coef=SETTINGS.entropy, seed=key(seed, "networks") >> 33, device="cpu",
        policy_kwargs={"net_arch": [SETTINGS.hidden, SETTINGS.hidden]},
    )  # fmt: skip

    def act(observations: Sequence[Any], masks: Sequence[Any], streams: Sequence[Stream]) -> Any:
        allowed = np.stack(masks).reshape(len(masks), -1)
        return model.predict(np.stack(observations), action_masks=allowed, deterministic=False)[0]

    class Curve(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            if self.num_timesteps % (-(-STEPS // (LAKES * HORIZON) // POINTS) * LAKES * HORIZON) == 0:
                measure(self.num_timesteps, act, "flat")

    model.learn(STEPS, callback=Curve())
    measure(STEPS, act, "flat")


ARMS: Mapping[str, Callable[[int, Measure], None]] = {
    "PPO, shared network": our_ppo(Shared),
    "MaskablePPO, joint actions": maskable_ppo,
    "independent PPO": our_ppo(Independent),
}


# --- measuring


def outcomes(answers: Sequence[str], instances: Sequence[Instance]) -> dict[str, str]:
    """Per size a digit a lake: 0 not solved, 1 solved, 2 at the optimum."""
    by_size: dict[str, str] = {}
    for instance, answer in zip(instances, answers, strict=True):
        verdict = verify(instance, answer)
        digit = str(int(verdict.valid) + int(bool(verdict.optimal)))
        by_size[str(instance.size)] = by_size.get(str(instance.size), "") + digit
    return by_size


def answers_of(policy: Any, instances: Sequence[Instance]) -> list[str]:
    tasks = [Task(x.id or str(i), 0, "", x.unlabelled(), key(i, "rl study")) for i, x in enumerate(instances)]
    replies = dict(policy.respond(tasks, Sampling()))
    return [replies[i].text for i in range(len(tasks))]


def run(arm: str, seed: int) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    measured, curve, begun, apart = sets(), [], time.process_time(), 0.0
    final: dict[str, str] = {}

    def measure(steps: int, act: Act, observation: str) -> None:
        nonlocal apart, final
        start = time.process_time()
        policy = StepPolicy(act, {"observation": observation, "max_size": MAX_SIZE}, deterministic=False)
        solved = outcomes(answers_of(policy, measured["curve"]), measured["curve"])
        curve.append({"joint_steps": steps, "solved": solved})
        if steps == STEPS:
            final = outcomes(answers_of(policy, measured["final"]), measured["final"])
        apart += time.process_time() - start

    ARMS[arm](seed, measure)
    spent = time.process_time() - begun - apart
    return {"arm": arm, "seed": seed, "training_cpu_seconds": round(spent, 1), "curve": curve, "final": final}


def path_of(folder: Path, arm: str, seed: int) -> Path:
    return folder / f"seed_{seed}" / f"{arm.replace(', ', '_').replace(' ', '_')}.json"


def run_all(folder: Path, seeds: Sequence[int], arms: Sequence[str]) -> None:
    """Seed by seed, whatever is not there yet."""
    os.makedirs(folder, exist_ok=True)
    if not (folder / "planners.json").exists():
        measured = sets()
        makes = {name: installed().policies.make(name) for name in PLANNERS}
        figures = {
            name: {set_name: outcomes(answers_of(policy, items), items) for set_name, items in measured.items()}
            for name, policy in makes.items()
        }
        folders.write_atomic(folder / "planners.json", json.dumps(figures) + "\n")
    for seed in seeds:
        for arm in arms:
            path = path_of(folder, arm, seed)
            if path.exists():
                continue
            result = run(arm, seed)
            os.makedirs(path.parent, exist_ok=True)
            folders.write_atomic(path, json.dumps(result) + "\n")
            shares = [round(100 * solved_share(point["solved"])) for point in result["curve"]]
            print(seed, arm, result["training_cpu_seconds"], shares, round(100 * solved_share(result["final"]), 1), flush=True)


# --- the table and the curves


def solved_share(by_size: Mapping[str, str], least: str = "1") -> float:
    """The mean over sizes of the share of lakes that were solved; at the optimum with `least` 2."""
    return float(np.mean([np.mean([digit >= least for digit in digits]) for digits in by_size.values()]))


def over_seeds(shares: Sequence[float]) -> Figure:
    """The mean with its t interval over seeds, which a single one does not have."""
    return interval(t_interval(shares)) if len(shares) > 1 else percent(shares[0])


def read(path: Path) -> Any:
    return json.loads(folders.read_text(path, paths.MAX_STREAM))


def read_arms(folder: Path) -> dict[str, list[Any]]:
    """Per arm its files, in the order of the seeds."""
    seeds = sorted(int(path.name[5:]) for path in folder.glob("seed_*"))
    files = {arm: [read(path) for seed in seeds if (path := path_of(folder, arm, seed)).exists()] for arm in ARMS}
    return {arm: runs for arm, runs in files.items() if runs}


def table(folder: Path) -> str:
    """Percent of the lakes solved, per size and over all of them."""
    planners, arms = read(folder / "planners.json"), read_arms(folder)
    sizes = list(planners[PLANNERS[0]]["final"])
    head = ["policy", "seeds", *(f"{size}×{size}" for size in sizes), "all", "at the optimum", "training, CPU s"]
    lines = []
    for arm, files in arms.items():
        finals = [file["final"] for file in files]
        cells = [f"{100 * np.mean([solved_share({size: final[size]}) for final in finals]):.0f}" for size in sizes]
        ends = [over_seeds([solved_share(final, least) for final in finals]).full() for least in "12"]
        seconds = f"{np.mean([file['training_cpu_seconds'] for file in files]):.0f}"
        lines.append([arm, str(len(files)), *cells, *ends, seconds])
    for name in PLANNERS:
        final = planners[name]["final"]
        cells = [f"{100 * solved_share({size: final[size]}):.0f}" for size in sizes]
        count = sum(map(len, final.values()))
        ends = [interval(wilson(solved_share(final, least), count)).full() for least in "12"]
        lines.append([name, "–", *cells, *ends, "–"])
    rows = "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *lines))
    note = "Percent of 200 lakes a size with 2 agents, half of which take a wait (`studies/tiny/held_out_2agents.jsonl`). Of "
    note += "what learns, the mean over seeds with a 95 % t interval (none for a single seed); of planners, Wilson's interval. "
    note += "What learns sees every move's outcome, and a bad move is blocked; a planner writes its paths down in advance."
    return f"{rows}\n\n{note}\n"


def curves(folder: Path) -> str:
    """Lakes of the validation set solved, over joint steps."""
    arms = read_arms(folder)
    steps = [point["joint_steps"] for point in next(iter(arms.values()))[0]["curve"]]
    series = []
    for colour, (arm, files) in enumerate(arms.items()):
        points: list[Figure | None] = []
        for index in range(len(steps)):
            points.append(over_seeds([solved_share(file["curve"][index]["solved"]) for file in files]))
        series.append(Series(arm.partition(",")[0], points, colour))
    planners = read(folder / "planners.json")
    for name in ("prioritized", "independent"):
        level = Figure(100 * solved_share(planners[name]["curve"]), digits=1)
        series.append(Series(f"{name} (planner)", [level] * len(steps), None))
    title = "Lakes of 3×3 to 10×10 solved, over joint steps of training"
    lines = Lines(title, [f"{count / 1000:.0f}k" for count in steps], series, Axis(0.0, 100.0, " %"))
    return svg.standalone(lines.svg())


def _seeds(text: str) -> list[int]:
    low, _, high = text.partition("-")
    return list(range(int(low), int(high or low) + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=_seeds, default=[21, 22, 23], help="21-23 or 22 (default 21-23)")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), metavar="ARM")
    options = parser.parse_args()
    if options.command == "run":
        run_all(options.folder, options.seeds, options.arms)
        return
    folders.write_atomic(options.folder / "table.md", table(options.folder))
    folders.write_atomic(options.folder / "curves.svg", curves(options.folder))


if __name__ == "__main__":
    main()
