"""The eight strict checks of an answer (paper section on evaluation), its costs and its gap to the stored optimum.

All checks are reported for every answer. Our choices where the paper leaves it open:

* The later checks look only at the paths that belong to the instance's agents. If there are fewer paths than agents,
  `agent_count` is False and the other checks judge the paths that exist. A check with nothing to look at is False.
* A label other than 0..k-1 counts as one agent too many. No other check looks at its path.
* A fault names the first offence. For the checks of single paths that is by agent, then step; for conflicts, by step, then the
  lowest pair of agents. An edge conflict's step is the one at which the two have swapped.
* An answer cheaper than the stored optimum shows that the label is wrong. Then `optimal` is False (its cost is not the stored
  one), the gap is negative and the verdict has the fault `label`. Such an answer is never silently counted as optimal.

The native core reads and checks ordinary answers in the same way, and leaves all others to the rules below.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from t2t_core.errors import T2TError
from t2t_core.records import Fault, Verdict

from .instance import Cell, Instance
from .parser import read_answer
from .reading.tokens import Label, Path
from .rules import DELTAS, Costs, costs, first_path_conflict, in_bounds, is_legal_move
from .solver import MAX_SIZE, native_core

PARSABLE = "parsable"
CHECKS = (
    PARSABLE,
    "agent_count",
    "start_correct",
    "in_bounds",
    "hole_free",
    "legal_move",
    "conflict_free",
    "goal_reached",
)
LABEL = "label"  # the fault of an instance whose stored optimum is above a valid answer's cost


def verify(instance: Instance, text: str) -> Verdict:
    """Check a policy's answer, as text, against an instance.

    Raises:
        T2TError: `text` is not a string or `instance` not an Instance. Any string gets a verdict.
    """
    if not isinstance(text, str):
        raise T2TError(f"an answer is text, not {type(text).__name__}", next="verify_paths checks paths as cells")
    _checked(instance)
    if instance.size <= MAX_SIZE and (core := native_core()):
        judged = core.judge_answer(text, instance.size, instance.holes, instance.starts, instance.goals)
        if judged is not None:
            return _judged(instance, *judged)
    return reference_verify(instance, text)


def reference_verify(instance: Instance, text: str) -> Verdict:
    """The same verdict from the rules in Python alone. Tests compare the native core with it."""
    reading = read_answer(text)
    return _judge(instance, reading.paths, reading.why)


def verify_paths(instance: Instance, paths: Sequence[Sequence[Cell]]) -> Verdict:
    """Check paths, one per agent in order: sequences of (row, column) cells that begin with the start cell. An empty path
    counts as no path.

    Raises:
        T2TError: a path is not a sequence of pairs of integers.
    """
    try:
        answer = {a: tuple((r.__index__(), c.__index__()) for r, c in path) for a, path in enumerate(paths)}
    except (TypeError, ValueError, AttributeError) as error:
        raise T2TError("paths are sequences of (row, column) cells, one per agent", cause=str(error)[:120]) from error
    return _judge(_checked(instance), {agent: path for agent, path in answer.items() if path})


def _checked(instance: Instance) -> Instance:
    if not isinstance(instance, Instance):
        raise T2TError(f"expected an Instance, not {type(instance).__name__}", next="Instance.from_dict reads one")
    return instance


def _judged(instance: Instance, bits: int, makespan: int, sum_of_costs: int, answer: Mapping[Label, Path] | None) -> Verdict:
    """The verdict from the native core's results. The core does not say where a fault is, so that is worked out here."""
    if answer is None:
        return _valid(instance, Costs(makespan, sum_of_costs))
    checks = {name: bool(bits >> i & 1) for i, name in enumerate(CHECKS)}
    return _invalid(instance, answer, _of_agents(instance, answer), checks)


def _of_agents(instance: Instance, answer: Mapping[Label, Path]) -> dict[int, Path]:
    return {agent: answer[agent] for agent in range(instance.num_agents) if agent in answer}


def _judge(instance: Instance, answer: Mapping[Label, Path] | None, why: str = "there is none") -> Verdict:
    k = instance.num_agents
    paths = _of_agents(instance, answer or {})
    checks = dict.fromkeys(CHECKS, False)
    checks[PARSABLE] = bool(answer)
    checks["agent_count"] = answer is not None and len(paths) == k == len(answer)
    if paths:
        _check_paths(instance, paths, checks)
    if not all(checks.values()):
        return _invalid(instance, answer or {}, paths, checks, why)
    both = costs([paths[agent] for agent in range(k)], instance.goals)
    if both is None:
        raise AssertionError("paths that reach their goals have costs")
    return _valid(instance, both)


@functools.lru_cache(maxsize=64)
def _grid(size: int) -> frozenset[Cell]:
    return frozenset((r, c) for r in range(size) for c in range(size))


@functools.lru_cache(maxsize=64)
def _moves(size: int) -> frozenset[tuple[Cell, Cell]]:
    """Every legal move inside the grid, so that ordinary paths are checked by look-up."""
    grid = _grid(size)
    near = ((a, (a[0] + dr, a[1] + dc)) for a in grid for dr, dc in DELTAS)
    return frozenset((a, b) for a, b in near if b in grid and is_legal_move(a, b))


