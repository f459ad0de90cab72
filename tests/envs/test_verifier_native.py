"""The native fast path gives the verdict of the rules in Python, equal in every field and message, or leaves it to them."""

from __future__ import annotations

import time
from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_core.seeding import Stream
from t2t_envs.frozen_lake import CHECKS, Configuration, Instance, Verdict, format_answer, generate, solve, verify
from t2t_envs.frozen_lake import verifier as rules
from t2t_envs.frozen_lake.solver import native_core

Paths = list[list[tuple[int, int]]]
pytestmark = pytest.mark.skipif(native_core() is None, reason="the native core is not built")


@cache
def lakes() -> list[tuple[Instance, Paths]]:
    """Instances with an optimal answer each, of both objectives, 3x3 to 10x10 and 1 to 5 agents."""
    instances = []
    for size, agents in ((3, 1), (3, 2), (4, 3), (6, 4), (10, 5)):
        one_size = {str(size): {"data_ratio": 1.0, "hole_ratio": 0.2, "wait_ratio": 0.5 if agents > 1 else 0.0}}
        for objective in ("makespan", "sum_of_costs"):
            instances += generate(Configuration.from_dict(one_size), 6, agents, 0, objective)
    return [(instance, [list(path) for path in solve(instance).paths]) for instance in instances]


def read_natively(instance: Instance, text: str) -> Any:
    """The paths, or None if the native core leaves the text to Python."""
    core = native_core()
    assert core is not None
    return core.judge_answer(text, instance.size, instance.holes, instance.starts, instance.goals)


def agreed(instance: Instance, text: str) -> Verdict:
    """The verdict, the same by both ways, down to types and order."""
    verdict, expected = verify(instance, text), rules.reference_verify(instance, text)
    assert verdict == expected and repr(verdict) == repr(expected), text
    return verdict


LABELS = ("Agent {}: ", "- **Agent {}**: ", "* Agent {} :", "**Agent {}:**\t", "  Agent {}:")
ARROWS = (" -> ", "->", " → ", "⇒", " --> ", " => ", ", ", " ⟶ ")
CELLS = ("({},{})", "({}, {})", "[{},{}]", "( {} , {} )", "(0{},{})")
BODIES = (
    "<answer>\n{}\n</answer>",
    "{}",
    "<ANSWER>{}",
    "I think so.\n<answer>\n```text\n{}\n```\n</answer> It is 1 answer.",
    "<think>(0,0)? Agent 0</think>\n{}",
    "<think>\n<answer>Agent 0: (0,0)</answer></think>\n\n<answer>{}",
    "no (0,0)</think>{}",
    "<answer>none</answer>\n<answer>\n{}\n</answer><|im_end|>",
    "x < y, [1], so:\n<answer>{}</answer> as <b>asked</b>.",
    "Here they are:\n\n{}\n\nNobody meets.",
    "😀 <answer>{}</answer>",
)


def spelled(paths: Paths, label: str, arrow: str, cell: str, body: str, end: str) -> str:
    lines = [label.format(a) + arrow.join(cell.format(r, c) for r, c in path) for a, path in enumerate(paths)]
    return body.format(end.join(lines))


spellings = st.tuples(
    st.sampled_from(LABELS), st.sampled_from(ARROWS), st.sampled_from(CELLS), st.sampled_from(BODIES),
    st.sampled_from(("\n", "\r\n", "\n\n", "\n---\n")),
)  # fmt: skip
questions = st.integers(0, 59).map(lambda i: lakes()[i])


@given(questions, spellings)
def test_documented_answers_and_common_markup_take_the_short_way(question: tuple[Instance, Paths], how: tuple[str, ...]) -> None:
    instance, paths = question
    text = spelled(paths, *how)
    packed = read_natively(instance, text)
    assert packed is not None and packed[0] == 0xFF, text
    verdict = agreed(instance, text)
    assert verdict.valid and verdict.optimal and agreed(instance.unlabelled(), text).optimal is None


@given(questions, st.integers(0, 2**64 - 1))
def test_broken_answers_have_the_same_faults(question: tuple[Instance, Paths], seed: int) -> None:
    instance, paths = question
    text = format_answer(broken(instance, paths, Stream(seed)))
    assert read_natively(instance, text) is not None
    agreed(instance, text)


