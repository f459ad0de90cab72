"""`ppo`: proximal policy optimisation on the vector environment, in one file to read from top to bottom.

All agents share one network (parameter sharing). Every agent of every lake is one sample and sees its own padded observation, so
what two agents have learnt works for any number of agents and on every size up to 10. The algorithm is that of Schulman et al.
2017 in the style of CleanRL (Huang et al. 2022), with action masks (Huang, Ontanon 2022) and the potential-based shaped reward.

The file has, in this order: the settings; `features`, what the network sees of an observation; `make_network`; `train`, with the
rollout, `advantages` and `learn`, the update; `save` and `load`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.evaluation.demonstrations import refuse_protected
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.records import TrainingResult
from t2t_core.seeding import Stream, key
from t2t_core.settings import AT_LEAST_ONE, POSITIVE, THREADS, Range, check_settings, no_argument
from t2t_core.store import folders

from .orders import check_order
from .playing import MAX_SIZE

WHERE = "trainer ppo"
WEIGHTS, ARCHITECTURE = "model.safetensors", "ppo.json"
FAR = 4  # distances that differ by more than this from the agent's own look alike
CHANNELS = 5
UNREACHED = 1 << 14


@dataclass(frozen=True)
class Settings:
    """Every setting. Defaults are CleanRL's if it has them.

    Args:
        steps: agent steps in a round's training.
        lakes, horizon: environments side by side, and the steps of each between two updates.
        epochs, minibatches: passes over what was played, and the parts of each pass.
        learning_rate (falling linearly to a tenth), gamma, gae, clip, entropy, value, max_norm: PPO's.
        hidden: width of the network's two layers.
        view: how far an agent's network sees, in cells, if training starts without a checkpoint.
        threads: the number of torch's threads.
    """

    steps: int = 300_000
    lakes: int = 128
    horizon: int = 32
    epochs: int = 4
    minibatches: int = 8
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value: float = 0.5
    max_norm: float = 0.5
    hidden: int = 128
    view: int = 3
    threads: int = 1

    RANGES: ClassVar[Mapping[str, Range]] = {
        **dict.fromkeys(("steps", "lakes", "horizon", "epochs", "minibatches", "hidden"), AT_LEAST_ONE), "threads": THREADS,
        "gamma": Range(0, 1), "gae": Range(0, 1), "learning_rate": POSITIVE, "clip": POSITIVE, "max_norm": POSITIVE,
        "view": Range(1, MAX_SIZE), "hidden": Range(1, 4096),
    }  # fmt: skip


# --- what the network sees


def features(observations: Any, view: int, ways: Ways) -> Any:
    """Turn (B, k, 6, N, N) padded observations into (B, k, F) float32. Around each agent, in a window of (2 view + 1)^2 cells,
    they say which cells are closed, how much nearer to its goal each cell is (by the length of the shortest path, ignoring other
    agents), where the other agents and their goals are, and to which cells those would go next on a shortest path; then how far
    the goal is.

    Distances to the goal are what DHC (Ma, Luo, Ma 2021) gives its agents as heuristic channels.
    """
    batch, agents, _, size, _ = observations.shape
    lake, holes, own, goal, others, other_goals = (observations[:, :, i].astype(bool) for i in range(6))
    free = lake & ~holes
    distance = ways.of(free.reshape(-1, size, size), goal.reshape(-1, size, size)).reshape(own.shape)
    cell = own.reshape(batch, agents, -1).argmax(-1)
    here = np.take_along_axis(distance.reshape(batch, agents, -1), cell[..., None], -1)[..., 0]
    nearer = np.clip(distance - here[..., None, None], -FAR, FAR) / FAR
    downhill = around(own) & (distance < here[..., None, None])
    others_downhill = (downhill.sum(1, keepdims=True) - downhill) > 0
    planes = np.stack([~free, nearer, others, other_goals, others_downhill], 2).astype(np.float32)
    width = 2 * view + 1
    padded = np.pad(planes, [(0, 0)] * 3 + [(view, view)] * 2)
    padded[:, :, 0, :view], padded[:, :, 0, -view:], padded[:, :, 0, :, :view], padded[:, :, 0, :, -view:] = 1, 1, 1, 1
    rows, columns = cell // size, cell % size
    span = np.arange(width)
    b, a = np.arange(batch)[:, None, None, None], np.arange(agents)[None, :, None, None]
    windows = padded[b, a, :, (rows[..., None] + span)[..., :, None], (columns[..., None] + span)[..., None, :]]
    windows = np.moveaxis(windows, -1, 2)  # numpy puts the indexed axis first
    way = np.minimum(here, 4 * size)[..., None] / (4.0 * size)
    return np.concatenate([windows.reshape(batch, agents, -1), way.astype(np.float32)], -1)


class Ways:
    """A cache of distances to goals: an agent's depend only on the holes and its goal, which stay for a whole episode."""

    most = 100_000  # lakes kept before the cache is emptied

    def __init__(self) -> None:
        self.kept: dict[bytes, Any] = {}

    def of(self, free: Any, goal: Any) -> Any:
        """(M, N, N) flags of free cells and of the goal -> (M, N, N) int32."""
        keys = [row.tobytes() for row in np.packbits(np.stack([free, goal], 1).reshape(len(free), -1), axis=1)]
        if len(self.kept) > self.most:
            self.kept.clear()
        new = {key: index for index, key in enumerate(keys) if key not in self.kept}
        if new:
            indices = list(new.values())
            self.kept.update(zip(new, distances(free[indices], goal[indices]), strict=True))
        return np.stack([self.kept[key] for key in keys])