def _check_paths(instance: Instance, paths: Mapping[int, Path], checks: dict[str, bool]) -> None:
    """The six checks of the paths themselves, as yes or no. `_faults` finds the places, which most answers do not need."""
    grid, moves, holes = _grid(instance.size), _moves(instance.size), instance.holes
    checks["start_correct"] = all(path[0] == instance.starts[a] for a, path in paths.items())
    checks["in_bounds"] = all(grid.issuperset(path) for path in paths.values())
    checks["hole_free"] = all(set(path).isdisjoint(holes) for path in paths.values())
    checks["legal_move"] = all(
        moves.issuperset(zip(path, path[1:], strict=False)) or _first_illegal(path) is None for path in paths.values()
    )
    checks["conflict_free"] = first_path_conflict(list(paths.values())) is None
    checks["goal_reached"] = all(path[-1] == instance.goals[a] for a, path in paths.items())


def _first_illegal(path: Path) -> int | None:
    """The first step whose move is longer than 1."""
    before = path[0]
    for step, cell in enumerate(path):
        if not is_legal_move(before, cell):
            return step
        before = cell
    return None


def _valid(instance: Instance, both: Costs) -> Verdict:
    known = {"makespan": both.makespan, "sum_of_costs": both.sum_of_costs}
    stored = {"makespan": instance.optimal_makespan, "sum_of_costs": instance.optimal_sum_of_costs}
    gaps = {name: cost - optimum for name, cost in known.items() if (optimum := stored[name]) is not None}
    wrong = [f"{name} {known[name]} < {stored[name]}" for name, gap in gaps.items() if gap < 0]
    message = "this answer is better than the instance's stored optimum, which is wrong: "
    gap = gaps.get(instance.objective)
    return Verdict(
        dict.fromkeys(CHECKS, True),
        valid=True,
        optimal=None if gap is None else gap == 0,
        cost=known[instance.objective],
        costs=known,
        gap=gap,
        gaps=gaps,
        faults={LABEL: Fault(message + ", ".join(wrong))} if wrong else {},
    )


def _invalid(
    instance: Instance, answer: Mapping[Label, Path], paths: Mapping[int, Path], checks: Mapping[str, bool], why: str = ""
) -> Verdict:
    faults = _faults(instance, answer, paths, checks)
    if not checks[PARSABLE]:
        faults[PARSABLE] = Fault(f"no path can be read: {why}")
    return Verdict(checks, valid=False, optimal=False, cost=None, faults=faults)


def _faults(
    instance: Instance, answer: Mapping[Label, Path], paths: Mapping[int, Path], checks: Mapping[str, bool]
) -> dict[str, Fault]:
    """Where each failed check first failed."""
    faults: dict[str, Fault] = {}
    for name, passed in checks.items():
        if not passed:
            faults[name] = _fault(name, instance, answer, paths)
    return faults


def _fault(name: str, instance: Instance, answer: Mapping[Label, Path], paths: Mapping[int, Path]) -> Fault:
    if name == PARSABLE:
        return Fault("no path can be read")
    if name == "agent_count":
        return _count_fault(instance.num_agents, answer, paths)
    if not paths:
        return Fault("there is no path to check")
    if name == "conflict_free":
        return _conflict_fault(paths)
    for agent, path in paths.items():
        if (fault := _path_fault(name, instance, agent, path)) is not None:
            return fault
    raise AssertionError(f"the check {name} failed without a place")


def _count_fault(k: int, answer: Mapping[Label, Path], paths: Mapping[int, Path]) -> Fault:
    missing = [agent for agent in range(k) if agent not in paths]
    extra = [str(label)[:20] for label in answer if label not in paths]
    parts = [f"{len(answer)} paths for {k} agents"]
    if missing:
        parts.append("none for agent " + ", ".join(map(str, missing)))
    if extra:
        parts.append("no such agent: " + ", ".join(extra[:5]))
    return Fault("; ".join(parts), where={"agent": missing[0]} if missing else {})


def _conflict_fault(paths: Mapping[int, Path]) -> Fault:
    agents = list(paths)
    meeting = first_path_conflict(list(paths.values()))
    if meeting is None:
        raise AssertionError("the check conflict_free failed without a place")
    step, conflict = meeting
    agent, other = (agents[i] for i in conflict.agents)
    what = "are both on" if conflict.kind == "vertex" else "swap cells, the former moving to"
    message = f"agents {agent} and {other} {what} {_text(conflict.cell)} at step {step}"
    return Fault(message, conflict.kind, {"agent": agent, "other": other, "step": step, "cell": conflict.cell})


def _path_fault(name: str, instance: Instance, agent: int, path: Path) -> Fault | None:
    """The first step at which one agent's path fails one check."""
    step: int | None = None
    what = ""
    if name == "start_correct":
        if path[0] != instance.starts[agent]:
            step, what = 0, f"starts on {_text(path[0])}, not on {_text(instance.starts[agent])}"
    elif name == "goal_reached":
        if path[-1] != instance.goals[agent]:
            step, what = len(path) - 1, f"ends on {_text(path[-1])}, not on {_text(instance.goals[agent])}"
    elif name == "legal_move":
        step = _first_illegal(path)
        if step is not None:
            what = f"goes from {_text(path[step - 1])} to {_text(path[step])} in one step"
    elif name == "in_bounds":
        step = next((i for i, cell in enumerate(path) if not in_bounds(instance.size, cell)), None)
        what = "leaves the grid"
    else:
        holes = set(instance.holes)
        step = next((i for i, cell in enumerate(path) if cell in holes), None)
        what = "is in a hole"
    if step is None:
        return None
    when = "" if name == "start_correct" else f" at step {step}"
    where = f", on {_text(path[step])}" if name in ("in_bounds", "hole_free") else ""
    return Fault(f"agent {agent} {what}{when}{where}", where={"agent": agent, "step": step, "cell": path[step]})


def _text(cell: Cell) -> str:
    return f"({cell[0]},{cell[1]})"
