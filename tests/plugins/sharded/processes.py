"""One of several processes: does the trainings whose folders are its arguments, one after another (to begin takes ten seconds).

Where a folder holds `script`, responses are not sampled but drawn from the prompt and their place in the group alone, so that
they do not depend on the number of processes. `answers_RANK.json` are the responses of this process, in order; `facts_RANK.json`
says how the model was spread.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import torch  # noqa: E402
from letters import Letters  # noqa: E402

from t2t_core.plugins import installed  # noqa: E402
from t2t_core.seeding import Stream, key  # noqa: E402
from t2t_plugins.trainers.trl_grpo import conversations, one_shot, process  # noqa: E402
from t2t_plugins.trainers.trl_grpo import trainer as trl_grpo  # noqa: E402
from t2t_plugins.trainers.trl_grpo.process import run  # noqa: E402
from t2t_plugins.trainers.trl_grpo.sharding import shards_of  # noqa: E402

TRAINING = "== "


class Scripted:
    """Responses of 2 to 40 tokens; some end, some are cut off."""

    def __init__(self, job: Any, settings: Any, fast: bool) -> None:
        self.settings = settings

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        tokenizer, places = trainer.processing_class, Counter()
        prompt_ids, completions = [], []
        for prompt in prompts:
            text = prompt[-1]["content"]
            stream = Stream.of(key(trainer.state.global_step, text, places[text]), "scripted")
            places[text] += 1
            ends = stream.below(4) > 0
            length = 2 + stream.below(self.settings.max_tokens - 2) if ends else self.settings.max_tokens
            tokens = [5 + stream.below(200) for _ in range(length - 1)]
            completions.append([*tokens, tokenizer.eos_token_id] if ends else [*tokens, 5])
            prompt_ids.append(tokenizer(text, add_special_tokens=False)["input_ids"])
        return {"prompt_ids": prompt_ids, "completion_ids": completions, "logprobs": None}


def scripted(patch: Any) -> None:
    """TRL gets scripted responses, whatever the engine."""
    patch(trl_grpo, "rollout", lambda job, settings, start: Scripted(job, settings, True))
    patch(conversations.Talk, "_answers", scripted_turns)


def scripted_turns(talk: Any, prompts: list[list[int]], seed: int) -> list[tuple[list[int], list[float], bool]]:
    """A move for each game, drawn from what was said in it and its place among those alike; some thoughts are cut off."""
    places: Counter[tuple[int, ...]] = Counter()
    turns = []
    for prompt in prompts:
        stream = Stream.of(key(*prompt, places[tuple(prompt)]), "scripted")
        places[tuple(prompt)] += 1
        ends = stream.below(8) > 0
        text = f"<think>{'so ' * stream.below(4)}</think><move>{stream.below(9)}</move>" if ends else "<think>so so so"
        tokens = talk.tokenizer(text, add_special_tokens=False)["input_ids"]
        turns.append((tokens + [talk.tokenizer.eos_token_id] * ends, [0.0] * (len(tokens) + ends), ends))
    return turns


def spread(trainer: Any) -> dict[str, Any]:
    """How much of the policy this process holds while it trains."""
    from torch.distributed.tensor import DTensor

    parameters = list(trainer.model_wrapped.parameters())
    kinds = {type(p).__name__ for p in parameters}
    sizes = [p.to_local().numel() if isinstance(p, DTensor) else getattr(p, "ds_tensor", p).numel() for p in parameters]
    whole = [getattr(p, "ds_numel", p.numel()) for p in parameters]
    return {"kinds": sorted(kinds), "here": sum(sizes), "whole": sum(whole), "dtypes": sorted({str(p.dtype) for p in parameters})}


class Together:
    """The most bytes of a model's shards that were put together at once, seen whenever one of its modules begins or ends."""

    def __init__(self, model: Any) -> None:
        self.model, self.most = model, 0
        for module in model.modules():
            if not list(module.children()):
                module.register_forward_pre_hook(self.look)
                module.register_forward_hook(self.look)
                module.register_full_backward_hook(self.look)

    def look(self, *_: Any) -> None:
        groups = {id(group): group for m in shards_of(self.model) if (group := m._get_fsdp_state()._fsdp_param_group)}
        tensors = [whole for group in groups.values() for p in group.fsdp_params for whole in p.all_gather_outputs]
        self.most = max(self.most, sum(tensor.untyped_storage().nbytes() for tensor in tensors))


def stops(folder: Path, rank: str) -> Callable[[], bool]:
    """Where the folder holds `stop_at`, the last process is asked to stop from the look on whose number stands there; the first
    one hears of it from the other."""
    path, looks = folder / "stop_at", itertools.count()
    return lambda: path.exists() and rank == "1" and next(looks) >= int(path.read_text())


def without_compiler() -> None:
    """DeepSpeed on a CPU would compile a way of its own to talk between processes, for minutes; gloo does."""
    if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
        import deepspeed.comm.torch

        deepspeed.comm.torch.build_shm_op = lambda: None


def main() -> None:
    torch.set_num_threads(1)
    without_compiler()
    rank = os.environ.get("RANK", "0")
    own_rollout, own_turns, finish = one_shot.rollout, conversations.Talk._answers, trl_grpo.finish
    begin, settle = trl_grpo.begin, trl_grpo.settle
    bed = Letters()
    installed().testbeds.add("letters", lambda argument, settings: bed)
    for argument in sys.argv[1:]:
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state()
        GradientState._reset_state()  # a training that stopped within an update leaves it there, as no process does that ends
        folder, bed = Path(argument), Letters()
        facts: dict[str, Any] = {}

        watched: dict[str, Together] = {}

        def begun(trainer: Any, settings: Any, before: Any, watched: dict[str, Together] = watched) -> Any:
            if settings.sharding == "fsdp2" and trainer.ref_model is not None:
                watched["reference"] = Together(trainer.ref_model)
            return begin(trainer, settings, before)

        def settled(model: Any, settings: Any, watched: dict[str, Together] = watched) -> None:
            settle(model, settings)
            if settings.sharding == "fsdp2":
                watched["policy"] = Together(model)

        def finished(trainer: Any, *more: Any, facts: dict[str, Any] = facts, watched: dict[str, Together] = watched) -> Any:
            facts |= spread(trainer) | {"together": {name: together.most for name, together in watched.items()}}
            return finish(trainer, *more)

        trl_grpo.finish, trl_grpo.begin, trl_grpo.settle = finished, begun, settled
        trl_grpo.rollout, conversations.Talk._answers = own_rollout, own_turns
        process.asked_to_stop = lambda sign, folder=folder: stops(folder, rank)
        if (folder / "script").exists():
            scripted(setattr)
        print(f"{TRAINING}{folder}", flush=True)
        run(folder)
        (folder / f"answers_{rank}.json").write_text(json.dumps(bed.answers))
        (folder / f"facts_{rank}.json").write_text(json.dumps(facts))
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # what gloo does on its way out is nobody's business here


if __name__ == "__main__":
    main()
