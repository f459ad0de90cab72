"""Where instances are counted: the tables and columns that they stand in, in which order, and the first ones of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from t2t_core.hookspecs import AnyTestbed


def arranged(testbed: AnyTestbed, instances: Iterable[Any]) -> dict[str, list[str]]:
    """The columns of each table that these instances stand in, both in the order of the testbed's groups: a name stands where
    the first group that it holds does. Of one group, numbers rise (9 before 10), and words keep the order they come in."""
    rank = {group: number for number, group in enumerate(testbed.groups)}
    tables: dict[str, int] = {}
    columns: dict[str, dict[str, int]] = {}
    for instance in instances:
        place = testbed.place(instance)
        group = rank.get(place.group, len(rank))
        tables[place.table] = min(group, tables.get(place.table, group))
        ranks = columns.setdefault(place.table, {})
        ranks[place.column] = min(group, ranks.get(place.column, group))
    return {table: _by_rank(columns[table]) for table in _by_rank(tables)}


def _by_rank(ranks: Mapping[str, int]) -> list[str]:
    return sorted(ranks, key=lambda name: (ranks[name], [int(number) for number in re.findall("[0-9]{1,9}", name)]))


def columns_of(testbed: AnyTestbed, instances: Iterable[Any]) -> dict[str, str]:
    """The column of every instance by its id, with its table where they stand in several: two tables may name columns alike."""
    places = {instance.id: testbed.place(instance) for instance in instances}
    several = len({place.table for place in places.values()}) > 1
    return {id: f"{place.table}, {place.column}" if several else place.column for id, place in places.items()}


def first(testbed: AnyTestbed, instances: Sequence[Any], limit: int | None) -> Sequence[Any]:
    """The first `limit` instances of each column, in their order; all of them without a limit."""
    if limit is None:
        return instances
    taken: Counter[tuple[str, str]] = Counter()
    balanced = []
    for instance in instances:
        place = testbed.place(instance)
        taken[place.table, place.column] += 1
        if taken[place.table, place.column] <= limit:
            balanced.append(instance)
    return balanced


def natural(names: Iterable[str]) -> list[str]:
    """Names in the order people expect: 9 before 10."""

    def key(name: str) -> list[int | str]:
        return [int(piece) if odd % 2 else piece for odd, piece in enumerate(re.split(r"([0-9]{1,9})", name))]

    return sorted(names, key=key)
