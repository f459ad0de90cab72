"""Measures how much memory a training really takes, part by part, to compare it with the plan (`plan`).

The file `memory.json` beside the new checkpoint has the bytes of weights, gradients, optimizer and reference. On a GPU it also
has what a forward pass keeps for its backward pass, and the most that was allocated at once. Two updates are measured, since an
optimizer has no state before its first step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from t2t_core.hookspecs import TrainingJob
from t2t_core.store import folders

MEMORY = "memory.json"
UPDATES = 2  # how many updates are measured


def measure(trainer: Any, job: TrainingJob) -> Any:
    """A callback that writes how much memory the first updates took on the first process."""
    from transformers import TrainerCallback

    taken: dict[str, int] = {}
    passes = Passes()

    class Callback(TrainerCallback):
        first = 0

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.first = state.global_step
            passes.watch(trainer.accelerator.unwrap_model(trainer.model_wrapped))

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step < self.first + UPDATES:
                keep(taken, standing(trainer) | passes.taken())

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step > self.first + UPDATES:
                return
            keep(taken, {"optimizer": bytes_of_state(trainer.optimizer)})
            passes.anew()
            if state.global_step == self.first + UPDATES:
                passes.end()
            if state.is_world_process_zero:
                folders.make_folder(job.folder)
                folders.write_json(job.folder / MEMORY, taken)

    return Callback()


def keep(taken: dict[str, int], seen: Mapping[str, int]) -> None:
    """Keep the maximum of every part. Unknown sizes (0) are left out."""
    taken.update({name: max(size, taken.get(name, 0)) for name, size in seen.items() if size})


def standing(trainer: Any) -> dict[str, int]:
    """Bytes of weights, gradients and reference on this process."""
    parameters = list(trainer.model_wrapped.parameters())
    reference = getattr(trainer, "ref_model", None)
    return {
        "weights": bytes_here(parameters),
        "gradients": bytes_here(p.grad for p in parameters if p.grad is not None),
        "reference": bytes_here(reference.parameters()) if reference is not None else 0,
    }


def bytes_of_state(optimizer: Any) -> int:
    """Bytes of the moments that an optimizer keeps on this process. Its step counters are too small to count."""
    optimizer = getattr(optimizer, "optimizer", optimizer)
    values = [value for state in optimizer.state.values() if isinstance(state, Mapping) for value in state.values()]
    return bytes_here(value for value in values if hasattr(value, "nbytes") and value.dim())


def bytes_here(tensors: Iterable[Any]) -> int:
    """Bytes of this process's part of tensors that may be spread over several."""
    parts = (tensor.to_local() if hasattr(tensor, "to_local") else getattr(tensor, "ds_tensor", tensor) for tensor in tensors)
    return sum(part.nbytes for part in parts)


class Passes:
    """On a GPU, measures what the decoder's forward passes keep for their backward passes, the most that torch allocates at once,
    and how much of the GPU is in use after an update (which includes vLLM, whose allocations torch does not see)."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._handles: list[Any] = []

    def watch(self, model: Any) -> None:
        """Start measuring; does nothing without a GPU."""
        import torch

        if not torch.cuda.is_available():
            return
        whole = model.get_base_model() if hasattr(model, "get_base_model") else model
        decoder = whole.get_decoder() if hasattr(whole, "get_decoder") else whole
        before: list[int] = []

        def begins(*_: Any) -> None:
            if torch.is_grad_enabled():
                before[:] = [torch.cuda.memory_allocated()]

        def ends(*_: Any) -> None:
            if torch.is_grad_enabled() and before:
                keep(self._taken, {"kept activations": torch.cuda.memory_allocated() - before[0]})

        self._handles = [decoder.register_forward_pre_hook(begins), decoder.register_forward_hook(ends)]
        self.anew()

    def taken(self) -> dict[str, int]:
        """The figures so far; to be called after the last backward pass of an update."""
        import torch

        if not torch.cuda.is_available():
            return {}
        free, total = torch.cuda.mem_get_info()
        return self._taken | {"peak": torch.cuda.max_memory_allocated(), "of the GPU": total - free}

    def anew(self) -> None:
        """Reset the peaks for the next update."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()
