"""The plan before the start: its arithmetic against measurements on a CPU, what it refuses, and what it proposes instead."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import memory
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.plugins import installed
from t2t_core.run.experiment import resolve
from t2t_core.run.gpus import Gpus, gpus_here, read_gpus
from t2t_plugins.trainers.shapes import QWEN3, Shape, read_shape, shape_of
from t2t_plugins.trainers.trl_grpo.plan import Plan, disk, plan_text, remedy
from t2t_plugins.trainers.trl_grpo.settings import Settings

QWEN3_4B = "Qwen/Qwen3-4B"
PAPER = {"engine": "vllm-colocate", "processes": 4, "sharding": "fsdp2", "recompute": True, "micro_batch": 2}


def plan(checkpoint: str = QWEN3_4B, gigabytes: float = 80, **settings: Any) -> Plan:
    shape = shape_of(checkpoint)
    assert shape
    return Plan(shape, Settings(**{**PAPER, **settings}), gigabytes)


def planned(checkpoint: str, text: str, **settings: Any) -> str:
    order = TrainingOrder(Path(checkpoint), installed().testbeds.make("mapf-frozenlake"), {}, 4000, 3)
    return plan_text(Settings(**{**PAPER, **settings}), order, read_gpus(text))


def part(made: Plan, name: str) -> float:
    return next((p.bytes for p in made.parts() if p.name == name), 0.0)


# --- beside what is measured


@pytest.mark.train
def test_a_whole_step_takes_what_is_planned_or_less() -> None:
    """A training step in the true shape, on tensors without memory (benchmarks/memory.py)."""
    pytest.importorskip("trl")
    rows = {row.part: row for row in memory.step_rows(memory.plan_of("single-gpu"))}
    for part in ("weights", "gradients", "optimizer"):
        assert rows[part].error == pytest.approx(0, abs=0.001), part
    assert 0 <= rows["the most at once"].error < 0.25
    assert_on_the_page("single-gpu", list(rows.values()))


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("preset", memory.PRESETS)
def test_every_preset_takes_what_stands_on_the_page(preset: str) -> None:
    pytest.importorskip("trl")
    rows = memory.step_rows(memory.plan_of(preset))
    assert 0 <= rows[-1].error < 0.25
    assert_on_the_page(preset, rows)


def assert_on_the_page(preset: str, rows: list[Any]) -> None:
    """Within a hundredth: the next version of a library may keep a little more or less."""
    lines = memory.written(memory.PAGE.read_text()).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith(f"| `{preset}` "))
    for line, row in zip(lines[first : first + len(rows)], rows, strict=True):
        _, _, part, planned, measured, error, _ = (cell.strip() for cell in line.split("|"))
        assert part == row.part
        assert float(planned) == pytest.approx(row.planned / 1e9, rel=0.01, abs=0.006)
        assert float(measured) == pytest.approx(row.measured / 1e9, rel=0.01, abs=0.006)
        assert float(error.removesuffix(" %")) == pytest.approx(100 * row.error, abs=3)


@pytest.mark.train
@pytest.mark.parametrize("name", QWEN3)
def test_the_parameters_of_a_shape_are_those_of_the_model(name: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    shape = shape_of(name)
    assert shape
    with torch.device("meta"):
        model = transformers.Qwen3ForCausalLM(memory.configuration(shape))
    assert sum(p.numel() for p in model.parameters()) == shape.parameters
    assert read_shape(model.config.to_dict()) == shape


@pytest.mark.train
def test_the_parameters_of_adapters_are_those_of_the_model() -> None:
    torch, peft = pytest.importorskip("torch"), pytest.importorskip("peft")
    from transformers import Qwen3ForCausalLM

    from t2t_plugins.trainers.common import adapters

    shape = shape_of("Qwen/Qwen3-0.6B")
    assert shape
    with torch.device("meta"):
        model = peft.get_peft_model(Qwen3ForCausalLM(memory.configuration(shape)), adapters(32))
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == shape.adapters(32)


def kept(shape: Shape, tokens: int, mixed: bool) -> int:
    """Bytes that a forward pass of such a model keeps on this CPU for its backward pass, its weights apart."""
    import torch
    from transformers import Qwen3ForCausalLM

    model = Qwen3ForCausalLM(memory.configuration(shape, attn_implementation="sdpa")).train()
    model = model if mixed else model.bfloat16()
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    sizes: dict[int, int] = {}
    alive = []

    def keep(tensor: Any) -> Any:
        alive.append(tensor)
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.zeros(1, tokens, dtype=torch.long)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=mixed)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), autocast:
        model.model(input_ids=ids, attention_mask={"full_attention": None}, use_cache=False)
    return sum(sizes.values())


@pytest.mark.train
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("name", ["Qwen/Qwen3-0.6B", QWEN3_4B])
def test_what_a_layer_keeps_of_a_token_is_what_it_keeps(name: str, mixed: bool) -> None:
    """In a layer's true shape: two layers and one, and two lengths, leave one layer's share of one token."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    shape = shape_of(name)
    assert shape
    small = replace(shape, vocabulary=64)
    first, second = (replace(small, layers=n) for n in (1, 2))
    measured = [kept(layers, tokens, mixed) for layers in (first, second) for tokens in (16, 48)]
    share = ((measured[3] - measured[2]) - (measured[1] - measured[0])) / 32
    assert shape.kept(mixed) == pytest.approx(share, rel=0.001)


