"""Every setting of the trainers and of local models has the documented effect: each is tried with another value than its default,
on a Qwen3 of random weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from letters import Letters, Question, questions
from qwen import random_model

from t2t_core.errors import NotReady, T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.plugins import installed
from t2t_core.records import Response, Sampling, Task, TrainingResult
from t2t_plugins.trainers import trl_sft
from t2t_plugins.trainers.common import last_saved
from t2t_plugins.trainers.trl_grpo import trainer as trl_grpo
from t2t_plugins.trainers.trl_grpo.launch import launcher
from t2t_plugins.trainers.trl_grpo.settings import Settings
from t2t_plugins.trainers.trl_grpo.trainer import Grpo
from t2t_plugins.trainers.trl_grpo.trl_config import OBJECTIVE, check_passed_on, grpo_config

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train
UPDATES = 2
GRPO: dict[str, Any] = {"group": 4, "prompts": 4, "epochs": 1, "learning_rate": 1e-3, "max_tokens": 48, "threads": 1,
                        "length_start": 24, "length_end": 72, "beta": 0.0, "prompt_format": "short"}  # fmt: skip


@dataclass
class Run:
    """What one training did."""

    result: TrainingResult
    figures: list[Mapping[str, Any]]
    bed: Letters
    folder: Path
    threads: set[int] = field(default_factory=set)

    @property
    def weights(self) -> dict[str, Any]:
        from safetensors.torch import load_file

        return load_file(self.folder / "model.safetensors")

    def distance(self, other: dict[str, Any]) -> float:
        """The most that any weight differs."""
        return max(float((self.weights[name].float() - other[name].float()).abs().max()) for name in other)


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("trl")
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("qwen3")
    random_model(folder)
    return folder


@pytest.fixture(scope="module")
def start(model: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(model / "model.safetensors")


Train = Callable[..., Run]


@pytest.fixture(scope="module")
def grpo(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    def train(stop: int = 0, folder: Path | None = None, resume_from: Path | None = None, **settings: Any) -> Run:
        bed, figures, threads = Letters(), [], set()
        folder = folder or tmp_path_factory.mktemp("run") / "checkpoint"

        def progress(told: Mapping[str, Any]) -> None:
            figures.append(told)
            threads.add(torch.get_num_threads())
            if told["update"] == stop:
                raise Stopped

        checked = {**GRPO, **settings}
        job = TrainingJob(model, questions(4 * UPDATES), bed, checked, folder, 5, resume_from=resume_from, progress=progress)
        try:
            result = Grpo().train(job)
        except Stopped:
            result = TrainingResult(None)
        return Run(result, figures, bed, folder, threads)

    return train


@pytest.fixture(scope="module")
def base(grpo: Train) -> Run:
    return grpo()


def of_update(run: Run, update: int) -> list[tuple[str, str]]:
    size = len(run.bed.answers) // len(run.figures)
    return run.bed.answers[size * (update - 1) : size * update]


def test_every_setting_of_grpo() -> None:
    walked = {name.removeprefix("test_grpo_") for name in globals() if name.startswith("test_grpo_")}
    assert {f.name for f in fields(Settings)} == walked


def test_grpo_group(grpo: Train, base: Run) -> None:
    run = grpo(group=2)
    assert base.result.samples == UPDATES * 4 * 4 == len(base.bed.answers)
    assert run.result.samples == UPDATES * 4 * 2 == len(run.bed.answers)


def test_grpo_prompts(grpo: Train, base: Run) -> None:
    run = grpo(prompts=2)
    assert (base.result.updates, run.result.updates) == (UPDATES, 2 * UPDATES) and run.result.samples == base.result.samples


def test_grpo_epochs(grpo: Train, base: Run) -> None:
    run = grpo(epochs=2)
    assert run.result.updates == 2 * UPDATES and run.result.samples == 2 * base.result.samples
    for answers in (run.bed.answers[: len(base.bed.answers)], run.bed.answers[len(base.bed.answers) :]):
        assert {name for name, _ in answers} == {q.id for q in questions(8)}, "each pass has every question"


def test_grpo_learning_rate(grpo: Train, start: dict[str, Any]) -> None:
    """AdamW's first step has the length of the learning rate, whatever the gradient."""
    for rate in (1e-3, 4e-3):
        assert grpo(learning_rate=rate, max_updates=1).distance(start) == pytest.approx(rate, rel=0.02)


