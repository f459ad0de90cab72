"""`grpo`: GRPO for embedded policies in one file, read from top to bottom (our choice throughout).

It computes what `trl-grpo` computes (a test holds losses and gradients equal to TRL's) without the framework around it, which
costs a model of a tenth of a million parameters most of its time. It trains on whole conversations: an update plays
`prompts` x `group` of them at once, turn by turn, and every turn is a row whose own tokens alone are in the loss. A
conversation's reward is that of the whole of it, and all of its turns share its advantage.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from t2t_core.conversation import judge, opening, replies, shown
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.length_reward import AdaptiveWeights, length_reward, total_reward
from t2t_core.records import Message, Sampling, TrainingResult, Verdict
from t2t_core.reward import reward
from t2t_core.seeding import key
from t2t_core.settings import no_argument
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_plugins.policies.chat import chat_prompts
from t2t_plugins.policies.hf import end_tokens, model_facts, own_formats, quiet
from t2t_plugins.sampler import Sampler, supports_config
from t2t_plugins.trainers.common import UPDATES, refuse_overlap, saving, stratified, threads, warnings
from t2t_plugins.trainers.extra import require
from t2t_plugins.trainers.facts import CellFacts, Judged
from t2t_plugins.trainers.settings import AT_LEAST_ONE, POSITIVE, Range, check_formats, check_settings, check_start

WHERE = "trainer grpo"
MAX_GRAD_NORM = 1.0  # beyond it the gradient is scaled down
SPARE = 1e-4  # added to a group's standard deviation, as TRL does
OVERDRAW = 3  # with `dynamic`, at most so many times the prompts of an update are played
STATE, OPTIMIZER = "state.json", "optimizer.pt"


@dataclass(frozen=True)
class Settings:
    """Every knob.

    Args:
        group: conversations per instance. prompts: instances per update. epochs: passes over the round's instances; the last
            partial batch of a pass is dropped. max_updates: stop there (0: do all).
        learning_rate: constant. weight_decay, beta2: of AdamW.
        beta: weight of the k3 KL term against the policy the round started from.
        temperature, max_tokens: of a turn's sampling.
        length_start, length_end: response tokens between which the length penalty grows, where the testbed has one.
        loss: "dapo" averages over the tokens of an update, "grpo" over each conversation's tokens first, "dr_grpo" divides by
            conversations x `max_tokens`, "cispo" weighs log-probabilities by the clipped ratio instead of clipping the gain.
        clip: of the importance ratio; of "cispo", 1 + clip is the most a token weighs. The ratio is 1 unless `iterations`,
            the optimisation steps per sampled batch, is above 1.
        scale: "group" divides advantages by the group's standard deviation, "batch" by the update's, "none" not.
        dynamic: drop groups whose conversations all earn the same, and play others until the update is full or three times
            its instances were played (DAPO's dynamic sampling); their tokens are counted.
        stratify: every update holds the columns of the tables in like shares.
        optimizer: "reset" every round or "keep" its state. save_every: updates between two saved states.
        prompt_format: "" takes the one the checkpoint was taught, else the testbed's first.
        threads: of torch on a CPU; 0 leaves its default.
    """

    group: int = 8
    prompts: int = 32
    epochs: int = 1
    max_updates: int = 0
    learning_rate: float = 3e-4
    weight_decay: float = 0.0
    beta2: float = 0.999
    beta: float = 0.0
    temperature: float = 1.0
    max_tokens: int = 64
    length_start: int = 1500
    length_end: int = 4096
    loss: str = "dapo"
    clip: float = 0.2
    iterations: int = 1
    scale: str = "group"
    dynamic: bool = False
    stratify: bool = True
    optimizer: str = "reset"
    save_every: int = 50
    prompt_format: str = ""
    threads: int = 1

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {
        "loss": ("dapo", "grpo", "dr_grpo", "cispo"),
        "scale": ("group", "batch", "none"),
        "optimizer": ("reset", "keep"),
    }
    RANGES: ClassVar[Mapping[str, Range]] = {
        "group": Range(2, 4096),
        "prompts": Range(1, 10**6),
        "epochs": Range(1, 10_000),
        "learning_rate": POSITIVE,
        "beta2": Range(0, 1, below=True),
        "temperature": Range(0, 10, above=True),  # at 0 every answer of a group is the same
        "max_tokens": Range(1, 10**6),
        "clip": POSITIVE,
        "iterations": Range(1, 1000),
        "save_every": AT_LEAST_ONE,
        "threads": Range(0, 1024),
    }

    def updates(self, instances: int) -> int:
        """Updates of a round with so many instances; a last partial batch of a pass is dropped."""
        every = instances // self.prompts * self.epochs
        return min(every, self.max_updates) if self.max_updates else every


class Grpo:
    """The trainer behind the name; a run's settings stand in its configuration under [training]."""

    facts: ClassVar[Mapping[str, str]] = {
        "algorithm": "GRPO with AdamW and a constant learning rate, on whole conversations",
        "reward": "the testbed's, of the whole conversation",
    }
    stops_when_asked = True
    constants: ClassVar[Mapping[str, Any]] = {
        "optimizer": "AdamW",
        "schedule": "constant",
        "kl_estimator": "k3",
        "adam_beta1": 0.9,
        "adam_epsilon": 1e-8,
        "max_grad_norm": MAX_GRAD_NORM,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
    }

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        self.defaults = asdict(check_settings(Settings, self._settings, WHERE))

    def check(self, order: TrainingOrder) -> None:
        """T2TError for what `train` would refuse, before a run has begun."""
        check(check_settings(Settings, {**self._settings, **order.settings}, WHERE), order)

    def ready(self, order: TrainingOrder) -> None:
        """T2TError where what it needs is not at hand on this machine."""
        require(WHERE, "torch", "transformers")
        check_model(str(order.checkpoint))

    def train(self, job: TrainingJob) -> TrainingResult:
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        check(settings, TrainingOrder(job.checkpoint, job.testbed, job.settings, len(job.instances)))
        refuse_overlap(job)
        quiet()
        with threads(settings.threads), saving(job.folder / UPDATES):
            return Training(job, settings).run()


def check(settings: Settings, order: TrainingOrder) -> None:
    """T2TError for settings that a round of this run could not go by."""
    length_reward(0, settings.length_start, settings.length_end)
    check_start(order, WHERE)
    check_formats(order, WHERE, prompt_format=settings.prompt_format)
    if order.samples < settings.prompts:
        raise T2TError(
            f"{order.samples} instances do not fill an update of {settings.prompts} prompts",
            where=WHERE,
            next=f"set generation.samples={settings.prompts} or more, or lower training.prompts",
        )


def check_model(start: str) -> None:
    """T2TError for a checkpoint that cannot be read, or that is no embedded policy."""
    config, _ = model_facts(start, WHERE)
    if not supports_config(config):
        raise T2TError(
            "this model is not an embedded policy", where=f"{WHERE}, {start}", next="trainer = trl-grpo trains any model"
        )


# --- a round


class Training:
    """One round: the model, its optimizer, and where it stands."""

    def __init__(self, job: TrainingJob, settings: Settings) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        start = str(job.checkpoint)
        check_model(start)
        self.job, self.settings, self.updates = job, settings, job.folder / UPDATES
        self.format = settings.prompt_format or own_formats(start).get("prompt_format") or job.testbed.prompt_formats[0]
        self.tokenizer = AutoTokenizer.from_pretrained(start)
        saved = last_state(self.updates)
        self.model = AutoModelForCausalLM.from_pretrained(str(saved or start), dtype=torch.float32)
        self.ends = end_tokens(self.model, self.tokenizer)
        self.reference = None
        if settings.beta:
            self.reference = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), settings.learning_rate, (0.9, settings.beta2), 1e-8, settings.weight_decay
        )
        self.weights, self.facts, self.done, self.tokens = AdaptiveWeights(), CellFacts(job.testbed), 0, 0
        self.last: dict[str, Any] = {}
        self._ids: dict[tuple[Message, ...], list[int]] = {}  # of what a memoryless format has shown: positions come again
        if saved:
            self._load(saved)
            return
        if settings.optimizer == "keep" and job.resume_from:
            self.optimizer.load_state_dict(torch.load(kept_optimizer(job.resume_from), weights_only=True))
        if (weights := Path(start) / "adaptive_weights.json").exists():
            self.weights = AdaptiveWeights.from_dict(folders.read_json(weights))

    def run(self) -> TrainingResult:
        schedule = self.schedule()
        total, began, first = len(schedule), time.monotonic(), self.done
        while self.done < total:
            self.last = self.update(schedule[self.done])
            self.done += 1
            stop = self.job.stop()
            if stop or self.done % self.settings.save_every == 0 or self.done == total:
                self._save()
            seconds = time.monotonic() - began
            rate = seconds / (self.done - first)
            if self.job.progress:
                left = {"eta_seconds": round(rate * (total - self.done), 1)}
                told = {"warnings": faults} if (faults := warnings(self.last)) else {}
                self.job.progress({"update": self.done, "updates": total, **self.last, **told, **left})
            if stop and self.done < total:
                raise KeyboardInterrupt
        self._export()
        rollouts = self.settings.prompts * self.settings.group
        metrics = {**self.last, "cells": self.facts.to_dict()}
        keep = self.settings.optimizer == "keep"
        return TrainingResult(self.job.folder, metrics, total * rollouts, total, self.tokens, keep_updates=keep)

    def schedule(self) -> list[list[int]]:
        """The instances of every update: each pass in an order of its own."""
        settings, count = self.settings, len(self.job.instances)
        whole = count // settings.prompts * settings.prompts
        rows = [at for number in range(settings.epochs) for at in self._order(number)[:whole]]
        return parts_of(rows, settings.prompts)[: settings.updates(count)]

    def _order(self, number: int) -> list[int]:
        if self.settings.stratify:
            return stratified(self.job, key(self.job.seed, "pass", number))
        return list(range(len(self.job.instances)))

    # --- one update

    def update(self, instances: Sequence[int]) -> dict[str, Any]:
        """Play, judge, and take `iterations` steps; the update's figures."""
        groups = list(self._played(instances))
        alive = [group for group in groups if not group.dead] if self.settings.dynamic else groups
        advantages = advantages_of([group.rewards for group in alive], self.settings.scale)
        for group in groups:
            judged = [Judged(r, v.valid, v.failure) for r, v in zip(group.rewards, group.verdicts, strict=True)]
            self.facts.add(self.job.instances[group.instance], judged, group.tokens)
        rollouts = [rollout for group in alive for rollout in group.rollouts]
        figures = self._figures(groups)
        if rollouts:
            figures |= self.learn(rollouts, [a for values in advantages for a in values])
        if self.job.testbed.length_term:
            self.weights = self.weights.update(figures["short"])
        self.tokens += sum(group.tokens for group in groups)
        figures.pop("short")
        return figures

    def _played(self, instances: Sequence[int]) -> Iterator[Group]:
        """The groups of an update; with `dynamic`, further ones until enough of them differ within."""
        yield from (played := self._groups(instances, 0))
        if not self.settings.dynamic:
            return
        spare = iter(self._order(key(self.job.seed, "spare", self.done) % 2**31))
        missing = sum(group.dead for group in played)
        for number in range(1, OVERDRAW):
            further = list(itertools.islice(spare, missing))
            if not further:
                return
            yield from (played := self._groups(further, number))
            missing = sum(group.dead for group in played)

    def _groups(self, instances: Sequence[int], number: int) -> list[Group]:
        testbed, group = self.job.testbed, self.settings.group
        rollouts = [Rollout(testbed.rollout(self.job.instances[at], nth)) for at in instances for nth in range(group)]
        for rollout in rollouts:
            rollout.first = opening(testbed, rollout.task, self.format)
        self.play(rollouts, number)
        weights = self.weights.weights() if self.job.testbed.length_term else None
        groups = []
        for at, members in zip(instances, parts_of(rollouts, self.settings.group), strict=True):
            instance = self.job.instances[at]
            verdicts = [judge(testbed, rollout.task, rollout.messages, self.format) for rollout in members]
            rewards = [self._worth(instance, v, rollout, weights) for v, rollout in zip(verdicts, members, strict=True)]
            groups.append(Group(at, members, verdicts, rewards))
        return groups

    def _worth(self, instance: Any, verdict: Verdict, rollout: Rollout, weights: tuple[float, float] | None) -> float:
        worth = reward(self.job.testbed, instance, verdict, self.job.reward)
        if weights is None:
            return worth
        return total_reward(worth, length_reward(rollout.tokens, self.settings.length_start, self.settings.length_end), weights)

    def play(self, rollouts: Sequence[Rollout], number: int = 0) -> None:
        """All rollouts to their ends, turn by turn."""
        import torch

        sampler, settings, testbed = Sampler(self.model, self.ends), self.settings, self.job.testbed
        sampling = Sampling(settings.temperature, settings.max_tokens)
        open_rollouts, turn = list(rollouts), 0
        while open_rollouts:
            encoded = self._encoded(open_rollouts)
            seed = key(self.job.seed, "rollout", self.done, number, turn)
            generator = torch.Generator().manual_seed(seed % 2**63)
            flat = [one for (one,) in sampler.sample(encoded, 1, settings.max_tokens, sampling, generator)]
            said = self.tokenizer.batch_decode([answer.tokens for answer in flat], skip_special_tokens=True)
            going_on = []
            for rollout, prompt, answer, text in zip(open_rollouts, encoded, flat, said, strict=True):
                rollout.turns.append(Turn(prompt, answer.tokens, answer.ended, sum(answer.logprobs)))
                rollout.messages = (*rollout.messages, Message("assistant", text))
                reply = replies(testbed, rollout.task, rollout.messages, self.format)
                if reply:
                    rollout.messages = (*rollout.messages, *reply)
                    going_on.append(rollout)
            open_rollouts, turn = going_on, turn + 1

    def _encoded(self, rollouts: Sequence[Rollout]) -> list[list[int]]:
        """What each of the rollouts shows the policy, as token ids; rollouts that show the same are written out once."""
        seen = [shown(self.job.testbed, rollout.first, rollout.messages, self.format) for rollout in rollouts]
        ids = self._ids if self.format in self.job.testbed.memoryless else {}
        fresh = [messages for messages in dict.fromkeys(seen) if messages not in ids]
        if fresh:
            texts = chat_prompts(self.tokenizer, [(messages, ()) for messages in fresh])
            ids.update(zip(fresh, self.tokenizer(texts, add_special_tokens=False)["input_ids"], strict=True))
        return [ids[messages] for messages in seen]

    # --- the gradient

    def learn(self, rollouts: Sequence[Rollout], advantages: Sequence[float]) -> dict[str, Any]:
        """`iterations` steps on these rollouts; loss, KL and gradient norm of the first."""
        import torch

        batch = Batch.of(rollouts, advantages, self.settings)
        old = reference = None
        if self.reference is not None:
            with torch.no_grad():
                reference = batch.logprobs(self.reference, self.settings.temperature)
        figures: dict[str, Any] = {}
        for _ in range(self.settings.iterations):
            logprobs = batch.logprobs(self.model, self.settings.temperature)
            old = logprobs.detach() if old is None else old
            loss, kl = batch.loss(logprobs, old, reference, self.settings)
            self.optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRAD_NORM)
            self.optimizer.step()
            if not figures:
                figures = {"loss": loss.item(), "grad_norm": norm.item()}
                figures |= {"kl": kl} if reference is not None else {}
        return figures

    def _figures(self, groups: Sequence[Group]) -> dict[str, Any]:
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        turns = [turn for rollout in rollouts for turn in rollout.turns]
        verdicts = [verdict for group in groups for verdict in group.verdicts]
        rewards = [value for group in groups for value in group.rewards]
        return {
            "reward": sum(rewards) / len(rewards),
            "valid": sum(verdict.valid for verdict in verdicts) / len(verdicts),
            "optimal": sum(verdict.optimal is True for verdict in verdicts) / len(verdicts),
            "zero_variance": sum(group.dead for group in groups) / len(groups),
            "turns": len(turns) / len(rollouts),
            "response_tokens": sum(rollout.tokens for rollout in rollouts) / len(rollouts),
            "truncated": sum(not turn.ended for turn in turns) / len(turns),
            "entropy": -sum(turn.logprob for turn in turns) / sum(rollout.tokens for rollout in rollouts),
            "short": sum(rollout.tokens <= self.settings.length_start for rollout in rollouts) / len(rollouts),
        }

    # --- on disk

    def _save(self) -> None:
        """The state after this update, whole or not at all; the one before goes when it is there."""
        import torch

        before, target = last_state(self.updates), SafePath.of(self.updates) / f"update-{self.done}"
        with folders.building(target) as folder:
            self.model.save_pretrained(folder.path)
            torch.save(self.optimizer.state_dict(), folder.path / OPTIMIZER)
            state = {"done": self.done, "tokens": self.tokens, "weights": self.weights.to_dict(), "last": self.last}
            folders.write_json(folder / STATE, {**state, "facts": self.facts.state()})
        if before is not None and before != target.path:
            folders.remove_folder(SafePath.of(self.updates) / before.name)

    def _load(self, folder: Path) -> None:
        import torch

        state = folders.read_json(folder / STATE)
        self.done, self.tokens, self.last = state["done"], state["tokens"], state["last"]
        self.weights = AdaptiveWeights.from_dict(state["weights"])
        self.facts = CellFacts(self.job.testbed, state["facts"])
        self.optimizer.load_state_dict(torch.load(folder / OPTIMIZER, weights_only=True))

    def _export(self) -> None:
        self.model.save_pretrained(self.job.folder)
        self.tokenizer.save_pretrained(self.job.folder)
        if self.job.testbed.length_term:
            folders.write_json(self.job.folder / "adaptive_weights.json", self.weights.to_dict())


