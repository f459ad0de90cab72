"""Write what a bench would ask to a file, for answers made elsewhere; `answers:FILE` takes the answers back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.questions import Evaluation
from t2t_core.records import Task
from t2t_core.store import folders, jsonlines

FORMATS = ("jsonl", "openai-batch")


def export(evaluation: Evaluation, path: Path, form: str, model: str) -> int:
    """Write every question of an evaluation, and return how many there are.

    Args:
        path: the file; an existing one is replaced, whole or not at all.
        form: "jsonl": an object per line with `id`, `sample`, `messages`, `temperature` and `max_tokens`; "openai-batch": the
            requests of OpenAI's Batch API, named by `custom_id`.
        model: the model that a batch asks.

    Raises:
        T2TError: the next question depends on the last answer (a task of several turns), or a batch has no model.
    """
    if evaluation.testbed.turns > 1:
        raise T2TError(
            f"the questions of {evaluation.testbed.name} cannot be written down before they are asked",
            where="--export-prompts",
            cause="what is asked next depends on what was said",
            next="let a policy answer: --policy endpoint:MODEL,base_url=..., or a plugin of your own",
        )
    if form == "openai-batch" and not model:
        raise T2TError("which model is the batch for?", where="--format openai-batch", next="add --model NAME")
    write: Callable[[Evaluation, Task, str], Mapping[str, Any]] = _request if form == "openai-batch" else _question
    with folders.replacing(path) as file:
        for line in _lines(evaluation, write, model):
            file.write(line)
    return len(evaluation)


def _lines(evaluation: Evaluation, write: Callable[..., Mapping[str, Any]], model: str) -> Iterator[bytes]:
    for index in range(len(evaluation)):
        yield jsonlines.dumps(write(evaluation, evaluation.task(index), model)).encode() + b"\n"


def _question(evaluation: Evaluation, task: Task, model: str) -> Mapping[str, Any]:
    sampling = evaluation.sampling
    return {
        "id": task.instance_id,
        "sample": task.sample,
        "messages": [message.to_dict() for message in task.messages],
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
    }


def _request(evaluation: Evaluation, task: Task, model: str) -> Mapping[str, Any]:
    sampling = evaluation.sampling
    body = {
        "model": model,
        "messages": [message.to_dict() for message in task.messages],
        "temperature": sampling.temperature,
        "max_completion_tokens": sampling.max_tokens,
    }
    name = task.instance_id if evaluation.samples == 1 else f"{task.instance_id}#{task.sample}"
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}
