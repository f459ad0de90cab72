"""Reads paths out of what language models really write (paper section on evaluation: `parsable` means that a path can be
extracted; how it is extracted is our choice, written down here and in docs/task.md).

**What is ignored.** Whatever a model thought (`t2t_core.reading.thoughts`): a draft never counts, tagged or not.

**Which text counts.** The last `<answer>` block that holds a path counts. An unclosed block runs to the next tag or the end, so
a sentence that mentions the tags holds no path. If there is no such block, the last block of agent lines in which an agent moves
counts, unless it only repeats a part of the one before. If a label comes again after words, a blank line or a fence, a new
block starts. Text that is struck out (`~~…~~`, `<del>…</del>`) or commented out (`<!--…-->`) never counts.

**What is a path.** A label (`Agent 0:`, `Robot 1 -`, `**A2**:`, `Agent 0 path:`, `Agent 0 (3 moves):`, bulleted or not) and
then cells, `(r,c)`, `[r, c]`, `[r][c]`, `(r=0, c=1)`, with arrows, commas, line breaks and markup between. Bare `r,c` counts as
a cell if a label or an arrow precedes it. Paths are also read from rows by step (`Step 0: (2,0), (1,0)`), Markdown tables and
JSON. Digits are ASCII.

**Nothing within a path is dropped silently.** Between two cells of a path, only text that is known to say nothing about time is
allowed. So `x2`, an ellipsis, a word or a cell of three numbers make the text unparsable. So do two different paths for one
label, and a wait that is named beside a path without one. Words after the last cell end a path. Text beside a path (a label's
remark, a field, a column) must be understood too: see `reading/remarks.py`.

Work and memory are linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from t2t_core.reading import loose_json
from t2t_core.reading.struck import without_struck
from t2t_core.reading.thoughts import set_aside_thoughts

from .instance import MAX_AGENTS
from .reading import objects
from .reading.blocks import Block, Unplaceable, without_recaps
from .reading.lines import LineReader
from .reading.remarks import names_a_wait, repeats
from .reading.tokens import FAR, Cell, Label, Path

__all__ = ["FAR", "READER", "Reading", "format_answer", "parse_answer", "read_answer"]

# Version of this rule, recorded with all verdicts. 1 counted the last block even if it was empty; 2 refused `-> stay at (1,0)`
# and `Agent (0):`; 3 knew neither Gemma's marks of thought nor marks of direction, nor a list of moves beside a path in JSON; 4
# took a scratchpad for an answer and `<del>` for text, passed over waits named in a label or in JSON, and refused `(waits for
# Agent 0)`; 5 passed over times beside a path in JSON that leave a step out; 6 passed over columns,
# fields, marks and remarks that it did not know, and lost the waits that were named in them; 7 took a recap of starts and goals
# for the answer, and read paths that were called a draft, or written in another order.
READER = 8

_TAG = re.compile(r"<(/)?answer>", re.IGNORECASE | re.ASCII)
_NONE = re.compile(
    r"<answer>[^<]{0,200}?\b(?:no\s(?:[a-z-]+\s){0,3}(?:solutions?|paths?|plans?|answer)|impossible|unsolvable|infeasible"
    r"|unable|cannot|can['’]t)\b[^<]{0,200}</answer>",
    re.IGNORECASE | re.ASCII,
)
_JSON = re.compile(r"""\{(?=\s*+["'“‘\w])|\[(?=\s*+\{)""")

# The pieces of the documented form, for the fast reader.
_PLAIN_CELLS: dict[str, Cell] = {f"({r},{c})": (r, c) for r in range(32) for c in range(32)}
_PLAIN_LABELS: dict[str, int] = {f"Agent {agent}": agent for agent in range(MAX_AGENTS)}


class Reading(NamedTuple):
    """The paths by label, in the order in which their labels first appear; None and a reason if the text is not parsable."""

    paths: Mapping[Label, Path] | None
    why: str = ""


def format_answer(paths: Sequence[Sequence[Cell]]) -> str:
    """The documented answer, literally: one line per agent between answer tags."""
    lines = [f"Agent {agent}: " + " -> ".join(f"({r},{c})" for r, c in path) for agent, path in enumerate(paths)]
    return "\n".join(["<answer>", *lines, "</answer>"])


def parse_answer(text: str) -> Mapping[Label, Path] | None:
    """The paths by label, in the order in which their labels first appear; None if the text is not parsable.

    Labels are as written, whether they start at 0 or not: the verifier decides which ones belong to an instance. A label that
    is not an ordinary number (`-1`, `A`, one of many digits) is kept as text.
    """
    return read_answer(text).paths


def read_answer(text: str) -> Reading:
    """`parse_answer`, with the reason if nothing can be read."""
    said, unfinished = set_aside_thoughts(text)
    said = without_struck(said)
    for body in reversed(list(_tagged(said))):
        if plain := _plain(body):
            return Reading(plain)
        blocks = _read(body, tagged=True)
        if blocks:
            return _settled(blocks[0])
    if _NONE.search(said):
        return Reading(None, "the answer says that there is no path")
    if plain := _plain(said):
        return Reading(plain)
    if blocks := _read(said, tagged=False):
        moving = [block for block in blocks if block.fault or any(len(path) > 1 for _, path in block.paths)]
        return _settled(without_recaps(moving or blocks)[-1])
    return Reading(None, "the text ends within its thoughts" if unfinished else "it holds no path")


def _tagged(text: str) -> Iterator[str]:
    """The text after each opening tag, up to the next tag."""
    start: int | None = None
    for tag in _TAG.finditer(text):
        if start is not None:
            yield text[start : tag.start()]
        start = None if tag[1] else tag.end()
    if start is not None:
        yield text[start:]


def _plain(body: str) -> dict[Label, Path] | None:
    """Read the documented form by looking up whole cells; None if the text deviates from it in any way."""
    paths: dict[Label, Path] = {}
    for line in body.strip().split("\n"):
        name, _, rest = line.partition(": ")
        try:
            label = _PLAIN_LABELS[name]
            path = tuple([_PLAIN_CELLS[cell] for cell in rest.split(" -> ")])
        except KeyError:
            return None
        if label in paths:
            return None
        paths[label] = path
    return paths


def _read(text: str, tagged: bool) -> list[Block]:
    """The blocks of paths in a text; between tags there is a single block."""
    reader = LineReader(tagged)
    position = 0
    for value in loose_json.values(text, _JSON):
        if isinstance(value, loose_json.Broken):
            continue  # it may be lines in braces
        try:
            paths, fault = objects.read(value.data, _inside), ""
            if paths and names_a_wait(" ".join(value.comments)) and not any(repeats(path) for _, path in paths):
                raise Unplaceable("a comment mentions a wait, but no cell is repeated")
        except Unplaceable as error:
            paths, fault = [], str(error)
        if paths is not None:
            reader.text(text[position : value.start])
            reader.paths(paths, fault, objects.origin(value.data))
            position = value.end
    reader.text(text[position:])
    return reader.close()


def _inside(text: str) -> list[tuple[Label, Path]] | None:
    """The paths of an answer that is a text inside an object."""
    reader = LineReader(tagged=True)
    reader.text(text)
    blocks = reader.close()
    if blocks and blocks[0].fault:
        raise Unplaceable(blocks[0].fault)
    return blocks[0].paths if blocks and blocks[0].paths else None


def _settled(block: Block) -> Reading:
    if block.fault:
        return Reading(None, block.fault)
    paths: dict[Label, Path] = {}
    for label, path in block.paths:
        if paths.setdefault(label, path) != path:
            return Reading(None, f"agent {label} has two different paths")
    return Reading(paths)
