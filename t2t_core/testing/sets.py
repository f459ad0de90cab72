"""Checks of a testbed's named sets: what they hold, their twins, and what a publication reported of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceSet
from t2t_core.testing.base import as_json, calling, lines_of, mapping, require, short


def check_sets(testbed: AnyTestbed, instances: Sequence[Any]) -> None:
    """The sets that the default options select and those that are protected, against drawn `instances`."""
    options = {option.name: option.parse(option.default) for option in testbed.options()}
    with calling("set_names() with the default options"):
        names = testbed.set_names(options)
    with calling("protected_sets()"):
        protected = testbed.protected_sets()
    with calling("load_set() of an unknown name", T2TError):
        testbed.load_set("no such set")
        require(False, "load_set() knows a set that nobody named", next="raise T2TError with the known names")
    for name in dict.fromkeys([*names, *protected]):
        with calling(f"load_set({name!r})"):
            loaded = testbed.load_set(name)
        _set(name, loaded)
        with calling(f"shared(instances, those of {name})"):
            counts = testbed.shared(instances, loaded.instances)
        sound = all(type(count) is int and count >= 0 for count in mapping(counts, "shared()").values())
        require(sound, f"shared() does not count: {short(counts)}", next='return e.g. {"layouts": 3}')
        _reported(testbed, name, loaded)
    smallest = min(dict.fromkeys([*names, *protected]), key=lambda name: len(testbed.load_set(name).instances), default=None)
    if smallest is not None:  # it stands for all: a twin may take its time
        with calling(f"twin({smallest!r}, 1)"):
            twin = testbed.twin(smallest, 1)
        _set(f"twin of {smallest}", twin)
        columns, others = (
            {(place.table, place.column) for place in map(testbed.place, each.instances)}
            for each in (twin, testbed.load_set(smallest))
        )
        require(columns == others, f"the twin of {smallest} has the columns {short(sorted(columns))}, not those of the set")
        fresh = lines_of(twin.instances) != lines_of(testbed.load_set(smallest).instances)
        require(fresh, f"the twin of {smallest} is the set itself")


def _set(name: str, loaded: Any) -> None:
    require(isinstance(loaded, InstanceSet), f"the set {name} is {type(loaded).__name__}, not an InstanceSet")
    require(len(loaded.instances) > 0, f"the set {name} is empty")
    require(len({i.id for i in loaded.instances}) == len(loaded.instances), f"two instances of the set {name} have the same id")
    hexadecimal = len(loaded.sha256) == 64 and set(loaded.sha256) <= set("0123456789abcdef")
    require(hexadecimal, f"the set {name} has no SHA-256 but {short(loaded.sha256)}")


def _reported(testbed: AnyTestbed, name: str, loaded: InstanceSet) -> None:
    """The rows that a publication printed name columns and metrics that there are."""
    columns = list(dict.fromkeys(testbed.place(instance).column for instance in loaded.instances))
    metrics = {metric.name for metric in testbed.metrics}
    with calling(f"reported({name!r})"):
        rows = list(testbed.reported(name, columns))
    for row in rows:
        as_json(dict(mapping(row, f"a reported row of {name}")), f"a reported row of {name}")
        lacking = [key for key in ("policy", "source") if not isinstance(row.get(key), str)]
        require(not lacking, f"a reported row of {name} has no {', '.join(lacking)}")
        figures = {**mapping(row.get("cells", {}), "cells of a reported row"), "total": row.get("total", {})}
        unknown = [column for column in figures if column not in (*columns, "total")]
        for figure in figures.values():
            unknown += [metric for metric in mapping(figure, "a reported cell") if metric not in metrics]
        require(not unknown, f"a reported row of {name} names {short(unknown)}, which is neither a column nor a metric")
    with calling(f"reported_arms({name!r})"):
        arms = list(testbed.reported_arms(name))
    for arm in arms:
        as_json(dict(mapping(arm, f"a reported arm of {name}")), f"a reported arm of {name}")
        lacking = [key for key in ("arm", "source") if not isinstance(arm.get(key), str)]
        require(not lacking, f"a reported arm of {name} has no {', '.join(lacking)}")
        require(("designer" in arm) != ("context" in arm), f"a reported arm of {name} names one designer or one context")
        unknown = [metric for metric in mapping(arm.get("total", {}), "a reported total") if metric not in metrics]
        require(not unknown, f"a reported arm of {name} names {short(unknown)}, which is no metric")
