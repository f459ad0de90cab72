"""A model in shards, in two processes on a CPU: the same results as in one process, whole checkpoints, and a stop in between."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from letters import Letters, questions
from qwen import random_model

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_plugins.trainers.settings import check_settings
from t2t_plugins.trainers.shapes import shape_of
from t2t_plugins.trainers.trl_grpo import trainer as trl_grpo
from t2t_plugins.trainers.trl_grpo.job_files import write_job
from t2t_plugins.trainers.trl_grpo.launch import MARK, environment, launcher
from t2t_plugins.trainers.trl_grpo.memory import MEMORY
from t2t_plugins.trainers.trl_grpo.plan import Plan
from t2t_plugins.trainers.trl_grpo.settings import Settings
from t2t_plugins.trainers.trl_grpo.sharding import OPTIMIZERS, check_sharded
from t2t_plugins.trainers.trl_grpo.trainer import check_state

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.train, pytest.mark.timeout(600)]
HERE = Path(__file__).resolve().parent
SHARDED = HERE / "sharded"
COMMON: dict[str, Any] = {"group": 4, "prompts": 4, "epochs": 1, "max_tokens": 40, "length_start": 12, "length_end": 30,
                          "beta": 0.1, "prompt_format": "long", "threads": 1, "save_every": 100}  # fmt: skip
SGD = {"learning_rate": 2.0, "trl": {"optim": "sgd", "max_grad_norm": 0.0}}  # clipping would hide a doubled gradient
ADAMW = {"learning_rate": 1e-3}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("trl")
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("qwen3")
    bed = installed().testbeds.make("tictactoe")
    texts = [q.text for q in questions(8)] + ["Please write letters.", "system user assistant"]
    texts += [bed.prompt(game, "think") for game in openings(bed, 8)]
    random_model(folder, texts=texts, layers=2, tie_word_embeddings=True)
    return folder


class Trainings:
    """Trainings done together in two processes, and the same ones in this one."""

    def __init__(self, model: Path, root: Path, sharding: str, jobs: Mapping[str, Mapping[str, Any]], machines: int = 1) -> None:
        self.model, self.root, self.sharding, self.jobs, self.machines = model, root, sharding, jobs, machines
        self.figures: dict[str, list[dict[str, Any]]] = {}

    def job(self, name: str, where: str) -> tuple[TrainingJob, Settings]:
        given = dict(self.jobs[name])
        games = given.pop("games", False)
        for word in ("script", "stop_at"):
            given.pop(word, None)
        before = self.job(given.pop("before"), where)[0].folder if "before" in given else None
        folder = self.root / where / given.pop("into", name) / "checkpoint"
        settings = check_settings(Settings, {**COMMON, **given}, "x")
        bed = installed().testbeds.make("tictactoe") if games else Letters()
        instances = openings(bed, 8) if games else questions(8)
        return TrainingJob(self.model, instances, bed, {}, folder, 5, resume_from=before), settings

    def launch(self) -> None:
        folders: list[str] = []
        first = Settings()
        for name, given in self.jobs.items():
            job, settings = self.job(name, "two")
            settings = replace(settings, processes=2, sharding=self.sharding, micro_batch=settings.micro_batch or 8)
            first = settings if not folders else first
            folder = self.root / "two" / f"{name}.launch"
            folder.mkdir(parents=True)
            write_job(job, settings, folder)
            if given.get("script", True):
                (folder / "script").touch()
            if "stop_at" in given:
                (folder / "stop_at").write_text(str(given["stop_at"]))
            folders.append(str(folder))
        rooms = [str(SHARDED), *filter(None, sys.path)]
        variables = {**environment(first), "PYTHONPATH": os.pathsep.join(rooms), "HF_HUB_OFFLINE": "1"}
        ours, *others = ([*launcher(s), str(SHARDED / "processes.py"), *folders] for s in spread(first, self.machines))
        more = [subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) for command in others]
        done = subprocess.run(ours, env=variables, capture_output=True, text=True, timeout=500)
        assert [process.wait(60) for process in more] == [0] * len(more)
        (self.root / "output.txt").write_text(done.stdout + done.stderr)
        ends = [name for name, given in self.jobs.items() if "stop_at" not in given]
        missing = [name for name in ends if not (self.folder(name) / "result.json").exists()]
        assert not missing, f"{missing} did not end: see {self.root / 'output.txt'}\n{done.stderr[-3000:]}"
        for line in done.stdout.splitlines():
            if line.startswith("== "):
                told = self.figures.setdefault(Path(line[3:]).stem, [])
            elif line.startswith(MARK):
                told.append(json.loads(line[len(MARK) :]))

    def folder(self, name: str) -> Path:
        return self.root / "two" / f"{name}.launch"

    def weights(self, name: str, where: str = "two") -> dict[str, Any]:
        from safetensors.torch import load_file

        return load_file(self.job(name, where)[0].folder / "model.safetensors")

    def facts(self, name: str) -> list[dict[str, Any]]:
        return [json.loads((self.folder(name) / f"facts_{rank}.json").read_text()) for rank in (0, 1)]

    def answers(self, name: str) -> list[tuple[str, str]]:
        gathered = [json.loads((self.folder(name) / f"answers_{rank}.json").read_text()) for rank in (0, 1)]
        return [tuple(answer) for answers in gathered for answer in answers]

    def alone(self, name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The same training in this process: its figures and weights."""
        sys.path.insert(0, str(SHARDED))
        try:
            import processes
        finally:
            sys.path.remove(str(SHARDED))
        job, settings = self.job(name, "one")
        if self.jobs[name].get("script", True):
            processes.scripted(monkeypatch.setattr)
        figures: list[dict[str, Any]] = []
        trl_grpo.train(replace(job, progress=lambda told: figures.append(dict(told))), settings)
        return figures, self.weights(name, "one")


