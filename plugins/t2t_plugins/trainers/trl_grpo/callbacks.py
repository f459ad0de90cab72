"""Callbacks of `trl-grpo`: save the reward weights' state beside every saved update, and report every update's figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_core.hookspecs import TrainingJob
from t2t_core.store import folders
from t2t_plugins.trainers.common import warnings
from t2t_plugins.trainers.trl_grpo.reward import FACTS_FILE, Reward
from t2t_plugins.trainers.trl_grpo.settings import Settings
from t2t_plugins.trainers.weights import WEIGHTS_FILE

FIGURES = {  # the figures of an update that we report: our name -> TRL's name
    "reward": "reward",
    "valid": "valid",
    "optimal": "optimal",
    "entropy": "entropy",
    "zero_variance": "zero_variance",
    "kl": "kl",
    "response_tokens": "completions/mean_length",
    "truncated": "completions/clipped_ratio",
    "w_acc": "w_acc",
    "share_short": "share_short",
    "loss": "loss",
    "grad_norm": "grad_norm",
}


def watch(job: TrainingJob, settings: Settings, reward: Reward) -> Any:
    """A callback that saves the reward weights' state beside every saved update and reports every update's figures."""
    from transformers import TrainerCallback

    class Callback(TrainerCallback):
        started, first = time.monotonic(), 0

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.started, self.first = time.monotonic(), state.global_step

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            """Write ours before TRL saves the update: with its trainer state it counts as saved, and the last one is deleted."""
            reward.settle()
            if control.should_save and state.is_world_process_zero:
                write_weights(reward, Path(args.output_dir) / f"checkpoint-{state.global_step}")

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if state.is_world_process_zero and job.progress and logs and "loss" in logs:
                job.progress(figures(logs, state, settings, time.monotonic() - self.started, self.first))

    return Callback()


def write_weights(reward: Reward, folder: Path) -> None:
    """Write the state of the reward's weights and the counts by cell beside a saved update."""
    folders.write_json(folder / WEIGHTS_FILE, reward.weights.to_dict())
    folders.write_json(folder / FACTS_FILE, reward.facts.state())


def figures(logs: Mapping[str, Any], state: Any, settings: Settings, seconds: float, first: int) -> dict[str, Any]:
    """The figures of one update that are reported."""
    done = state.global_step - first
    rate = done / settings.iterations * settings.prompts * settings.group / max(seconds, 1e-9)
    shown = {ours: logs[theirs] for ours, theirs in FIGURES.items() if theirs in logs}
    return {
        "update": state.global_step,
        "updates": state.max_steps,
        **shown,
        **({"warnings": told} if (told := warnings(shown)) else {}),
        "responses_per_second": round(rate, 1),
        "eta_seconds": round((state.max_steps - state.global_step) * seconds / max(done, 1), 1),
    }
