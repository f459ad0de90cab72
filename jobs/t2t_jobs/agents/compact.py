"""The compact form, for a toy policy that writes a job's text and nothing else. The question has a few words; the answer is a
whole `job.toml`, which is written and submitted in one turn. If the last submission was refused, the question names the keys that
were wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from t2t_core.hookspecs import EpisodeState
from t2t_core.records import Message, Response, Tool, ToolCall
from t2t_jobs.family import Family
from t2t_jobs.job import FILE
from t2t_jobs.tools import SUBMIT

MOST_KEYS = 8  # wrong keys that a question names


@dataclass(frozen=True)
class Compact:
    """Asks with `question`, and reads the answer as the text of a job."""

    tools: Sequence[Tool] = ()

    def messages(self, state: EpisodeState) -> list[Message]:
        complained = " ".join(f"{fault.what} {fault.where}" for fault in state.failures)
        again = bool(state.exchanges)
        return [Message("user", question(state.family.testbed, state.family.name, wrong_keys(state.family, complained), again))]

    def calls(self, response: Response) -> tuple[ToolCall, ...]:
        written = json.dumps({"path": FILE, "content": response.text})
        return ToolCall("write", "write_file", written), ToolCall("submit", SUBMIT, "{}")


def question(world: str, family: str, wrong: Sequence[str] = (), again: bool = False) -> str:
    """`job TESTBED FAMILY`, and after a refused submission also `again` and a line for each wrong key."""
    lines = [f"job {world} {family}", *(["again"] if again else []), *(f"wrong {key}" for key in wrong)]
    return "\n".join(lines)


def wrong_keys(family: Family, complained: str) -> list[str]:
    """The keys of a job that the complaints mention, in the family's order."""
    return [key for key in family.bounds if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", complained)][:MOST_KEYS]
