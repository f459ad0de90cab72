"""What the warm-up learns from: random instances with exact optima, answered in a way that is easy to imitate.

Chunk `c` of a warm-up depends only on (seed, c), so a resumed run sees what an uninterrupted one sees. No canonical form in a
frozen evaluation or validation set is ever drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_baselines.tiny import teacher
from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.seeding import Stream, key

Cell = tuple[int, int, int]  # size, holes, agents
SIZES = range(3, 11)
# Share of the answers by number of agents: answers with many agents are longer and cost more.
AGENT_SHARES = {2: 0.42, 3: 0.28, 4: 0.18, 5: 0.12}
KINDS = {"wait": 0.35, "interacting": 0.35, "independent": 0.30}  # more than half need coordination
# The diet of `tiny:weak`: few agents, many small maps and few large ones, so that success falls steeply with size.
WEAK_AGENTS = {2: 0.7, 3: 0.3}
WEAK_SIZES = {n: 1.0 if n <= 6 else 0.25 for n in SIZES}
PER_CELL = 24  # instances of one (agents, size, holes) at a time
MAX_NODES = 20_000  # undecided instances are left out and counted
STALL = 20_000


@dataclass(frozen=True)
class Example:
    """One pair of user message and answer; `kind` is one of KINDS or "design"."""

    prompt: str
    answer: str
    kind: str
    agents: int = 0


def chunk(
    seed: int, index: int, agents: Sequence[int], count: int, exclude: Mapping[Cell, Sequence[bytes]], designs: float
) -> list[Example]:
    """About `count` examples over all sizes and hole counts, shuffled.

    Args:
        agents: agent counts; counts above the size of the map are left out.
        exclude: canonical forms that are never drawn, by (size, holes, agents), as `by_cell` gives them.
        designs: the share of examples that are briefs and proposals instead of lakes and answers.
    """
    stream = Stream.of(seed, "warm-up", index)
    whole = sum(AGENT_SHARES[k] for k in agents)
    examples: list[Example] = []
    for k in agents:
        sizes = [n for n in SIZES if n >= k or k == 2]
        cells = max(1, round(count * (1 - designs) * AGENT_SHARES[k] / whole / len(sizes) / PER_CELL))
        for n in sizes:
            for _ in range(cells):
                examples += _cell(n, stream.below(n * n // 2 + 1), k, stream.next(), exclude)
    for _ in range(round(count * designs)):
        rows = teacher.random_rows(stream)
        examples.append(Example(teacher.brief(rows), teacher.proposal(rows, stream), "design"))
    stream.shuffle(examples)
    return examples


def skewed_chunk(seed: int, index: int, count: int, exclude: Mapping[Cell, Sequence[bytes]]) -> list[Example]:
    """About `count` examples of the skewed diet, shuffled; a cell's expected number may be below one."""
    stream = Stream.of(seed, "skewed warm-up", index)
    examples: list[Example] = []
    for k, share in WEAK_AGENTS.items():
        for n, weight in WEAK_SIZES.items():
            expected = count * share * weight / sum(WEAK_SIZES.values()) / PER_CELL
            for _ in range(int(expected) + (stream.uniform() < expected % 1)):
                examples += _cell(n, stream.below(n * n // 2 + 1), k, stream.next(), exclude)
    stream.shuffle(examples)
    return examples


def _cell(
    size: int, holes: int, agents: int, seed: int, exclude: Mapping[Cell, Sequence[bytes]]
) -> list[Example]:
    """Up to PER_CELL examples of one cell in the shares of KINDS; fewer if the cell has too few of a kind."""
    from t2t_envs.frozen_lake.solver import native_core

    core = native_core()
    if core is None:
        raise T2TError("the warm-up needs the native core", next=advice.native_core())
    if size * size - holes < agents + 1:
        return []
    left = {kind: round(PER_CELL * share) for kind, share in KINDS.items()}
    forms = list(exclude.get((size, holes, agents), ()))
    # Many candidates that need no wait, because most of them have shortest paths that already agree, and are cheap.
    drawn = core.sample_cell(
        size,
        holes,
        agents,
        0,
        key(seed, "cell"),
        4 * PER_CELL,
        left["wait"],
        5 * PER_CELL,
        STALL,
        MAX_NODES,
        False,
        False,
        True,
        1,
        forms,
    )
    origins, paths = core.demonstrate_many(size, drawn["holes"], drawn["starts"], drawn["goals"], drawn["costs"][:, 0], MAX_NODES)
    lakes = []
    rows = zip(
        drawn["holes"].tolist(),
        drawn["starts"].tolist(),
        drawn["goals"].tolist(),
        drawn["wait"][:, 0],
        origins,
        paths,
        strict=True,
    )
    for hole_cells, starts, goals, wait, origin, answer in rows:
        kind = "wait" if wait else "interacting" if origin else "independent"
        if origin < 3 and left[kind]:
            left[kind] -= 1
            lakes.append(Example(_prompt(size, hole_cells, starts, goals), _answer(size, answer), kind, agents))
    return lakes


def _prompt(size: int, holes: Iterable[int], starts: Iterable[int], goals: Iterable[int]) -> str:
    from t2t_envs.frozen_lake.instance import Instance
    from t2t_envs.frozen_lake.prompt import make_prompt

    h, s, g = ([divmod(cell, size) for cell in cells] for cells in (holes, starts, goals))
    return make_prompt(Instance(size, h, s, g), "compact")


def _answer(size: int, paths: Iterable[Iterable[int]]) -> str:
    from t2t_envs.frozen_lake.parser import format_answer

    return format_answer([[divmod(cell, size) for cell in path] for path in paths])


def by_cell(instances: Iterable[Any]) -> dict[Cell, list[bytes]]:
    """Canonical forms of instances by (size, holes, agents), each once."""
    forms: dict[Cell, set[bytes]] = {}
    for instance in instances:
        forms.setdefault((instance.size, len(instance.holes), instance.num_agents), set()).add(instance.canonical())
    return {cell: sorted(of_cell) for cell, of_cell in forms.items()}
