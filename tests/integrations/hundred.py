"""The same hundred answers to the same hundred lakes, for every framework: `hundred_answers.jsonl` beside this file holds what
was answered, and what `t2t verify` says of it.

    python tests/integrations/hundred.py      writes the file again; a test holds that it says what `t2t` says today
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from t2t_core.plugins import installed
from t2t_core.records import Sampling, Task
from t2t_core.reward import reward

FILE = Path(__file__).parent / "hundred_answers.jsonl"
BED = installed().testbeds.make("mapf-frozenlake")
SET, COUNT = "3agents", 100
POLICIES = ("cbs", "pibt", "independent")


def instances() -> list[Any]:
    """Twelve or thirteen lakes of each map size, in the order of the set."""
    lakes = BED.load_set(SET).instances
    return [lakes[n * len(lakes) // COUNT] for n in range(COUNT)]


def _answer(lake: Any, number: int) -> str:
    """In turn: three solvers' plans, an optimal plan two steps late, one among prose and thoughts, one cut off, and none."""
    policy = installed().policies.make(POLICIES[number % 7] if number % 7 < 3 else "cbs")
    task = Task(lake.id, 0, BED.prompt(lake, "board"), BED.unlabelled(lake), number)
    ((_, response),) = policy.respond([task], Sampling())
    text: str = response.text
    late = re.sub(r"(Agent \d+: )(\(\d+,\d+\))", r"\1\2 -> \2 -> \2", text)
    wrapped = f"<think>Agent 0: (0,0)</think>\nHere it is:\n```\n{text}\n```\nDone."
    return {3: late, 4: wrapped, 5: text[: len(text) * 2 // 3], 6: "No plan."}.get(number % 7, text)


def judged(lake: Any, text: str) -> dict[str, Any]:
    verdict = BED.verify(lake, text, "board")
    figures = {"valid": verdict.valid, "optimal": verdict.optimal is True, "reward": reward(BED, lake, verdict)}
    return {**figures, "checks": dict(verdict.checks)}


def answers() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()]


def by_prompt() -> dict[str, str]:
    """Question -> answer."""
    texts = {answer["id"]: answer["text"] for answer in answers()}
    return {BED.prompt(BED.unlabelled(lake), "board"): texts[lake.id] for lake in instances()}


if __name__ == "__main__":
    pairs = [(lake, _answer(lake, n)) for n, lake in enumerate(instances())]
    FILE.write_text("".join(json.dumps({"id": i.id, "text": text, **judged(i, text)}) + "\n" for i, text in pairs))
