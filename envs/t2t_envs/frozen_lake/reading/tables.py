"""Reads tables with `|` between columns: a row for each agent, or a row for each step and a column for each agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import tokens
from .blocks import Unplaceable, counted, stays
from .paths import OpenPath
from .remarks import Beside
from .tokens import Cell, Label, Path, Token

Line = Sequence[Token]
_PATH = ("path", "route", "trajectory", "plan", "sequence")
_AGENT = ("agent", "agents", "robot", "robots")
_OTHER = ("action", "actions", "move", "moves", "direction", "start", "goal", "target", "end", "cost", "length", *_PATH)
_ENDS = ("start", "goal", "target", "end", "destination", "from", "to")
_STEP = ("step", "steps", "t", "time", "timestep", "tick", "turn", "index", "no")
_SILENT = (tokens.NEUTRAL, tokens.COMMA, tokens.DASH, tokens.COLON, tokens.STOP, tokens.ARROW, tokens.PIPE, tokens.LABEL)
_REMARKS = (tokens.NEUTRAL, tokens.STOP, tokens.COLON)


def read(lines: Sequence[Line]) -> list[tuple[Label, Path]]:
    """The paths in the lines of a table; none if it has no agents. Raises Unplaceable for anything that is not understood."""
    rows = [_columns(line) for line in lines]
    rules = [all(not column or {t.kind for t in column} <= {tokens.DASH, tokens.COLON} for column in row) for row in rows]
    header: list[list[Token]] = []
    if rows and not _cells(lines[0]) and not rules[0]:
        header, rows, rules = rows[0], rows[1:], rules[1:]
    rows = [row for row, rule in zip(rows, rules, strict=True) if not rule]
    agents = {index: column[0].value for index, column in enumerate(header) if _of_agent(column)}
    if agents:
        return _by_step(header, agents, rows)
    named = bool(header) and _says(header[0], _AGENT)
    labelled = [row for row in rows if _labels(row) or (named and row and _number(row[0]) is not None)]
    if labelled and any(_cells(column) for row in rows if row not in labelled for column in row):
        raise Unplaceable("a row of a table has no agent")
    return [path for row in labelled if (path := _row(header, row)) is not None]


def _columns(line: Line) -> list[list[Token]]:
    columns: list[list[Token]] = [[]]
    for token in line:
        if token.kind == tokens.PIPE:
            columns.append([])
        else:
            columns[-1].append(token)
    if not columns[-1]:
        columns.pop()
    return columns[1:] if columns and not columns[0] else columns


def _by_step(header: Sequence[Line], agents: dict[int, Label], rows: Sequence[Sequence[Line]]) -> list[tuple[Label, Path]]:
    """Reads a table with a row for each step; an agent's column may end before the last row."""
    paths: dict[Label, list[Cell]] = {label: [] for label in agents.values()}
    if len(paths) < len(agents):
        raise Unplaceable("an agent has two columns")
    counted([number for row in rows if row and 0 not in agents and (number := _number(row[0])) is not None])
    for index, row in enumerate(rows):
        for column, label in agents.items():
            cell = _only_cell(row[column] if column < len(row) else [], paths[label])
            if cell is not None:
                if len(paths[label]) < index:
                    raise Unplaceable(f"agent {label} has no cell before row {index + 1}")
                paths[label].append(cell)
        if len(row) > len(header):
            raise Unplaceable("a row has more columns than the header")
    others: dict[int, dict[int, Line]] = {}
    for index, row in enumerate(rows):
        for column, entry in enumerate(row):
            if column not in agents:
                others.setdefault(column, {})[index] = entry
    beside = Beside(*paths.values())
    for column, entries in others.items():
        _understand(header[column], entries, list(paths.values()), beside)
    return [(label, tuple(cells)) for label, cells in paths.items() if cells]


def _understand(title: Line, entries: Mapping[int, Line], paths: Sequence[Sequence[Cell]], beside: Beside) -> None:
    """Raise Unplaceable if a column beside the cells says something about time that the cells do not. `entries` are its entries
    by row."""
    name = tokens.written(title)
    numbers = [number for entry in entries.values() if (number := _number(entry)) is not None]
    if len(numbers) == len(entries) and (not name or _says(title, _STEP) or _is_step(title)):
        counted(numbers)
        return
    for index, entry in entries.items():
        waits = any(token.kind == tokens.WAIT for token in entry)
        if waits and any(stays(cells, index) for cells in paths):
            continue
        if beside.field_clashes(name, " ".join(token.text for token in entry if token.kind not in _SILENT)):
            raise Unplaceable(f"{ascii(name)[:30]} beside the cells contradicts them or is not understood")


