"""`trl-sft`: supervised training on answers of any policy, kept only where they are valid (or optimal). Our choice throughout.

With `answers_from=cbs` this is a warm-up on exact answers; with the checkpoint's own policy it is one round of filtered
self-imitation; with `answers_file=FILE` it learns what `t2t generate --answers-from` has written, whatever the round's
instances are. It takes the same job as `trl-grpo`, so the loop can run it in its place.

In a conversation, every turn of the policy is a row: what it saw, and what it said. So whole conversations are learnt without the
environment's words in the loss, and a memoryless format is learnt the way it is played.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from t2t_core.conversation import opening, shown
from t2t_core.errors import T2TError
from t2t_core.evaluation import demonstrations
from t2t_core.evaluation.answers import Progress
from t2t_core.evaluation.demonstrations import Demonstration, refuse_protected
from t2t_core.hookspecs import AnyTestbed, TrainingJob, TrainingOrder
from t2t_core.plugins import installed
from t2t_core.records import Sampling, TrainingResult
from t2t_core.registry import Spec
from t2t_core.seeding import key
from t2t_core.settings import no_argument
from t2t_plugins.policies.hf import model_facts, own_formats, quiet
from t2t_plugins.trainers.common import UPDATES, last_saved, saving, stratified, threads
from t2t_plugins.trainers.extra import require
from t2t_plugins.trainers.settings import (
    AT_LEAST_ONE,
    POSITIVE,
    TEMPERATURES,
    Range,
    check_formats,
    check_settings,
    check_start,
)
from t2t_plugins.trainers.stopping import Stopping

WHERE = "trainer trl-sft"
ANSWERS = "answers.jsonl"
MAX_UNANSWERED = 0.01  # if a larger share of the questions has no answer, this would be a different training
TOLD_EVERY = 10.0  # seconds


@dataclass(frozen=True)
class Settings:
    """Every knob.

    Args:
        answers_from: the policy that answers, as `t2t plugins` lists them; "{checkpoint}" stands for the checkpoint. Every answer
            is stored as it arrives, so a resumed training asks only for the missing ones.
        answers_file: a file of demonstrations to use instead; its answers are verified again.
        answer_format: the prompt format in which the policy is asked; "" is its own, else the testbed's first. Conversations are
            asked for in the format in which they are learnt.
        keep: which answers are learnt: "valid" or "optimal".
        temperature, max_tokens: for sampling the answers; longer answers are cut off, and dropped as not valid.
        epochs, batch, learning_rate (falling linearly), weight_decay: for the training.
        prompt_format: the questions' format in training; "" takes the one that the checkpoint was taught, else the file's own
            words, else the testbed's first.
        save_every: updates between two saved states; training resumes from the last one.
        dtype: "auto" keeps the weights in float32, with products in bfloat16 on a GPU; weights kept in bfloat16 take half the
            memory, and round small steps away.
        threads: of torch on a CPU; 0 leaves torch's default. Very small models are faster with few, on a busy machine with one.
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

    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = {"keep": demonstrations.KEEP, "dtype": ("auto", "float32", "bfloat16")}
    RANGES: ClassVar[Mapping[str, Range]] = {
        "temperature": TEMPERATURES,
        "max_tokens": Range(1, 10**6),
        "epochs": Range(1, 10_000),
        "batch": AT_LEAST_ONE,
        "learning_rate": POSITIVE,
        "save_every": AT_LEAST_ONE,
        "threads": Range(0, 1024),
    }


