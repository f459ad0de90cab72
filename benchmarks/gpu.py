"""The acceptance check for a machine with GPUs: does the preset's run work on it, and does it take what was planned?

    python benchmarks/gpu.py                               # at most ten minutes
    python benchmarks/gpu.py --preset single-gpu           # another preset's settings and shape (say on 24 GB)
    python benchmarks/gpu.py --set training.micro_batch=1  # one setting changed
    python benchmarks/gpu.py --rehearse                    # on a CPU: tiny shape, a stand-in for vLLM, two processes with gloo

Two updates of `trl-grpo` in Qwen3-4B's shape at 4,096 tokens with colocated vLLM; then `t2t run` through a round of short
responses, validation and the closing bench.

It needs vLLM and about 60 GB of disk (in --work), but no network, because the weights are random. On one GPU the preset is
`paper-lora`; on more it is `paper` in two processes with fsdp2. Each step runs in its own processes with its own time limit. If
one fails, the next one still runs. The check prints what passed and what failed, with measured memory and time beside the plan's
figures, and writes one JSON file to benchmarks/results/. The exit status is 0 if every step passed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / room) for room in ("", "benchmarks", "envs", "plugins", "baselines", "leaderboard")]

from t2t_core.errors import T2TError  # noqa: E402 - the rooms are found from a plain checkout
from t2t_core.hookspecs import TrainingJob  # noqa: E402
from t2t_core.plugins import installed  # noqa: E402
from t2t_core.run.experiment import Experiment, resolve  # noqa: E402
from t2t_core.run.gpus import Gpus, gpus_here  # noqa: E402
from t2t_core.store import folders  # noqa: E402
from t2t_plugins.trainers.settings import check_settings  # noqa: E402
from t2t_plugins.trainers.shapes import QWEN3, Shape, read_shape, shape_of  # noqa: E402
from t2t_plugins.trainers.trl_grpo.memory import MEMORY  # noqa: E402
from t2t_plugins.trainers.trl_grpo.plan import GB, LARGE, SMALL, Plan, seconds  # noqa: E402
from t2t_plugins.trainers.trl_grpo.settings import Settings  # noqa: E402

WHOLE = 600.0  # seconds for all steps
OVER = {"failed": f"not begun: {WHOLE:.0f} s had gone by", "last words": []}
MORE = 1.1  # a figure above this multiple of the plan is more than was planned
SHOWN = 25  # last lines shown of a step that failed
STAND_INS = [ROOT / "tests" / "plugins" / name for name in ("one_gpu", "sharded")]  # for vLLM, and Accelerate's FSDP on a CPU
TINY = Shape(600, 64, 64, 2, 4, 2, 16, True)
# Two prompts of eight responses make one update: its memory does not depend on how many there are.
CHECKED = {"training.prompts": 2, "training.epochs": 1, "training.max_updates": 2, "generation.samples": 4,
           "training.prompt_format": "board"}  # fmt: skip
LOOP = {"training.max_updates": 1, "training.max_tokens": 256, "training.length_start": 64, "training.length_end": 256,
        "validation.limit": 1, "validation.max_tokens": 256, "evaluation.limit": 1, "report_to": "none"}  # fmt: skip
REHEARSED = {"training.engine": "plain", "training.processes": 2, "training.sharding": "fsdp2", "training.lora": 0,
             "training.max_tokens": 24, "training.length_start": 4, "training.length_end": 24, "training.micro_batch": 4,
             "training.threads": 1, "validation.max_tokens": 24}  # fmt: skip


@dataclass(frozen=True)
class Check:
    """What to run, and where."""

    work: Path
    preset: str
    overrides: Sequence[str]
    rehearse: bool

    @property
    def model(self) -> Path:
        """The checkpoint of random weights."""
        return self.work / "model"

    @cached_property
    def experiment(self) -> Experiment:
        """The preset with the check's changes."""
        return resolve(self.preset, None, self.settings({}), {}, {})

    def settings(self, more: Mapping[str, Any]) -> list[str]:
        """`NAME=VALUE` for everything that differs from the preset. If a name has two values, the later one counts."""
        several = {} if self.preset != "paper" else {"training.processes": 2}
        changed = {**CHECKED, **several, **more, **(REHEARSED if self.rehearse else {}), "checkpoint": self.model}
        return [*(f"{name}={value}" for name, value in changed.items()), *self.overrides]

    @property
    def shape(self) -> Shape:
        """The shape of the preset's own model."""
        shape = TINY if self.rehearse else shape_of(resolve(self.preset, None, [], {}, {}).checkpoint)
        if shape is None:
            raise T2TError(f"the preset {self.preset} names no model of a known shape", next=f"one of {', '.join(QWEN3)}")
        return shape

    @property
    def training(self) -> Settings:
        return check_settings(Settings, self.experiment.training, "trainer trl-grpo")

    @property
    def plan(self) -> Plan:
        return Plan(self.shape, self.training, (gpus_here() or Gpus(2, 80)).gigabytes)

    def command(self, more: Mapping[str, Any]) -> list[str]:
        """The options of `t2t run`."""
        return ["--preset", self.preset, *(word for change in self.settings(more) for word in ("--set", change))]


