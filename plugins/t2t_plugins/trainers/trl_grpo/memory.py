"""What a training has really taken of its process's memory, part by part, to be put beside its plan (`plan`).

The file `memory.json` beside the new checkpoint holds bytes: what is kept (weights, gradients, optimizer, reference) anywhere;
if there is a GPU also what a forward pass kept for its backward pass and the most that was allocated at once. Of the first two
updates: an optimizer has no state before its first step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from t2t_core.hookspecs import TrainingJob
from t2t_core.store import folders

MEMORY = "memory.json"
UPDATES = 2  # that are measured


def measure(trainer: Any, job: TrainingJob) -> Any:
    """A callback that writes what the first process's first updates took."""
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
    """The most of every part; what is not known of a part (0) is left out."""
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
    """Bytes of the moments that an optimizer keeps on this process; its counters of steps are no burden."""
    optimizer = getattr(optimizer, "optimizer", optimizer)
    values = [value for state in optimizer.state.values() if isinstance(state, Mapping) for value in state.values()]
    return bytes_here(value for value in values if hasattr(value, "nbytes") and value.dim())


def bytes_here(tensors: Iterable[Any]) -> int:
    """Bytes of this process's part of tensors that may be spread over several."""
    parts = (tensor.to_local() if hasattr(tensor, "to_local") else getattr(tensor, "ds_tensor", tensor) for tensor in tensors)
    return sum(part.nbytes for part in parts)


class Passes:
    """On a GPU: what the decoder's forward passes keep for their backward passes, the most that torch allocates at once, and what
    of the GPU is taken by anybody after an update (vLLM allocates past torch's own books)."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._handles: list[Any] = []

    def watch(self, model: Any) -> None:
        """Begin; nothing if there is no GPU."""
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
        """What was seen until now; asked when the last backward pass of an update is done."""
        import torch

        if not torch.cuda.is_available():
            return {}
        free, total = torch.cuda.mem_get_info()
        return self._taken | {"peak": torch.cuda.max_memory_allocated(), "of the GPU": total - free}

    def anew(self) -> None:
        """Look for the next update's peaks."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()
