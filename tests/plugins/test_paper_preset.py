"""The preset `paper` on the CPU with a small Qwen3 of random weights: the same code, `accelerate launch` included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from qwen import random_model

from t2t_core.cli import cli
from t2t_core.errors import T2TError

pytestmark = [pytest.mark.train, pytest.mark.slow, pytest.mark.timeout(3600)]
SMALL = {
    "policy": "hf:{checkpoint}",  # instead of vllm:
    "training.engine": "plain",  # instead of vllm-colocate
    "training.processes": 2,
    "training.sharding": "none",  # test_sharding.py has the rest: Accelerate uses FSDP on a CPU only with a shim
    "generation.samples": 9,  # an update of 4 prompts twice; the ninth instance is the dropped last partial batch
    "training.prompts": 4,
    "training.epochs": 1,
    "training.max_tokens": 48,  # enough for some of random weights' answers to end: without any spread nothing is learnt
    "training.length_start": 4,
    "training.length_end": 48,
    "training.micro_batch": 4,
    "validation.limit": 1,
    "validation.max_tokens": 8,
    "evaluation.limit": 1,
}


def t2t(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("trl")
    folder = tmp_path_factory.mktemp("qwen3")
    random_model(folder, context=32_768)
    return folder


def run(qwen3: Path, out: Path, *options: object, **changed: object) -> str:
    settings = SMALL | {"checkpoint": qwen3} | {name.replace("__", "."): value for name, value in changed.items()}
    overrides = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return t2t("run", "--preset", "paper", "--rounds", 2, "--designer", "checkpoint:max_tokens=8", "--agents", 3, *overrides,
               "--out", out, *options)  # fmt: skip


def test_the_loop_goes_round_in_two_launched_processes(qwen3: Path, tmp_path: Path) -> None:
    output = run(qwen3, tmp_path / "run")
    weights = [qwen3 / "model.safetensors"]
    for index in (0, 1):
        folder = tmp_path / "run" / f"round_{index}"
        trained = json.loads((folder / "training.json").read_text())
        assert (trained["updates"], trained["samples"]) == (2, 2 * 4 * 8)
        lines = [json.loads(line) for line in (folder / "train" / "metrics.jsonl").read_text().splitlines()]
        assert [line["update"] for line in lines] == [1, 2] and all(line["response_tokens"] < 48 for line in lines)
        assert json.loads((folder / "checkpoint" / "adaptive_weights.json").read_text())
        weights.append(folder / "checkpoint" / "model.safetensors")
    assert len({path.read_bytes() for path in weights}) == 3, "every round trains on from the one before"
    assert json.loads((tmp_path / "run" / "round_0" / "proposal.json").read_text())["outcome"] == "unreadable"
    assert "base" in output and "designed" in output


def test_without_a_gpu_its_engine_is_refused_in_one_sentence_from_launched_processes_too(qwen3: Path, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    for processes in (1, 2):
        with pytest.raises(T2TError, match=r"^vLLM in the training process needs a GPU\n") as error:
            run(qwen3, tmp_path / str(processes), training__engine="vllm-colocate", training__processes=processes)
        assert "engine=auto" in error.value.next
