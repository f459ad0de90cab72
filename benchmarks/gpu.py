"""What a GPU does with the same code: the loop at about 25 M parameters, and GRPO updates in Qwen3-4B's shape.

    python benchmarks/gpu.py              # at most ten minutes on one GPU, with about 80 GB of its memory and 60 GB of disk
    python benchmarks/gpu.py --lora 16    # adapters in the second part: less memory, less disk
    python benchmarks/gpu.py --smoke      # every line on a CPU with tiny shapes, for a test; its figures mean nothing

Part `loop`: a Qwen3 of 26.0 M parameters with the toy policy's tokenizer is warmed up by `trl-sft` from random weights on exact
answers for two agents, then `t2t run`'s own loop takes it through two rounds with the settings of the preset `tiny`.
Part `qwen`: a model of random weights in Qwen3-4B's shape (from its configuration, nothing is downloaded) takes three updates of
`trl-grpo`, sampled by transformers' `generate`. Random weights never end an answer, so every response has all its tokens.
GRPO is in bfloat16, weights included; the warm-up keeps its weights in float32. One JSON with step times and peak memory goes
to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / room) for room in ("", "envs", "plugins", "baselines", "leaderboard")]

from t2t_core.hookspecs import TrainingJob  # noqa: E402
from t2t_core.loop.whole_run import run_experiment  # noqa: E402
from t2t_core.plugins import installed  # noqa: E402
from t2t_core.run.experiment import resolve  # noqa: E402
from t2t_core.run.progress import Reporter  # noqa: E402
from t2t_core.store import folders  # noqa: E402 - the rooms are found from a plain checkout

QWEN3_4B = {
    "vocab_size": 151_936,
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
    "rope_theta": 1_000_000,
}
LATEST_START = 330  # seconds after which the second part is left out, so that the whole keeps its ten minutes


@dataclass(frozen=True)
class Sizes:
    """What is run; `model` and `large` are settings of the two models' configurations."""

    model: Mapping[str, int] = field(
        default_factory=lambda: {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8,
                                 "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64}
    )  # fmt: skip
    warmup: Mapping[str, Any] = field(default_factory=lambda: {"batch": 256, "learning_rate": 1e-3, "epochs": 1})
    instances: int = 80_000
    run: tuple[str, ...] = ("rounds=2", "evaluation.agents=3")
    large: Mapping[str, int] = field(default_factory=lambda: QWEN3_4B)
    grpo: Mapping[str, Any] = field(
        default_factory=lambda: {"group": 8, "prompts": 8, "max_tokens": 256, "length_start": 128, "length_end": 256,
                                 "micro_batch": 8}
    )  # fmt: skip


SMOKE = Sizes(
    model={"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1},
    warmup={"batch": 16, "learning_rate": 1e-3},
    instances=32,
    run=("rounds=2", "generation.samples=8", "training.prompts=4", "training.group=2", "training.max_tokens=16",
         "training.length_start=8", "training.length_end=16", "validation.limit=1", "validation.max_tokens=16",
         "evaluation.agents=3", "evaluation.limit=1", "training.threads=1", "designer=checkpoint:max_tokens=16"),
    large={**QWEN3_4B, "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2,
           "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16},
    grpo={"group": 2, "prompts": 2, "max_tokens": 8, "length_start": 4, "length_end": 8, "micro_batch": 4},
)  # fmt: skip


class Steps:
    """Seconds of every update, as a trainer reports them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.last: Mapping[str, Any] = {}
        self._at: float | None = None

    def __call__(self, figures: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if self._at is not None:
            self.seconds.append(now - self._at)
        self._at, self.last = now, figures

    def facts(self) -> dict[str, Any]:
        """The first update is not among the times: what comes before it is loading."""
        some = sorted(self.seconds)
        return {"updates_timed": len(some), "median_seconds": some[len(some) // 2] if some else None, "last": dict(self.last)}


class Meter:
    """Wall time, and the most memory held while the block ran (of the GPU; of the process on a CPU)."""

    def __enter__(self) -> Meter:
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        self._started = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        import torch

        self.seconds = time.monotonic() - self._started
        if torch.cuda.is_available():
            self.peak_gb = torch.cuda.max_memory_allocated() / 1e9
        else:
            self.peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

    def facts(self) -> dict[str, float]:
        return {"seconds": round(self.seconds, 2), "peak_memory_gb": round(self.peak_gb, 2)}


def fresh(folder: Path, settings: Mapping[str, int]) -> int:
    """A model of random weights with the toy policy's tokenizer; its number of parameters."""
    import torch

    from t2t_baselines.tiny.model import make_model, make_tokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = make_model(0, **settings)
    finally:
        torch.set_default_dtype(before)
    model.config.t2t_prompt_format = model.config.t2t_brief = "compact"
    model.save_pretrained(folder)
    tokenizer = make_tokenizer()
    tokenizer.model_max_length = model.config.max_position_embeddings
    tokenizer.save_pretrained(folder)
    return sum(p.numel() for p in model.parameters())


def train(trainer: str, checkpoint: Path, folder: Path, count: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """One training on fresh two-agent instances: its times, memory and last figures."""
    testbed = installed().testbeds.make("mapf-frozenlake")
    request = testbed.request(count, agents=2)
    instances = testbed.generate(testbed.random_configuration(request, 1), request, 1)
    steps = Steps()
    with Meter() as meter:
        job = TrainingJob(checkpoint, instances, testbed, dict(settings), folder, seed=1, progress=steps)
        result = installed().trainers.make(trainer).train(job)
    facts = {"trainer": trainer, "settings": dict(settings), "instances": count, "updates": result.updates}
    return facts | meter.facts() | steps.facts()


def loop(sizes: Sizes, work: Path) -> dict[str, Any]:
    """Warm-up, then two rounds of generate, train, validate, design, and the bench."""
    parameters = fresh(work / "fresh", sizes.model)
    print(f"loop: {parameters / 1e6:.1f} M parameters, warm-up from random weights", flush=True)
    warm = train("trl-sft", work / "fresh", work / "warm", sizes.instances, {"answers_from": "cbs", **sizes.warmup})
    overrides = [f"checkpoint={work / 'warm'}", "policy=hf:{checkpoint}", "training.dtype=bfloat16", "training.buckets=1"]
    experiment = resolve("tiny", None, [*overrides, "training.threads=0", *sizes.run], {}, {})
    with Meter() as meter:
        summary = run_experiment(experiment, work / "run", Reporter(lambda line: print(line, flush=True)))
    stages = [json.loads(line) for line in (work / "run" / "log.jsonl").read_text().splitlines()]
    rounds = []
    for index in range(experiment.rounds):
        lines = (work / "run" / f"round_{index}" / "train" / "metrics.jsonl").read_text().splitlines()
        last = json.loads(lines[-1])
        responses = experiment.training["prompts"] * experiment.training["group"]
        rounds.append({"updates": len(lines), "seconds_per_update": responses / last["responses_per_second"], "last": last})
    kept = [{key: stage[key] for key in ("round", "stage", "seconds")} for stage in stages]
    facts = {"parameters": parameters, "warm_up": warm, **meter.facts(), "stages": kept, "rounds": rounds}
    return facts | {"settings": experiment.to_dict(), "bench": summary.get("bench")}


def qwen(sizes: Sizes, lora: int, work: Path) -> dict[str, Any]:
    """Three updates of GRPO with random weights in the large model's shape."""
    with Meter() as making:
        parameters = fresh(work / "large", sizes.large)
    print(f"qwen: {parameters / 1e9:.2f} G parameters made in {making.seconds:.0f} s", flush=True)
    settings = {**sizes.grpo, "epochs": 1, "max_updates": 3, "engine": "plain", "prompt_format": "board", "lora": lora,
                "learning_rate": 2e-6, "save_every": 1000, "dtype": "bfloat16"}  # fmt: skip
    facts = train("trl-grpo", work / "large", work / "updated", 3 * sizes.grpo["prompts"], settings)
    return {"parameters": parameters, "making": making.facts(), **facts}


def machine() -> dict[str, Any]:
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"gpu": gpu, "cuda": torch.version.cuda, "processor": platform.processor(), **folders.environment()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny shapes, on whatever there is")
    parser.add_argument("--part", choices=("loop", "qwen", "all"), default="all")
    parser.add_argument("--lora", type=int, default=0, help="rank of adapters in the second part (0: all weights)")
    parser.add_argument("--out", type=Path, help="the JSON file (default: benchmarks/results/gpu-DATE.json)")
    given = parser.parse_args()
    started = time.monotonic()
    import torch

    if not given.smoke and not torch.cuda.is_available():
        sys.exit("error: torch finds no CUDA GPU here; --smoke runs every line with tiny shapes on a CPU")
    sizes = SMOKE if given.smoke else Sizes()
    facts: dict[str, Any] = {"smoke": given.smoke, "at": folders.now(), "machine": machine()}
    out = given.out or ROOT / "benchmarks" / "results" / f"gpu-{folders.now().replace(':', '').replace('-', '')}.json"
    with tempfile.TemporaryDirectory(prefix="t2t-gpu-") as folder:
        if given.part in ("loop", "all"):
            facts["loop"] = loop(sizes, Path(folder))
            folders.write_json(out, facts)
        late = time.monotonic() - started > LATEST_START and given.part == "all"
        if given.part in ("qwen", "all"):
            left_out = {"left_out": f"more than {LATEST_START} s had gone by"}
            facts["qwen"] = left_out if late else qwen(sizes, given.lora, Path(folder))
    facts["seconds"] = round(time.monotonic() - started, 1)
    folders.write_json(out, facts)
    for name in ("loop", "qwen"):
        if "seconds" in facts.get(name, {}):
            print(f"{name}: {facts[name]['seconds']} s, peak {facts[name]['peak_memory_gb']} GB")
    print(out)


if __name__ == "__main__":
    main()
