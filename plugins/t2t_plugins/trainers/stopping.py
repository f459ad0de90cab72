"""How a training by transformers' Trainer stops where it is asked to: between two backward passes, with the state it had after
the last whole update.

An update of a large model takes minutes, and a machine that is about to be taken away waits for less. But the weights do not
change between two steps of the optimizer, so what was there after the last one can be saved at any moment at which all processes
meet: its weights, its optimizer, and the states of chance that were noted then. Responses sampled since are lost. A training that
continues from there ends in the same bytes as one that was never stopped.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Stopped(Exception):
    """The training stands between two backward passes, because it was asked to stop."""


class Stopping:
    """Ends a training when it is asked to.

    Args:
        trainer: transformers' own; `callback` has to be its last one.
        asked: whether this process was asked to stop.
        beside: called with the folder of a state before it is saved.
        every: states may be saved after so many updates, and multiples of it.
    """

    def __init__(
        self, trainer: Any, asked: Callable[[], bool], beside: Callable[[Path], None] = lambda folder: None, every: int = 1
    ) -> None:
        self._trainer, self._asked, self._beside, self._every = trainer, asked, beside, every
        self._chance: dict[str, Any] = {}
        self._tokens, self._first = 0, 0

    def train(self, saved: Path | None) -> None:
        """Train from that state, or from the beginning. KeyboardInterrupt where it was asked to stop, once its state is saved."""
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
                """Not at an update's end: its figures are told after that."""
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
        """Whether any process was asked: all of them stop at the same place, or none."""
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
            return  # nothing came since that state
        set_chance(self._chance)
        state.num_input_tokens_seen = self._tokens
        if self._trainer.is_world_process_zero():
            self._beside(folder)
        self._trainer._save_checkpoint(self._trainer.model, trial=None)


def chance() -> dict[str, Any]:
    """The states of everything that draws."""
    import numpy as np
    import torch

    states = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state_all()} if torch.cuda.is_available() else {})


def set_chance(states: dict[str, Any]) -> None:
    """Put them back."""
    import numpy as np
    import torch

    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