Facts = dict[str, Any]


def t2t(*words: str) -> None:
    """Run the command as a user would. Raises RuntimeError if it fails."""
    status = subprocess.run([sys.executable, "-c", "from t2t_core.cli import main; main()", *words]).returncode
    require(not status, f"t2t {words[0]} ended with status {status}")


def require(holds: bool, what: str) -> None:
    """Raise RuntimeError with the expectation if it does not hold."""
    if not holds:
        raise RuntimeError(what)


# --- the steps: each returns its facts, or raises


def machine(check: Check) -> Facts:
    """What the machine has: GPUs, versions, free disk space."""
    import torch

    names = [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())]
    facts: Facts = {"GPUs": names, "CUDA": torch.version.cuda, "free disk GB": round(shutil.disk_usage(check.work).free / GB)}
    facts |= {"preset": check.preset, "processes": check.training.processes, "environment": folders.environment()}
    print(f"{', '.join(names) or 'no GPU'}; {facts['free disk GB']} GB of disk; preset {check.preset}")
    command = [sys.executable, "-c", "import vllm; print(getattr(vllm, '__version__', 'a stand-in'))"]
    process = subprocess.run(command, capture_output=True, text=True)
    require(not process.returncode, f"vLLM cannot be imported: {process.stderr.strip().splitlines()[-1:]}")
    return facts | {"vLLM": process.stdout.strip().splitlines()[-1]}


def model(check: Check) -> Facts:
    """Make a checkpoint of random weights in the model's shape, and check that its shape is the planned one."""
    from gpu_model import save_random_model

    bed = installed().testbeds.make(check.experiment.testbed)
    texts = [bed.prompt(instance, "board") for instance in instances(check, 64)]
    parameters = save_random_model(check.model, check.shape, texts, length=check.training.max_tokens)
    written = read_shape(json.loads((check.model / "config.json").read_text()))
    require(written == check.shape and parameters == check.shape.parameters, f"{written} instead of {check.shape}")
    print(f"{parameters / 1e9:.3f} G parameters of random weights")
    return {"parameters": parameters}


def training(check: Check) -> Facts:
    """Two updates of `trl-grpo` at full length through the product's own code, and what they took beside the plan."""
    trainer = installed().trainers.make("trl-grpo")
    bed = installed().testbeds.make(check.experiment.testbed)
    updates: list[Facts] = []

    def progress(figures: Mapping[str, Any]) -> None:
        updates.append({**figures, "at": time.monotonic()})
        print("update", json.dumps(dict(figures)))

    drawn, folder = instances(check, check.experiment.samples), check.work / "trained"
    job = TrainingJob(check.model, drawn, bed, dict(check.experiment.training), folder, 1, progress=progress)
    print(trainer.plan(order_of(check, bed), gpus_here()))
    result = trainer.train(job)
    require(result.updates == 2 == len(updates), f"{result.updates} updates instead of 2")
    for update in updates:
        require(0 < update["grad_norm"] < float("inf"), f"update {update['update']}: a gradient of {update['grad_norm']}")
    require(updates[0]["truncated"] < 1, "no response came to its end")
    moved = moved_weights(check.model, folder)
    require(moved > 0, "the new checkpoint has the old weights")
    taken = json.loads((folder / MEMORY).read_text())
    time_taken = {"an update": updates[1]["at"] - updates[0]["at"]}
    told = [{name: value for name, value in update.items() if name != "at"} for update in updates]
    rows = beside(check.plan, taken, time_taken)
    more = [row["part"] for row in rows if row["unit"] == "GB" and (row["measured"] or 0) > MORE * row["plan"]]
    facts = {"updates": told, "moved": moved, "beside the plan": rows, "memory": taken}
    return facts | ({"failed": f"it took more than was planned: {', '.join(more)}"} if more else {})