def broken(instance: Instance, paths: Paths, stream: Stream) -> Paths:
    """One to three changes to the paths, any of which may break any check."""
    made = [list(path) for path in paths]
    for _ in range(1 + stream.below(3)):
        path = made[stream.below(len(made))]
        place, cell = stream.below(len(path)), (stream.below(instance.size + 2) - 1, stream.below(instance.size + 2) - 1)
        match stream.below(7):
            case 0 if len(path) > 1:
                del path[place]
            case 1:
                path.insert(place, cell)
            case 2:
                path[place] = cell
            case 3:
                path.insert(place, path[place])
            case 4:
                path += [path[-1]] * 3
            case 5 if len(made) > 1:
                made.pop()
            case 6:
                made.append(list(made[0]))
    return made


def test_every_check_fails_natively_and_passes_natively() -> None:
    failed: Counter[str] = Counter()
    for number, (instance, paths) in enumerate(lakes()):
        for turn in range(10):
            text = format_answer(broken(instance, paths, Stream(100 * number + turn)))
            verdict = agreed(instance, text)
            assert read_natively(instance, text)[0] == sum(passed << i for i, passed in enumerate(verdict.checks.values()))
            failed.update(name for name, passed in verdict.checks.items() if not passed)
    assert all(failed[name] > 5 for name in CHECKS[1:]), failed


PIECES = (
    *' \t-*:()[],→=>012a.`<\n\r\0\x0b\x85\u2028\u00a0é٣ſK–_#~"&|;',
    "\r\n",
    "Agent",
    "agent ",
    "Agent 0:",
    "Agent 1:",
    "Agent 0",
    "(0,0)",
    "[1, 1]",
    "(-1,0)",
    "-0",
    "00",
    "999999",
    "1000000",
    "9" * 30,
    "1,2",
    " -> (1,1)",
    "```",
    "```text",
    "<answer>",
    "</Answer>",
    "<think>",
    "</think>",
    "then",
    "No.",
    "1. ",
    "<-",
    "\\to",
    "(waits)",
    "path for ",
    "moves",
    "<an\u017fwer>",
    "[THINK]",
    "[/THINK]",
    "◁think▷",
    "<think >",
    "<|channel|>analysis",
    "<|end|>",
    "<thought>",
    "</reasoning>",
    "analysis",
    "assistantfinal",
    "Robot 0:",
    "A0:",
    "R1",
    "x2",
    " x2 ",
    "...",
    "…",
    "Step 0:",
    "step 1: (0,0), (1,1)",
    "t=0",
    "| ",
    "{",
    "}",
    '{"Agent 0": [[0,0]]}',
    "wait",
    "goal",
    "(1,1,1)",
    "(1 1)",
    "[1][1]",
    "（0，0）",
    "(r=0, c=0)",
    " -> -> ",
    ", ,",
    "robot",
    "<answer>Agent 0: (0,0)</answer>",
    "😀",
    "\ud800",
    "&gt;",
    "Agent 99:",
    "Agent 100:",
    "Agent 007: (0,0)",
    "Agent -1: (0,0)",
    "Agent B: (0,0)",
)


@settings(max_examples=400)
@given(questions, spellings, st.lists(st.tuples(st.integers(0, 999), st.integers(0, 9), st.sampled_from(PIECES)), max_size=4))
def test_near_misses_get_the_same_verdict(
    question: tuple[Instance, Paths], how: tuple[str, ...], edits: list[tuple[int, int, str]]
) -> None:
    instance, paths = question
    text = spelled(paths, *how)
    for place, gone, piece in edits:
        place %= len(text) + 1
        text = text[:place] + piece + text[place + gone * (gone < 5) :]
    agreed(instance, text)
    agreed(instance, text + text)


