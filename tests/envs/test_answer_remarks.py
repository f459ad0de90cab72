"""Nothing beside the cells of an answer is ignored: a wait that is mentioned there must be in the path, or no path is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_envs.frozen_lake.parser import read_answer

PATHS = {0: ((2, 0), (2, 1), (2, 2), (1, 2)), 1: ((1, 0), (1, 1), (2, 1), (2, 2))}
ROWS = {agent: [list(cell) for cell in path] for agent, path in PATHS.items()}
TEXTS = {agent: [f"({r},{c})" for r, c in path] for agent, path in PATHS.items()}
LINES = {agent: " -> ".join(cells) for agent, cells in TEXTS.items()}
FIRST = f"Agent 0: {LINES[0]}\n"
SECOND = f"{FIRST}Agent 1: {LINES[1]}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))


def beside_a_path(**fields: Any) -> str:
    return json.dumps([{"agent": 0, "path": ROWS[0]}, {"agent": 1, "path": ROWS[1], **fields}])


def beside_a_cell(**fields: Any) -> str:
    first, *others = ({"cell": cell} for cell in ROWS[1])
    return json.dumps({"0": ROWS[0], "1": [{**first, **fields}, *others]})


def beside_all(**fields: Any) -> str:
    return json.dumps({"paths": {"0": ROWS[0], "1": ROWS[1]}, **fields})


def by_step(step: str) -> str:
    """Lines of steps, of which the second is written in its own way."""
    plain = "Step {t}: Agent 0 at {a}, Agent 1 at {b}"
    pairs = enumerate(zip(TEXTS[0], TEXTS[1], strict=True))
    return "\n".join((step if t == 1 else plain).format(t=t, a=a, b=b) for t, (a, b) in pairs)


def column_by_step(title: str, entries: Sequence[str]) -> str:
    rows = [[str(t), a, b, entry] for t, (a, b, entry) in enumerate(zip(TEXTS[0], TEXTS[1], entries, strict=True))]
    return table(["t", "Agent 0", "Agent 1", title], rows)


def column_by_agent(title: str, first: str, second: str) -> str:
    return table(["Agent", "Path", title], [["0", LINES[0], first], ["1", LINES[1], second]])


NAMED = {
    "latex": f"{FIRST}Agent 1: (1,0) \\ldots -> (1,1) -> (2,1) -> (2,2)",
    "latex of nobody": f"{FIRST}Agent 1: (1,0) \\hold -> (1,1) -> (2,1) -> (2,2)",
    "html": f"{FIRST}Agent 1: (1,0) <wait> -> (1,1) -> (2,1) -> (2,2)",
    "html with a number": f"{FIRST}Agent 1: (1,0) <span 2/> -> (1,1) -> (2,1) -> (2,2)",
    "a token": f"{FIRST}Agent 1: (1,0) <|wait|> -> (1,1) -> (2,1) -> (2,2)",
    "a count before a cell": f"{FIRST}Agent 1: 2x(1,0) -> (1,1) -> (2,1) -> (2,2)",
    "a count before a cell, by a star": f"{FIRST}Agent 1: 2*(1,0) -> (1,1) -> (2,1) -> (2,2)",
    "a count before a cell, apart": f"{FIRST}Agent 1: 2 x (1,0) -> (1,1) -> (2,1) -> (2,2)",
    "a step at the end": f"{SECOND} (t=1 to 4)",
    **{
        f"a label: {remark}": f"{FIRST}Agent 1 {remark}: {LINES[1]}"
        for remark in (
            "(x2)",
            "(1 step later)",
            "(waits one step, then moves to its goal)",
            "(after Agent 0)",
            "(from t=1 on)",
            "(2)",
            "(+1)",
            "(9 steps)",
            "(等待)",
        )
    },
    **{
        f"behind a path: {remark}": f"{SECOND} {remark}"
        for remark in (
            "(starts one step later)",
            "(delayed by one step)",
            "(start delayed)",
            "waiting first at the start",
            "[departs after Agent 0]",
        )
    },
    **{
        f"a field: {name} {value}": beside_a_path(**{name: value})
        for name, value in (
            ("wait", 1),
            ("waits", [1]),
            ("delay", "one step"),
            ("duration", 9),
            ("repeat", 2),
            ("hold_at", [1, 0]),
            ("wait_times", [1, 0, 0, 0]),
            ("timing", "late"),
            ("offsets", [0, 1, 2, 3]),
            ("note", "x2"),
            ("note", "waits 1"),
            ("speed", 0.5),
            ("times", [0, 2, 3, 4]),
            ("times", [0, 1, 2]),
            ("schedule", "t=1"),
            ("start_time", 1),
            ("begin", "t=2"),
            ("pause", True),
            ("arrival", 6),
            ("moves", ["wait", "right", "down", "right"]),
            ("actions", ["right"] * 7),
            ("extra", 2),
            ("waits", {"(1,0)": 1}),
            ("departs", 1),
        )
    },
    **{
        f"a field of a cell: {name} {value}": beside_a_cell(**{name: value})
        for name, value in (
            ("wait", 2),
            ("dwell", 1),
            ("duration", 2),
            ("n", 2),
            ("count", 2),
            ("action", "wait"),
            ("note", "twice"),
            ("until", 1),
            ("hold", True),
            ("arrive", 1),
        )
    },
    "a field beside labels": json.dumps({"0": ROWS[0], "1": ROWS[1], "waits": {"1": 1}}),
    "a field beside all paths": beside_all(delays=[0, 1]),
    "a note beside all paths": beside_all(note="Agent 1 waits one step at the start"),
    "a path as text": json.dumps({"0": LINES[0], "1": f"wait, {LINES[1]}"}),
    "a path as text with a remark": json.dumps({"0": LINES[0], "1": f"{LINES[1]} (starts later)"}),
    "a comment": f'{{"0": {ROWS[0]}, // waits one step\n "1": {ROWS[1]}}}',
    "a field of a cell by step": json.dumps(
        [
            {"step": t, "positions": [{"cell": a, "wait": int(t == 0)}, b]}
            for t, (a, b) in enumerate(zip(*ROWS.values(), strict=True))
        ]
    ),
    **{
        f"a column by agent: {title}": column_by_agent(title, "0", "1")
        for title in ("Waits", "Wait", "Duration", "Delay", "Hold", "Repeat", "x")
    },
    **{
        f"a column by step: {title}": column_by_step(title, ["0", "1", "0", "0"])
        for title in ("Waits", "Wait", "Duration", "Delay", "Hold", "Repeat", "t")
    },
    "a column of times": column_by_agent("t", "0,1,2,3", "0,2,3,4"),
    "a note by step": column_by_step("note", ["", "both wait", "", ""]),
    "a count by step": column_by_step("note", ["", "x2", "", ""]),
    "a column without a title": f"| Agent 0 | {LINES[0]} | |\n| Agent 1 | {LINES[1]} | x2 |",
    "a column under a heading": "\n\n".join(
        f"### Agent {agent}\n{table(['Cell', 'Wait'], [[cell, str(int(cell == cells[0]))] for cell in cells])}"
        for agent, cells in TEXTS.items()
    ),
    "a row under a heading": "\n\n".join(
        f"### Agent {agent}\n{table(['Cell'], [[cells[0]], ['wait'], *([cell] for cell in cells[1:])])}"
        for agent, cells in TEXTS.items()
    ),
    "a row of a step": by_step("Step {t}: Agent 0 at {a} wait, Agent 1 at {b}"),
    "a row of a step, twice": by_step("Step {t}: Agent 0 at {a} twice, Agent 1 at {b}"),
    "a label in the row of a step": by_step("Step {t}: Agent 0 (x2): {a}, Agent 1: {b}"),
    "the heading of a step": by_step("Step {t} (wait):\nAgent 0: {a}\nAgent 1: {b}"),
}
COUNTED = {
    agent: {
        "steps": ", ".join(f"t{agent + t} {cell}" for t, cell in enumerate(cells)),
        "list": "\n".join(f"{agent + t}. {cell}" for t, cell in enumerate(cells)),
        "times": {"agent": agent, "path": ROWS[agent], "times": [agent + t for t in range(4)]},
        "cells": [{"t": agent + t, "cell": cell} for t, cell in enumerate(ROWS[agent])],
    }
    for agent, cells in TEXTS.items()
}
NAMED |= {
    "steps that begin later": f"Agent 0: {COUNTED[0]['steps']}\nAgent 1: {COUNTED[1]['steps']}",
    "steps of one agent alone": f"{FIRST}Agent 1: {COUNTED[1]['steps']}",
    "a list that begins later": f"Agent 0:\n{COUNTED[0]['list']}\nAgent 1:\n{COUNTED[1]['list']}",
    "times that begin later": json.dumps([COUNTED[0]["times"], COUNTED[1]["times"]]),
    "cells that begin later": json.dumps({agent: COUNTED[agent]["cells"] for agent in COUNTED}),
    "cells of one object a line that begin later": "\n".join(
        json.dumps({"agent": agent, "path": COUNTED[agent]["cells"]}) for agent in COUNTED
    ),
    "yaml": f"agent_0:\n  path: {LINES[0]}\nagent_1:\n  wait: 1\n  path: {LINES[1]}",
    "a start under a heading": f"### Agent 0\nPath: {LINES[0]}\n### Agent 1\nStart time: 1\nPath: {LINES[1]}",
    "behind a path: once": f"{SECOND} once Agent 0 has passed",
}
BETWEEN_TAGS = {
    "before a label": f"{FIRST}After waiting one step, Agent 1: {LINES[1]}",
    "a count before a label": f"{FIRST}x2 Agent 1: {LINES[1]}",
    "a label with words": f"{FIRST}Agent 1, delayed by 1: {LINES[1]}",
    "a label with a time": f"{FIRST}Agent 1 starts at t=1: {LINES[1]}",
    "a label with a remark in other brackets": f"{FIRST}Agent 1 [delay 1]: {LINES[1]}",
    "words below": f"{SECOND}\nAgent 1 waits one step first.",
    "words above": f"Agent 1 is delayed by one step.\n{SECOND}",
    "a sign behind an object": f"{json.dumps({'0': ROWS[0], '1': ROWS[1]})}\nAgent 1 x2",
}
HARMLESS = {
    "fields": beside_a_path(
        cost=3,
        length=4,
        color="red",
        start=[1, 0],
        goal=[2, 2],
        id=1,
        valid=True,
        moves=["right", "down", "right"],
        waits=0,
        delay=None,
    ),
    "fields of all": beside_all(makespan=3, sum_of_costs=6, conflicts=[], explanation="Both arrive at the same time, by (2,1)."),
    "thoughts": beside_all(reasoning="If agent 1 waits, it takes longer.", optimal=True),
    "sums below": f"{SECOND}\nMakespan: 3\nTotal cost: 6\nNo agent has to wait.",
    "behind a path": f"{SECOND} (stays at its goal)",
    "behind a path, with numbers": f"{SECOND} ✓ avoids the hole, in 3 steps",
    "a label": f"{FIRST}Agent 1 (3 moves, blue): {LINES[1]}",
    "a label with a path": f"{FIRST}**Agent 1** path (optimal, length 3): {LINES[1]}",
    "columns": table(
        ["Agent", "Start", "Path", "Cost", "Goal", "Waits"],
        [["0", "(2,0)", LINES[0], "3", "(1,2)", "0"], ["1", "(1,0)", LINES[1], "3", "(2,2)", "none"]],
    ),
    "columns by step": column_by_step("Conflict?", ["No"] * 4),
    "html": f"{FIRST}Agent 1: <b>(1,0)</b> -> (1,1)<br> -> <code>(2,1)</code> -> (2,2)",
    "latex": f"{FIRST}$$\\boxed{{\\text{{Agent 1}}: (1,0) \\quad \\to (1,1) \\to (2,1) \\to (2,2)}}$$",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_wait_beside_cells_makes_a_text_unparsable(name: str) -> None:
    for answer in (NAMED[name], f"<answer>\n{NAMED[name]}\n</answer>"):
        reading = read_answer(answer)
        assert reading.paths is None and reading.why


@pytest.mark.parametrize("name", BETWEEN_TAGS)
def test_between_tags_words_count_too(name: str) -> None:
    reading = read_answer(f"<answer>\n{BETWEEN_TAGS[name]}\n</answer>")
    assert reading.paths is None and reading.why


@pytest.mark.parametrize("name", HARMLESS)
def test_a_remark_that_cannot_change_a_path_does_no_harm(name: str) -> None:
    assert read_answer(f"<answer>\n{HARMLESS[name]}\n</answer>") == (PATHS, "")
    assert read_answer(HARMLESS[name]) == (PATHS, "")


def test_a_wait_that_the_path_holds_may_be_named_once_and_no_more() -> None:
    stays = ((1, 0), *PATHS[1])
    cells = " -> ".join(f"({r},{c})" for r, c in stays)
    for remark in ("(waits one step)", "(waits 1 step first)", "(delay 1)"):
        assert read_answer(f"{FIRST}Agent 1 {remark}: {cells}").paths == {0: PATHS[0], 1: stays}
    assert read_answer(f"{FIRST}Agent 1 (waits 2 steps): {cells}").paths is None
    rows = [list(cell) for cell in stays]
    for waits, read in ((1, True), (2, False)):
        answer = json.dumps([{"agent": 0, "path": ROWS[0]}, {"agent": 1, "path": rows, "waits": waits}])
        assert (read_answer(answer).paths is not None) == read


@pytest.mark.parametrize("mark", ["cot", "CoT", "chain_of_thought", "reflection", "thought_process", "internal_monologue"])
def test_more_marks_of_thought(mark: str) -> None:
    assert read_answer(f"<{mark}><answer>{SECOND}</answer></{mark}>").paths is None
    assert read_answer(f"&lt;{mark}&gt;<answer>Agent 0: (0,0)</answer>&lt;/{mark}&gt;{SECOND}").paths == PATHS


WORDS = (
    *("wait", "waits", "waits 1", "wait 1 step", "delayed", "delay 1", "stay 2", "stays one step", "hold", "pause", "idle"),
    *(
        "x2",
        "2x",
        "×2",
        "twice",
        "2 times",
        "repeat",
        "repeated",
        "for 2 steps",
        "2 ticks",
        "one step later",
        "+1",
        "lingers",
        "halts",
    ),
)


def marked(cells: Sequence[str], word: str, place: int) -> list[str]:
    return [f"{cell} {word}" if at == place else cell for at, cell in enumerate(cells)]


def among(cells: Sequence[Any], word: str, place: int) -> list[Any]:
    return [*cells[: place + 1], word, *cells[place + 1 :]]


def noted(word: str, place: int) -> list[dict[str, Any]]:
    return [{"cell": cell, **({"note": word} if at == place else {})} for at, cell in enumerate(ROWS[1])]


PLACES: dict[str, Callable[[str, int], str]] = {
    "behind a cell": lambda word, place: f"{FIRST}Agent 1: {' -> '.join(marked(TEXTS[1], word, place))}",
    "behind a cell, in brackets": lambda word, place: f"{FIRST}Agent 1: {' -> '.join(marked(TEXTS[1], f'({word})', place))}",
    "in place of a cell": lambda word, place: f"{FIRST}Agent 1: {' -> '.join(among(TEXTS[1], word, place))}",
    "a line of a list": lambda word, place: f"{FIRST}Agent 1:\n" + "\n".join(among(TEXTS[1], word, place)),
    "with a label": lambda word, place: f"{FIRST}Agent 1 ({word}): {LINES[1]}",
    "before a label": lambda word, place: f"{FIRST}{word} Agent 1: {LINES[1]}",
    "a column by agent": lambda word, place: column_by_agent("note", "", word),
    "a column by step": lambda word, place: column_by_step("note", [word if t == place else "" for t in range(4)]),
    "in a table's cell": lambda word, place: table(
        ["Agent", "0", "1", "2", "3"], [["0", *TEXTS[0]], ["1", *marked(TEXTS[1], word, place)]]
    ),
    "a field of a path": lambda word, place: beside_a_path(note=word),
    "an unknown field": lambda word, place: beside_a_path(**{word: 1}),
    "a field of all": lambda word, place: beside_all(remark=word),
    "a field of a cell": lambda word, place: json.dumps({"0": ROWS[0], "1": noted(word, place)}),
    "cells as text": lambda word, place: json.dumps({"0": TEXTS[0], "1": marked(TEXTS[1], word, place)}),
    "an item among cells": lambda word, place: json.dumps({"0": ROWS[0], "1": among(ROWS[1], word, place)}),
    "a path as text": lambda word, place: json.dumps({"0": LINES[0], "1": " -> ".join(marked(TEXTS[1], word, place))}),
    "by step": lambda word, place: "\n".join(
        f"Step {t}: Agent 0 at {a}, Agent 1 at {b}{f' {word}' if t == place else ''}"
        for t, (a, b) in enumerate(zip(TEXTS[0], TEXTS[1], strict=True))
    ),
}


@given(st.sampled_from(sorted(PLACES)), st.sampled_from(WORDS), st.integers(0, 2), st.booleans())
def test_a_wait_named_anywhere_is_never_lost(where: str, word: str, place: int, tags: bool) -> None:
    text = PLACES[where](word, place)
    paths = read_answer(f"<answer>\n{text}\n</answer>" if tags else text).paths
    assert paths is None or paths.get(1, ()) != PATHS[1], "the path without its wait"
