"""Compare the planned memory of a training with what the same model takes in its true shape, measured without a GPU.

    python benchmarks/memory.py            # prints the table of docs/gpus.md
    python benchmarks/memory.py --write    # writes it to that page

A whole training step (forward, TRL's log-probabilities in tiles, backward, AdamW) goes through PyTorch's own operators on fake
tensors. These have shapes, types and storages but no memory, and every storage that comes and goes is counted. What CUDA would
add (its context, fragments, workspaces of its kernels) is not included. Kernels that work in place on a GPU are left out, because
their CPU stand-ins would write copies. There is one process; tests/plugins/test_sharding.py measures shards.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / room) for room in ("", "envs", "plugins", "baselines", "leaderboard")]

from t2t_core.run.experiment import resolve  # noqa: E402 - the rooms are found from a plain checkout
from t2t_plugins.trainers.settings import check_settings  # noqa: E402
from t2t_plugins.trainers.shapes import Shape, shape_of  # noqa: E402
from t2t_plugins.trainers.trl_grpo.plan import GB, Plan  # noqa: E402
from t2t_plugins.trainers.trl_grpo.settings import Settings  # noqa: E402

PRESETS = ("paper", "paper-lora", "single-gpu", "api-designer")
PAGE = ROOT / "docs" / "gpus.md"
BEGIN, END = "<!-- memory: python benchmarks/memory.py --write -->", "<!-- /memory -->"


@dataclass(frozen=True)
class Row:
    """A part of a training's memory: planned and measured, in bytes."""

    part: str
    planned: float
    measured: float

    @property
    def error(self) -> float:
        """The plan's error, as a share of what was measured."""
        return self.planned / self.measured - 1


def step_rows(plan: Plan) -> list[Row]:
    """A whole step of the plan's training in one process."""
    planned = {part.name: part.bytes for part in plan.parts() if "training" in part.phases and part.name != "set aside"}
    planned.pop("vLLM", None)
    taken = one_step(plan)
    standing = [name for name in ("weights", "gradients", "optimizer", "reference") if name in taken]
    rows = [Row(name, planned[name], taken[name]) for name in standing]
    passing = Row(
        "activations, logits" + (", weights in bfloat16" if "weights in bfloat16" in planned else ""),
        sum(size for name, size in planned.items() if name not in standing),
        taken["peak"] - sum(row.measured for row in rows),
    )
    return [*rows, passing, Row("the most at once", sum(planned.values()), taken["peak"])]


