"""What the parser reads, what it refuses, and that its work is linear in the text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_envs.frozen_lake import format_answer, parse_answer
from t2t_envs.frozen_lake.parser import FAR

PATHS = {0: ((2, 0), (2, 1), (2, 2), (1, 2)), 1: ((1, 0), (1, 1), (2, 1), (2, 2))}
PLAIN = "Agent 0: (2,0) -> (2,1) -> (2,2) -> (1,2)\nAgent 1: (1,0) -> (1,1) -> (2,1) -> (2,2)"
WRONG = "Agent 0: (0,0) -> (0,1)\nAgent 1: (1,1) -> (1,2)"

AS_MODELS_WRITE = {
    "documented": f"<answer>\n{PLAIN}\n</answer>",
    "no tags": PLAIN,
    "upper-case tags": f"<ANSWER>{PLAIN}</Answer>",
    "unclosed": f"<answer>\n{PLAIN}",
    "crlf": f"<answer>\n{PLAIN}\n</answer>".replace("\n", "\r\n"),
    "lone cr": PLAIN.replace("\n", "\r"),
    "dash label": PLAIN.replace(":", " -"),
    "long dash label": PLAIN.replace(":", " –"),
    "bold label": PLAIN.replace("Agent 0:", "**Agent 0**:").replace("Agent 1:", "**Agent 1:**"),
    "path word": PLAIN.replace("Agent 0:", "Agent 0 path:").replace("Agent 1:", "Agent 1's path is:"),
    "path for": PLAIN.replace("Agent", "Path for Agent"),
    "bullets": PLAIN.replace("Agent", "- Agent"),
    "numbers": PLAIN.replace("Agent 0", "1. Agent 0").replace("Agent 1", "2. Agent 1"),
    "headings": PLAIN.replace("Agent", "### Agent").replace(": ", ":\n\n"),
    "square brackets": PLAIN.replace("(", "[").replace(")", "]"),
    "spaces": PLAIN.replace("(", "( ").replace(",", " , "),
    "unicode arrow": PLAIN.replace("->", "→"),
    "double arrow": PLAIN.replace("->", "=>"),
    "long arrow": PLAIN.replace("->", "-->"),
    "tight": PLAIN.replace(" -> ", "->"),
    "latex arrow": PLAIN.replace("->", r"\rightarrow"),
    "commas": PLAIN.replace(" ->", ","),
    "one cell a line": PLAIN.replace(" -> ", "\n"),
    "arrow ends the line": PLAIN.replace(" -> ", " ->\n"),
    "arrow begins the line": PLAIN.replace(" -> ", "\n-> "),
    "list": PLAIN.replace(": ", ": [").replace("\n", "]\n").replace(" ->", ",") + "]",
    "json": '{"Agent 0": [[2,0],[2,1],[2,2],[1,2]], "Agent 1": [[1,0],[1,1],[2,1],[2,2]]}',
    "fence": f"```\n{PLAIN}\n```",
    "fence with a language": f"<answer>\n```text\n{PLAIN}\n```\n</answer>",
    "code marks": PLAIN.replace("(", "`(").replace(")", ")`"),
    "bare cells": PLAIN.replace("(", "").replace(")", ""),
    "one line": PLAIN.replace("\n", "; "),
    "one line, no break": PLAIN.replace("\n", " "),
    "table": "| " + PLAIN.replace(": ", " | ").replace("\n", " |\n| ") + " |",
    "remarks": PLAIN.replace("(2,1) ->", "(2,1) (waits) ->").replace("Agent 0:", "Agent 0 (red):"),
    "underscore": PLAIN.replace("Agent ", "agent_"),
    "upper case": PLAIN.upper(),
    "blank lines": PLAIN.replace("\n", "\n\n\n"),
    "twice the same": f"<answer>{PLAIN}\n{PLAIN}</answer>",
    "said around": f"Here it comes.\n{PLAIN}\nThese paths avoid the hole at (0,1).",
    "said after a line": PLAIN + " reaches (2,2) safely",
    "prose below that starts with a cell": f"{PLAIN}\n(0,1) is a hole.",
    "last block counts": f"<answer>{WRONG}</answer> No! <answer>{PLAIN}</answer>",
    "tried in the reasoning": f"<think>{WRONG} collides</think>\n{PLAIN}",
    "tried without tags": f"{WRONG}\nThat collides. Better:\n{PLAIN}",
    "tried above a blank line": f"{WRONG}\n\n{PLAIN}",
    "tried, then tagged": f"<think>\n{WRONG}\n</think>\n{WRONG}\n<answer>\n{PLAIN}\n</answer>\n{WRONG}",
    "special token": f"<answer>\n{PLAIN}<|im_end|>",
    "two fences": f"```\n{WRONG}\n```\n```\n{PLAIN}\n```",
    "no-break spaces": PLAIN.replace("Agent ", "Agent\u00a0").replace(" ->", "\u202f→"),
    "remark with numbers": PLAIN.replace("0:", "0 (3 moves):").replace("1:", "1** (start (1,0), goal (2,2)):"),
    "two underscores": PLAIN.replace("Agent 0", "__Agent 0__").replace("Agent 1", "__Agent 1__"),
    "latex boxes": "\n".join(rf"$$\boxed{{\text{{{line}}}}}$$" for line in PLAIN.split("\n")),
    "latex brackets": PLAIN.replace("(", r"\left(").replace(")", r"\right)"),
    "html arrows": PLAIN.replace("->", "-&gt;"),
    "plan of a bullet": f"Agent 0 starts at (2,0).\nAgent 1 must go from (1,0) to (2,2).\n{PLAIN}",
}


@pytest.mark.parametrize("name", AS_MODELS_WRITE)
def test_reads_what_models_write(name: str) -> None:
    assert parse_answer(AS_MODELS_WRITE[name]) == PATHS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I do not know.",
        "<answer></answer>",
        "<answer>\n \n</answer>",
        f"<answer>{PLAIN}</answer> I used <answer></answer> tags.",
        f"{PLAIN} <answer>none</answer>",
        "(0,0) -> (0,1)",
        "Agent 0: waits\nAgent 1: waits too",
        "Agent 0: (0,0) -> (0,1)\nAgent 0: (0,0) -> (1,0)",
        "<answer>Agent 0: (0,0)\n\nor rather\n\nAgent 0: (0,1)</answer>",
        "Agent 0: (٢,٠) -> (٢,١)",
        "Agent 0: (0,0,1)",
        "Agent 0: (0 0)",
    ],
)
def test_not_parsable(text: str) -> None:
    assert parse_answer(text) is None


def test_reads_the_answer_and_not_the_reasoning_that_follows_no_rule() -> None:
    assert parse_answer(f"<think>{PLAIN}</think> I give up.") is None
    assert parse_answer(f"<think>{PLAIN}") == PATHS


def test_other_labels_are_kept_as_they_are() -> None:
    text = "Agent 7: (0,0)\nAgent -1: (0,1)\nAgent B: (0,2)\nAgent 007: (0,0)\nAgent " + "9" * 5000 + ": (1,1)"
    assert parse_answer(text) == {7: ((0, 0),), "-1": ((0, 1),), "b": ((0, 2),), "9" * 5000: ((1, 1),)}


def test_coordinates_beyond_every_grid() -> None:
    text = f"Agent 0: (-1,0) -> ({'9' * 100_000},0) -> (-{'9' * 7},000000000002)"
    assert parse_answer(text) == {0: ((-1, 0), (FAR, 0), (-FAR, 2))}


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("Agent 0: (0,0) wait (0,1)", 1),  # which cell is the agent on? Words end a path
        ("Agent 0: (0,0) -> wait -> (0,1)", 1),
        ("Agent 0: (0,0) wait -> (0,1)", 2),
        ("Agent 0: (0,0) -> (0,1) avoiding (1,1)", 2),
        ("Agent 0:\n(0,0) start\n-> (0,1)", 2),
        ("Agent 0: (0,0) -> (0,1), 3,4", 2),
        ("Agent 0: 0,0 -> 0,1 -> 0,2, 7,7", 2),
    ],
)
def test_where_a_path_ends(text: str, cells: int) -> None:
    answer = parse_answer(text)
    assert answer is not None
    assert len(answer[0]) == cells


cells = st.tuples(st.integers(0, 31), st.integers(0, 31))
answers = st.lists(st.lists(cells, min_size=1, max_size=8), min_size=1, max_size=16)


@given(answers)
def test_an_answer_written_is_the_answer_read(paths: list[list[tuple[int, int]]]) -> None:
    expected = {agent: tuple(path) for agent, path in enumerate(paths)}
    text = format_answer(paths)
    assert parse_answer(text) == expected
    # The general reader, which a deviation as small as a trailing remark calls for, reads the same.
    assert parse_answer(text.replace("\n</answer>", " \n.\n</answer>")) == expected


@given(answers, st.sampled_from([" → ", ", ", "\n", "=>", " ->\n"]), st.sampled_from(["()", "[]"]), st.booleans())
def test_every_spelling_reads_the_same(paths: list[list[tuple[int, int]]], arrow: str, brackets: str, tags: bool) -> None:
    left, right = brackets[0], brackets[1]
    lines = [f"**Agent {a}**: " + arrow.join(f"{left}{r}, {c}{right}" for r, c in path) for a, path in enumerate(paths)]
    body = "\n\n".join(lines)
    assert parse_answer(f"<answer>{body}</answer>" if tags else body) == {a: tuple(p) for a, p in enumerate(paths)}


PIECES = [
    "Agent 0 (at (0,1)):", "\\text{", "\\right)", "__", "-&gt;",
    "Agent 0:", "Agent 1 -", "**Agent 2**:", "agent -1:", "Agent 0 path:", "(0,1)", "[1, 2]", "1,2", " -> ", "→", ",", ".",
    "\n", "\n\n", "\r\n", "<answer>", "</answer>", "</think>", "```", "wait", "(wait)", " ", "-", "1.", "(", "[", ")", "99999999",
    ";", "|", "(9999999999,-1)", "\x1b[31m", "٣", "and ", "\\to", "<b>", "Agent 1: (1,0) -> (1,1)", "Agent 0: (2,0) -> (2,1)",
]  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_mixture_breaks_it(text: str) -> None:
    answer = parse_answer(text)
    assert answer is None or all(path and all(len(cell) == 2 for cell in path) for path in answer.values())
    assert answer == parse_answer(text.replace("\r\n", "\n").replace("\n", "\r\n")), "line ends say nothing"
    if "<answer>" not in text.lower():
        assert parse_answer(f"{text}<answer>") is None


@given(st.text(alphabet="Aagent 01239(),[]->→\n\r:*-`<>/answer think|.é٣\x00\x1b", max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    answer = parse_answer(text)
    assert answer is None or all(path and all(len(cell) == 2 for cell in path) for path in answer.values())


HOSTILE = [
    "<answer>", "</answer>", "</think>", "(", "(1", "( ", "(1,", "(1 , ", "[1,1", "-", "--", "= ", ">", " ", "\n", "\r", "\t",
    "Agent 0 (", "Agent 0 (a", "Agent 0 (()", "Agent 0 ((a)", "\\a", "__", "&gt;", "\u00a0",
    "`", "```", "Agent 0:", "Agent ", "agent", "agent 1's path is ", "agent 0 path path ", "path for ", "1", "1,", "1 ,", "1,1,",
    "-1,", "a", "(a", "<a", "<", "\\", "_", "**", ": ", "1. ", "é", "\u0130", "\x00", "(0,0)", "0,0->", "Agent 0: (0,0)",
    "(0,0) wait ",
    "Agent 1: (0,0)\nAgent 2: (1,1)\n", "Agent 0: (0,0)\n\n",
]  # fmt: skip


def seconds(text: str) -> float:
    """Processor time of the quickest of three readings, so that a busy machine does not count against the parser."""
    times = []
    for _ in range(3):
        began = time.process_time()
        parse_answer(text)
        times.append(time.process_time() - began)
        if times[-1] < 0.1:
            break
    return min(times)


@pytest.mark.parametrize("start", ["", "Agent 0: ", "Agent 0: (0,0) -> ", "<answer>"])
def test_no_repetition_is_slow(start: str) -> None:
    for piece in HOSTILE:  # whatever is not linear takes minutes here
        assert seconds(start + piece * (20_000 // len(piece))) < 0.5, f"{piece!r} repeated"


@pytest.mark.parametrize("piece", ["<answer>", "(", "Agent 0:", "1", "(1", "Agent 0: (0,0)\n", "(0,0) ->"])
def test_a_megabyte_takes_less_than_a_second(piece: str) -> None:
    assert seconds("Agent 0: " + piece * (10**6 // len(piece))) < 1.0


@pytest.mark.parametrize("piece", ["(0,0) -> ", "word ("])
def test_work_grows_with_the_length_only(piece: str) -> None:
    texts = ["Agent 0: (" + piece * (length // len(piece)) for length in (100_000, 1_000_000)]
    small, large = seconds(texts[0]), seconds(texts[1])
    assert large < 40 * small + 0.2
