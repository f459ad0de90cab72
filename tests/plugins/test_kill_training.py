"""`t2t run` with `trl-grpo` is killed at ten random moments; the same command continues and ends in the same weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from t2t_core.seeding import Stream

pytestmark = [pytest.mark.train, pytest.mark.slow, pytest.mark.timeout(7200)]
KILLS, ROUNDS, UPDATES, SAVE_EVERY = 10, 2, 12, 2
ROOT = Path(__file__).resolve().parents[2]
ROOMS = os.pathsep.join(str(ROOT / room) for room in ("", "envs", "plugins", "baselines", "leaderboard"))
CONFIG = f"""
testbed = "mapf-frozenlake"
policy = "hf:{{checkpoint}},threads=1"
checkpoint = "MODEL"
trainer = "trl-grpo"
designer = "random"
context = "F"
rounds = {ROUNDS}
seed = 7
[generation]
samples = {4 * UPDATES}
[training]
group = 4
prompts = 4
epochs = 1
learning_rate = 1e-3
max_tokens = 24
length_start = 12
length_end = 24
save_every = {SAVE_EVERY}
threads = 1
[validation]
set = "validation_2agents"
limit = 2
max_tokens = 8
"""
# A process that has imported what a run needs, and forks a `t2t run` for every line it reads: an import takes longer than the
# rest of the run. It prints the child's id, and then how it ended.
NURSERY = """
import os, sys
import torch, datasets, transformers, trl
from trl import GRPOTrainer
import t2t_core.cli.run, t2t_plugins.trainers.trl_grpo.trainer, t2t_plugins.policies.hf, t2t_plugins.sampler
from t2t_core.cli import main
torch.set_num_threads(1)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1), os.dup2(log, 2)
        main(["run", *line.split()])
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def nursery(tmp_path: Path) -> Any:
    environment = {**os.environ, "PYTHONPATH": ROOMS, "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen([sys.executable, "-c", NURSERY, str(tmp_path / "log")], **pipes) as process:
        yield process
        process.stdin.close()


def start(nursery: Any, config: Path, out: Path) -> int:
    nursery.stdin.write(f"--config {config} --out {out}\n")
    nursery.stdin.flush()
    return int(nursery.stdout.readline())


def updates(out: Path) -> list[list[int]]:
    """The updates of every round in the order in which they were reported, repeated ones included."""
    files = [out / f"round_{index}" / "train" / "metrics.jsonl" for index in range(ROUNDS)]
    lines = [path.read_text().splitlines(keepends=True) if path.exists() else [] for path in files]
    return [[json.loads(line)["update"] for line in some if line.endswith("\n")] for some in lines]


def kill_after(child: int, out: Path, more: int, delay: float) -> None:
    """SIGKILL once so many more updates (in the end: stages) were reported, and a moment later; it may have ended by then."""

    def seen() -> int:
        log = out / "log.jsonl"
        return sum(map(len, updates(out))) + (len(log.read_text().splitlines()) if log.exists() else 0)

    before = seen()
    while seen() < before + more and not ended(child):
        time.sleep(0.005)
    time.sleep(delay)
    if not ended(child):
        os.killpg(child, signal.SIGKILL)


def ended(child: int) -> bool:
    """The nursery waits for its children, so one that ended is gone."""
    return not Path(f"/proc/{child}").exists()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    pytest.importorskip("trl")
    from t2t_baselines.tiny.model import make_model, make_tokenizer

    folder = tmp_path / "model"
    model = make_model(0, num_hidden_layers=1)
    model.config.t2t_prompt_format = "compact"
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    path = tmp_path / "small.toml"
    path.write_text(CONFIG.replace("MODEL", str(folder)))
    return path


def test_killed_at_ten_random_moments_it_ends_in_the_weights_of_an_undisturbed_run(
    config: Path, tmp_path: Path, nursery: Any, record_property: Any
) -> None:
    start(nursery, config, tmp_path / "calm")
    assert int(nursery.stdout.readline()) == 0, (tmp_path / "log").read_text()[-3000:]
    last = (tmp_path / "calm" / "round_0" / "train" / "metrics.jsonl").read_text().splitlines()[-1]
    per_update = 4 * 4 / json.loads(last)["responses_per_second"]
    stream, out, kills = Stream.of(11, "kills"), tmp_path / "killed", []
    for _ in range(100):
        child = start(nursery, config, out)
        if len(kills) < KILLS:
            kill_after(child, out, 1 + stream.below(3), 1.5 * stream.uniform() * per_update)
        status = int(nursery.stdout.readline())
        if status == 0:
            break
        assert status == -signal.SIGKILL, (tmp_path / "log").read_text()[-3000:]
        kills.append([some[-1] if some else 0 for some in updates(out)])
    text = f"trl-grpo killed {len(kills)} times after updates (of the two rounds) {kills}"
    record_property("summary", text)
    assert status == 0 and len(kills) == KILLS, text
    for index in range(ROUNDS):
        names = ("checkpoint/model.safetensors", "checkpoint/adaptive_weights.json", "instances.jsonl", "breakdown.json")
        for name in (f"round_{index}/{name}" for name in names):
            assert (out / name).read_bytes() == (tmp_path / "calm" / name).read_bytes(), name
    check_stages(out)
    for reported in updates(out):
        check_updates(reported)


def check_stages(out: Path) -> None:
    """No finished stage is done twice."""
    stages = [(line["round"], line["stage"]) for line in map(json.loads, (out / "log.jsonl").read_text().splitlines())]
    expected = [(index, stage) for index in range(ROUNDS) for stage in ("generate", "train", "validate", "design")]
    assert stages == expected[:-1]


def check_updates(reported: list[int]) -> None:
    """Where training began again, it did so after its last saved update. One that is due is saved just after it is reported, so
    a kill there may cost it."""
    for last, first in zip(reported, reported[1:], strict=False):
        if first != last + 1:
            saved = last // SAVE_EVERY * SAVE_EVERY
            assert first - 1 in (saved, saved - SAVE_EVERY if saved == last else saved), reported
    assert reported[0] == 1 and reported[-1] == UPDATES