def one_step(plan: Plan) -> dict[str, int]:
    """The bytes that a training step takes: for every part, and the most at once."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    settings = plan.settings
    counted = counter()
    with FakeTensorMode(), counted, kernels_in_place():
        model = make_model(plan.shape, settings)
        taken = {"weights": counted.now}
        reference = make_model(plan.shape, replace(settings, lora=0)) if settings.beta and not settings.lora else None
        if reference is not None:
            taken["reference"] = counted.now - taken["weights"]
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], foreach=False)
        backward(model, plan)
        optimizer.step()  # the optimizer has no state before its first step
        counted.most = counted.now
        backward(model, plan)  # like every pass but an update's first, on top of gradients
        taken["peak"] = counted.most
        taken["gradients"] = nbytes(p.grad for p in model.parameters() if p.grad is not None)
        taken["optimizer"] = nbytes(v for state in optimizer.state.values() for v in state.values() if v.dim())
    return taken


def make_model(shape: Shape, settings: Settings) -> Any:
    """The model as TRL trains it, adapters, recomputing and its log-probabilities in tiles included."""
    from importlib import import_module

    from transformers import Qwen3ForCausalLM

    from t2t_plugins.trainers.common import adapters

    model: Any = Qwen3ForCausalLM(configuration(shape, attn_implementation="sdpa", use_cache=False)).train()
    if settings.recompute:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            model.gradient_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": False})
    utilities: Any = import_module("trl.trainer.utils")
    utilities.add_fused_lm_head(model, temperature=1.0, cast_lm_head_to_fp32=False, outputs=("log_probs", "entropy"))
    if settings.lora:
        from unittest.mock import patch

        import torch
        from peft import get_peft_model

        with patch.object(torch.nn.Module, "to", lambda module, *_, **__: module):  # fake tensors cannot move, and need not
            return get_peft_model(model, adapters(settings.lora), autocast_adapter_dtype=False)
    return model


def configuration(shape: Shape, **more: Any) -> Any:
    """transformers' own configuration of that shape."""
    from transformers import Qwen3Config

    named = {"vocab_size": shape.vocabulary, "hidden_size": shape.hidden, "intermediate_size": shape.intermediate}
    named |= {"num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "num_key_value_heads": shape.key_values}
    return Qwen3Config(**{**named, "head_dim": shape.head, "tie_word_embeddings": shape.tied, **more})


def backward(model: Any, plan: Plan) -> None:
    """Forward and backward pass of one micro batch, with every response at its maximum length."""
    import torch

    each = plan.tokens // plan.settings.micro
    ids = torch.zeros(plan.settings.micro, each, dtype=torch.long)
    mixed = plan.settings.dtype in ("auto", "mixed")
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        # attention without padding, because whether padding makes it materialise depends on the GPU's kernel
        out = model(input_ids=ids, attention_mask={"full_attention": None}, labels=ids, fused_lm_head=True)
    out.log_probs.mean().backward()


def nbytes(tensors: Iterable[Any]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


@contextmanager
def kernels_in_place() -> Iterator[None]:
    """Replace TRL's kernels over a tile of logits, which work in place if there is Triton."""
    from importlib import import_module

    module: Any = import_module("trl.kernels.chunked_logprob")
    own = module._forward_tile, module._backward_tile
    module._forward_tile = module._backward_tile = lambda *_, **__: None
    try:
        yield
    finally:
        module._forward_tile, module._backward_tile = own


def counter() -> Any:
    """Counts the bytes of all live storages while it is entered: `now`, and the `most` so far."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Counter(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.now = self.most = 0
            self._alive: set[int] = set()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            for tensor in tree_leaves(made):
                if isinstance(tensor, torch.Tensor):
                    self._count(tensor.untyped_storage())
            return made

        def _count(self, storage: Any) -> None:
            if storage._cdata not in self._alive:
                self._alive.add(storage._cdata)
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._gone, storage._cdata, storage.nbytes())

        def _gone(self, key: int, size: int) -> None:
            self._alive.discard(key)
            self.now -= size

    return Counter()


def plan_of(preset: str) -> Plan:
    """The preset's training in one process, which holds everything that shards would divide."""
    experiment = resolve(preset, None, [], {"designer": "fixed"}, {})
    settings = check_settings(Settings, experiment.training, "trainer trl-grpo")
    shape = shape_of(experiment.checkpoint)
    assert shape is not None
    return Plan(shape, replace(settings, processes=1, sharding="none", prompts=settings.micro, group=2), 80)


def table() -> str:
    """The table for the page."""
    lines = ["| preset, in one process | part | planned GB | measured GB | error |", "|---|---|---:|---:|---:|"]
    for preset in PRESETS:
        for at, row in enumerate(step_rows(plan_of(preset))):
            error = round(100 * row.error, 1)
            figures = f"{row.planned / GB:.2f} | {row.measured / GB:.2f} | {f'{error:+}' if error else '0.0'} %"
            lines.append(f"| {f'`{preset}`' if not at else ''} | {row.part} | {figures} |")
    return "\n".join(lines)


def written(page: str) -> str:
    """The table that the page has now."""
    return page.split(BEGIN, 1)[1].split(END, 1)[0].strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table into docs/gpus.md")
    given = parser.parse_args()
    new = table()
    print(new)
    if given.write:
        before, rest = PAGE.read_text().split(BEGIN, 1)
        _, after = rest.split(END, 1)
        PAGE.write_text(f"{before}{BEGIN}\n{new}\n{END}{after}")


if __name__ == "__main__":
    main()