def test_grpo_weight_decay(grpo: Train, start: dict[str, Any]) -> None:
    free, decayed = (grpo(weight_decay=decay, max_updates=1).weights for decay in (0.0, 0.5))
    name = "model.layers.0.self_attn.q_proj.weight"
    assert torch.allclose(free[name] - decayed[name], 1e-3 * 0.5 * start[name], atol=1e-7)


def test_grpo_beta2(grpo: Train, base: Run, start: dict[str, Any]) -> None:
    run = grpo(beta2=0.5)
    assert run.figures[0] == {**base.figures[0], **{k: run.figures[0][k] for k in ("responses_per_second", "eta_seconds")}}
    assert run.distance(base.weights) > 1e-5, "only from the second step on does it matter"


def test_grpo_beta(grpo: Train, base: Run) -> None:
    run = grpo(beta=5.0)
    assert all("kl" not in told for told in base.figures)
    assert run.figures[0]["kl"] == pytest.approx(0, abs=1e-7) and run.figures[1]["kl"] > 1e-6
    assert run.distance(base.weights) > 1e-5


def test_grpo_temperature(grpo: Train, base: Run) -> None:
    cold = grpo(temperature=0.05, max_updates=1)
    assert cold.figures[0]["entropy"] < base.figures[0]["entropy"] - 0.5
    assert of_update(cold, 1) != of_update(base, 1)


def every_response_of_a_group_is_the_likeliest(grpo: Train, **narrow: Any) -> None:
    run = grpo(max_updates=1, **narrow)
    texts: dict[str, set[str]] = {}
    for name, text in run.bed.answers:
        texts.setdefault(name, set()).add(text)
    assert all(len(some) == 1 for some in texts.values()) and run.figures[0]["zero_variance"] == 1


def test_grpo_top_p(grpo: Train) -> None:
    every_response_of_a_group_is_the_likeliest(grpo, top_p=1e-6, engine="fast")


def test_grpo_top_k(grpo: Train) -> None:
    every_response_of_a_group_is_the_likeliest(grpo, top_k=1, engine="fast")


def test_grpo_min_p(grpo: Train) -> None:
    every_response_of_a_group_is_the_likeliest(grpo, min_p=1.0, engine="plain")


def test_grpo_max_tokens(grpo: Train, base: Run) -> None:
    assert grpo(max_tokens=5, max_updates=1).figures[0]["response_tokens"] <= 5 < base.figures[0]["response_tokens"] <= 48


def test_grpo_thinking(grpo: Train, base: Run) -> None:
    """Off, a prompt of this template ends in an empty block of thoughts: six tokens more."""
    off = grpo(thinking="off", max_updates=1)
    on = grpo(thinking="on", max_updates=1)
    assert of_update(on, 1) == of_update(base, 1) != of_update(off, 1)
    extra = off.figures[0]["response_tokens"] * 16 + 16 * 6 - on.figures[0]["response_tokens"] * 16
    assert off.result.tokens - on.result.tokens == pytest.approx(extra)


def test_grpo_length_start(grpo: Train, base: Run) -> None:
    run = grpo(length_start=47)
    assert of_update(run, 1) == of_update(base, 1)
    assert run.figures[0]["reward"] > base.figures[0]["reward"], "the penalty begins later"


def test_grpo_length_end(grpo: Train, base: Run) -> None:
    run = grpo(length_end=200)
    assert of_update(run, 1) == of_update(base, 1)
    assert run.figures[0]["reward"] > base.figures[0]["reward"], "the penalty grows more slowly"


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "bnpo"])
def test_grpo_loss(grpo: Train, base: Run, loss: str) -> None:
    run = grpo(loss=loss, max_updates=1, micro_batch=4)
    usual = grpo(max_updates=1, micro_batch=4)
    assert of_update(run, 1) == of_update(base, 1) == of_update(usual, 1)
    assert run.figures[0]["grad_norm"] != pytest.approx(usual.figures[0]["grad_norm"], rel=1e-4)


def test_grpo_clip(grpo: Train) -> None:
    wide, narrow = (grpo(clip=clip, iterations=2, max_updates=2, learning_rate=2e-2) for clip in (100.0, 1e-4))
    assert wide.figures[0]["loss"] == narrow.figures[0]["loss"], "the ratio of a first update is 1"
    assert wide.figures[1]["grad_norm"] > narrow.figures[1]["grad_norm"], "beyond the clip nothing is learnt"