def kept_optimizer(before: Path) -> Path:
    """The optimizer's state that the round before left; T2TError where it left none."""
    saved = last_state(before / UPDATES)
    if saved is None or not (saved / OPTIMIZER).is_file():
        raise T2TError(
            "the optimizer's state of the round before is not there",
            where=str(before / UPDATES),
            cause="that round was trained with optimizer=reset, or the folder was removed",
            next="set training.optimizer=reset",
        )
    return saved / OPTIMIZER


def last_state(updates: Path) -> Path | None:
    """The last state that was saved in the folder; None where there is none."""
    folder = SafePath.of(updates)
    numbers = [int(match[1]) for entry in folder.entries() if (match := re.fullmatch(r"update-(\d{1,9})", entry.name))]
    whole = [number for number in numbers if (folder / f"update-{number}" / STATE).exists()]
    return (folder / f"update-{max(whole)}").path if whole else None


# --- what is played, and the arithmetic on it


@dataclass
class Turn:
    """One message of the policy: the tokens it saw, those it wrote (the end token included), whether it ended by itself, and its
    log-probability, of which the mean over many tokens estimates the entropy."""

    prompt: list[int]
    tokens: list[int]
    ended: bool
    logprob: float = 0.0


@dataclass
class Rollout:
    """A conversation: the instance as this rollout plays it, what opened it, all that was said after, and the turns."""

    task: Any
    first: tuple[Message, ...] = ()
    messages: tuple[Message, ...] = ()
    turns: list[Turn] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(len(turn.tokens) for turn in self.turns)