@given(questions, st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_mixtures_get_the_same_verdict(question: tuple[Instance, Paths], text: str) -> None:
    agreed(question[0], text)
    agreed(question[0], f"<answer>{text}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no path",
        "Agent 0:",
        "Agent 0: (0,0) (",
        "Agent 0: (0,0",
        "Agent 0: (0,",
        "Agent 0: (",
        "Agent",
        "(0,0)",
        "Agent 0: (0,0)\nAgent 0: (0,0)",
        "Agent 100: (0,0)",
        "Agent 0: (1000000,0)",
        "Agent 0 (0,0)",
        "Agent 0: (0,0]",
        "Agent 0: (0,0) wait",
        "Agent 0: (0,0)\nAgent x",
        "Agent 0: (0,0)\n(0,1)",
        "Agent 0: (0,0)\nin 3 steps",
        "<answer>",
        "<answer></answer>",
        "1. Agent 0: (0,0)",
        "````\nAgent 0: (0,0)",
        f"```{'a' * 21}\nAgent 0: (0,0)",
        "no agent\nAgent 0: (0,0)",
        "Agent 0:\n(0,0)",
        "no robot\nAgent 0: (0,0)",
        "Agent 0: (0,0) -> -> (0,1)",
        "Agent 0: (0,0) ->",
        "Agent 0: (0,0), , (0,1)",
        "Agent 0: (0,0) ----> (0,1)",
        "Agent 0: (0,0) x2",
        "<answer>Agent 0: (0,0)</answer> <answer>",
        "analysisAgent 0: (0,0)",
        "[THINK]Agent 0: (0,0)",
        "Agent 0: (0,0)\n◁think▷",
        "<think>Agent 0: (0,0)",
        "Agent 0: (0,0)<think></think>",
        "<thought>\nAgent 0: (0,0)",
        "<answer>Agent 0: (0,0)</answer><scratchpad>",
        "<analysis>Agent 0: (0,0)",
        "<inner_monologue>Agent 0: (0,0)",
        "<longcat_think>Agent 0: (0,0)",
        "Here is my thought process:\nAgent 0: (0,0)\nHere is my response:\nAgent 0: (0,1)",
        "Here are my reasoning steps: a\n<answer>Agent 0: (0,0)</answer>",
        "Agent 0: (0,0) -> <del>(0,1)</del> (1,0)",
        "<!-- Agent 0: (0,0) -->",
        "Agent 0 (waits): (0,0) -> (0,1)",
        "<|end|>Agent 0: (0,0)",
        "Agent 0: (0,0)<channel|>",
        "<unused94>Agent 0: (0,0)<unused95>",
        "Robot 0: (0,0)",
        "A0: (0,0)",
    ],
)
def test_what_is_not_certain_is_left_to_python(text: str) -> None:
    instance = lakes()[0][0]
    assert read_natively(instance, text) is None
    agreed(instance, text)


def test_without_the_native_core_the_verdict_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, paths = lakes()[0]
    native = verify(instance, format_answer(paths))
    monkeypatch.setattr(rules, "native_core", lambda: None)
    assert repr(verify(instance, format_answer(paths))) == repr(native)


class Text(str):
    """Its characters may be only a part of what it means."""


def test_hostile_answers_end_soon() -> None:
    sixteen = [(r, c) for r in range(4) for c in range(4)]
    full = Instance(size=4, holes=[], starts=sixteen, goals=sixteen)
    endless = [f"Agent {a}: ({r},{c})" + " -> (0,0)" * (110_000 if a == 0 else 0) for a, (r, c) in enumerate(sixteen)]
    pieces = ("<", "<answer>", "`", "agen", "Agent 0:(0,0)->(0,1)\na\n")
    texts = ["\n".join(endless), *(piece * (500_000 // len(piece)) for piece in pieces)]
    began = time.process_time()
    read = [read_natively(full, text) is not None for text in texts]
    assert time.process_time() - began < 0.5
    assert read == [True, False, False, False, False, True]
    assert read_natively(full, Text(texts[0])) is None


def test_the_door_checks_its_instance() -> None:
    core = native_core()
    assert core is not None
    good = ("Agent 0: (0,0)", 3, ((1, 1),), ((0, 0),), ((0, 0),))
    assert core.judge_answer(*good) == (0xFF, 0, 0, None)
    assert core.judge_answer(b"Agent 0: (0,0)", *good[1:]) is None
    cells = (((3, 0),), ((0, -1),), ((0, 2**80),), ((True, 0),), ((0,),), ([0, 0],), ("ab",))
    for position, values in ((1, (2, 33)), (2, cells), (3, (*cells, (), ((0, 0),) * 17)), (4, (*cells, ()))):
        for value in values:
            with pytest.raises(ValueError):
                core.judge_answer(*good[:position], value, *good[position + 1 :])