def test_grpo_iterations(grpo: Train, base: Run) -> None:
    run = grpo(iterations=2)
    assert (run.result.updates, run.result.samples) == (2 * UPDATES, base.result.samples)
    assert len(run.bed.answers) == run.result.samples and [told["update"] for told in run.figures] == [1, 2, 3, 4]
    assert of_update(run, 1)[0] == of_update(base, 1)[0]
    assert ["share_short" in told for told in run.figures] == [True, False, True, False], "the weights move once a batch"
    assert all("loss" in told and "grad_norm" in told for told in run.figures)


def test_grpo_scale(grpo: Train, base: Run) -> None:
    norms = [grpo(scale=scale, max_updates=1).figures[0]["grad_norm"] for scale in ("group", "batch", "none")]
    assert len({round(norm, 6) for norm in norms}) == 3 and norms[0] == base.figures[0]["grad_norm"]


def test_grpo_optimizer(grpo: Train, base: Run) -> None:
    kept = grpo(optimizer="keep")
    assert kept.result.keep_updates and not base.result.keep_updates
    warm, cold = (grpo(optimizer=name, resume_from=kept.folder, max_updates=1) for name in ("keep", "reset"))
    assert warm.distance(cold.weights) > 1e-5
    with pytest.raises(T2TError, match="optimizer's state of the round before is not there"):
        grpo(optimizer="keep", resume_from=kept.folder / "nowhere")


def test_grpo_save_every(grpo: Train) -> None:
    for every, kept in ((1, "checkpoint-1"), (2, None)):
        saved = last_saved(grpo(stop=2, save_every=every, epochs=2).folder / "updates")
        assert (saved.name if saved else None) == kept


def test_grpo_engine(grpo: Train, base: Run, model: Path) -> None:
    fast, plain = grpo(engine="fast", max_updates=1), grpo(engine="plain", max_updates=1)
    assert of_update(fast, 1) == of_update(base, 1) != of_update(plain, 1)
    if not torch.cuda.is_available():
        with pytest.raises(NotReady, match="vLLM in the training process needs a GPU"):
            grpo(engine="vllm-colocate")


def test_grpo_vllm_server_url(tmp_path: Path) -> None:
    settings = Settings(engine="vllm-server", vllm_server_url="http://127.0.0.1:8000", prompts=4)
    made = grpo_config(settings, tmp_path, 0, 1)
    assert made.vllm_server_base_url == "http://127.0.0.1:8000" and made.vllm_mode == "server" and made.use_vllm


def test_grpo_buckets(grpo: Train, base: Run) -> None:
    """The questions of an update in the order of their length, two at a time."""
    run = grpo(buckets=2, max_updates=1)
    length = {q.id: len(q.text) for q in questions(8)}
    order = [length[name] for name, _ in of_update(run, 1)]
    assert order == sorted(order) != [length[name] for name, _ in of_update(base, 1)]


def test_grpo_micro_batch(grpo: Train, base: Run, tmp_path: Path) -> None:
    """Another split of the same update: the same samples, the same step up to rounding."""
    run = grpo(micro_batch=2)
    assert grpo_config(Settings(**{**GRPO, "micro_batch": 2}), tmp_path, 0, 1).per_device_train_batch_size == 2
    assert of_update(run, 1) == of_update(base, 1)
    assert run.figures[0]["grad_norm"] == pytest.approx(base.figures[0]["grad_norm"], rel=1e-4)


def test_grpo_lora(grpo: Train, start: dict[str, Any]) -> None:
    weights = grpo(lora=2, max_updates=1).weights
    changed = {name for name in start if not torch.equal(start[name], weights[name])}
    assert weights.keys() == start.keys() and changed and all("proj" in name for name in changed)


def test_grpo_dtype(grpo: Train) -> None:
    assert {w.dtype for w in grpo(dtype="bfloat16", max_updates=1).weights.values()} == {torch.bfloat16}
    assert {w.dtype for w in grpo(dtype="float32", max_updates=1).weights.values()} == {torch.float32}


def test_grpo_prompt_format(grpo: Train, base: Run) -> None:
    assert all("Please" in text for text in grpo(prompt_format="long", max_updates=1).bed.asked)
    assert not any("Please" in text for text in base.bed.asked)