def _is_step(title: Line) -> bool:
    return any(token.kind == tokens.STEP for token in title)


def _of_agent(column: Line) -> bool:
    """Whether a column's title promises an agent's cells and nothing else: "Agent 0", "Agent 0 position", "A0 (red)"."""
    if [t.kind for t in column[:1]] != [tokens.LABEL]:
        return False
    return not _says(column, _OTHER) and {t.kind for t in column[1:]} <= {tokens.WORD, tokens.NEUTRAL, tokens.COLON}


def _labels(row: Sequence[Line]) -> list[int]:
    return [index for index, column in enumerate(row) if column and column[0].kind == tokens.LABEL]


def _number(column: Line) -> int | None:
    """The number in a column, perhaps with a remark beside it; None if there isn't exactly one."""
    numbers = [token for token in column if token.kind not in _REMARKS]
    return int(numbers[0].value) if len(numbers) == 1 and numbers[0].kind in (tokens.NUMBER, tokens.STEP) else None


def _only_cell(column: Line, before: Sequence[Cell]) -> Cell | None:
    """The only cell of a column; None if the column is empty."""
    cells: list[Cell] = [token.value for token in column if token.kind in tokens.CELLS]
    others = [token for token in column if token.kind not in (*tokens.CELLS, *_REMARKS, tokens.WAIT)]
    waits = any(token.kind == tokens.WAIT for token in column)
    if not cells and all(token.kind == tokens.DASH for token in column):
        return None
    if not cells and waits and not others and before:
        return before[-1]
    if len(cells) != 1 or others or (waits and list(before[-1:]) != cells):
        raise Unplaceable(f"{' '.join(token.text for token in column)[:40]!a} is not one cell")
    return cells[0]


def _row(header: Sequence[Line], row: Sequence[Line]) -> tuple[Label, Path] | None:
    """One agent's row; None if it holds no path."""
    labels = _labels(row)
    if len(labels) > 1:
        raise Unplaceable("a row of a table belongs to two agents")
    if header and len(row) > len(header):
        raise Unplaceable("a row has more columns than the header")
    index = labels[0] if labels else 0
    path = OpenPath(row[index][0].value, row[index][0].text)
    columns = [[token for token in row[index][1:] if token.kind != tokens.COLON], *row[index + 1 :]]
    own_columns = _columns_of_path(header[index:], columns)
    if len(own_columns) == 1:
        for token in own_columns[0]:
            path.take(token)
    else:
        for column in own_columns:
            cell = _only_cell(column, path.cells)
            if cell is not None and column is not own_columns[len(path.cells)]:
                raise Unplaceable("a row of a table has a gap")
            path.cells += [] if cell is None else [cell]
    if not path.cells and not path.fault:
        return None
    if fault := path.end():
        raise Unplaceable(fault)
    beside, own = Beside(path.cells), {id(column) for column in own_columns}
    for number, column in enumerate(columns, index):
        if id(column) in own:
            continue
        name = tokens.written(header[number]) if number < len(header) else ""
        if beside.field_clashes(name, " ".join(token.text for token in column if token.kind not in _SILENT)):
            raise Unplaceable(f"{ascii(name)[:30]} beside a path contradicts the path or is not understood")
    return path.label, tuple(path.cells)


def _columns_of_path(header: Sequence[Line], columns: Sequence[Line]) -> list[Line]:
    """The columns that hold the path: the one whose header says so, or those of the steps, or all if there is no header."""
    holding = [index for index, column in enumerate(columns) if _cells(column)]
    paths = [index for index, column in enumerate(header) if _says(column, _PATH) and index < len(columns)]
    if len(paths) == 1 and len(header) > 1:
        return [columns[paths[0]]]
    if holding and all(place < len(header) and _says(header[place], _ENDS) for place in holding):
        return []  # where the agent starts and where it goes
    if len(holding) <= 1:
        return [columns[index] for index in holding]
    if header:
        numbers = [_number(column) for column in header[1:]]
        if None in numbers:
            raise Unplaceable("the columns of a table do not have step numbers")
        counted([number for number in numbers if number is not None])
    return list(columns if columns[0] else columns[1:])


def _says(column: Line, words: Sequence[str]) -> bool:
    return any(token.text.lower() in words for token in column if token.kind in (tokens.WORD, tokens.NEUTRAL))


def _cells(line: Line) -> int:
    return sum(token.kind in tokens.CELLS for token in line)
