"""What the pictures show: an instance, the paths that exist, where the agents are at each step, and every conflict.

All pictures (terminal, SVG, GIF, HTML) are drawn from a scene, so they agree. Paths may be anything the parser reads: cells off
the grid are drawn just outside it, and very long paths are cut off with a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t2t_core.errors import T2TError

from ..instance import Cell, Instance
from ..rules import Conflict, first_conflict, is_legal_move, position_at

MAX_STEPS = 400  # more steps are not drawn; our choice
# 16 colours, found by a search for colours that differ from ice and from each other, for normal and red-green deficient sight.
# Every agent also carries its number.
PALETTE = (
    "#0077aa", "#dd6600", "#009977", "#cc77aa", "#3333aa", "#ddbb00", "#771133", "#00ccdd",
    "#9944ff", "#444400", "#990077", "#00cc66", "#ff66ff", "#aa7744", "#0000ff", "#aabb88",
)  # fmt: skip
ICE, GRID, HOLE, ALARM, INK, MUTED = "#e8f1f7", "#ffffff", "#1f3a52", "#d31820", "#1c2733", "#5b6b7a"


@dataclass(frozen=True)
class Scene:
    """The facts to draw. `paths` holds the agents that have a path, `conflicts` every conflicting pair with its step, `falls`
    the agents that enter a hole, `jumps` the illegal moves as (agent, step), and `cut` the number of steps not drawn."""

    instance: Instance
    paths: Mapping[int, Sequence[Cell]]
    steps: int
    conflicts: Sequence[tuple[int, Conflict]]
    falls: Sequence[tuple[int, int, Cell]]
    jumps: frozenset[tuple[int, int]]
    cut: int

    @classmethod
    def of(cls, instance: Instance, paths: Sequence[Sequence[Cell]] | Mapping[int, Sequence[Cell]] | None = None) -> Scene:
        """The scene of an instance, alone or with paths: one per agent in order, or a mapping from some agents to theirs."""
        if not isinstance(instance, Instance):
            raise T2TError(f"expected an Instance, not {type(instance).__name__}", next="Instance.from_dict reads one")
        given = dict(paths) if isinstance(paths, Mapping) else dict(enumerate(paths or ()))
        known = {a: given[a] for a in range(instance.num_agents) if given.get(a)}
        longest = max((len(path) - 1 for path in known.values()), default=0)
        drawn = {a: tuple(path[: MAX_STEPS + 1]) for a, path in known.items()}
        steps = min(longest, MAX_STEPS)
        jumps = [(a, t) for a, p in drawn.items() for t in range(1, len(p)) if not is_legal_move(p[t - 1], p[t])]
        return cls(instance, drawn, steps, _conflicts(drawn, steps), _falls(instance, drawn), frozenset(jumps), longest - steps)

    def at(self, agent: int, step: int) -> Cell:
        """Where an agent is; an agent without a path is on its start."""
        path = self.paths.get(agent)
        return position_at(path, step) if path else self.instance.starts[agent]

    def conflicts_at(self, step: int) -> list[Conflict]:
        """The conflicts at this step."""
        return [conflict for when, conflict in self.conflicts if when == step]

    def faulty_at(self, step: int) -> set[int]:
        """The agents that are in a conflict at that step, or in a hole."""
        fallen = {agent for agent in self.paths if self.at(agent, step) in self.instance.holes}
        return fallen | {agent for conflict in self.conflicts_at(step) for agent in conflict.agents}

    def spot(self, agent: int, step: int) -> tuple[float, float]:
        """(row, column) where an agent is drawn: its cell, or a little aside if it shares the cell with others."""
        row, column = self.near(self.at(agent, step))
        shared = [a for a in range(self.instance.num_agents) if self.near(self.at(a, step)) == (row, column)]
        if len(shared) == 1:
            return row, column
        aside = 0.36 * (shared.index(agent) / (len(shared) - 1) - 0.5)
        return row + aside / 2, column + aside

    def near(self, cell: Cell) -> Cell:
        """The cell itself, or the nearest one of the rim just outside the grid."""
        row, column = (min(max(x, -1), self.instance.size) for x in cell)
        return row, column


def _falls(instance: Instance, paths: Mapping[int, Sequence[Cell]]) -> list[tuple[int, int, Cell]]:
    """(step, agent, hole) in the order of the steps. An agent that moves from one hole to the next falls once."""
    holes = set(instance.holes)
    falls = [next(((t, agent, cell) for t, cell in enumerate(path) if cell in holes), None) for agent, path in paths.items()]
    return sorted(fall for fall in falls if fall is not None)


def _conflicts(paths: Mapping[int, Sequence[Cell]], steps: int) -> list[tuple[int, Conflict]]:
    agents = sorted(paths)
    conflicts = []
    for step in range(steps + 1):
        now = [position_at(paths[a], step) for a in agents]
        before = [position_at(paths[a], max(step - 1, 0)) for a in agents]
        if first_conflict(before, now) is None:
            continue
        for i, agent in enumerate(agents):
            for j in range(i + 1, len(agents)):
                conflict = first_conflict([before[i], before[j]], [now[i], now[j]])
                if conflict is not None:
                    conflicts.append((step, Conflict(conflict.kind, (agent, agents[j]), conflict.cell)))
    return conflicts


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, 0..1 (WCAG)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_on(colour: str) -> str:
    """White or near-black, whichever reads better on a colour."""
    light = luminance(colour)
    return "#ffffff" if 1.05 / (light + 0.05) >= (light + 0.05) / 0.06 else "#111111"