class Sft:
    """The trainer `trl-sft`. A run sets its settings under [training]."""

    stops_when_asked = True

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        no_argument(argument, WHERE)
        self._settings = dict(settings or {})
        self.defaults = asdict(check_settings(Settings, self._settings, WHERE))

    def check(self, order: TrainingOrder) -> None:
        """Raise T2TError for whatever `train` would refuse, before a run begins."""
        settings = check_settings(Settings, {**self._settings, **order.settings}, WHERE)
        check_start(order, WHERE)
        check_formats(order, WHERE, prompt_format=settings.prompt_format, answer_format=settings.answer_format)
        if not settings.answers_file:
            installed().policies.find(Spec.parse(settings.answers_from).name)
        elif not Path(settings.answers_file).is_file():
            raise T2TError(
                "there is no such file of answers",
                where=f"{WHERE}, answers_file={settings.answers_file}",
                next="t2t generate --answers-from POLICY --out FILE makes one",
            )
        unread = {"answers_from", "answer_format", "temperature", "max_tokens"} & {*self._settings, *order.settings}
        if settings.answers_file and unread:
            raise T2TError(
                f"{', '.join(sorted(unread))} would do nothing: the answers are in answers_file", where=WHERE, next="leave it out"
            )

    def ready(self, order: TrainingOrder) -> None:
        """Raise T2TError if something that it needs is not available on this machine."""
        require(WHERE, "torch", "datasets", "transformers", "trl")
        model_facts(str(order.checkpoint), WHERE)

    def train(self, job: TrainingJob) -> TrainingResult:
        from datasets import Dataset
        from transformers import PrinterCallback

        trl: Any = import_module("trl")
        quiet()
        settings = check_settings(Settings, {**self._settings, **job.settings}, WHERE)
        self.check(TrainingOrder(job.checkpoint, job.testbed, job.settings, len(job.instances)))
        examples = from_file(job, settings) if settings.answers_file else from_policy(job, settings)
        if not examples:
            source = settings.answers_file or settings.answers_from
            raise T2TError("there is no answer to learn from", where=WHERE, cause=f"{source} gave no {settings.keep} one")
        learnt = replace(job, instances=[example.instance for example in examples])
        rows = [_row(job.testbed, examples[i]) for i in stratified(learnt, key(job.seed, "order"))]
        updates = job.folder / UPDATES
        trainer = trl.SFTTrainer(
            model=str(job.checkpoint),
            args=sft_config(settings, updates, job.seed),
            train_dataset=Dataset.from_list(rows),
            callbacks=[watch(job)],
        )
        trainer.remove_callback(PrinterCallback)
        saved = last_saved(updates)
        with threads(settings.threads), saving(updates):
            Stopping(trainer, job.stop).train(saved)
        if trainer.is_world_process_zero():
            trainer.accelerator.unwrap_model(trainer.model).save_pretrained(job.folder)
            trainer.processing_class.save_pretrained(job.folder)
        state = trainer.state
        losses = [line["loss"] for line in state.log_history if "loss" in line]
        tokens = [line["num_tokens"] for line in state.log_history if "num_tokens" in line]
        return TrainingResult(
            checkpoint=job.folder,
            metrics={"answers": len(rows), "loss": losses[-1] if losses else None},
            samples=len(rows) * settings.epochs,
            updates=state.global_step,
            tokens=int(tokens[-1]) if tokens else 0,
        )


@dataclass(frozen=True)
class Example:
    """One answer to learn, or one turn of a conversation, with what the policy saw before it as chat messages."""

    instance: Any
    prompt: Sequence[Mapping[str, Any]]
    answer: Mapping[str, Any]


def _row(testbed: AnyTestbed, example: Example) -> dict[str, Any]:
    """A row of TRL's. Tools travel as text, since the columns of a table have one shape and descriptions of tools do not."""
    tools = {"tools": json.dumps([tool.to_dict() for tool in testbed.tools])} if testbed.tools else {}
    return {"prompt": list(example.prompt), "completion": [example.answer], **tools}


def from_file(job: TrainingJob, settings: Settings) -> list[Example]:
    """The demonstrations of `answers_file` that pass, in the checkpoint's own prompt format where it has one."""
    form = settings.prompt_format or own_formats(str(job.checkpoint)).get("prompt_format") or ""
    examples = list(_examples(job, settings, Path(settings.answers_file), form))
    refuse_protected(job.testbed, [example.instance for example in examples])
    return examples


