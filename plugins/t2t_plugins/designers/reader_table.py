"""A proposal that stands as a Markdown table, which counts where a reply has no object."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_plugins.designers.reader_terms import (
    Candidate,
    Groups,
    Reader,
    Unreadable,
    Values,
    knob_of,
    number_of,
    set_group,
    short,
    with_percent,
)


def read_table(text: str, reader: Reader) -> list[Candidate]:
    """The Markdown tables whose header names knobs and whose rows name groups; nothing where there is none."""
    tables: list[Groups] = []
    header: list[tuple[str | None, str]] = []
    for line in text.split("\n"):
        if "|" not in line:
            header = []
            continue
        cells = [cell.strip(" *`_\t\r") for cell in line.strip().strip("|").split("|")]
        if not header:
            header = [(knob_of(cell, reader.form), cell) for cell in cells]
            named = [knob for knob, _ in header if knob]
            header = header if named and len(set(named)) == len(named) else []
            tables.append({})
        elif group := next((g for cell in cells if (g := reader.form.group_of(cell)) is not None), None):
            set_group(tables[-1], group, _row(group, header, cells, reader))
    filled = [table for table in tables if table]
    if filled:
        reader.note("a table was read")
    return [Candidate(table, None) for table in filled]


def _row(group: str, header: Sequence[tuple[str | None, str]], cells: Sequence[str], reader: Reader) -> Values:
    if len(cells) != len(header):
        raise Unreadable(f"the table's row for {short(group)} has {len(cells)} cells, its header {len(header)}")
    named = [(knob, title, cell) for (knob, title), cell in zip(header, cells, strict=True) if knob]
    values: Values = {knob: number_of(with_percent(title, cell, reader), reader) for knob, title, cell in named}
    if not all(isinstance(value, float) for value in values.values()):
        raise Unreadable(f"the table's row for {short(group)} has something that is no number")
    return values
