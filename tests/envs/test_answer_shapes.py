"""Answers by step, in tables and in JSON: they are read if they have no gap, and alike with and without tags."""

from __future__ import annotations

import json

import pytest

from t2t_envs.frozen_lake.parser import read_answer

PATHS = {0: ((2, 0), (2, 1), (2, 2), (1, 2)), 1: ((1, 0), (1, 1), (2, 1), (2, 2))}
PLAIN = "Agent 0: (2,0) -> (2,1) -> (2,2) -> (1,2)\nAgent 1: (1,0) -> (1,1) -> (2,1) -> (2,2)"
WRONG = "Agent 0: (0,0) -> (0,1)\nAgent 1: (1,1) -> (1,2)"
CELLS = {agent: [list(cell) for cell in path] for agent, path in PATHS.items()}
STEPS = range(4)


def text(agent: int, step: int) -> str:
    row, column = PATHS[agent][step]
    return f"({row},{column})"


def lines(form: str) -> str:
    """A line for each step t, with both agents' cells, a and b, in it."""
    return "\n".join(form.format(t=t, a=text(0, t), b=text(1, t)) for t in STEPS)


def across(form: str) -> str:
    """A row for each agent, with its cells at every step."""
    return "\n".join(form.format(agent=agent, cells=" | ".join(text(agent, t) for t in STEPS)) for agent in PATHS)


POSITIONS = [{"step": t, "positions": [CELLS[0][t], CELLS[1][t]]} for t in STEPS]
STATES = [{"agent_0": CELLS[0][t], "agent_1": CELLS[1][t]} for t in STEPS]
ROUTES = [{"robot": f"Robot {agent}", "route": CELLS[agent]} for agent in CELLS]
FENCED = f"```json\n{json.dumps({'A0': CELLS[0], 'A1': CELLS[1]}, indent=1)}\n```"
SHAPES = {
    "rows of steps": lines("Step {t}: {a}, {b}"),
    "rows of steps, bold": lines("**Step {t}:** {a}; {b}"),
    "rows of steps with labels": lines("t={t}: Agent 0 at {a}, Agent 1 at {b}"),
    "rows of steps with short labels": lines("Timestep {t} - A1 {b} A0 {a}"),
    "headings of steps": lines("### Step {t}\n- Agent 0: {a}\n- Agent 1: {b}\n"),
    "a line for each agent and step": lines("Step {t}: Agent 0: {a}\nStep {t}: Agent 1: {b}"),
    "a column for each agent": "| Step | Agent 0 | Agent 1 |\n|---|:-:|---|\n" + lines("| {t} | {a} | {b} |"),
    "a column for each agent and remarks": "t | A0 | A1 | note\n--|--|--|--\n" + lines("{t} | {a} | {b} | near (0,0)"),
    "a row for each agent": "| Agent | Path |\n|---|---|\n| 0 | (2,0) -> (2,1) -> (2,2) -> (1,2) |\n"
    "| 1 | (1,0) -> (1,1) -> (2,1) -> (2,2) |",
    "a row with start and goal": "| Agent | Start | Goal | Path | Moves |\n|---|---|---|---|---|\n"
    "| Agent 0 | (2,0) | (1,2) | (2,0), (2,1), (2,2), (1,2) | 3 |\n"
    "| Agent 1 | (1,0) | (2,2) | (1,0), (1,1), (2,1), (2,2) | 3 |",
    "a column for each step": "| Agent | t=0 | t=1 | t=2 | t=3 |\n|---|---|---|---|---|\n"
    + across("| Agent {agent} | {cells} |"),
    "a column for each step, numbered": "| Agent | 0 | 1 | 2 | 3 |\n|---|---|---|---|---|\n" + across("| {agent} | {cells} |"),
    "columns without a header": across("| Agent {agent} | {cells} |"),
    "a table for each agent": "\n\n".join(
        f"#### Agent {agent}\n| Step | Cell |\n|---|---|\n" + lines("| {t} | {" + "ab"[agent] + "} |") for agent in PATHS
    ),
    "json by agent": json.dumps({"agent_0": CELLS[0], "agent_1": CELLS[1]}),
    "json by number": json.dumps({"0": CELLS[0], "1": CELLS[1], "cost": 3}),
    "json in a fence, with words": f"Here:\n{FENCED}\nBoth arrive.",
    "json, a list of objects": json.dumps([{"agent": a, "start": CELLS[a][0], "path": CELLS[a]} for a in CELLS]),
    "json, wrapped": json.dumps({"solution": {"paths": ROUTES}, "makespan": 3}),
    "json, a list of paths": json.dumps({"paths": list(CELLS.values())}),
    "json, cells by name": json.dumps({a: [{"row": r, "col": c} for r, c in CELLS[a]] for a in CELLS}),
    "json, cells as text": json.dumps({a: [f"({r},{c})" for r, c in CELLS[a]] for a in CELLS}),
    "json, cells with their steps": json.dumps({a: [{"t": t, "cell": CELLS[a][t]} for t in STEPS] for a in CELLS}),
    "json, paths as text": '{"Agent 0": "(2,0) -> (2,1) -> (2,2) -> (1,2)", "Agent 1": "1,0 -> 1,1 -> 2,1 -> 2,2"}',
    "json, the answer as text": json.dumps({"answer": PLAIN}),
    "json lines": "\n".join(json.dumps({"agent": a, "path": CELLS[a]}) for a in CELLS),
    "json by step": json.dumps(POSITIONS),
    "json by step, wrapped": json.dumps({"steps": STATES}),
    "json by step, keys": json.dumps({f"step {t}": {"0": CELLS[0][t], "1": CELLS[1][t]} for t in STEPS}),
    "python's writing": str({a: [tuple(cell) for cell in CELLS[a]] for a in CELLS}) + "  # a comment",
}
GAPS = [
    "Agent 0:\nStep 0: (0,0)\nStep 2: (0,1)",
    "Agent 0:\nStep 0: (0,0)\nStep 1: wait\nStep 2: (0,1)",
    "Agent 0:\nStep 0: (0,0) -> (0,1)\nStep 1: (0,1) -> (0,2)",
    "Agent 0: t=0 (0,0), t=1-2 (0,1), t=3 (0,2)",
    "Agent 0:\n1. (0,0)\n3. (0,1)",
    "Agent 0:\n5. (0,0)\n6. (0,1)",
    "Step 0: (0,0), (1,0)\nStep 2: (0,1), (1,1)",
    "Step 0: (0,0), (1,0)\nStep 1: wait, (1,1)\nStep 2: (0,1), (1,2)",
    "Step 0: A0 (0,0), A1 (1,0)\nStep 1: A1 (1,1)\nStep 2: A0 (0,1), A1 (1,2)",
    "Step 0: (0,0) -> (0,1), (1,0) -> (1,1)\nStep 1: (0,1) -> (0,2), (1,1) -> (1,2)",
    "| Step | Agent 0 | Agent 1 |\n|-|-|-|\n| 0 | (0,0) | (1,0) |\n| 2 | (0,1) | (1,1) |",
    "| Step | Agent 0 | Agent 1 |\n|-|-|-|\n| 0 | (0,0) | (1,0) |\n| 1 | - | (1,1) |\n| 2 | (0,1) | (1,2) |",
    "| Step | Agent 0 | Agent 1 |\n|-|-|-|\n| 0 | (0,0) | (1,0) |\n| ... | ... | ... |\n| 2 | (0,1) | (1,2) |",
    "| Step | Agent 0 | Agent 1 |\n|-|-|-|\n| 0 | (0,0) x2 | (1,0) |\n| 1 | (0,1) | (1,1) |",
    "| Step | Agent 0 | Agent 0 |\n|-|-|-|\n| 0 | (0,0) | (1,0) |\n| 1 | (0,1) | (1,1) |",
    "| Agent | Start | Goal |\n|-|-|-|\n| Agent 0 | (0,0) | (0,1) |\n| Agent 1 | (1,0) | (1,1) |",
    "| Agent 0 | (0,0) | | (0,1) |",
    "| Agent 0 | (0,0) | (0,1) |\n| | (1,0) | (1,1) |",
    '{"Agent 0": [[0,0], null, [0,1]]}',
    '{"Agent 0": [[0,0], [0,1,2]]}',
    '{"Agent 0": [[0,0], {"x": 0, "y": 1}]}',
    '{"0": "(0,0) x2 -> (0,1)"}',
    '[{"agent": 0, "path": [[0,0], "wait", [0,1]]}]',
    '[{"agent": 0, "path": [[0,0]]}, {"agent": 0, "path": [[0,1]]}]',
    '{"plan A": {"0": [[0,0]]}, "plan B": {"0": [[0,1]]}}',
    '[{"step": 0, "positions": [[0,0],[1,0]]}, {"step": 2, "positions": [[0,1],[1,1]]}]',
    '{"agent_0": [{"t": 0, "cell": [0,0]}, {"t": 2, "cell": [0,1]}]}',
]


