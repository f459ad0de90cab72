"""A round of `grpo`: play, judge, step, save."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from t2t_core.conversation import judge
from t2t_core.hookspecs import TrainingJob
from t2t_core.length_reward import AdaptiveWeights, length_reward, total_reward
from t2t_core.records import TrainingResult, Verdict
from t2t_core.reward import reward
from t2t_core.seeding import key
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_plugins.policies.hf import end_tokens, own_formats
from t2t_plugins.trainers.common import UPDATES, stratified, warnings
from t2t_plugins.trainers.facts import CellFacts, Judged
from t2t_plugins.trainers.grpo.batch import Batch, advantages_of, parts_of
from t2t_plugins.trainers.grpo.playing import Group, Player, Rollout
from t2t_plugins.trainers.grpo.settings import MAX_GRAD_NORM, Settings, check_model
from t2t_plugins.trainers.grpo.states import OPTIMIZER, STATE, kept_optimizer, last_state, read_state
from t2t_plugins.trainers.weights import WEIGHTS_FILE, read_weights

OVERDRAW = 3  # with `dynamic`, an update plays at most so many times its prompts


class Training:
    """One round: the model, its optimizer, and how far it has come."""

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
        ends = end_tokens(self.model, self.tokenizer)
        self.player = Player(self.model, self.tokenizer, ends, job.testbed, settings, self.format, job.seed)
        self.reference = None
        if settings.beta:
            self.reference = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), settings.learning_rate, (0.9, settings.beta2), 1e-8, settings.weight_decay
        )
        self.weights, self.facts, self.done, self.tokens = AdaptiveWeights(), CellFacts(job.testbed), 0, 0
        self.last: dict[str, Any] = {}
        if saved:
            self._load(saved)
            return
        if settings.optimizer == "keep" and job.resume_from:
            self.optimizer.load_state_dict(torch.load(kept_optimizer(job.resume_from), weights_only=True))
        self.weights = read_weights(Path(start))

    def run(self) -> TrainingResult:
        """Do the updates that are left, saving now and then. Raises KeyboardInterrupt once the job asks to stop and all is saved.
        """
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
        """The instances of every update; each pass has its own order."""
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
        """Play, judge, and take `iterations` steps. Returns the update's figures."""
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
        """The groups of an update. With `dynamic`, further groups are played until enough of them have differing rewards."""
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
        testbed = self.job.testbed
        rollouts = [rollout for at in instances for rollout in self.player.rollouts(self.job.instances[at])]
        self.player.play(rollouts, self.done, number)
        weights = self.weights.weights() if testbed.length_term else None
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

    # --- the gradient

    def learn(self, rollouts: Sequence[Rollout], advantages: Sequence[float]) -> dict[str, Any]:
        """Take `iterations` steps on these rollouts. Returns the loss, KL and gradient norm of the first step."""
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
            if not (torch.isfinite(loss) and torch.isfinite(norm)):
                raise ArithmeticError(f"the loss is {loss.item():g}, the norm of its gradient {norm.item():g}")
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
        """Save the state after this update atomically, and then remove the one before."""
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

        state = read_state(folder)
        self.done, self.tokens, self.last = state.done, state.tokens, state.last
        self.weights, self.facts = state.adaptive_weights, CellFacts(self.job.testbed, state.facts)
        self.optimizer.load_state_dict(torch.load(folder / OPTIMIZER, weights_only=True))

    def _export(self) -> None:
        self.model.save_pretrained(self.job.folder)
        self.tokenizer.save_pretrained(self.job.folder)
        if self.job.testbed.length_term:
            folders.write_json(self.job.folder / WEIGHTS_FILE, self.weights.to_dict())