@pytest.mark.train
def test_a_cache_is_as_large_as_transformers_makes_it() -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    shape = Shape(100, 64, 128, 3, 4, 2, 16, True)
    model = transformers.Qwen3ForCausalLM(memory.configuration(shape)).bfloat16()
    cache = model(torch.zeros(1, 20, dtype=torch.long), use_cache=True).past_key_values
    sizes = [getattr(layer, side).nbytes for layer in cache.layers for side in ("keys", "values")]
    assert sum(sizes) == 20 * shape.cache()


@pytest.mark.train
def test_the_optimizer_is_as_large_as_torch_makes_it() -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    shape = Shape(100, 64, 128, 3, 4, 2, 16, True)
    model = transformers.Qwen3ForCausalLM(memory.configuration(shape))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 2, dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    moments = sum(v.nbytes for s in optimizer.state.values() for v in s.values() if v.dim())
    gradients = sum(p.grad.nbytes for p in model.parameters())
    made = Plan(shape, Settings(), 80)
    assert (part(made, "optimizer"), part(made, "gradients"), part(made, "weights")) == (moments, gradients, gradients)


@pytest.mark.train
def test_the_disk_of_a_round_is_what_a_round_leaves(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from qwen import random_model

    random_model(tmp_path)
    shape = shape_of(str(tmp_path))
    assert shape
    stays, _ = disk(Plan(shape, Settings(), 80))
    assert (tmp_path / "model.safetensors").stat().st_size == pytest.approx(stays, rel=0.05)


# --- what is said


@pytest.mark.parametrize(
    ("preset", "text"),
    [("paper", "4x80"), ("paper", "8x80"), ("paper-lora", "1x80"), ("single-gpu", "1x24"), ("api-designer", "1x80")],
)
def test_the_presets_fit_the_gpus_they_are_for(preset: str, text: str) -> None:
    experiment = resolve(preset, None, ["training.processes=8"] if text == "8x80" else [], {}, {})
    trainer = installed().trainers.make(experiment.trainer)
    bed = installed().testbeds.make(experiment.testbed)
    order = TrainingOrder(experiment.start(), bed, experiment.training, experiment.samples, experiment.rounds)
    trainer.check(order)
    told = trainer.plan(order, read_gpus(text))
    total = next(line for line in told.splitlines() if line.startswith("| of "))
    most = max(float(figure) for figure in re.findall(r" (\d+\.\d) ", total))
    assert 3 < most < 0.85 * read_gpus(text).gigabytes, "with room for what a plan does not know"
    assert "responses of full length at once" in told and "GB stay of every round" in told


def test_what_cannot_fit_is_refused_with_what_would() -> None:
    """The preset as it once was: plain data parallelism, every activation kept."""
    with pytest.raises(T2TError, match="does not fit GPUs of 80 GB") as error:
        planned(QWEN3_4B, "4x80", sharding="none", recompute=False, micro_batch=8)
    assert "activations 2" in error.value.cause
    assert error.value.next == "set training.recompute=true and training.sharding=fsdp2"


@pytest.mark.parametrize(
    ("text", "settings", "setting"),
    [
        ("4x80", {"sharding": "none"}, "training.sharding=fsdp2"),
        ("1x80", {"processes": 1, "sharding": "none"}, "training.lora=32"),
        ("4x80", {"recompute": False, "micro_batch": 8}, "training.recompute=true"),
        ("4x80", {"vllm_memory": 0.7, "vllm_sleep": False}, "training.vllm_sleep=true"),
        ("4x80", {"vllm_memory": 0.1}, "training.vllm_memory=0.3"),
        ("4x24", {"vllm_memory": 0.3}, "training.vllm_memory="),
    ],
)
def test_the_setting_that_is_named_makes_it_fit(text: str, settings: dict[str, Any], setting: str) -> None:
    with pytest.raises(T2TError, match="does not fit") as error:
        planned(QWEN3_4B, text, **settings)
    assert setting in error.value.next
    changed = {name: _value(value) for name, value in re.findall(r"training\.(\w+)=(\S+)", error.value.next)}
    assert planned(QWEN3_4B, text, **{**settings, **changed})


def _value(text: str) -> Any:
    return {"true": True, "false": False}.get(text) or (text if text.isalpha() or text == "fsdp2" else float(text))


def test_where_nothing_makes_it_fit_it_says_so() -> None:
    made = plan("Qwen/Qwen3-32B", 8, processes=1, sharding="none")
    assert not made.fits() and "no setting alone makes it fit" in remedy(made)


def test_more_processes_than_gpus_are_refused() -> None:
    with pytest.raises(T2TError, match="processes=4 want a GPU each, and there are 2") as error:
        planned(QWEN3_4B, "2x80")
    assert error.value.next == "set training.processes=2"
    assert planned(QWEN3_4B, "2x80", accelerate={"num_machines": 2})


def test_every_way_of_sharding_takes_less_than_the_one_before() -> None:
    most = [max(plan(sharding=s, beta=0.0).most().values()) for s in ("none", "zero2", "zero3")]
    assert most == sorted(most, reverse=True)
    assert part(plan(), "weights") * 4 == part(plan(sharding="none"), "weights")


@pytest.mark.parametrize(("text", "expected"), [("4x80", Gpus(4, 80)), ("1X24", Gpus(1, 24)), ("2x47.5", Gpus(2, 47.5))])
def test_gpus_are_read(text: str, expected: Gpus) -> None:
    assert read_gpus(text) == expected


@pytest.mark.parametrize("text", ["", "4", "80GB", "0x80", "4x0", "x80", "4x80x2", "-1x80"])
def test_what_are_no_gpus_is_refused(text: str) -> None:
    with pytest.raises(T2TError, match="no GPUs"):
        read_gpus(text)


def test_the_machines_gpus_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 81559\necho 81079\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert gpus_here() == Gpus(2, pytest.approx(85.02, abs=0.01))
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert gpus_here() is None


def test_a_dry_run_prints_the_plan_and_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2t_core.cli.loop_options.gpus_here", lambda: None)
    command = ["run", "--preset", "paper", "--dry-run", "--gpus"]
    told = CliRunner().invoke(cli, [*command, "4x80"])
    assert told.exit_code == 0 and "| activations" in told.output and "4 x 80 GB" in told.output
    refused = CliRunner().invoke(cli, [*command, "4x80", "--set", "training.sharding=none"])
    assert refused.exit_code and "training.sharding=fsdp2" in str(refused.exception)
    tiny = CliRunner().invoke(cli, ["run", "--preset", "tiny", "--dry-run"])
    assert tiny.exit_code == 0 and "GB on each GPU" not in tiny.output