def spread(settings: Settings, machines: int) -> list[Settings]:
    """The settings of every machine; all of them are this computer."""
    if machines == 1:
        return [settings]
    shared = {"num_machines": machines, "main_process_ip": "127.0.0.1", "main_process_port": free_port()}
    return [replace(settings, accelerate={**shared, "machine_rank": rank}) for rank in range(machines)]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def openings(bed: Any, count: int) -> list[Any]:
    """Games that begin differently: a scripted move is drawn from what was said before it."""
    request = bed.request(8 * count)
    games = bed.generate(bed.random_configuration(request, 1), request, 1)
    return list({bed.prompt(game, bed.prompt_formats[0]): game for game in games}.values())[:count]


def distance(before: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    assert before.keys() == other.keys()
    return max(float((before[name].float() - other[name].float()).abs().max()) for name in before)


EQUAL = {"sgd": SGD, "micro": {**SGD, "micro_batch": 2, "recompute": True}, "lora": {**SGD, "lora": 2, "learning_rate": 20.0}}
GAMES = {**SGD, "games": True, "prompt_format": "think"}
JOBS: dict[str, dict[str, Any]] = {
    **EQUAL,
    "whole": {**ADAMW, "epochs": 2, "micro_batch": 2},
    "stopped": {**ADAMW, "epochs": 2, "micro_batch": 2, "stop_at": 6, "into": "taken away"},
    "went on": {**ADAMW, "epochs": 2, "micro_batch": 2, "into": "taken away"},
    "games": GAMES,
    "kept": {**ADAMW, "optimizer": "keep", "before": "whole"},
    "greedy": {**SGD, "script": False, "temperature": 1e-4, "engine": "fast", "max_updates": 1},
    "mixed": {**SGD, "dtype": "mixed", "max_updates": 1},
}
MORE: dict[str, dict[str, Any]] = {
    "whole": {**ADAMW, "epochs": 2, "save_every": 2},
    "begun": {**ADAMW, "epochs": 2, "save_every": 2, "max_updates": 2, "into": "parts"},
    "resumed": {**ADAMW, "epochs": 2, "save_every": 2, "into": "parts"},
    "games by generate": {**GAMES, "script": False, "engine": "plain", "max_updates": 1},
    "plain": {**SGD, "script": False, "engine": "plain", "max_updates": 1},
    "games played": {**GAMES, "script": False, "temperature": 1e-4, "engine": "fast", "max_updates": 1},
    "mixed lora": {**SGD, "dtype": "mixed", "lora": 2},
    "mixed lora sampled": {**SGD, "dtype": "mixed", "lora": 2, "script": False, "engine": "plain"},
}


@pytest.fixture(scope="module")
def fsdp2(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    done = Trainings(model, tmp_path_factory.mktemp("fsdp2"), "fsdp2", JOBS)
    done.launch()
    return done


@pytest.fixture(scope="module")
def more(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    """What the others show too, each by itself."""
    done = Trainings(model, tmp_path_factory.mktemp("more"), "fsdp2", MORE)
    done.launch()
    return done


def test_the_model_is_in_shards_half_of_it_on_each_process(fsdp2: Trainings) -> None:
    for name in [name for name, given in JOBS.items() if "stop_at" not in given]:
        for facts in fsdp2.facts(name):
            assert facts["kinds"] == ["DTensor"], name
            assert facts["here"] < 0.55 * facts["whole"], name


def test_each_process_takes_what_is_planned(fsdp2: Trainings, model: Path) -> None:
    job, settings = fsdp2.job("whole", "two")
    shape = shape_of(str(model))
    assert shape
    plan = Plan(shape, replace(settings, processes=2, sharding="fsdp2"), 80)
    planned = {part.name: part.bytes for part in plan.parts()}
    taken = json.loads((job.folder / MEMORY).read_text())
    assert taken.keys() == {"weights", "gradients", "optimizer", "reference"}
    for part, size in taken.items():
        assert size == pytest.approx(planned[part], rel=0.02), part


def test_shards_are_put_together_as_planned(fsdp2: Trainings, model: Path) -> None:
    """In bfloat16: the embedding with one layer, or two where a GPU fetches the next one ahead, and the whole reference. The plan
    also has a layer's gradients on their way, in bfloat16 and float32, which are no shards."""
    shape = shape_of(str(model))
    assert shape
    settings = replace(fsdp2.job("mixed", "two")[1], processes=2, sharding="fsdp2")
    planned = {part.name: part.bytes for part in Plan(shape, settings, 80).parts()}
    most = planned["shards put together"] - 6 * shape.layer
    for facts in fsdp2.facts("mixed"):
        assert facts["together"]["reference"] == planned["reference put together"]
        assert most - 2 * shape.layer <= facts["together"]["policy"] <= most


@pytest.mark.parametrize("name", EQUAL)
def test_two_processes_do_what_one_does(fsdp2: Trainings, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    figures, weights = fsdp2.alone(name, monkeypatch)
    # TRL's KL figure is the mean over backward passes of each one's mean per token, and which responses share a pass is drawn
    # in every process by itself: with several passes the figure differs, the loss and the gradient do not.
    compare(figures, fsdp2.figures[name], kl=0.2 if name == "micro" else 1e-4)
    assert distance(weights, fsdp2.weights(name)) < 1e-6


def test_games_in_turns_go_the_same_way(fsdp2: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tic-tac-toe: a whole game is one sequence, in which the policy's own tokens are learnt."""
    figures, weights = fsdp2.alone("games", monkeypatch)
    same = ("loss", "grad_norm", "kl", "reward", "valid", "zero_variance", "response_tokens")
    compare(figures, fsdp2.figures["games"], equal=same)
    assert figures[0]["zero_variance"] < 1
    assert distance(weights, fsdp2.weights("games")) < 1e-6


@pytest.mark.slow
def test_games_are_played_in_shards_each_as_long_as_it_lasts(more: Trainings) -> None:
    assert more.figures["games played"][0]["response_tokens"] > 1


def test_processes_stop_together_within_an_update_and_go_on_to_the_same_bytes(fsdp2: Trainings) -> None:
    """One of them is asked, after the first update and a backward pass of the second; no update was due to be saved."""
    assert [told["update"] for told in fsdp2.figures["stopped"]] == [1]
    assert not (fsdp2.folder("stopped") / "result.json").exists()
    assert [told["update"] for told in fsdp2.figures["went on"]] == [2, 3, 4]
    assert distance(fsdp2.weights("whole"), fsdp2.weights("went on")) == 0


FIGURES = ("loss", "grad_norm", "kl", "reward", "zero_variance", "truncated", "response_tokens", "share_short")


def compare(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], kl: float = 1e-4, equal: Sequence[str] = FIGURES) -> None:
    assert [told["update"] for told in ours] == [told["update"] for told in theirs] == [1, 2]
    for alone, shared in zip(ours, theirs, strict=True):
        for figure in equal:
            relative = kl if figure == "kl" else 1e-4
            assert alone[figure] == pytest.approx(shared[figure], rel=relative, abs=1e-6), figure
    assert ours[1]["kl"] > 1e-6 and ours[0]["grad_norm"] > 0.01
    assert "truncated" not in equal or 0 < ours[0]["truncated"] < 1


@pytest.mark.slow
def test_a_training_goes_on_from_a_state_that_was_due(more: Trainings) -> None:
    assert [told["update"] for told in more.figures["begun"]] == [1, 2]
    assert [told["update"] for told in more.figures["resumed"]] == [3, 4]
    assert distance(more.weights("whole"), more.weights("resumed")) == 0


@pytest.mark.slow
def test_generate_answers_in_shards_alone_and_in_games(more: Trainings) -> None:
    assert len(more.answers("plain")) == 16
    for name in ("plain", "games by generate"):
        assert more.figures[name][0]["response_tokens"] > 1


def test_the_optimizer_of_the_round_before_is_taken_over(fsdp2: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    fsdp2.alone("whole", monkeypatch)
    _, weights = fsdp2.alone("kept", monkeypatch)
    assert distance(weights, fsdp2.weights("kept")) < 2e-5
    given = {**fsdp2.jobs["kept"], "optimizer": "reset"}
    monkeypatch.setitem(fsdp2.jobs, "reset", given)  # type: ignore[arg-type]
    assert distance(fsdp2.alone("reset", monkeypatch)[1], weights) > 1e-4


@pytest.mark.parametrize(("sharding", "file"), OPTIMIZERS.items())
def test_a_saved_state_without_its_optimizer_is_an_error(tmp_path: Path, sharding: str, file: str) -> None:
    """transformers would go on with a fresh one, and say nothing."""
    settings = Settings(sharding=sharding, processes=2)
    with pytest.raises(T2TError, match="has no optimizer"):
        check_state(tmp_path, settings)
    (tmp_path / file.replace("*", "8")).touch()
    check_state(tmp_path, settings)


def test_a_model_that_is_not_in_shards_is_an_error() -> None:
    """Accelerate turns FSDP on a CPU into plain data parallelism without a word, with the same losses."""
    model = torch.nn.Linear(2, 2)
    for sharding in ("fsdp2", "zero2", "zero3"):
        with pytest.raises(T2TError, match=f"not sharded as sharding={sharding} asks"):
            check_sharded(model, Settings(sharding=sharding, processes=2), 2)
    check_sharded(model, Settings(processes=2), 2)


def test_our_sampler_reads_the_weights_that_were_put_together(fsdp2: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedily, so that the draws of different processes do not matter."""
    bed = Letters()
    monkeypatch.setattr("test_sharding.Letters", lambda: bed)
    fsdp2.alone("greedy", monkeypatch)
    assert sorted(fsdp2.answers("greedy")) == sorted(bed.answers) and len(bed.answers) == 16


@pytest.mark.slow
def test_each_process_may_sample_for_as_long_as_it_needs(more: Trainings) -> None:
    """transformers' generate in shards would wait for the other process for ever, or fail."""
    answers, figures = more.answers("mixed lora sampled"), more.figures["mixed lora sampled"]
    assert len(answers) == 2 * 16 and figures[0]["response_tokens"] > 1


@pytest.mark.slow
def test_adapters_train_in_mixed_precision(more: Trainings) -> None:
    """It once failed in its first backward pass."""
    for name in ("mixed lora", "mixed lora sampled"):
        assert len(more.figures[name]) == 2


def test_mixed_precision_keeps_float32_weights(fsdp2: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, mixed = fsdp2.figures["sgd"][0], fsdp2.figures["mixed"][0]
    assert mixed["grad_norm"] == pytest.approx(plain["grad_norm"], rel=0.02) and mixed["grad_norm"] != plain["grad_norm"]
    assert fsdp2.facts("mixed")[0]["dtypes"] == ["torch.float32"]
    weights = fsdp2.weights("mixed")
    assert {w.dtype for w in weights.values()} == {torch.float32}
    assert any(not torch.equal(w, w.bfloat16().float()) for w in weights.values()), "steps below bfloat16's are kept"


def test_whole_checkpoints_load_anywhere(fsdp2: Trainings) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    for name in ("sgd", "lora", "mixed"):
        folder = fsdp2.job(name, "two")[0].folder
        loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        assert loaded.config.use_cache and AutoTokenizer.from_pretrained(folder).eos_token == "<|im_end|>"
        assert not any("lora" in key or "shard" in key for key in loaded.state_dict())


# --- two machines, both of which are this computer


@pytest.mark.slow
def test_two_machines_do_what_one_process_does(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = Trainings(model, tmp_path, "fsdp2", {"sgd": SGD}, machines=2)
    two.launch()
    figures, weights = two.alone("sgd", monkeypatch)
    compare(figures, two.figures["sgd"])
    assert distance(weights, two.weights("sgd")) < 1e-6
    assert [facts["kinds"] for facts in two.facts("sgd")] == [["DTensor"], ["DTensor"]]


# --- DeepSpeed


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="DeepSpeed is not installed")
@pytest.mark.parametrize("sharding", ["zero2", "zero3"])
def test_zero_does_what_one_process_does(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sharding: str) -> None:
    jobs = {
        "adamw": ADAMW,
        "begun": {**ADAMW, "epochs": 2, "save_every": 2, "max_updates": 2, "into": "parts"},
        "resumed": {**ADAMW, "epochs": 2, "save_every": 2, "into": "parts"},
        "whole": {**ADAMW, "epochs": 2, "save_every": 2},
        "greedy": {**ADAMW, "script": False, "temperature": 1e-4, "max_updates": 1},
        "stopped": {**ADAMW, "epochs": 2, "micro_batch": 2, "stop_at": 6, "into": "taken away"},
        "went on": {**ADAMW, "epochs": 2, "micro_batch": 2, "into": "taken away"},
        "undisturbed": {**ADAMW, "epochs": 2, "micro_batch": 2},
    }
    zero = Trainings(model, tmp_path, sharding, jobs)
    zero.launch()
    for facts in zero.facts("adamw"):
        assert facts["here"] < 0.55 * facts["whole"] if sharding == "zero3" else facts["here"] == facts["whole"]
    figures, weights = zero.alone("adamw", monkeypatch)
    compare(figures, zero.figures["adamw"])
    assert distance(weights, zero.weights("adamw")) < 2e-5
    assert distance(zero.weights("whole"), zero.weights("resumed")) == 0
    assert [told["update"] for told in zero.figures["stopped"]] == [1], "it stopped within the second update"
    assert [told["update"] for told in zero.figures["went on"]] == [2, 3, 4]
    assert distance(zero.weights("undisturbed"), zero.weights("went on")) == 0
    assert len(zero.answers("greedy")) == 16
