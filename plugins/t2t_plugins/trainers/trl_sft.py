"""`trl-sft`: supervised training on answers of any policy, kept only where they are valid (or optimal). Our choice throughout.

With `answers_from=cbs` this is a warm-up on exact answers; with the checkpoint's own policy it is one round of filtered
self-imitation. It takes the same job as `trl-grpo`, so the loop can run it in its place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, ClassVar

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Sampling, Task, TrainingJob, TrainingResult
from t2t_core.seeding import key
from t2t_core.settings import no_argument
from t2t_plugins.policies.hf import quiet
from t2t_plugins.trainers.common import check_settings, last_saved, prompts_of, refuse_overlap, start_of, stratified

WHERE = "trainer trl-sft"
ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class Settings:
    """Every knob.

    Args:
        answers_from: the policy that answers, as `t2t plugins` lists them; "{checkpoint}" stands for the checkpoint.
        answer_format: the prompt format it is asked in; "" is its own, else the testbed's first.
        keep: which of its answers are learnt: "valid" or "optimal".
        temperature, max_tokens: of its sampling; answers beyond `max_tokens` do not end and are dropped as not valid.
        epochs, batch, learning_rate (falling linearly), weight_decay: of the training.
        prompt_format: the questions' form in training; "" takes the one the checkpoint was taught.
        save_every: updates between two saved states; training resumes from the last one.
    """

    answers_from: str = "cbs"
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

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {"keep": ("valid", "optimal"), "dtype": ("auto", "float32", "bfloat16")}


class Sft:
    """The trainer behind the name; a run's settings stand in its configuration under [training]."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        self.defaults = {**asdict(Settings()), **self._settings}

    def check(self, settings: Mapping[str, Any]) -> None:
        """T2TError for [training] settings that `train` would refuse, before a run has begun."""
        check_settings(Settings, {**self._settings, **settings}, WHERE)

    def train(self, job: TrainingJob) -> TrainingResult:
        from datasets import Dataset
        from transformers import PrinterCallback

        trl: Any = import_module("trl")
        quiet()
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        refuse_overlap(job)
        start = start_of(job, WHERE)
        answers = kept_answers(job, settings)
        prompts = prompts_of(job, settings.prompt_format)
        rows = [
            {
                "prompt": [{"role": "user", "content": prompts[i]}],
                "completion": [{"role": "assistant", "content": answers[i]}],
            }
            for i in stratified(job, key(job.seed, "order"))
            if i in answers
        ]
        if not rows:
            raise T2TError(
                "there is no answer to learn from", where=WHERE, cause=f"{settings.answers_from} gave no {settings.keep} one"
            )
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


def kept_answers(job: TrainingJob, settings: Settings) -> dict[int, str]:
    """The answers worth learning, by the instance's position. They are asked for once and kept in the job's folder."""
    path = job.folder / ANSWERS
    if path.is_file():
        return {int(i): text for i, text in map(json.loads, path.read_text().splitlines())}
    job.folder.mkdir(parents=True, exist_ok=True)
    found = dict(sorted(_answers(job, settings)))
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(json.dumps([i, text]) + "\n" for i, text in found.items()))
    os.replace(fresh, path)
    return found


def _answers(job: TrainingJob, settings: Settings) -> Iterator[tuple[int, str]]:
    policy = installed().policies.make(settings.answers_from.replace("{checkpoint}", str(job.checkpoint)))
    form = settings.answer_format or policy.describe().get("prompt_format") or job.testbed.prompt_formats[0]
    tasks = []
    for instance in job.instances:
        bare = job.testbed.unlabelled(instance)
        tasks.append(Task(bare.id, 0, job.testbed.prompt(bare, form), bare, key(job.seed, "answer", bare.id)))
    for position, response in policy.respond(tasks, Sampling(settings.temperature, settings.max_tokens)):
        if response.error is None:
            verdict = job.testbed.verify(job.instances[position], response.text)
            if verdict.valid and (settings.keep == "valid" or verdict.optimal):
                yield position, response.text


def configuration(settings: Settings, folder: Any, seed: int) -> Any:
    import torch

    trl: Any = import_module("trl")
    gpu = torch.cuda.is_available()
    dtype = settings.dtype if settings.dtype != "auto" else "bfloat16" if gpu else "float32"
    return trl.SFTConfig(
        output_dir=str(folder),
        seed=seed % 2**31,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        weight_decay=settings.weight_decay,
        completion_only_loss=True,
        model_init_kwargs={"dtype": dtype},
        use_cpu=not gpu,
        bf16=gpu and dtype == "bfloat16",
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
