"""What the reader of answers reads, what it refuses, and that its work is linear in the text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_envs.frozen_lake import format_answer, parse_answer
from t2t_envs.frozen_lake.parser import FAR, read_answer

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
    "remarks": PLAIN.replace("(2,0) ->", "(2,0) (start) ->").replace("Agent 0:", "Agent 0 (red):"),
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
    "a sentence that names the tags": f"<answer>\n{PLAIN}\n</answer>\nIt stands between <answer> and </answer> tags.",
    "a sentence that names the opening tag": f"<answer>\n{PLAIN}\n</answer>\nThe <answer> block is above.",
    "empty tags behind": f"<answer>{PLAIN}</answer> I used <answer></answer> tags.",
    "the tag named before": f"I will use the <answer> tag.\n<answer>\n{PLAIN}\n</answer>",
    "nothing between the tags": f"{PLAIN} <answer>none</answer>",
    "only a closing tag": f"{PLAIN}\n</answer>",
    "words between the last tags": f"<answer>{PLAIN}</answer> or <answer>Agent 0 goes right, agent 1 down</answer>",
    "a tagged draft in the thoughts": f"<think><answer>{WRONG}</answer></think>\n{PLAIN}",
    "a tagged draft in thoughts that never end": f"<answer>{PLAIN}</answer><think>or <answer>{WRONG}</answer>",
    "a draft before an unopened end of thought": f"<answer>{WRONG}</answer> no</think>\n<answer>{PLAIN}</answer>",
    "thoughts within the answer": f"<answer>\n<think>{WRONG}</think>\n{PLAIN}\n</answer>",
    "thoughts of another model": f"[THINK]<answer>{WRONG}</answer>[/THINK]{PLAIN}",
    "harmony": f"<|channel|>analysis<|message|><answer>{WRONG}</answer><|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{PLAIN}<|return|>",
    "harmony without its tokens": f"analysisPerhaps\n{WRONG}\nassistantfinal<answer>\n{PLAIN}\n</answer>",
    "full-width brackets": PLAIN.replace("(", "（").replace(")", "）").replace(",", "，").replace(":", "："),
    "curly brackets": PLAIN.replace("(", "{").replace(")", "}"),
    "two square brackets": PLAIN.replace("(", "[").replace(",", "][").replace(")", "]"),
    "named coordinates": PLAIN.replace("(", "(r=").replace(",", ", c="),
    "coordinates named in words": PLAIN.replace("(", "(row ").replace(",", ", column "),
    "columns first, by name": "Agent 0: (c=0,r=2) (c=1,r=2) (c=2,r=2) (c=2,r=1)\n"
    "Agent 1: (c=0,r=1) (c=1,r=1) (c=1,r=2) (c=2,r=2)",
    "r2c0": PLAIN.replace("(", "r").replace(",", "c").replace(")", ""),
    "robots": PLAIN.replace("Agent", "Robot"),
    "labels in brackets": PLAIN.replace("Agent 0", "Agent (0)").replace("Agent 1", "**Agent [1]**"),
    "labels in brackets, with remarks": PLAIN.replace("Agent 0", "Robot{0} (3 moves)").replace("Agent 1", "agent(1) path"),
    "short labels": PLAIN.replace("Agent ", "A"),
    "short labels of robots": PLAIN.replace("Agent ", "**R").replace(":", "**:"),
    "python": PLAIN.replace("Agent ", "agent_").replace(": ", " = [").replace(" ->", ",").replace("\n", "]\n") + "]",
    "yaml": PLAIN.replace("Agent ", "agent_").replace(": ", ":\n  - ").replace(" -> ", "\n  - "),
    "semicolons": PLAIN.replace(" ->", ";"),
    "numbered cells": "Agent 0:\n1. (2,0)\n2. (2,1)\n3. (2,2)\n4. (1,2)\nAgent 1:\n1. (1,0)\n2. (1,1)\n3. (2,1)\n4. (2,2)",
    "a step beside each cell": "Agent 0: (2,0) [t=0] -> (2,1) [t=1] -> (2,2) [t=2] -> (1,2) [t=3]\n"
    "Agent 1: t0 (1,0), t1 (1,1), t2 (2,1), t3 (2,2)",
    "steps under each agent": "Agent 0:\nStep 0: (2,0)\nStep 1: (2,1)\nStep 2: (2,2)\nStep 3: (1,2)\n\n"
    "Agent 1:\nStep 0: (1,0)\nStep 1: (1,1)\nStep 2: (2,1)\nStep 3: (2,2)",
    "where a path begins, in words": PLAIN.replace(": ", ": Start ").replace("-> (1,2)", "-> up (1,2)"),
    "a step at each cell": "Agent 0: (2,0)@t0, (2,1)@t1, (2,2)@t2, (1,2)@t3\nAgent 1: (1,0)@t=0 (1,1)@t=1 (2,1)@t=2 (2,2)@t=3",
    "the task in words before": f"Agent 0: start (2,0), goal (1,2)\nAgent 1: start (1,0), goal (2,2)\n\n{PLAIN}",
    "where a path begins and ends": PLAIN.replace("(2,0)", "(2,0) [start]").replace("-> (1,2)", "-> (1,2) (goal)"),
    "the last cell again": PLAIN.replace("(1,2)\n", "(1,2), which reaches (1,2) in 3 moves ✓\n"),
    "moves that are named": PLAIN.replace("(2,1)", "(2,1) (right)"),
    "explained step by step below": f"{PLAIN}\n\nStep 1: Agent 0 moves right to (2,1), Agent 1 to (1,1).\nStep 2: they follow.",
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
        "(0,0) -> (0,1)",
        "<answer>\n(0,0) -> (0,1)\n</answer>",
        "Agent 0: waits\nAgent 1: waits too",
        "Agent 0: right, right, down",
        "Agent 0: (0,0) -> (0,1)\nAgent 0: (0,0) -> (1,0)",
        "Agent 0: (0,0) -> (0,1)\nRobot 0: (0,0) -> (1,0)",
        "<answer>Agent 0: (0,0)\n\nor rather\n\nAgent 0: (0,1)</answer>",
        "<answer>Agent 0: (0,0) -> (0,1)\n(1,0) -> (1,1)\n\nsomewhere\n\n(2,0)\n</answer>",
        "Agent 0: (٢,٠) -> (٢,١)",
        "Agent 0: （２，０）",
        "Agent 0: (0,0,1)",
        "Agent 0: (0 0)",
        "[[[0,0],[0,1]],[[1,0],[1,1]]]",
        '{"cost": 3}',
        "0: (0,0) -> (0,1)\n1: (1,0) -> (1,1)",
        "Step 0: (0,0)\nStep 1: (0,1)",
        "Step 1: (0,0), (1,0)\nStep 2: (0,1), (1,1)",  # outside of tags it may be said of later steps
        "Step 0: Agent 0 (0,0), Agent 1 (1,0)",
        "Agent (0,0) -> (0,1)",
        "Agent (0,1): (0,0) -> (0,1)",
        "Agent (0 or 1): (0,0) -> (0,1)",
        "Agent 0: (0,0) -> stay\nAgent 1: (1,0)",
        "Agent 0: -> stay at (0,0) -> (0,1)",
    ],
)
def test_not_parsable(text: str) -> None:
    reading = read_answer(text)
    assert reading.paths is None and reading.why


UNPLACEABLE = [
    " x2 -> ",
    "x2 -> ",
    " ×2 -> ",
    " (x2) -> ",
    " (2x) -> ",
    "*2 -> ",
    "^2 -> ",
    " 2 times -> ",
    " twice -> ",
    " +1 ",
    " again ",
    " ~ 2 ",
    " (wait) -> ",
    " wait -> ",
    " -> wait -> ",
    " -> stay at ",
    " -> stay, (0,0) -> ",
    " -> stay twice at (0,0) -> ",
    " -> (0,0) stay here -> ",
    " -> [wait] -> ",
    " (stay 2) -> ",
    ", hold, ",
    " ⏸ -> ",
    " (waits one step) -> ",
    " -> ... -> ",
    " ... ",
    " … ",
    " -> … -> ",
    " -> ? -> ",
    " -> -> ",
    ", , ",
    " -> (0,1,2) -> ",
    " -> (0 1) -> ",
    " -> (0.5,1) -> ",
    " -> (a,b) -> ",
    " -> (０，１) -> ",
    " -> (x=0,y=1) -> ",
    " -> goal -> to -> ",
    " then ",
    ", then -> ",
    " or (1,0) -> ",
    " / ",
    " <- ",
    " ↔ ",
    " & ",
    ". ",
    ": ",
    " -> (0,1 -> ",
    " -> 2*",
    " [2] ",
    "\n...\n",
    "\nx2\n",
    "\n(2)\n",
    " so far; later ",
    " -> null -> ",
]


@pytest.mark.parametrize("piece", UNPLACEABLE)
@pytest.mark.parametrize("tags", [False, True])
def test_nothing_within_a_path_is_dropped_in_silence(piece: str, tags: bool) -> None:
    path = f"Agent 0: (0,0){piece}(0,2)\nAgent 1: (1,0)"
    reading = read_answer(f"<answer>\n{path}\n</answer>" if tags else path)
    assert reading.paths is None and reading.why, reading.paths


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("<think>", "</think>"), ("<THINK>", "</Think>"), ("[THINK]", "[/THINK]"), ("<|channel|>analysis<|message|>", "<|end|>")],
)
@pytest.mark.parametrize("draft", [PLAIN, f"<answer>{PLAIN}</answer>", f"<answer>{PLAIN}", '{"Agent 0": [[0,0]]}'])
def test_a_thought_never_counts(opening: str, closing: str, draft: str) -> None:
    assert read_answer(f"{opening}{draft}{closing} I give up.").paths is None
    assert read_answer(f"{opening}{draft}") == (None, "the text ends within its thoughts")
    for answer in (WRONG, f"<answer>{WRONG}</answer>", '{"agent_0": [[0, 0], [0, 1]]}'):
        assert read_answer(f"{opening}{draft}{closing}{answer}") == read_answer(answer)
        assert read_answer(f"{answer}\n{opening}{draft}") == read_answer(answer)


def test_other_labels_are_kept_as_they_are() -> None:
    text = "Agent 7: (0,0)\nAgent -1: (0,1)\nAgent B: (0,2)\nAgent 007: (0,0)\nAgent " + "9" * 5000 + ": (1,1)"
    assert parse_answer(text) == {7: ((0, 0),), "-1": ((0, 1),), "b": ((0, 2),), "9" * 5000: ((1, 1),)}


def test_coordinates_beyond_every_grid() -> None:
    text = f"Agent 0: (-1,0) -> ({'9' * 100_000},0) -> (-{'9' * 7},000000000002)"
    assert parse_answer(text) == {0: ((-1, 0), (FAR, 0), (-FAR, 2))}


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("Agent 0: (0,0) -> (0,1) avoiding the hole", 2),  # words behind the last cell end the path
        ("Agent 0: (0,0) -> (0,1) waits twice", 2),
        ("Agent 0: (0,0) -> (0,1) x2", 2),  # nothing follows: waiting at the end is free
        ("Agent 0: (0,0) -> (0,1) ->", 2),
        ("Agent 0:\n(0,0) start\n-> (0,1)", 2),
        ("Agent 0: (0,0) -> (0,0) (wait) -> (0,1)", 3),  # the path itself waits
        ("Agent 0: (0,0) (wait) -> (0,0) -> (0,1)", 3),
        ("Agent 0: (0,0) -> stay at (0,0) -> (0,1)", 3),
        ("Agent 0: (0,0) -> wait (0,0) -> Waits at (0,0) -> (0,1)", 4),
        ("Agent 0: (0,0) ->\nhold at (0,0)\n-> (0,1) -> stay at (0,1)", 4),
        ("Agent 0: (0,0)\nStep 1: (0,1)\nStep 2: (0,2)", 3),
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
    for opening, closing in (("<think>", "</think>"), ("◁think▷", "◁/think▷")):
        if "think" not in text:
            assert parse_answer(f"{opening}{PLAIN}{closing}{text}") == answer, "a draft counts for nothing"
    if "answer" not in text.lower() and "think" not in text.lower():
        assert parse_answer(f"<answer>{PLAIN}</answer>{text}") == PATHS, "the tagged answer counts"


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


@pytest.mark.thorough
@pytest.mark.parametrize("start", ["", "Agent 0: ", "Agent 0: (0,0) -> ", "<answer>"])
def test_no_repetition_is_slow(start: str) -> None:
    for piece in HOSTILE:  # whatever is not linear takes minutes here
        assert seconds(start + piece * (20_000 // len(piece))) < 0.5, f"{piece!r} repeated"


@pytest.mark.thorough
@pytest.mark.parametrize("piece", ["<answer>", "(", "Agent 0:", "1", "(1", "Agent 0: (0,0)\n", "(0,0) ->"])
def test_a_megabyte_takes_a_second_or_two(piece: str) -> None:
    assert seconds("Agent 0: " + piece * (10**6 // len(piece))) < 4.0


@pytest.mark.thorough
@pytest.mark.parametrize("piece", ["(0,0) -> ", "word ("])
def test_work_grows_with_the_length_only(piece: str) -> None:
    texts = ["Agent 0: (" + piece * (length // len(piece)) for length in (100_000, 1_000_000)]
    small, large = seconds(texts[0]), seconds(texts[1])
    assert large < 40 * small + 0.2
