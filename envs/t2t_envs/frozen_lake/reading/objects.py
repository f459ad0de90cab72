"""JSON objects and lists that give the paths by agent, or the agents' cells by step."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from . import tokens
from .blocks import Unplaceable, counted
from .paths import OpenPath
from .remarks import Beside
from .tokens import Cell, Label, Path

Paths = list[tuple[Label, Path]]
_LABEL = re.compile(r"\s*+(?:(?:agent|robot|a|r)[ _#-]{0,2}+)?+([0-9]{1,9}+)\s*+", re.IGNORECASE)
_STEP = re.compile(r"\s*+(?:(?:time[ _-]?)?(?:step|time|t)[ _=-]{0,2}+)([0-9]{1,4}+)\s*+", re.IGNORECASE)
_AGENT_KEYS = ("agent", "agent_id", "agentid", "agent_index", "robot", "robot_id", "id", "name", "label", "index")
_STEP_KEYS = ("step", "t", "time", "timestep", "time_step", "timestamp", "arrive", "arrival", "arrival_time")
_TIMES = ("times", "timesteps", "time_steps", "timestamps", "arrivals", "arrival_times")  # the times of a path's cells
_PATH_KEYS = ("path", "route", "trajectory", "plan", "cells", "positions", "coordinates", "moves", "waypoints")
_CELL_KEYS = ("cell", "position", "pos", "location", "coordinate", "coordinates")
_ROW_KEYS, _COLUMN_KEYS = ("row", "r"), ("column", "col", "c")
_LISTS = ("paths", "routes", "trajectories", "plans", "agents", "robots", "solution", "answer")
_STEP_LISTS = ("steps", "timesteps", "time_steps", "states")
_TEXTS = ("answer", "final_answer", "solution", "output", "response", "result", "text", "content", "paths")
_DEEPEST = 5
# Fields that say how long the agent is on a cell: `_LASTING` means a wait from two steps on, `_WAITING` from one.
_LASTING = re.compile(r"duration|repeats?|times|count|for_steps|steps")
_WAITING = re.compile(
    r"(?:(?:num|n|is)_)?(?:wait|delay|hold|pause|stay|idle|dwell)(?:s|ing|ed)?(?:_?(?:steps?|time|count|turns?|here))?"
)
_ACTING = re.compile(r"(?:next_)?(?:action|move|direction)s?")
_WAIT = re.compile(r"(?:wait|stay|hold|idle|pause|remain|noop|no-op|none)(?:s|ed|ing)?", re.IGNORECASE)


def read(data: Any, text: Callable[[str], Paths | None]) -> Paths | None:
    """The paths in a JSON value; None if it holds none. `text` reads an answer that is a string in the value.

    Raises Unplaceable if something in the place of a path is not a path, or if there are two different answers.
    """
    return _read(data, "", 0, text)


def _read(data: Any, name: str, depth: int, text: Callable[[str], Paths | None]) -> Paths | None:
    if depth > _DEEPEST:
        return None
    if isinstance(data, str):
        return text(data) if name in _TEXTS else None
    if isinstance(data, list):
        return _list(data, name, depth, text)
    if not isinstance(data, dict):
        return None
    named = _agent(data)
    if named is not None:
        return [(named[0], _path(data))]
    for pattern, make in ((_LABEL, _by_agent), (_STEP, _by_step)):
        keys = {key: int(match[1]) for key in data if (match := pattern.fullmatch(key))}
        held = {key: number for key, number in keys.items() if isinstance(data[key], (list, dict, str))}
        if held and len(held) == len(keys):
            return _alone(make({number: data[key] for key, number in held.items()}, len(held)), data, held)
    readings = {key: paths for key, value in data.items() if (paths := _read(value, key.lower(), depth + 1, text)) is not None}
    if not readings:
        return None
    first = next(iter(readings.values()))
    if any(paths != first for paths in readings.values()):
        raise Unplaceable("an object holds two different answers")
    return _alone(first, data, readings)


def _alone(paths: Paths | None, data: Mapping[str, Any], held: Container[str]) -> Paths | None:
    """The paths of an object. Raises Unplaceable if a field beside them contradicts the paths or is not understood."""
    if paths is not None:
        _beside([path for _, path in paths], {key: value for key, value in data.items() if key not in held})
    return paths


def _beside(paths: Sequence[Path], fields: Mapping[str, Any]) -> None:
    beside = Beside(*paths)
    for name, value in fields.items():
        if beside.field_clashes(name, value):
            raise Unplaceable(f"{ascii(name)[:30]} beside a path contradicts the path or is not understood")


def _by_agent(values: Mapping[int, Any], count: int) -> Paths | None:
    if len(values) < count:
        raise Unplaceable("an agent has two entries")
    if all(isinstance(value, str) and not any(c.isdigit() for c in value) for value in values.values()):
        return None  # remarks on the agents in words
    _begin_together(values.values())
    return [(label, _path(value)) for label, value in values.items()]


def _begin_together(values: Iterable[Any]) -> None:
    """Raise Unplaceable if the agents' times begin at different steps."""
    if len({origin(value) for value in values}) > 1:
        raise Unplaceable("the agents' steps begin at different numbers")