@dataclass(frozen=True)
class Group:
    """The conversations about one instance, which are compared with each other."""

    instance: int
    rollouts: Sequence[Rollout]
    verdicts: Sequence[Verdict]
    rewards: Sequence[float]

    @property
    def dead(self) -> bool:
        """Nothing can be learnt from them: all earn the same, up to rounding."""
        return max(self.rewards) - min(self.rewards) <= 1e-6

    @property
    def tokens(self) -> int:
        return sum(rollout.tokens for rollout in self.rollouts)


def parts_of(items: Sequence[Any], size: int) -> list[list[Any]]:
    """Consecutive parts of that size."""
    return [list(items[at : at + size]) for at in range(0, len(items), size)]


def advantages_of(rewards: Sequence[Sequence[float]], scale: str) -> list[list[float]]:
    """How much better each conversation was than the mean of its group, in standard deviations of the group or of the batch
    (both with one degree of freedom less, as in TRL)."""
    import torch

    if not rewards:
        return []
    table = torch.tensor([list(group) for group in rewards], dtype=torch.float32)
    centred = table - table.mean(1, keepdim=True)
    if scale == "group":
        centred = centred / (table.std(1, keepdim=True) + SPARE)
    elif scale == "batch":
        centred = centred / (table.std() + SPARE)
    rows: list[list[float]] = centred.tolist()
    return rows


