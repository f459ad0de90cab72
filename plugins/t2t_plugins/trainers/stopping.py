"""Stops a training by transformers' Trainer on request: between two backward passes, with the state after the last whole update.

An update of a large model takes minutes, but a machine that is about to be taken away may give less notice. The weights do not
change between two steps of the optimizer, so the state after the last step can be saved whenever all processes meet: weights,
optimizer, and the random generators' states that were noted then. Responses sampled since are lost. A training that continues
from there ends in the same bytes as one that was never stopped.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Stopped(Exception):
    """The training was asked to stop, and is now between two backward passes."""


class Stopping:
    """Ends a training when it is asked to.

    Args:
        trainer: a Trainer of transformers that already has all its other callbacks.
        asked: whether this process was asked to stop.
        beside: called with the folder of a state before the state is saved.
        every: states may be saved only after a multiple of so many updates.
    """

    def __init__(
        self, trainer: Any, asked: Callable[[], bool], beside: Callable[[Path], None] = lambda folder: None, every: int = 1
    ) -> None:
        self._trainer, self._asked, self._beside, self._every = trainer, asked, beside, every
        self._chance: dict[str, Any] = {}
        self._tokens, self._first = 0, 0

    def train(self, saved: Path | None) -> None:
        """Train from that state, or from the beginning. If asked to stop, saves the state and raises KeyboardInterrupt."""
        self._trainer.add_callback(self._callback())
        try:
            self._trainer.train(resume_from_checkpoint=str(saved) if saved else None)
        except Stopped:
            self._save()
            raise KeyboardInterrupt from None

    def _callback(self) -> Any:
        from transformers import TrainerCallback

        stopping = self

        class Callback(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                stopping._first = state.global_step

            def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                """Look here rather than at an update's end, since the update's figures are reported after that."""
                stopping._look(state)

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                stopping._chance, stopping._tokens = chance(), state.num_input_tokens_seen

            def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                stopping._look(state)

        return Callback()

    def _look(self, state: Any) -> None:
        if state.global_step % self._every == 0 and self._everywhere(self._asked()):
            raise Stopped

    def _everywhere(self, asked: bool) -> bool:
        """Whether any process was asked to stop, so that all of them stop at the same place or none does."""
        accelerator = self._trainer.accelerator
        if accelerator.num_processes == 1:
            return asked
        import torch

        told = accelerator.gather(torch.tensor([float(asked)], device=accelerator.device))
        return bool(told.max() > 0)

    def _save(self) -> None:
        state = self._trainer.state
        folder = Path(self._trainer.args.output_dir) / f"checkpoint-{state.global_step}"
        if state.global_step == self._first or (folder / "trainer_state.json").exists():
            return  # there has been no update since that state
        set_chance(self._chance)
        state.num_input_tokens_seen = self._tokens
        if self._trainer.is_world_process_zero():
            self._beside(folder)
        self._trainer._save_checkpoint(self._trainer.model, trial=None)


def chance() -> dict[str, Any]:
    """The states of all random generators."""
    import numpy as np
    import torch

    states = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state_all()} if torch.cuda.is_available() else {})


def set_chance(states: dict[str, Any]) -> None:
    """Restore the states of all random generators."""
    import numpy as np
    import torch

    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
