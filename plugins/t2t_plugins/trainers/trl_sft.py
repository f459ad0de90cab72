"""`trl-sft`: supervised training on answers of any policy, kept only where they are valid (or optimal). Our choice throughout.

With `answers_from=cbs` this is a warm-up on exact answers; with the checkpoint's own policy it is one round of filtered
self-imitation; with `answers_file=FILE` it learns what `t2t generate --answers-from` has written, whatever the round's
instances are. It takes the same job as `trl-grpo`, so the loop can run it in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from t2t_core.errors import T2TError
from t2t_core.evaluation import demonstrations
from t2t_core.evaluation.demonstrations import refuse_protected
from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_core.records import Sampling, Task, TrainingResult, Verdict
from t2t_core.seeding import key
from t2t_core.settings import no_argument
from t2t_core.store import folders, paths
from t2t_plugins.policies.hf import own_formats, quiet
from t2t_plugins.trainers.common import check_settings, last_saved, prompts_of, start_of, stratified
from t2t_plugins.trainers.extra import require

WHERE = "trainer trl-sft"
ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class Settings:
    """Every knob.

    Args:
        answers_from: the policy that answers, as `t2t plugins` lists them; "{checkpoint}" stands for the checkpoint.
        answers_file: a file of demonstrations instead; its answers are verified again.
        answer_format: the prompt format it is asked in; "" is its own, else the testbed's first.
        keep: which of its answers are learnt: "valid" or "optimal".
        temperature, max_tokens: of its sampling; answers beyond `max_tokens` do not end and are dropped as not valid.
        epochs, batch, learning_rate (falling linearly), weight_decay: of the training.
        prompt_format: the questions' form in training; "" takes the one the checkpoint was taught, else the file's own words,
            else the testbed's first.
        save_every: updates between two saved states; training resumes from the last one.
        dtype: "auto" keeps the weights in float32, with products in bfloat16 on a GPU; weights kept in bfloat16 take half the
            memory, and round small steps away.
        threads: of torch on a CPU; 0 leaves its default; very small models gain by few, and by one only on a busy machine.
    """

    answers_from: str = "cbs"
    answers_file: str = ""
    answer_format: str = ""
    keep: str = "valid"
    temperature: float = 0.0
    max_tokens: int = 4096
    epochs: int = 1
    batch: int = 64
    learning_rate: float = 1e-4
    weight_decay: float = 0.0
    prompt_format: str = ""
    save_every: int = 100
    dtype: str = "auto"
    threads: int = 0

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {"keep": ("valid", "optimal"), "dtype": ("auto", "float32", "bfloat16")}


class Sft:
    """The trainer behind the name; a run's settings stand in its configuration under [training]."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        self.defaults = {**asdict(Settings()), **self._settings}

    def check(self, settings: Mapping[str, Any]) -> None:
        """T2TError for [training] settings that `train` would refuse, before a run has begun."""
        checked = check_settings(Settings, {**self._settings, **settings}, WHERE)
        if checked.answers_file and not Path(checked.answers_file).is_file():
            raise T2TError(
                "there is no such file of answers",
                where=f"{WHERE}, answers_file={checked.answers_file}",
                next="t2t generate --answers-from POLICY --out FILE makes one",
            )

    def ready(self) -> None:
        """T2TError where what it needs is not installed."""
        require(WHERE, "torch", "datasets", "transformers", "trl")

    def train(self, job: TrainingJob) -> TrainingResult:
        import torch
        from datasets import Dataset
        from transformers import PrinterCallback

        trl: Any = import_module("trl")
        quiet()
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        if settings.threads:
            torch.set_num_threads(settings.threads)
        start = start_of(job, WHERE)
        examples = from_file(job, settings) if settings.answers_file else from_policy(job, settings)
        if not examples:
            source = settings.answers_file or settings.answers_from
            raise T2TError("there is no answer to learn from", where=WHERE, cause=f"{source} gave no {settings.keep} one")
        learnt = replace(job, instances=[one.instance for one in examples])
        rows = [
            {"prompt": examples[i].prompt, "completion": [{"role": "assistant", "content": examples[i].answer}]}
            for i in stratified(learnt, key(job.seed, "order"))
        ]
        updates = job.folder / "updates"
        trainer = trl.SFTTrainer(
            model=str(start),
            args=configuration(settings, updates, job.seed),
            train_dataset=Dataset.from_list(rows),
            callbacks=[watch(job)],
        )
        trainer.remove_callback(PrinterCallback)
        saved = last_saved(updates)
        trainer.train(resume_from_checkpoint=str(saved) if saved else None)
        if trainer.is_world_process_zero():
            trainer.accelerator.unwrap_model(trainer.model).save_pretrained(job.folder)
            trainer.processing_class.save_pretrained(job.folder)
        state = trainer.state
        losses = [line["loss"] for line in state.log_history if "loss" in line]
        return TrainingResult(
            checkpoint=job.folder,
            metrics={"answers": len(rows), "loss": losses[-1] if losses else None},
            samples=len(rows) * settings.epochs,
            updates=state.global_step,
            tokens=int(state.num_input_tokens_seen or 0),
        )