@dataclass(frozen=True)
class Batch:
    """The turns of an update. Equal ones (in a task of few states most are) are one row, in the order of their length in a few
    parts, so that little is padding. Those without an advantage are left out where nothing else would move them.

    Args:
        parts: of each part the token ids (rows, columns) and where the policy's own tokens stand in it.
        places: of every token of the policy in every turn (tokens,), its place among the own tokens of all parts.
        advantages: of every such token.
        weights: its share in the loss; they sum to 1 except for "dr_grpo".
    """

    parts: Sequence[tuple[Any, Any]]
    places: Any
    advantages: Any
    weights: Any

    @classmethod
    def of(cls, rollouts: Sequence[Rollout], advantages: Sequence[float], settings: Settings, rows: int = 512) -> Batch:
        import torch

        total = sum(rollout.tokens for rollout in rollouts)
        turns = []
        for rollout, advantage in zip(rollouts, advantages, strict=True):
            of_token = {"grpo": len(rollouts) * max(1, rollout.tokens), "dr_grpo": len(rollouts) * settings.max_tokens}
            weight = 1 / of_token.get(settings.loss, total)
            turns += [(turn, advantage, weight) for turn in rollout.turns if turn.tokens]
        if not settings.beta:
            turns = [row for row in turns if row[1]] or turns
        turns.sort(key=lambda row: len(row[0].prompt) + len(row[0].tokens))
        starts: dict[Any, int] = {}
        own_tokens = 0
        places: list[int] = []
        gains: list[float] = []
        shares: list[float] = []
        for turn, advantage, weight in turns:
            words = (tuple(turn.prompt), tuple(turn.tokens))
            if words not in starts:
                starts[words] = own_tokens
                own_tokens += len(turn.tokens)
            places += range(starts[words], starts[words] + len(turn.tokens))
            gains += [advantage] * len(turn.tokens)
            shares += [weight] * len(turn.tokens)
        parts = [tensors(part) for part in parts_of(list(starts), rows)]
        return cls(parts, torch.tensor(places), torch.tensor(gains), torch.tensor(shares))

    def logprobs(self, model: Any, temperature: float) -> Any:
        """The log-probability (tokens,) of each of the policy's tokens under the model at that temperature."""
        import torch

        found = []
        for ids, own in self.parts:
            hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
            chosen = own[:, 1:]
            logits = model.lm_head(hidden[chosen]) / temperature
            found.append(-torch.nn.functional.cross_entropy(logits, ids[:, 1:][chosen], reduction="none"))
        return torch.cat(found)[self.places]

    def loss(self, logprobs: Any, old: Any, reference: Any, settings: Settings) -> tuple[Any, float]:
        """The loss to descend, and the mean KL per token (0 without a reference)."""
        import torch

        ratio = torch.exp(logprobs - old)
        if settings.loss == "cispo":
            gain = torch.clamp(ratio, max=1 + settings.clip).detach() * self.advantages * logprobs
        else:
            clipped = torch.clamp(ratio, 1 - settings.clip, 1 + settings.clip)
            gain = torch.min(ratio * self.advantages, clipped * self.advantages)
        if reference is None:
            return -(gain * self.weights).sum(), 0.0
        away = reference - logprobs
        kl = (torch.exp(away) - away - 1) * ratio  # weighed by the ratio, its gradient is that of the reverse KL, as in TRL
        return ((settings.beta * kl - gain) * self.weights).sum(), float(kl.detach().mean())


def tensors(rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> tuple[Any, Any]:
    """The token ids (rows, columns) of prompts and what the policy wrote after them, and where the latter stands."""
    import torch

    width = max(len(prompt) + len(tokens) for prompt, tokens in rows)
    ids = torch.tensor([[*prompt, *tokens, *[0] * (width - len(prompt) - len(tokens))] for prompt, tokens in rows])
    own = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, (prompt, tokens) in enumerate(rows):
        own[row, len(prompt) : len(prompt) + len(tokens)] = True
    return ids, own
