"""check_policy"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from t2t_core import contract
from t2t_core.evaluation.lines import response_fault
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Response, Sampling, Task
from t2t_core.testing.base import as_json, calling, mapping, require, short, some_instances, tasks_for

_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)


def check_policy(
    policy: Any,
    testbed: AnyTestbed,
    instances: Sequence[Any] | None = None,
    *,
    sampling: Sampling | None = None,
    samples: int = 2,
) -> None:
    """The contract of `hookspecs.Policy`.

    Every position exactly once, right types, an empty batch, a batch abandoned half way, no key in `describe()`; where it
    claims to be deterministic: the same answers again, in another order, one by one, and whatever labels the instance
    carries (so it cannot have read them).

    Args:
        policy: what your factory makes.
        testbed: whose instances it plays.
        instances: labelled ones to ask; None: a dozen random ones.
        sampling: how it is asked.
        samples: answers per instance.
    """
    sampling = sampling or Sampling()
    if instances is None:
        instances = some_instances(testbed)
    described = _describe(policy)
    tasks = tasks_for(testbed, instances, samples)
    before = repr(tasks)
    require(_ask(policy, [], sampling) == [], "respond([]) yielded an answer", cause="an empty batch has no positions")
    answers = _ask(policy, tasks, sampling)
    require(repr(tasks) == before, "respond changed its tasks", cause="tasks and instances belong to the caller")
    _abandon(policy, tasks, sampling)
    if described["deterministic"]:
        _deterministic(policy, tasks, sampling, answers)
        _label_blind(policy, tasks, instances, sampling, answers)


def _describe(policy: Any) -> Any:
    with calling("describe()"):
        described = mapping(policy.describe(), "what describe() returns")
    text = as_json(dict(described), "what describe() returns")
    deterministic, size = described.get("deterministic"), described.get("batch_size", 0)
    require(
        isinstance(deterministic, bool),
        f'describe()["deterministic"] is {short(deterministic)}, not True or False',
        next="True only if the same task always gets the same answer",
    )
    require(
        size is None or (type(size) is int and size > 0),
        f'describe()["batch_size"] is {short(size)}',
        next="give the number of tasks it likes at once, or None for all",
    )
    strange, told = contract.strange("policy", policy), contract.wrong("policy", "describe", described)
    require(strange is None, f"of the policy: {strange}")
    require(told is None, f"describe() returns {short(dict(described))}, {told}")
    for name, value in os.environ.items():
        leaked = _SECRET.search(name) and len(value) >= 8 and value in text
        require(not leaked, f"describe() holds the value of {name}", cause="what it returns is written into run folders")
    return described


def _ask(policy: Any, tasks: Sequence[Task], sampling: Sampling) -> list[Response]:
    """The answers in the order of the tasks."""
    responses: dict[int, Response] = {}
    with calling("respond()"):
        for pair in policy.respond(tasks, sampling):
            require(
                isinstance(pair, tuple) and len(pair) == 2,
                f"respond() yielded {short(pair)}",
                next="yield (position, Response(...))",
            )
            position, response = pair
            require(
                type(position) is int and 0 <= position < len(tasks),
                f"respond() yielded the position {short(position)} of {len(tasks)} tasks",
                cause="a position is the index into `tasks`, not an instance's id",
            )
            require(position not in responses, f"respond() answered position {position} twice")
            require(isinstance(response, Response), f"respond() yielded a {type(response).__name__}, not a Response")
            fault = response_fault(response)
            require(fault is None, f"the response's {fault}")
            require(
                response.error is None or response.finish_reason in ("error", "aborted"),
                f'a response with an error has the finish reason "{response.finish_reason}"',
                next='give it finish_reason="error", or "aborted" where the server broke it off',
            )
            responses[position] = response
    missing = [p for p in range(len(tasks)) if p not in responses]
    require(
        not missing,
        f"respond() left {len(missing)} of {len(tasks)} tasks unanswered, the first at position {missing[:1]}",
        cause="it ended early, or dropped a task it could not answer",
        next="yield a Response with `error` for it",
    )
    return [responses[p] for p in range(len(tasks))]


def _abandon(policy: Any, tasks: Sequence[Task], sampling: Sampling) -> None:
    """Closed after the first answer, as on Ctrl-C, it must end and answer again."""
    with calling("closing respond() after its first answer"):
        answers = iter(policy.respond(tasks, sampling))
        next(answers)
        if hasattr(answers, "close"):
            answers.close()
    _ask(policy, tasks[:1], sampling)


def _deterministic(policy: Any, tasks: list[Task], sampling: Sampling, answers: list[Response]) -> None:
    texts = [(r.text, r.error) for r in answers]
    again = [(r.text, r.error) for r in _ask(policy, tasks, sampling)]
    _same(tasks, texts, again, "asked again", "it draws from a stream that goes on, instead of one made from task.seed")
    turned = [(r.text, r.error) for r in reversed(_ask(policy, tasks[::-1], sampling))]
    _same(tasks, texts, turned, "asked in reverse order", "an answer depends on the tasks before it")
    alone = [(r.text, r.error) for task in tasks[:3] for r in _ask(policy, [task], sampling)]
    _same(tasks, texts[:3], alone, "asked alone", "an answer depends on the batch it is in")


def _label_blind(policy: Any, tasks: list[Task], instances: Sequence[Any], sampling: Sampling, answers: list[Response]) -> None:
    labelled = {i.id: i for i in instances}
    seen = _ask(policy, [replace(t, instance=labelled[t.instance_id]) for t in tasks], sampling)
    texts = [(r.text, r.error) for r in answers]
    cause = "it reads stored optima, flags or solutions, which no policy may see"
    _same(tasks, texts, [(r.text, r.error) for r in seen], "given a labelled instance", cause)


def _same(tasks: Sequence[Task], first: Sequence[Any], second: Sequence[Any], when: str, cause: str) -> None:
    for task, a, b in zip(tasks, first, second, strict=False):
        require(
            a == b,
            f"the policy claims to be deterministic, but {when} it answers {task.instance_id} (sample {task.sample}) otherwise: "
            f"{short(a[0])} and {short(b[0])}",
            cause=cause,
            next='mend it, or say "deterministic": False in describe()',
        )