def loop(check: Check) -> Facts:
    """`t2t run`: a round of short responses, validation and the closing bench, one engine after another on the same GPU."""
    before, folder = taken_of_gpu(), check.work / "run"
    t2t("run", *check.command(LOOP), "--rounds", "1", "--out", str(folder))
    table = json.loads((folder / "bench" / "table.json").read_text())
    rows = {f"{row['arm']} {frozen_set['name']}": row for frozen_set in table["sets"] for row in frozen_set["rows"]}
    arms = {name.split()[0] for name in rows}
    require(arms == {"base", "designed"} and len(table["sets"]) == 3, f"the bench has {sorted(rows)}")
    after = taken_of_gpu()
    require(after < before + 1, f"{after:.1f} GB of the GPU are taken after the run, {before:.1f} before it")
    return {"rows": sorted(rows), "GB taken before and after": [before, after]}


def bench(check: Check) -> Facts:
    """vLLM alone, if the loop did not reach its own bench."""
    table = check.work / "run" / "bench" / "table.json"
    if table.exists():
        return {"left out": "the loop's own was done"}
    policy, folder = f"vllm:{check.model}", str(check.work / "bench")
    t2t("bench", "--policy", policy, "--agents", "3", "--limit", "1", "--max-tokens", "256", "--out", folder)
    return {}


STEPS: Mapping[str, tuple[Callable[[Check], Facts], float]] = {  # each with the seconds it may take
    "machine": (machine, 60),
    "model": (model, 120),
    "training": (training, 270),
    "loop": (loop, 270),
    "bench": (bench, 150),
}


# --- what they need


def instances(check: Check, count: int) -> Any:
    """Fresh two-agent instances."""
    bed = installed().testbeds.make(check.experiment.testbed)
    request = bed.request(count, agents=2)
    return bed.generate(bed.random_configuration(request, 1), request, 1)


def order_of(check: Check, bed: Any) -> Any:
    """The training order that the plan is computed for."""
    from t2t_core.hookspecs import TrainingOrder

    return TrainingOrder(check.model, bed, check.experiment.training, check.experiment.samples, 1)


def moved_weights(before: Path, after: Path) -> int:
    """How many numbers in a whole checkpoint differ from those it started from. Raises RuntimeError if it is not whole."""
    from safetensors import safe_open

    def tensors(folder: Path) -> dict[str, Path]:
        return {name: path for path in folder.glob("*.safetensors") for name in safe_open(path, "pt").keys()}  # noqa: SIM118

    old, new = tensors(before), tensors(after)
    require(old.keys() == new.keys(), f"the new checkpoint is not whole: {sorted(old.keys() ^ new.keys())[:3]}")
    count = 0
    for name in old:
        earlier, later = (safe_open(weights[name], "pt").get_tensor(name) for weights in (old, new))
        require(earlier.shape == later.shape, f"{name} has another shape")
        count += int((earlier.float() != later.float()).sum())
    return count


