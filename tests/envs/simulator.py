"""MAPF-FrozenLake, written a second time from the environments' documentation alone: plain lists and loops, no suite code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MOVES = [(0, -1), (1, 0), (0, 1), (-1, 0), (0, 0)]  # left, down, right, up, wait


@dataclass
class Simulator:
    """One lake (size, holes, starts, goals) under the documented options."""

    size: int
    holes: list[tuple[int, int]]
    starts: list[tuple[int, int]]
    goals: list[tuple[int, int]]
    objective: str
    optimum: int | None
    options: dict[str, Any]
    time: int = 0
    over: bool = False
    paths: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.at = list(self.starts)
        self.paths = [[cell] for cell in self.starts]
        self.frame = self.options.get("max_size") or self.size
        self.limit = self.options.get("max_steps") or 8 * self.frame
        self.potential = 0.0

    # --- rules

    def on_grid(self, cell: tuple[int, int]) -> bool:
        return 0 <= cell[0] < self.size and 0 <= cell[1] < self.size

    def step(self, actions: list[int]) -> tuple[float, bool, bool, dict[str, Any]]:
        before, after = self.at, []
        for (row, column), action in zip(self.at, actions, strict=True):
            target = (row + MOVES[action][0], column + MOVES[action][1])
            if not self.on_grid(target) or (target in self.holes and self.options.get("on_hole") == "block"):
                target = (row, column)
            after.append(target)
        while self.options.get("on_conflict") == "block" and self.in_conflict(before, after):
            for agent in self.in_conflict(before, after):
                after[agent] = before[agent]
        self.time += 1
        self.at = after
        for path, cell in zip(self.paths, after, strict=True):
            path.append(cell)
        fell = any(cell in self.holes for cell in after)
        kind = self.first_conflict(before, after)
        solved = after == self.goals and not fell and not kind
        terminated = solved or fell or bool(kind)
        truncated = not terminated and self.time >= self.limit
        self.over = terminated or truncated
        reward, info = 0.0, {}
        if self.over and not solved:
            info = {"valid": False, "optimal": False, "failure": 1 if fell else 2 if kind else 3, "conflict": kind}
        elif self.over:
            reward, info = self.solved()
        if self.options.get("reward") == "shaped":
            now = 0.0 if self.over else self.share_of_the_way(range(len(after)))
            reward += self.options.get("gamma", 0.99) * now - self.potential
            self.potential = now
        return reward, terminated, truncated, info

    def in_conflict(self, before: list[Any], after: list[Any]) -> set[int]:
        return {agent for pair in self.pairs(before, after) for agent in pair[:2]}

    def pairs(self, before: list[Any], after: list[Any]) -> list[tuple[int, int, int]]:
        conflicts = []
        for i in range(len(after)):
            for j in range(i + 1, len(after)):
                if after[i] == after[j]:
                    conflicts.append((i, j, 1))
                elif after[i] == before[j] and after[j] == before[i]:
                    conflicts.append((i, j, 2))
        return conflicts

    def first_conflict(self, before: list[Any], after: list[Any]) -> int:
        conflicts = self.pairs(before, after)
        return conflicts[0][2] if conflicts else 0

    def solved(self) -> tuple[float, dict[str, Any]]:
        arrivals = []
        for path, goal in zip(self.paths, self.goals, strict=True):
            last = max((step for step, cell in enumerate(path) if cell != goal), default=-1) + 1
            arrivals.append(last)
        costs = {"makespan": max(arrivals), "sum_of_costs": sum(arrivals)}
        cost = costs[self.objective]
        info: dict[str, Any] = {"valid": True, "cost": cost, **costs}
        if self.optimum is not None:
            info |= {"optimal": cost == self.optimum, "gap": cost - self.optimum}
        if self.options.get("reward") == "success":
            return 1.0, info
        if self.optimum is None or self.optimum > cost:
            return 0.5, info
        if cost == self.optimum:
            return 1.0, info
        if cost - self.optimum >= 2 * self.optimum:
            return 0.3, info
        return 1.0 - 0.7 * (cost - self.optimum) / (2 * self.optimum), info

    def share_of_the_way(self, agents: Any) -> float:
        left = whole = 0
        for agent in agents:
            alone = self.alone(self.goals[agent])
            if self.starts[agent] in alone and self.at[agent] in alone:
                left += alone[self.at[agent]]
                whole += alone[self.starts[agent]]
        return (whole - left) / max(whole, 1)

    def alone(self, goal: tuple[int, int]) -> dict[tuple[int, int], int]:
        steps, edge = {goal: 0}, [goal]
        while edge:
            edge = [
                near
                for row, column in edge
                for dr, dc in MOVES[:4]
                if self.on_grid(near := (row + dr, column + dc)) and near not in self.holes and near not in steps
                and not steps.update({near: steps[row, column] + 1})
            ]  # fmt: skip
        return steps

    def masks(self) -> list[list[int]]:
        rows = []
        for row, column in self.at:
            targets = [(row + dr, column + dc) for dr, dc in MOVES]
            rows.append([int(i == 4 or self.on_grid(cell) and cell not in self.holes) for i, cell in enumerate(targets)])
        return rows

    # --- observations

    def closed(self, row: int, column: int) -> int:
        return int(not self.on_grid((row, column)) or (row, column) in self.holes)

    def plane(self, cells: Any) -> list[list[int]]:
        return [[int((r, c) in cells) for c in range(self.frame)] for r in range(self.frame)]

    def observe(self, agent: int | None = None) -> Any:
        """The joint observation, or one agent's, as nested lists."""
        k, view, form = len(self.at), self.options.get("view"), self.options.get("observation", "dict")
        order = list(range(k)) if agent is None else [agent, *(i for i in range(k) if i != agent)]
        if form == "padded":
            each = [self.padded(i) for i in (range(k) if agent is None else [agent])]
            return each if agent is None else each[0]
        if view is not None:
            own = list(range(k)) if agent is None else [agent]
            parts = [(self.window(i, view), [i]) for i in own]
        else:
            holes = [[self.closed(r, c) for c in range(self.frame)] for r in range(self.frame)]
            planes = [holes, *(self.plane([self.at[i]]) for i in order), *(self.plane([self.goals[i]]) for i in order)]
            own, parts = order, [(planes, order)]
        joint = agent is None
        if form == "dict":
            goals = [self.goals[i] for i in own]
            if self.options.get("relative_goals"):
                goals = [(g[0] - self.at[i][0], g[1] - self.at[i][1]) for i, g in zip(own, goals, strict=True)]
            shown = {"positions": [list(self.at[i]) for i in own], "goals": [list(g) for g in goals], "step": self.time}
            if view is None:
                return {"holes": parts[0][0][0], **shown}
            grids = [[planes[i] for planes, _ in parts] for i in (0, 1)]
            return {"holes": grids[0] if joint else grids[0][0], "others": grids[1] if joint else grids[1][0], **shown}
        if form == "planes":
            return [planes for planes, _ in parts] if view is not None and joint else parts[0][0]
        if form == "flat":
            row: list[float] = []
            for planes, agents in parts:
                row += [cell for plane in planes for line in plane for cell in line]
                row += [(self.goals[i][a] - self.at[i][a]) / (self.frame - 1) for i in agents for a in (0, 1)]
            return [*row, self.time / self.limit]
        raise ValueError(form)

    def window(self, agent: int, view: int) -> list[Any]:
        row, column = self.at[agent]
        span = range(-view, view + 1)
        holes = [[self.closed(row + r, column + c) for c in span] for r in span]
        others = [self.at[i] for i in range(len(self.at)) if i != agent]
        goal = [max(-view, min(view, g - p)) for g, p in zip(self.goals[agent], self.at[agent], strict=True)]
        return [
            holes,
            [[int((row + r, column + c) in others) for c in span] for r in span],
            [[int([r, c] == goal) for c in span] for r in span],
        ]

    def padded(self, agent: int) -> list[Any]:
        others = [i for i in range(len(self.at)) if i != agent]
        lake = [(r, c) for r in range(self.size) for c in range(self.size)]
        cells = [lake, self.holes, [self.at[agent]], [self.goals[agent]]]
        cells += [[self.at[i] for i in others], [self.goals[i] for i in others]]
        return [self.plane(part) for part in cells]
