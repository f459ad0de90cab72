"""Checks of how a testbed asks, reads and judges answers, hostile ones included, and of what it makes of the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from t2t_core import contract
from t2t_core.conversation import judge, play
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Message, Response, Scored, Verdict
from t2t_core.reward import reward
from t2t_core.testing.base import as_json, calling, finite, mapping, require, short
from t2t_core.testing.showing import check_shown

HOSTILE_TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\x1b[2J\x1b]0;x\x07",
        "\ud800",
        "\u202e\u2066\ufeff",
        "]]>",
        "<answer>",
        "</answer>",
        "<answer></answer>" * 1000,
    ),
    *("<answer>" * 5000, "(" * 100_000, "[" * 100_000, "9" * 100_000, "-" * 100_000, "\n" * 100_000, "Part 1: " * 20_000),
    *(
        "Part 1: (0,0)",
        "Part 1: (" + "9" * 5000 + ",0)",
        "Part " + "1" * 5000 + ": (0,0)",
        "Part -1: (0,0)",
        "Part 1: (nan,inf)",
    ),
    *(
        "<think>" * 1000,
        "</think>",
        "```\n" * 1000,
        "{" * 50_000,
        '{"a": ' * 10_000,
        "\r\n\r\n\t",
        "\u0661\u0662",
        "\U0001f600" * 1000,
    ),
)


def check_answers(testbed: AnyTestbed, instances: Sequence[Any], solve: Callable[[Any], str] | None) -> None:
    """Any text gets a verdict and a reward in the declared range, a solution is right, metrics and breakdown take them all."""
    scored = []
    for instance in instances[:4]:
        texts = [*HOSTILE_TEXTS, *([solve(instance)] if solve else [])]
        for text in texts:
            messages = _conversation(testbed, instance, text)
            with calling(f"verify({short(text)})"):
                verdict = judge(testbed, instance, messages)
            _verdict(testbed, verdict, short(text))
            _reward(testbed, instance, verdict, short(text))
            scored.append(Scored(instance, 0, Response(text), verdict, messages))
            check_shown(testbed, scored[-1])
        if solve:
            right = scored[-1].verdict
            require(right.valid, f"a solution is not valid: {right.failure} fails", cause=f"the answer was {short(texts[-1])}")
            require(right.optimal is not False, "an optimal solution is not optimal", cause="the stored optimum is wrong")
    _figures(testbed, scored)


def _verdict(testbed: AnyTestbed, verdict: Any, text: str) -> None:
    if not isinstance(verdict, Verdict):
        require(False, f"verify({text}) returned {type(verdict).__name__}, not a Verdict")
    require(
        verdict.checks and all(isinstance(v, bool) for v in verdict.checks.values()), f"the checks of {text} are not booleans"
    )
    require(
        list(verdict.checks) == list(testbed.checks),
        f"the checks of {text} are {list(verdict.checks)}",
        cause=f"declared are {list(testbed.checks)}",
    )
    as_json([dict(fault.where) for fault in verdict.faults.values()], f"where the faults of {text} are")
    require(all(map(finite, mapping(verdict.figures, "figures").values())), f"the figures of {text} are {short(verdict.figures)}")
    require(verdict.valid is all(verdict.checks.values()), f"{text} is valid={verdict.valid} with checks {dict(verdict.checks)}")
    require(verdict.valid or not verdict.optimal, f"{text} is optimal and not valid")
    require(verdict.valid or verdict.cost is None, f"{text} has a cost and is not valid")
    require(all(name for name in verdict.faults), f"a fault of {text} has no name")


def _conversation(testbed: AnyTestbed, instance: Any, text: str) -> tuple[Message, ...]:
    """What is said where the policy says the same every time; the environment's part is checked."""
    format = testbed.prompt_formats[0]
    with calling(f"reply() to {short(text)}"):
        first, again = (play(testbed, instance, format, lambda seen: Message("assistant", text)) for _ in range(2))
    require(first == again, f"reply() to {short(text)} differs from one time to the next", cause="it draws from a global stream")
    for message in first:
        require(isinstance(message.content, str), f"reply() to {short(text)} gives a message whose content is no text")
    return first


def _reward(testbed: AnyTestbed, instance: Any, verdict: Verdict, text: str) -> None:
    with calling(f"reward_terms() of {text}"):
        terms = testbed.reward_terms(instance, verdict)
    unknown = [name for name in terms if name not in testbed.rubric]
    require(not unknown, f"the reward terms {unknown} of {text} are not in the rubric")
    low, high = testbed.reward_range
    value = reward(testbed, instance, verdict)
    require(finite(value) and low - 1e-9 <= value <= high + 1e-9, f"the reward of {text} is {value}, not in [{low}, {high}]")


def _figures(testbed: AnyTestbed, scored: Sequence[Scored]) -> None:
    for metric in testbed.metrics:
        for item in scored:
            with calling(f"the metric {metric.name}"):
                value = metric.value(item.verdict, item.response)
            require(value is None or finite(value), f"the metric {metric.name} gives {short(value)}")
            require(metric.kind == "mean" or value in (None, 0, 1), f"the rate {metric.name} gives {short(value)}, not 0 or 1")
    for some in ([], scored):
        with calling(f"breakdown() of {len(some)} answers"):
            breakdown = mapping(testbed.breakdown(some), "the breakdown")
        as_json(dict(breakdown), "the breakdown")
        missing = [part for part in ("total", "groups", "cells") if part not in breakdown]
        require(not missing, f"the breakdown has no {', '.join(missing)}", next="hookspecs.Testbed.breakdown says what it holds")
        wrong = contract.wrong("testbed", "breakdown", breakdown)
        require(wrong is None, f"breakdown() gives {short(dict(breakdown))}, {wrong}")