def taken_of_gpu() -> float:
    """GB of the first GPU's memory in use by anybody; 0 without a GPU."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    try:
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 2**20 / GB
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0.0


def beside(plan: Plan, taken: Mapping[str, int], times: Mapping[str, float]) -> list[Facts]:
    """Planned and measured figures, part by part. What a CPU cannot measure has no measured value."""
    planned = {part.name: part.bytes for part in plan.parts() if "training" in part.phases}
    kept = ("weights", "weights in bfloat16", "gradients", "optimizer", "reference", "activations")
    names = {"activations": "kept activations"}
    rows = [(part, planned.get(part, 0.0), taken.get(names.get(part, part))) for part in kept if planned.get(part)]
    passing = sum(size for name, size in planned.items() if name not in (*kept, "set aside", "vLLM"))
    peak = taken.get("peak")
    rows += [
        ("logits and what is put together", passing, peak - sum(size or 0 for _, _, size in rows) if peak else None),
        ("the most at once", sum(planned.values()) - planned["set aside"] - planned.get("vLLM", 0), peak),
    ]
    facts: list[Facts] = [
        {"part": part, "unit": "GB", "plan": size / GB, "measured": seen and seen / GB} for part, size, seen in rows
    ]
    sampled, trained = seconds(plan, LARGE if plan.gigabytes >= 40 else SMALL)
    return [
        *facts,
        *({"part": f"{name} at most", "unit": "s", "plan": sampled + trained, "measured": took} for name, took in times.items()),
    ]


# --- running them


def variables(rehearse: bool, work: Path) -> dict[str, str]:
    """The environment of a step."""
    rooms = [*map(str, STAND_INS)] * rehearse + [room for room in sys.path if room]
    ours = {**os.environ, "PYTHONPATH": os.pathsep.join(rooms), "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    if rehearse:
        (work / "stand-in").mkdir(exist_ok=True)
        ours |= {"T2T_TEST_GPU": str(work / "stand-in"), "CUDA_VISIBLE_DEVICES": ""}
    return ours


def do_apart(name: str, given: argparse.Namespace, work: Path, limit: float) -> Facts:
    """Run one step in its own processes. Returns its facts, with "failed" if something went wrong."""
    result = work / f"{name}.json"
    command = [sys.executable, __file__, "--step", name, "--work", str(work), "--preset", given.preset]
    command += ["--rehearse"] * given.rehearse + [word for change in given.set for word in ("--set", change)]
    started = time.monotonic()
    with open(work / f"{name}.txt", "w") as output:
        process = subprocess.Popen(
            command, env=variables(given.rehearse, work), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = process.wait(limit)
            failed = "" if not status else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            failed = f"not done within {limit:.0f} s"
        finally:
            end(process)
    facts: Facts = json.loads(result.read_text()) if result.exists() else {}
    failed = facts.get("failed", failed or ("" if result.exists() else "it left no result"))
    words = (work / f"{name}.txt").read_text(errors="replace").splitlines()[-SHOWN:]
    return facts | {"seconds": round(time.monotonic() - started, 1)} | ({"failed": failed, "last words": words} if failed else {})


def end(process: subprocess.Popen[bytes]) -> None:
    """End every process of a step: an engine that outlives it would keep the GPU from the next step."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(10)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def do(name: str, check: Check) -> None:
    """Run the step in this process; its facts go into a file."""
    try:
        facts = STEPS[name][0](check)
    except T2TError as error:
        facts = {"failed": str(error)}
    except RuntimeError as error:
        facts = {"failed": " ".join(str(error).split())[:2000]}
    folders.write_json(check.work / f"{name}.json", facts)
    sys.exit(1 if "failed" in facts else 0)


def report(facts: Mapping[str, Facts]) -> str:
    """Print the table of measured and planned figures."""
    rows = facts.get("training", {}).get("beside the plan", [])
    lines = [f"{'':36}{'plan':>11}{'measured':>11}"] if rows else []
    for row in rows:
        seen = f"{row['measured']:.4g}" if row["measured"] is not None else "-"
        lines.append(f"{row['part'] + ', ' + row['unit']:36}{row['plan']:>11.4g}{seen:>11}")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="tiny shapes and stand-ins, on a CPU; its times mean nothing")
    parser.add_argument("--preset", help="default: paper with two GPUs or more, paper-lora with one")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the run")
    parser.add_argument("--work", type=Path, help="a folder with about 60 GB of room (default: a temporary one)")
    parser.add_argument("--out", type=Path, help="the JSON file (default: benchmarks/results/gpu-DATE.json)")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    gpus = gpus_here()
    if gpus is None and not given.rehearse:
        sys.exit("error: there is no GPU here (nvidia-smi finds none); --rehearse goes through every step on a CPU")
    given.preset = given.preset or ("paper" if given.rehearse or (gpus and gpus.count > 1) else "paper-lora")
    if given.step:
        do(given.step, Check(given.work, given.preset, given.set, given.rehearse))
    stamp = folders.now().replace(":", "").replace("-", "")
    out = given.out or ROOT / "benchmarks" / "results" / f"gpu-{stamp}.json"
    facts: dict[str, Any] = {"rehearsed": given.rehearse, "at": folders.now(), "preset": given.preset, "set": given.set}
    started = time.monotonic()
    patience = 4.0 if given.rehearse else 1.0  # others may use the CPU too
    with tempfile.TemporaryDirectory(prefix="t2t-gpu-", dir=given.work) as folder:
        for name, (_, limit) in STEPS.items():
            left = patience * WHOLE - (time.monotonic() - started)
            limit = min(patience * limit, left)
            done = do_apart(name, given, Path(folder), limit) if limit > 0 else {**OVER}
            facts[name] = done
            verdict = "FAILED" if "failed" in done else f"left out: {done['left out']}" if "left out" in done else "pass"
            print(f"{name:10}{done.get('seconds', 0):7.1f} s  {verdict}", flush=True)
            for line in [done["failed"], *done["last words"]] if "failed" in done else ():
                print(f"    {line}", flush=True)
            folders.write_json(out, facts)
    print(report({name: facts[name] for name in STEPS}))
    failed = [name for name in STEPS if "failed" in facts[name]]
    print(f"{'failed: ' + ', '.join(failed) if failed else 'pass'}   {out}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