def test_grpo_threads(grpo: Train, base: Run) -> None:
    before = torch.get_num_threads()
    assert grpo(threads=2, max_updates=1).threads == {2} and base.threads == {1}
    assert torch.get_num_threads() == before, "what comes after a training has settings of its own"


def test_grpo_processes(grpo: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """How several processes train together has tests of its own (test_sharding.py)."""
    started: list[Settings] = []
    monkeypatch.setattr(trl_grpo, "launch", lambda job, settings: started.append(settings) or TrainingResult(job.folder))
    grpo(processes=2)
    assert [settings.processes for settings in started] == [2]


def launched(**settings: Any) -> Any:
    """What `accelerate launch` makes of our command: its own parser and checks."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    command = launcher(Settings(**{"processes": 4, **settings}))
    arguments = launch_command_parser().parse_args([*command[3:], "-m", "x"])
    return _validate_launch_command(arguments)[0]


@pytest.mark.parametrize("processes", [2, 4, 8, 16])
@pytest.mark.parametrize("sharding", ["none", "fsdp2", "zero2", "zero3"])
def test_grpo_sharding(sharding: str, processes: int) -> None:
    """Accelerate's configuration files, on one machine and on two. What it does stands in test_sharding.py."""
    options = launched(sharding=sharding, processes=processes)
    ways = {"fsdp2": "use_fsdp", "zero2": "use_deepspeed", "zero3": "use_deepspeed", "none": "multi_gpu"}
    assert {name for name in set(ways.values()) if getattr(options, name)} == {ways[sharding]}
    assert options.num_processes == processes and options.num_machines == 1 and options.mixed_precision == "no"
    if sharding == "fsdp2":
        assert (options.fsdp_version, options.fsdp_state_dict_type, options.fsdp_offload_params) == (2, "FULL_STATE_DICT", False)
    if sharding.startswith("zero"):
        stage = json.loads(Path(options.deepspeed_config_file).read_text())["zero_optimization"]["stage"]
        assert stage == int(sharding[-1])
    two = launched(sharding=sharding, processes=processes, accelerate={"num_machines": 2, "main_process_ip": "10.0.0.1"})
    assert two.num_machines == 2 and two.main_process_ip == "10.0.0.1"


def test_grpo_accelerate() -> None:
    assert launched(accelerate={"num_cpu_threads_per_process": 3}).num_cpu_threads_per_process == 3
    assert launched(accelerate={"main_process_port": 29501}).main_process_port == 29501
    for table, why in (({"num_procesess": 2}, "did you mean num_processes"), ({"num_processes": 2}, "setting of its own")):
        with pytest.raises(T2TError, match=why):
            check_passed_on(Settings(accelerate=table))


def test_grpo_trl(grpo: Train, base: Run) -> None:
    assert grpo(trl={"optim": "sgd"}, max_updates=1).distance(base.weights) > 1e-4
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"max_grad_nrom": 2}, "did you mean max_grad_norm"),
        ({"temperature": 2}, "setting of its own"),
        ({"optim": "abc"}, "not a valid OptimizerNames"),
        ({"lr_scheduler_type": "abc"}, "not a valid SchedulerType"),
        ({"warmup_steps": -1}, "at least 0"),
        ({"adam_beta1": 2}, "below 1"),
        ({"repetition_penalty": -1}, "above 0"),
        ({"top_entropy_quantile": 2}, "at most 1"),
        ({"entropy_coef": "much"}, "must be a number"),
        ({"importance_sampling_level": "abc"}, "one of token, sequence"),
        ({"disable_dropout": 1}, "true or false"),
        ({"dataloader_num_workers": "x"}, "must be a number"),
    ]
    for table, why in wrong:
        with pytest.raises(T2TError, match=why):
            check_passed_on(Settings(trl=table))
    check_passed_on(Settings(trl={"warmup_steps": 0.1, "delta": 1.5, "report_to": ["tensorboard"], "log_completions": True}))
    with pytest.raises(T2TError, match="trl must be a table"):
        grpo(trl=3)
    with pytest.raises(T2TError, match="TRL refuses this configuration"):
        grpo_config(Settings(trl={"auto_find_batch_size": True}), Path("x"), 0, 1)


