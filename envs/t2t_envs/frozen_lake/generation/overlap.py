"""Counts partial overlap between instances and an evaluation set: shared hole layouts, and shared groups of agents.

Training with 2 agents can never contain an evaluation instance with 3, but it can contain its holes, or two of its agents on
them. Both are allowed and counted, so that nobody has to guess how much of a score they could explain. Instances are compared up
to the 8 grid symmetries and the agents' labels. A grid without holes has no layout to share, but its agents still count. (Our
choices.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations

from ..instance import Cell, Instance, images

Symmetry = tuple[int, ...]  # cell (row * size + column) -> cell
Layout = tuple[int, ...]  # the size, then the holes' cells in rising order
Agents = tuple[tuple[int, int], ...]  # start and goal cells in rising order


def shared(instances: Sequence[Instance], others: Iterable[Instance]) -> dict[str, int]:
    """How much `instances` (to be trained on) and `others` (an evaluation set) share.

    Returns:
        hole_layouts: how many of `instances` have the hole layout of one of `others`.
        hole_layouts_of_set: how many of `others` share their layout in this way.
        projections: how many of `instances` equal one of `others` with some of its agents removed.
        projections_of_set: how many of `others` are matched in this way.
    """
    by_layout: dict[Layout, dict[Agents, int]] = defaultdict(lambda: defaultdict(int))
    for instance in instances:
        layout, symmetries = _layout(instance.size, instance.holes)
        by_layout[layout][_least(_agents(instance), symmetries)] += 1
    counts = dict.fromkeys(("hole_layouts", "hole_layouts_of_set", "projections", "projections_of_set"), 0)
    met: dict[Layout, set[Agents]] = defaultdict(set)
    for other in others:
        layout, symmetries = _layout(other.size, other.holes)
        if layout in by_layout:
            groups = _groups(other, symmetries, {len(agents) for agents in by_layout[layout]}) & by_layout[layout].keys()
            met[layout] |= groups
            counts["hole_layouts_of_set"] += len(layout) > 1
            counts["projections_of_set"] += bool(groups)
    counts["hole_layouts"] = sum(sum(by_layout[layout].values()) for layout in met if len(layout) > 1)
    counts["projections"] = sum(by_layout[layout][agents] for layout, groups in met.items() for agents in groups)
    return counts


@lru_cache(1 << 16)  # every round compares its instances with the same sets
def _layout(size: int, holes: Sequence[Cell]) -> tuple[Layout, list[Symmetry]]:
    """The smallest of the 8 symmetric hole layouts, and the symmetries that lead to it."""
    cells = [row * size + column for row, column in holes]
    forms = [tuple(sorted(image[cell] for cell in cells)) for image in images(size)]
    least = min(forms)
    giving = [image for form, image in zip(forms, images(size), strict=True) if form == least]
    return (size, *least), giving


def _agents(instance: Instance) -> Agents:
    def index(cell: Cell) -> int:
        return cell[0] * instance.size + cell[1]

    return tuple((index(start), index(goal)) for start, goal in zip(instance.starts, instance.goals, strict=True))


def _least(agents: Agents, symmetries: Iterable[Symmetry]) -> Agents:
    """The smallest form of the agents under these symmetries of the grid and any labels."""
    return min(tuple(sorted((s[start], s[goal]) for start, goal in agents)) for s in symmetries)


def _groups(instance: Instance, symmetries: Sequence[Symmetry], sizes: Iterable[int]) -> set[Agents]:
    """Every proper subset of the agents that has one of these sizes."""
    agents = _agents(instance)
    return {_least(group, symmetries) for k in sizes if k < len(agents) for group in combinations(agents, k)}