def _examples(job: TrainingJob, settings: Settings, path: Path, form: str) -> Iterator[Example]:
    """The answers of a file that pass, their questions in that form; "" keeps the file's own words."""
    for demonstration in demonstrations.read(job.testbed, path):
        if demonstration.verdict.valid and (settings.keep == "valid" or demonstration.verdict.optimal is True):
            if job.testbed.turns > 1:
                yield from _turns(job.testbed, demonstration, form)
            else:
                question = job.testbed.unlabelled(demonstration.instance)
                prompt = [_user(job.testbed.prompt(question, form))] if form else demonstration.prompt
                yield Example(demonstration.instance, prompt, {"role": "assistant", "content": demonstration.answer})


def _turns(testbed: AnyTestbed, demonstration: Demonstration, form: str) -> Iterator[Example]:
    """Every turn of a conversation. Raises T2TError if the conversation was held in another prompt format than the one to learn,
    since the policy's words would not fit there."""
    if form and form != demonstration.prompt_format:
        raise T2TError(
            f"the conversations were held in the prompt format {demonstration.prompt_format}, but the policy learns {form}",
            where=f"{WHERE}, instance {demonstration.instance.id}",
            next=f"ask for them in that form: answer_format={form}, or t2t generate --prompt-format {form}",
        )
    first = opening(testbed, demonstration.instance, demonstration.prompt_format)
    for at, message in enumerate(demonstration.messages):
        if message.role == "assistant":
            seen = shown(testbed, first, demonstration.messages[:at], demonstration.prompt_format)
            yield Example(demonstration.instance, [m.to_dict() for m in seen], message.to_dict())


def from_policy(job: TrainingJob, settings: Settings) -> list[Example]:
    """The answers of `answers_from` to the job's instances that pass. The policy is asked only for answers that are not in the
    job's folder yet.

    Raises:
        T2TError: the policy failed, or left more than 1 % of the questions without an answer. The answers that came are kept.
    """
    sampling = Sampling(settings.temperature, settings.max_tokens)
    policy = settings.answers_from.replace("{checkpoint}", str(job.checkpoint))
    seed = key(job.seed, "answers") >> 1
    form = settings.prompt_format or own_formats(str(job.checkpoint)).get("prompt_format") or job.testbed.prompt_formats[0]
    asked = settings.answer_format or (form if job.testbed.turns > 1 else "")
    request = demonstrations.Request(policy, settings.keep, 1, sampling, asked, seed)
    counts = demonstrations.collect(job.testbed, job.instances, request, job.folder / ANSWERS, _told(job))
    if counts.unanswered > MAX_UNANSWERED * counts.questions:
        raise T2TError(
            f"{counts.unanswered} of {counts.questions} questions have no answer to learn from",
            where=f"{WHERE}, answers_from={settings.answers_from}",
            cause=counts.last_error[:300],
            next="the same command asks for the missing answers and goes on",
        )
    return list(_examples(job, settings, job.folder / ANSWERS, form))


def _told(job: TrainingJob) -> Callable[[Progress], None]:
    """A function that reports from time to time how many answers have come."""
    last = [time.monotonic()]

    def tell(progress: Progress) -> None:
        if job.stop():  # the answers that have come are stored already
            raise KeyboardInterrupt
        if job.progress and time.monotonic() - last[0] > TOLD_EVERY:
            last[0] = time.monotonic()
            job.progress({"answers": progress.done, "questions": progress.total, "errors": progress.errors})

    return tell


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def sft_config(settings: Settings, folder: Any, seed: int) -> Any:
    """A `trl.SFTConfig`. `folder` takes the states that an interrupted training continues from; `seed` is the round's."""
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
        max_length=None,  # TRL's default would cut off long answers
        model_init_kwargs={"dtype": dtype},
        use_cpu=not gpu,
        bf16=gpu and settings.dtype != "float32",
        fp16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="steps",
        save_steps=settings.save_every,
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