@pytest.mark.parametrize("name", SHAPES)
def test_reads_steps_tables_and_objects(name: str) -> None:
    assert read_answer(f"<answer>\n{SHAPES[name]}\n</answer>") == (PATHS, "")
    assert read_answer(f"I tried\n{WRONG}\nand then\n{SHAPES[name]}\nNobody meets.") == (PATHS, "")


@pytest.mark.parametrize("shape", GAPS)
def test_what_has_a_gap_is_not_parsable(shape: str) -> None:
    for answer in (shape, f"<answer>\n{shape}\n</answer>"):
        reading = read_answer(answer)
        assert reading.paths is None and reading.why


def test_an_agent_that_has_arrived_may_have_no_more_cells() -> None:
    short = {0: ((0, 0), (0, 1)), 1: ((1, 0), (1, 1), (1, 2))}
    for shape in (
        "Step 0: A0 (0,0), A1 (1,0)\nStep 1: A0 (0,1), A1 (1,1)\nStep 2: A1 (1,2)",
        "| t | A0 | A1 |\n|-|-|-|\n| 0 | (0,0) | (1,0) |\n| 1 | (0,1) | (1,1) |\n| 2 | - | (1,2) |",
        "| Agent | 0 | 1 | 2 |\n|-|-|-|-|\n| A0 | (0,0) | (0,1) | |\n| A1 | (1,0) | (1,1) | (1,2) |",
    ):
        assert read_answer(f"<answer>\n{shape}\n</answer>").paths == short
    waits = "| t | A0 | A1 |\n|-|-|-|\n| 0 | (0,0) | (1,0) |\n| 1 | wait | (1,1) |\n| 2 | (0,1) | (1,1) (stays) |"
    assert read_answer(waits).paths == {0: ((0, 0), (0, 0), (0, 1)), 1: ((1, 0), (1, 1), (1, 1))}


def test_between_tags_steps_may_count_from_1_and_outside_they_may_be_said_of_the_answer() -> None:
    rows = "\n".join(f"Step {t + 1}: {text(0, t)}, {text(1, t)}" for t in STEPS)
    assert read_answer(f"<answer>\n{rows}\n</answer>").paths == PATHS
    assert read_answer(f"{PLAIN}\n\nStep 1: (9,9), (8,8)\nStep 2: (9,9), (8,8)").paths == PATHS