@dataclass(frozen=True)
class Example:
    """One answer to learn, with its question as chat messages."""

    instance: Any
    prompt: Sequence[Mapping[str, str]]
    answer: str


def from_file(job: TrainingJob, settings: Settings) -> list[Example]:
    """The demonstrations of `answers_file` that pass, in the checkpoint's own prompt format where it has one."""
    form = settings.prompt_format or own_formats(str(job.checkpoint)).get("prompt_format")
    examples = []
    for one in demonstrations.read(job.testbed, Path(settings.answers_file)):
        if _passes(one.verdict, settings):
            prompt = [_user(job.testbed.prompt(job.testbed.unlabelled(one.instance), form))] if form else one.prompt
            examples.append(Example(one.instance, prompt, one.answer))
    refuse_protected(job.testbed, [one.instance for one in examples])
    return examples


def from_policy(job: TrainingJob, settings: Settings) -> list[Example]:
    """The good answers of `answers_from` to the job's instances."""
    refuse_protected(job.testbed, job.instances)
    answers = kept_answers(job, settings)
    prompts = prompts_of(job, settings.prompt_format)
    return [Example(job.instances[i], [_user(prompts[i])], text) for i, text in answers.items()]


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _passes(verdict: Verdict, settings: Settings) -> bool:
    return verdict.valid and (settings.keep == "valid" or verdict.optimal is True)


def kept_answers(job: TrainingJob, settings: Settings) -> dict[int, str]:
    """The answers worth learning, by the instance's position. They are asked for once and kept in the job's folder."""
    path = job.folder / ANSWERS
    if path.exists():
        return {int(i): text for i, text in map(json.loads, folders.read_text(path, paths.MAX_STREAM).splitlines())}
    found = dict(sorted(_answers(job, settings)))
    folders.write_atomic(path, "".join(json.dumps([i, text]) + "\n" for i, text in found.items()))
    return found


def _answers(job: TrainingJob, settings: Settings) -> Iterator[tuple[int, str]]:
    policy = installed().policies.make(settings.answers_from.replace("{checkpoint}", str(job.checkpoint)))
    form = settings.answer_format or policy.describe().get("prompt_format") or job.testbed.prompt_formats[0]
    tasks = []
    for instance in job.instances:
        bare = job.testbed.unlabelled(instance)
        tasks.append(Task(bare.id, 0, job.testbed.prompt(bare, form), bare, key(job.seed, "answer", bare.id)))
    for position, response in policy.respond(tasks, Sampling(settings.temperature, settings.max_tokens)):
        if response.error is None and _passes(job.testbed.verify(job.instances[position], response.text), settings):
            yield position, response.text


def configuration(settings: Settings, folder: Any, seed: int) -> Any:
    import torch

    trl: Any = import_module("trl")
    gpu = torch.cuda.is_available()
    dtype = "bfloat16" if settings.dtype == "bfloat16" else "float32"
    return trl.SFTConfig(
        output_dir=str(folder),
        seed=seed % 2**31,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        weight_decay=settings.weight_decay,
        completion_only_loss=True,
        max_length=None,  # TRL's default would cut long answers off before their end
        model_init_kwargs={"dtype": dtype},
        use_cpu=not gpu,
        bf16=gpu and settings.dtype != "float32",
        fp16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="steps",
        save_steps=max(1, settings.save_every),
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
    )


def watch(job: TrainingJob) -> Any:
    """Reports every update's loss."""
    from transformers import TrainerCallback

    class Callback(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if state.is_world_process_zero and job.progress and logs and "loss" in logs:
                names = {"loss": "loss", "token_accuracy": "mean_token_accuracy", "learning_rate": "learning_rate"}
                shown = {ours: logs[theirs] for ours, theirs in names.items() if theirs in logs}
                job.progress({"update": state.global_step, "updates": state.max_steps, **shown})

    return Callback()