def test_grpo_recompute(grpo: Train, base: Run) -> None:
    """The same step: what is not kept is computed again."""
    run = grpo(recompute=True)
    assert run.figures[0]["grad_norm"] == pytest.approx(base.figures[0]["grad_norm"], rel=1e-5)
    assert grpo_config(Settings(recompute=True), Path("x"), 0, 1).gradient_checkpointing
    assert not grpo_config(Settings(), Path("x"), 0, 1).gradient_checkpointing


def vllm(**settings: Any) -> Any:
    return grpo_config(Settings(**{"engine": "vllm-colocate", "processes": 4, **settings}), Path("x"), 0, 1, longest_prompt=600)


def test_grpo_vllm_memory() -> None:
    assert vllm(vllm_memory=0.45).vllm_gpu_memory_utilization == 0.45 != vllm().vllm_gpu_memory_utilization


def test_grpo_vllm_sleep() -> None:
    assert vllm().vllm_enable_sleep_mode and not vllm(vllm_sleep=False).vllm_enable_sleep_mode


def test_grpo_vllm_tensor_parallel() -> None:
    assert vllm(vllm_tensor_parallel=2).vllm_tensor_parallel_size == 2


def test_grpo_vllm_correction() -> None:
    assert vllm().vllm_importance_sampling_mode == "token_truncate" and vllm().vllm_importance_sampling_correction
    assert vllm(vllm_correction="sequence_mask").vllm_importance_sampling_mode == "sequence_mask"
    assert not vllm(vllm_correction="none").vllm_importance_sampling_correction


def test_grpo_vllm_correction_cap() -> None:
    assert vllm(vllm_correction_cap=5.0).vllm_importance_sampling_clip_max == 5.0


def test_vllm_holds_the_longest_prompt_and_a_whole_response() -> None:
    assert vllm().vllm_max_model_length == 600 + 4096


def test_no_value_that_changes_the_objective_is_left_to_the_next_version_of_trl() -> None:
    """Every field of `GRPOConfig` that could is set by us, and the dry run prints it."""
    trl = pytest.importorskip("trl")
    made, usual = vllm(), trl.GRPOConfig(output_dir="x", use_cpu=True, bf16=False)
    for name, value in OBJECTIVE.items():
        assert getattr(made, name) == value, name
    assert set(OBJECTIVE) <= set(vars(usual)) and Grpo().defaults["trl"] == OBJECTIVE
    assert (made.epsilon_high, made.vllm_importance_sampling_clip_min) == (0.2, None)


def test_grpo_max_updates(grpo: Train, base: Run) -> None:
    run = grpo(max_updates=1)
    assert run.result.updates == 1 and of_update(run, 1) == of_update(base, 1)
    assert grpo(max_updates=3, iterations=2).result.updates == 3


@pytest.mark.parametrize("iterations", [1, 2])
def test_a_stopped_training_ends_in_the_same_weights_however_often_a_batch_is_used(
    grpo: Train, tmp_path: Path, iterations: int
) -> None:
    whole = grpo(iterations=iterations, save_every=1, epochs=2)
    for stop in (3, 0):
        parts = grpo(iterations=iterations, save_every=1, epochs=2, stop=stop, folder=tmp_path / "parts")
    assert parts.figures[0]["update"] == 3, "saved after the second update, which for two of a batch is after the first batch"
    assert whole.weights.keys() == parts.weights.keys() and whole.distance(parts.weights) == 0


def test_updates_that_teach_nothing_are_told(grpo: Train) -> None:
    class Even(Letters):
        def reward_terms(self, instance: Question, verdict: Any) -> Mapping[str, float]:
            return {"letters": 0.8}  # whose float32 sum is no whole multiple of it: TRL's own figure finds a spread here

    told = train_on(Even(), grpo)
    assert [row["zero_variance"] for row in told] == [1.0] * UPDATES and [row["grad_norm"] for row in told] == [0.0] * UPDATES
    assert all(len(row["warnings"]) == 3 for row in told), "cut off, no spread, no gradient"