def origin(value: Any) -> Any:
    """The number of a path's first step; 0 if the steps have none."""
    times = _value(value, _TIMES)
    if isinstance(times, list) and times:
        return times[0] if type(times[0]) is int else 0
    cells = _path_of(value) if isinstance(value, dict) else value
    first = _value(cells[0], _STEP_KEYS) if isinstance(cells, list) and cells else None
    return first if type(first) is int else 0


def _by_step(values: Mapping[int, Any], count: int) -> Paths | None:
    if len(values) < count:
        raise Unplaceable("a step has two entries")
    counted(list(values))
    return _steps(list(values.values()))


def _list(data: Sequence[Any], name: str, depth: int, text: Callable[[str], Paths | None]) -> Paths | None:
    """Reads objects that name their agent or their step. If `name` is a name for a list of paths, they may also be in order."""
    if not data:
        return None
    agents = [_agent(item) for item in data]
    if all(agents):
        _begin_together(data)
        return [(agent[0], _path(item)) for agent, item in zip(agents, data, strict=True) if agent]
    steps = [_value(item, _STEP_KEYS) for item in data]
    if all(isinstance(step, int) for step in steps):
        counted([step for step in steps if isinstance(step, int)])
        return _steps([{key: value for key, value in item.items() if key.lower() not in _STEP_KEYS} for item in data])
    if name in _STEP_LISTS and all(isinstance(item, (list, dict)) for item in data):
        return _steps(data)
    if name in _LISTS and all(isinstance(item, (list, str)) or _value(item, _PATH_KEYS) is not None for item in data):
        _begin_together(data)
        return [(index, _path(item)) for index, item in enumerate(data)]
    if len(data) == 1:
        return _read(data[0], name, depth + 1, text)
    return None


def _agent(item: Any) -> tuple[Label, Any] | None:
    """The label and the path of `{"agent": 0, "path": [...]}`."""
    path = _path_of(item)
    if path is None:
        return None
    names = [value for key, value in item.items() if key.lower() in _AGENT_KEYS and type(value) in (int, str)]
    labels = {int(match[1]) if (match := _LABEL.fullmatch(str(name))) else str(name).lower() for name in names}
    return (labels.pop(), path) if len(labels) == 1 else None


def _path_of(item: Any) -> Any:
    """The value of the only key that means a path. A list of words doesn't count beside a path, since it names the moves
    (`"moves": ["right", "up"]`)."""
    if not isinstance(item, dict):
        return None
    named = [value for key, value in item.items() if key.lower() in _PATH_KEYS]
    cells = [value for value in named if not (isinstance(value, list) and value and all(map(_is_word, value)))]
    return cells[0] if len(cells) == 1 else named[0] if len(named) == 1 else None


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value.isalpha()


def _value(item: Any, keys: Sequence[str]) -> Any:
    """The value if exactly one of these keys is present, otherwise None."""
    if not isinstance(item, dict):
        return None
    values = [value for key, value in item.items() if key.lower() in keys]
    return values[0] if len(values) == 1 else None