def around(cells: Any) -> Any:
    """The four neighbours of every cell that is set."""
    near = np.zeros_like(cells)
    near[..., 1:, :] |= cells[..., :-1, :]
    near[..., :-1, :] |= cells[..., 1:, :]
    near[..., :, 1:] |= cells[..., :, :-1]
    near[..., :, :-1] |= cells[..., :, 1:]
    return near


def distances(free: Any, goal: Any) -> Any:
    """The length of a shortest path to the goal from every cell; UNREACHED if there is none."""
    lengths = np.where(goal, 0, UNREACHED).astype(np.int32)
    reached, frontier, steps = goal.copy(), goal, 0
    while True:
        steps += 1
        frontier = around(frontier) & free & ~reached
        if not frontier.any():
            return lengths
        lengths[frontier] = steps
        reached |= frontier


# --- the network


def make_network(view: int, hidden: int) -> Any:
    """Two layers that all agents share, with an actor of five logits and a critic on top."""
    from torch import nn

    size = CHANNELS * (2 * view + 1) ** 2 + 1
    body = nn.Sequential(nn.Linear(size, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
    network = nn.ModuleDict({"body": body, "actor": nn.Linear(hidden, 5), "critic": nn.Linear(hidden, 1)})
    layers: list[tuple[Any, float]] = [(body[0], math.sqrt(2)), (body[2], math.sqrt(2))]
    layers += [(network["actor"], 0.01), (network["critic"], 1.0)]
    for layer, gain in layers:
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return network


def logits_and_value(network: Any, seen: Any, masks: Any) -> tuple[Any, Any]:
    """For samples in any shape: the log-probabilities of the five actions, with masked actions at -1e9, and the value."""
    body = network["body"](seen)
    return network["actor"](body).masked_fill(~masks, -1e9).log_softmax(-1), network["critic"](body).squeeze(-1)


# --- training


class Ppo:
    """The trainer `ppo`; its settings stand in a run's file under [training]."""

    policies = ("ppo",)

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        self.defaults = asdict(check_settings(Settings, self._settings, WHERE))
        self.facts = {"algorithm": "PPO, one network shared by all agents, with masks and a potential-based shaped reward"}

    def check(self, order: TrainingOrder) -> None:
        """Raise T2TError for whatever `train` would refuse, before a run has begun."""
        check_order(order, ARCHITECTURE, WHERE)
        settings = check_settings(Settings, {**self._settings, **order.settings}, WHERE)
        if settings.lakes * settings.horizon % settings.minibatches:
            raise T2TError("minibatches must divide lakes * horizon", where=WHERE)

    def ready(self, order: TrainingOrder) -> None:
        """Raise T2TError if something that the trainer needs is not installed."""
        needs_torch(WHERE)

    def train(self, job: TrainingJob) -> TrainingResult:
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        refuse_protected(job.testbed, job.instances)
        return train(job, settings)


def train(job: TrainingJob, settings: Settings) -> TrainingResult:
    """Play the job's instances and learn from them, update after update."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    torch.manual_seed(key(job.seed, "ppo") >> 1)
    network, view = start_of(job.checkpoint, settings)
    rollouts = Rollouts(job, settings, view)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, eps=1e-5)
    updates = max(1, settings.steps // rollouts.samples)
    metrics: dict[str, Any] = {}
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 - 0.9 * update / updates)
        samples, solved = rollouts.play(network)
        entropy, value_loss = learn(network, optimizer, samples, settings)
        metrics = {"solved": solved, "entropy": entropy, "value_loss": value_loss}
        if job.progress is not None:
            job.progress({"update": update + 1, "of": updates, **metrics})
    save(network, job.folder, view, settings.hidden if job.checkpoint is None else network["actor"].in_features)
    torch.set_num_threads(threads)
    return TrainingResult(checkpoint=job.folder, metrics=metrics, samples=updates * rollouts.samples, updates=updates)


class Rollouts:
    """The lakes that are played side by side; they continue from one update to the next. `samples` is the number of samples that
    one update learns from; a sample is one agent of one lake at one step."""

    def __init__(self, job: TrainingJob, settings: Settings, view: int) -> None:
        from gymnasium.vector import AutoresetMode

        from t2t_envs.frozen_lake.gym.vector_env import MAPFFrozenLakeVectorEnv

        self._envs = MAPFFrozenLakeVectorEnv(
            settings.lakes, pool=list(job.instances), max_size=MAX_SIZE, observation="padded", reward="shaped",
            gamma=settings.gamma, on_hole="block", on_conflict="block", autoreset_mode=AutoresetMode.SAME_STEP, labels=False,
        )  # fmt: skip
        self._settings, self._view, self._ways = settings, view, Ways()
        self._observation, _ = self._envs.reset(seed=key(job.seed, "lakes") >> 1)
        self.samples = settings.lakes * settings.horizon * self._observation.shape[1]

    def play(self, network: Any) -> tuple[list[Any], float]:
        """Play `horizon` steps. Returns what `learn` takes, and the share of the ended lakes that were solved."""
        import torch

        solved = ended = 0
        played: list[list[Any]] = [[] for _ in range(7)]
        for _ in range(self._settings.horizon):
            seen, masks = self._seen()
            with torch.no_grad():
                log, value = logits_and_value(network, seen, masks)
            action = torch.multinomial(log.exp().flatten(0, 1), 1).view(log.shape[:2])
            self._observation, reward, terminated, truncated, infos = self._envs.step(action.numpy())
            done = terminated | truncated
            if done.any():
                solved += int(infos["final_info"]["valid"].sum())
                ended += int(done.sum())
            figures = torch.from_numpy(reward).float(), torch.from_numpy(done).float()
            moment = seen, masks, action, log.gather(-1, action[..., None])[..., 0], value, *figures
            for part, of_step in zip(played, moment, strict=True):
                part.append(of_step)
        seen_by, masked, actions, logs, values, rewards, dones = played
        with torch.no_grad():
            after = logits_and_value(network, *self._seen())[1]
        gains = advantages(values, [part[:, None] for part in rewards], [part[:, None] for part in dones], after, self._settings)
        samples = [torch.stack(parts).flatten(0, 2) for parts in (seen_by, masked, actions, logs, values, gains)]
        return samples, solved / max(ended, 1)

    def _seen(self) -> tuple[Any, Any]:
        """What every agent sees now, and which actions it may take."""
        import torch

        seen = torch.from_numpy(features(self._observation, self._view, self._ways))
        return seen, torch.from_numpy(self._envs.action_masks().astype(bool))


def advantages(
    values: Sequence[Any], rewards: Sequence[Any], dones: Sequence[Any], after: Any, settings: Settings
) -> list[Any]:
    """Generalised advantages (Schulman et al. 2016) of the steps of a rollout, computed backwards. `after` holds the values of
    what was seen last. Rewards and dones need only broadcast to the values."""
    gains: list[Any] = []
    gain = after * 0
    for value, reward, done in zip(reversed(values), reversed(rewards), reversed(dones), strict=True):
        delta = reward + settings.gamma * after * (1 - done) - value
        gain = delta + settings.gamma * settings.gae * (1 - done) * gain
        gains.insert(0, gain)
        after = value
    return gains


def learn(network: Any, optimizer: Any, samples: Sequence[Any], settings: Settings) -> tuple[float, float]:
    """PPO's epochs over (features, masks, actions, log-probabilities, values, advantages), one row per sample. Returns the
    entropy and the value loss of the last minibatch."""
    import torch

    seen, masks, action, old, value, gains = samples
    returns = value + gains
    for _ in range(settings.epochs):
        for some in torch.randperm(len(seen)).chunk(settings.minibatches):
            log, estimate = logits_and_value(network, seen[some], masks[some])
            ratio = (log.gather(-1, action[some][:, None])[:, 0] - old[some]).exp()
            gain = (gains[some] - gains[some].mean()) / (gains[some].std() + 1e-8)
            policy_loss = -torch.min(gain * ratio, gain * ratio.clamp(1 - settings.clip, 1 + settings.clip)).mean()
            entropy = -(log.exp() * log.clamp(min=-30)).sum(-1).mean()
            value_loss = (estimate - returns[some]).square().mean()
            loss = policy_loss + settings.value * value_loss - settings.entropy * entropy
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), settings.max_norm)
            optimizer.step()
    return entropy.item(), value_loss.item()


def start_of(checkpoint: Path | None, settings: Settings) -> tuple[Any, int]:
    """The network that training starts from, and how far it sees: the checkpoint's, or a fresh one."""
    if checkpoint is None:
        return make_network(settings.view, settings.hidden), settings.view
    return load(checkpoint)


# --- files: weights as safetensors, the architecture as JSON. Nothing is unpickled.


@dataclass(frozen=True)
class Architecture:
    """The architecture that the weights belong to: how far an agent sees, and the width of the layers."""

    view: Annotated[int, Meta(ge=1, le=MAX_SIZE)]
    hidden: Annotated[int, Meta(ge=1, le=4096)]


def save(network: Any, folder: Path, view: int, hidden: int) -> None:
    """Write the network and what it takes to build it again."""
    import safetensors.torch

    folders.make_folder(folder)
    folders.write_atomic(folder / WEIGHTS, safetensors.torch.save(network.state_dict()))
    folders.write_json(folder / ARCHITECTURE, Architecture(view, hidden))


def load(folder: Path) -> tuple[Any, int]:
    """The network of a folder, and how far it sees. Raises T2TError if there is none."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    said = folders.read_record(folder / ARCHITECTURE, Architecture)
    network = make_network(said.view, said.hidden)
    try:
        network.load_state_dict(load(folders.read_bytes(folder / WEIGHTS)))
    except (SafetensorError, RuntimeError) as error:
        raise T2TError("the weights don't fit the architecture", where=str(folder / WEIGHTS), cause=str(error)[:200]) from None
    network.eval()
    return network, said.view


def needs_torch(where: str) -> None:
    """Raise T2TError, with how to install it, unless torch is there."""
    from importlib.util import find_spec

    missing = [name for name in ("torch", "safetensors") if find_spec(name) is None]
    if missing:
        raise T2TError(f"{missing[0]} is not installed", where=where, next=advice.extra("train"))


def act_by(network: Any, view: int, greedy: bool) -> Any:
    """The network as an `act`: an action for each agent, drawn from the lake's own stream, or the likeliest one."""
    import torch

    ways = Ways()

    def act(observations: Sequence[Any], masks: Sequence[Any], streams: Sequence[Stream]) -> list[Any]:
        actions: list[Any] = [None] * len(observations)
        for agents in {len(observation) for observation in observations}:
            of_team = [i for i, observation in enumerate(observations) if len(observation) == agents]
            seen = torch.from_numpy(features(np.stack([observations[i] for i in of_team]), view, ways))
            allowed = torch.from_numpy(np.stack([masks[i] for i in of_team]).astype(bool))
            with torch.no_grad():
                log, _ = logits_and_value(network, seen, allowed)
            shares = log.double().exp().numpy()
            drawn = shares.argmax(-1) if greedy else draw(shares, [streams[i] for i in of_team])
            for index, i in enumerate(of_team):
                actions[i] = drawn[index]
        return actions

    return act


def draw(shares: Any, streams: Sequence[Stream]) -> Any:
    """Draw (B, k) actions from (B, k, 5) probabilities, each row from its own stream."""
    at = np.array([[stream.uniform() for _ in range(shares.shape[1])] for stream in streams])
    below = shares.cumsum(-1) / shares.sum(-1, keepdims=True)
    actions = (below <= at[..., None]).sum(-1).clip(max=4)
    ruled_out = np.take_along_axis(shares, actions[..., None], -1)[..., 0] < 1e-12  # because the sum is rounded
    return np.where(ruled_out, shares.argmax(-1), actions)