def train_on(bed: Letters, grpo: Train) -> list[Mapping[str, Any]]:
    """Trained on that task, all answers cut off and equally long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("test_trainer_settings.Letters", lambda: bed)
        return list(grpo(max_tokens=1, length_start=8).figures)


def test_what_is_wrong_with_a_machine_or_a_model_is_said_before_training(grpo: Train, model: Path, tmp_path: Path) -> None:
    def ready(checkpoint: Path, **settings: Any) -> None:
        Grpo().ready(TrainingOrder(checkpoint, Letters(), {**GRPO, **settings}, 8))

    ready(model)
    with pytest.raises(NotReady, match="the model could not be read"):
        ready(tmp_path / "nothing")
    config = json.loads((model / "config.json").read_text())
    for name in ("large", "mute"):
        (tmp_path / name).mkdir()
        for file in model.iterdir():
            (tmp_path / name / file.name).write_bytes(file.read_bytes())
    (tmp_path / "large" / "config.json").write_text(json.dumps({**config, "intermediate_size": 10**6}))
    with pytest.raises(T2TError, match="engine=fast does not compute this model"):
        ready(tmp_path / "large", engine="fast")
    (tmp_path / "mute" / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    with pytest.raises(T2TError, match="thinking=off does nothing"):
        ready(tmp_path / "mute", thinking="off")
    ready(tmp_path / "mute")


# --- supervised training


class Scribe:
    """A policy that writes letters; it keeps what it was asked, stops after `most` answers, and says a format of its own."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.sampling: Sampling | None = None
        self.most = 10**9

    def respond(self, tasks: Any, sampling: Sampling) -> Iterator[tuple[int, Response]]:
        self.sampling = sampling
        for position, task in enumerate(tasks):
            if len(self.asked) >= self.most:
                raise KeyboardInterrupt
            self.asked.append((task.instance_id, task.prompt))
            number = int(task.instance_id[1:])
            yield position, Response("aaaa" if number % 4 == 0 else "acab" if number % 4 == 1 else "bbbb", 3, 4)

    def describe(self) -> Mapping[str, Any]:
        return {"deterministic": True, "batch_size": None}


SFT: dict[str, Any] = {"answers_from": "scribe", "batch": 4, "learning_rate": 1e-3, "threads": 1, "prompt_format": "short"}


@pytest.fixture
def scribe() -> Iterator[Scribe]:
    made = Scribe()
    installed().policies.add("scribe", lambda argument, settings: made)
    yield made
    del installed().policies.entries["scribe"]


@pytest.fixture
def sft(model: Path, tmp_path: Path, scribe: Scribe) -> Train:
    runs: list[int] = []

    def train(folder: Path | None = None, **settings: Any) -> Run:
        bed, figures, threads = Letters(), [], set()
        runs.append(1)
        folder = folder or tmp_path / f"run_{len(runs)}"

        def progress(told: Mapping[str, Any]) -> None:
            figures.append(told)
            threads.add(torch.get_num_threads())

        checked = {**SFT, **settings}
        if "answers_file" in settings:
            del checked["answers_from"]
        job = TrainingJob(model, questions(16), bed, checked, folder, 5, progress=progress)
        return Run(trl_sft.Sft().train(job), figures, bed, folder, threads)

    return train


def test_every_setting_of_sft() -> None:
    walked = {name.removeprefix("test_sft_") for name in globals() if name.startswith("test_sft_")}
    assert {f.name for f in fields(trl_sft.Settings)} == walked


def test_sft_answers_from(sft: Train, scribe: Scribe) -> None:
    run = sft()
    assert len(scribe.asked) == 16 and run.result.metrics["answers"] == 8 and run.result.updates == 2


def test_every_answer_is_kept_as_it_comes(sft: Train, scribe: Scribe, tmp_path: Path) -> None:
    """Stopped in the middle of its asking, it asks for the missing answers alone."""
    scribe.most = 10
    with pytest.raises(KeyboardInterrupt):
        sft(folder=tmp_path / "stopped")
    scribe.most = 10**9
    run = sft(folder=tmp_path / "stopped")
    assert len(scribe.asked) == 16 == len(set(scribe.asked)), "none is asked twice"
    assert run.distance(sft().weights) == 0