def _steps(rows: Sequence[Any]) -> Paths | None:
    """The agents' cells step by step: each row an object by agent, or a list in their order."""
    paths: dict[Label, list[Cell]] = {}
    given: list[dict[int, Any]] = []
    for index, row in enumerate(rows):
        if isinstance(row, dict) and len(row) == 1 and isinstance(next(iter(row.values())), (dict, list)):
            only = next(iter(row))
            row = row if _LABEL.fullmatch(only) else row[only]
        if isinstance(row, list):
            cells = dict(enumerate(row))
        elif isinstance(row, dict) and all(_LABEL.fullmatch(key) for key in row):
            cells = {int(match[1]): value for key, value in row.items() if (match := _LABEL.fullmatch(key))}
        else:
            raise Unplaceable(f"step {index} does not give each agent's cell")
        given.append(cells)
        for label, value in cells.items():
            if len(paths.setdefault(label, [])) != index:
                raise Unplaceable(f"agent {label} has no cell before step {index}")
            paths[label].append(_cell(value))
    for index, row in enumerate(given):
        for label, value in row.items():
            if isinstance(value, dict):
                path = paths[label]
                _beside_cell(value, path[index] in path[max(index - 1, 0) : index] + path[index + 1 : index + 2])
    return [(label, tuple(cells)) for label, cells in paths.items()] or None


def _path(value: Any) -> Path:
    if isinstance(value, dict):
        inner = _path_of(value)
        if inner is None:
            raise Unplaceable("an agent has no path")
        path = _path(inner)
        if isinstance(times := _value(value, _TIMES), list):
            counted([time if type(time) is int else -1 for time in times])
            if len(times) != len(path):
                raise Unplaceable("the number of times differs from the number of cells")
        named = (*_AGENT_KEYS, *(_TIMES if isinstance(times, list) else ()))
        _beside([path], {key: held for key, held in value.items() if held is not inner and key.lower() not in named})
        return path
    if isinstance(value, str):
        return _written(value)
    if not isinstance(value, list) or not value:
        raise Unplaceable("an agent's path is not a list of cells")
    steps = [_value(item, _STEP_KEYS) for item in value]
    if any(step is not None for step in steps):
        counted([step if type(step) is int else -1 for step in steps])
    cells = tuple(_cell(item) for item in value)
    for index, item in enumerate(value):
        if isinstance(item, dict):
            _beside_cell(item, cells[index] in cells[max(index - 1, 0) : index] + cells[index + 1 : index + 2])
    return cells


def _beside_cell(item: Mapping[str, Any], stands_twice: bool) -> None:
    """Raise Unplaceable if a field of a cell says that the agent stays on it, but it does not, or if the field is not
    understood."""
    for key, value in item.items():
        name = key.lower()
        if name in (*_STEP_KEYS, *_CELL_KEYS, *_ROW_KEYS, *_COLUMN_KEYS):
            continue
        if _WAITING.fullmatch(name):
            waits = bool(value) and str(value).lower() not in ("0", "no", "none", "false")
            clashes = waits and not (stands_twice and (value is True or value == 1 or isinstance(value, str)))
        elif _LASTING.fullmatch(name) and type(value) in (int, float):
            clashes = value > (2 if stands_twice else 1)
        elif _ACTING.fullmatch(name) and isinstance(value, str) and _WAIT.fullmatch(value.strip()):
            clashes = not stands_twice and value.strip().lower() != "none"
        else:
            stays: Path = ((0, 0), (0, 0)) if stands_twice else ((0, 0),)
            clashes = name not in _AGENT_KEYS and Beside(stays).field_clashes(name, value)
        if clashes:
            raise Unplaceable(f"{ascii(key)[:30]} beside a cell contradicts the path or is not understood")


def _written(text: str) -> Path:
    """The path in a string."""
    path = OpenPath(0)
    for line in tokens.lines(text):
        for token in line:
            path.take(token)
        path.end_line()
    if fault := path.end():
        raise Unplaceable(fault)
    if not path.cells:
        raise Unplaceable("a string in the place of a path holds no cell")
    return tuple(path.cells)


def _cell(value: Any) -> Cell:
    if isinstance(value, str):
        path = _written(value)
        if len(path) == 1 and not Beside(path).clashes(value):
            return path[0]
    if isinstance(value, dict):
        inner = _value(value, _CELL_KEYS)
        if inner is not None:
            return _cell(inner) if not isinstance(inner, dict) or _value(inner, _ROW_KEYS) is not None else _refuse(value)
        value = [_value(value, _ROW_KEYS), _value(value, _COLUMN_KEYS)]
    if isinstance(value, list) and len(value) == 2 and all(type(x) is int for x in value):
        return tokens.coordinate(str(value[0])), tokens.coordinate(str(value[1]))
    return _refuse(value)


def _refuse(value: Any) -> Cell:
    raise Unplaceable(f"{str(value)[:40]!a} is not a cell")