def test_too_many_questions_without_an_answer_are_no_training(
    sft: Train, scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scribe.respond
    broken = {"q3", "q5"}

    def respond(tasks: Any, sampling: Sampling) -> Iterator[tuple[int, Response]]:
        for position, response in whole(tasks, sampling):
            error = "503" if tasks[position].instance_id in broken else None
            yield position, Response(response.text, error=error, finish_reason="error" if error else "stop")

    monkeypatch.setattr(scribe, "respond", respond)
    with pytest.raises(T2TError, match="2 of 16 questions have no answer") as error:
        sft()
    assert error.value.cause == "503"


def test_sft_answers_file(sft: Train, scribe: Scribe) -> None:
    first = sft()
    run = sft(answers_file=str(first.folder / "answers.jsonl"))
    assert len(scribe.asked) == 16 and run.result.metrics["answers"] == 8


def test_sft_answer_format(sft: Train, scribe: Scribe) -> None:
    run = sft(answer_format="long")
    assert all("Please" in prompt for _, prompt in scribe.asked)
    assert run.result.tokens < sft(prompt_format="long").result.tokens, "it is asked in it, not taught in it"


def test_sft_keep(sft: Train) -> None:
    assert sft(keep="optimal").result.metrics["answers"] == 4


def test_sft_temperature(sft: Train, scribe: Scribe) -> None:
    sft(temperature=0.7)
    assert scribe.sampling == Sampling(0.7)


def test_sft_max_tokens(sft: Train, scribe: Scribe) -> None:
    sft(max_tokens=7)
    assert scribe.sampling == Sampling(0.0, 7)


def test_sft_epochs(sft: Train) -> None:
    run = sft(epochs=2)
    assert (run.result.updates, run.result.samples) == (4, 16)


def test_sft_batch(sft: Train) -> None:
    assert sft(batch=2).result.updates == 4


def test_sft_learning_rate(sft: Train, start: dict[str, Any]) -> None:
    assert sft(learning_rate=4e-3, batch=8).distance(start) == pytest.approx(4e-3, rel=0.02)


def test_sft_weight_decay(sft: Train, start: dict[str, Any]) -> None:
    free, decayed = (sft(weight_decay=decay, batch=8).weights for decay in (0.0, 0.5))
    name = "model.layers.0.self_attn.q_proj.weight"
    assert torch.allclose(free[name] - decayed[name], 1e-3 * 0.5 * start[name], atol=1e-7)


def test_sft_prompt_format(sft: Train) -> None:
    assert sft(prompt_format="long").result.tokens > sft().result.tokens


def test_sft_save_every(sft: Train) -> None:
    assert (sft(save_every=1, epochs=2).folder / "updates" / "checkpoint-4").is_dir()


def test_sft_dtype(sft: Train) -> None:
    assert {w.dtype for w in sft(dtype="bfloat16").weights.values()} == {torch.bfloat16}


def test_sft_threads(sft: Train) -> None:
    before = torch.get_num_threads()
    assert sft(threads=2).threads == {2} and torch.get_num_threads() == before


# --- local models


def test_every_setting_of_local_models(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [Task(f"t{n}", 0, "abc" * (n + 1), None, n) for n in range(5)]

    def ask(**settings: str) -> tuple[Any, list[str]]:
        policy = installed().policies.make(f"hf:{model}" + "".join(f",{k}={v}" for k, v in settings.items()))
        responses = dict(policy.respond(tasks, Sampling(max_tokens=4)))
        return policy, [responses[i].text for i in range(5)]

    usual, texts = ask(threads="1")
    assert usual._sampler is not None and usual._loaded[0].dtype == torch.float32
    plain, same = ask(engine="plain", threads="1")
    assert plain._sampler is None and same == texts
    half, _ = ask(dtype="bfloat16")
    assert half._loaded[0].dtype == torch.bfloat16
    elsewhere, _ = ask(device="cpu")
    assert elsewhere._loaded[0].device.type == "cpu"
    with pytest.raises(T2TError):
        ask(device="nowhere")
    sizes: list[int] = []
    small = installed().policies.make(f"hf:{model},batch_size=2")
    small._load()
    answer = small._inside._answer

    def counted(model: Any, tokenizer: Any, prompts: list[list[int]], *more: Any) -> Any:
        sizes.append(len(prompts))
        return answer(model, tokenizer, prompts, *more)

    monkeypatch.setattr(small._inside, "_answer", counted)
    list(small.respond(tasks, Sampling(max_tokens=4)))
    assert sizes == [2, 2, 1]
    sizes.clear()
    monkeypatch.setattr(small._inside, "cache_gb", 1e-9)  # less than one answer takes
    assert len(dict(small.respond(tasks, Sampling(max_tokens=4)))) == 5 and sizes == [1] * 5
    bounded = installed().policies.make(f"hf:{model},cache_gb=0.01")
    assert bounded._at_once(small._loaded[0], [100] * 256, 3900) == 0.01e9 // (4000 * 2 * 2 * 32 * 4)
    ask(threads="2")
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
