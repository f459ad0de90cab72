"""What a testbed declares, checked: its words, groups, knobs, cells, checks and reward."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from t2t_core import contract
from t2t_core.cells import CELLS, SHARE
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, Testbed
from t2t_core.shares import SUM_TOLERANCE
from t2t_core.testing.base import as_json, calling, finite, mapping, require, short

HOSTILE_KEYS = ("", " ", "\x00\x1b[2J", "\ud800", "9" * 5000, "-1", "no such group", "[" * 5000)
ROLES = ("share", "level", "mixture")
FORMS = ("percent", "number", "whole")
COMMANDS = ("generate", "show", "solve")


def check_words(testbed: AnyTestbed) -> None:
    """Everything that hookspecs.Testbed names is there, and its words are words."""
    declared = [*Testbed.__annotations__, *(name for name in vars(Testbed) if not name.startswith("_"))]
    missing = [name for name in dict.fromkeys(declared) if not hasattr(testbed, name)]
    require(
        not missing,
        f"the testbed declares no {', '.join(missing)}",
        next="class MyTestbed(Testbed[MyInstance, MyConfiguration, MyRequest]): inherits what has a default",
    )
    strange = contract.strange("testbed", testbed)
    require(strange is None, f"of the testbed {testbed.name}: {strange}", next="hookspecs.Testbed says what each of them is")
    for name in ("name", "title", "guideline", "group", "sameness"):
        require(getattr(testbed, name).strip(), f"the testbed's {name} is empty")
    _names(testbed.prompt_formats, "prompt_formats", 'prompt_formats = ("plain",)')
    _names(testbed.checks, "checks", 'checks = ("parsable", "right")')
    _names(testbed.groups, "groups", 'groups = ("easy", "hard")')
    unknown = [format for format in testbed.memoryless if format not in testbed.prompt_formats]
    require(not unknown, f"memoryless names formats that there are not: {unknown}")
    for metric in testbed.metrics:
        words = all(isinstance(word, str) for word in (metric.name, metric.title, metric.unit)) and metric.name and metric.title
        require(words, f"the metric {short(metric.name)} has the title {short(metric.title)} and the unit {short(metric.unit)}")
    for tool in testbed.tools:
        as_json(tool.to_dict(), f"the tool {short(tool.name)}")
    commands = [f"{name}: {target}" for name, target in testbed.commands.items() if name not in COMMANDS or ":" not in target]
    require(not commands, f"commands has {commands}", next=f'{", ".join(COMMANDS)} -> "module:click command"')


def _names(names: Collection[str], what: str, next: str) -> None:
    right = isinstance(names, Sequence) and not isinstance(names, str) and all(isinstance(n, str) and n for n in names)
    require(right and names and len(set(names)) == len(names), f"{what} is {short(names)}: distinct names are wanted", next=next)


def check_declarations(testbed: AnyTestbed, request: Any) -> None:
    """Knobs, cells, remedies and reward fit each other and the configurations."""
    knobs = testbed.knobs(request)
    _names([knob.name for knob in knobs], "knobs(request)", "give at least a share and a level")
    for knob in knobs:
        reserved = knob.name == CELLS or (testbed.joint_cells and knob.name == SHARE and knob.role != "share")
        require(not reserved, f"a knob is called {knob.name}, a key of joint cells", next="give it another name")
        words = all(isinstance(word, str) for word in (knob.name, knob.description, knob.unit))
        require(words, f"the knob {short(knob.name)} has words that are none: {short(knob.description)}, {short(knob.unit)}")
        bounds = finite(knob.low) and finite(knob.high) and knob.low < knob.high
        require(bounds, f"the bounds of the knob {knob.name} make no sense")
        require(knob.role in ROLES and knob.form in FORMS, f"the knob {knob.name} is a {knob.role} shown as {knob.form}")
        require(knob.harder in (-1, 0, 1), f"the knob {knob.name} has harder={short(knob.harder)}", next="give 1, -1 or 0")
        require(finite(knob.moderate) and knob.moderate > 0, f"the knob {knob.name} has the step {short(knob.step)}")
    shares = [knob.name for knob in knobs if knob.role == "share"]
    require(len(shares) == 1, f"the knobs of role share are {shares}", next="exactly one knob is a group's share of the budget")
    _configuration(testbed, request, [knob.name for knob in knobs], shares[0])
    _cells(testbed, request, [knob.name for knob in knobs if knob.role != "share"])
    for check, moves in testbed.remedies.items():
        require(check in testbed.checks, f"remedies names the check {short(check)}, which there is not")
        require(set(moves) <= {knob.name for knob in knobs}, f"the remedy for {check} moves {sorted(moves)}, which are no knobs")
    for name, weight in mapping(testbed.rubric, "rubric").items():
        require(isinstance(name, str) and finite(weight), f"the rubric's weight of {short(name)} is {short(weight)}")
    require(bool(testbed.rubric), "the rubric is empty", next='rubric = {"right": 1.0}')
    low, high = testbed.reward_range
    require(finite(low) and finite(high) and low < high, f"reward_range is {short(testbed.reward_range)}")


def _configuration(testbed: AnyTestbed, request: Any, knobs: Sequence[str], share: str) -> None:
    with calling("random_configuration()"):
        configuration = testbed.random_configuration(request, 0).to_dict()
    groups = list(configuration)
    require(groups == list(testbed.groups), f"a configuration has the groups {groups}, not those declared")
    for group, values in configuration.items():
        own = [name for name in mapping(values, f"the group {group}") if name != CELLS]
        require(own == list(knobs), f"the group {group} has the knobs {own}, not {list(knobs)} in this order")
    whole = sum(values[share] for values in configuration.values())
    require(abs(whole - 1) <= SUM_TOLERANCE, f"the shares of a random configuration sum to {whole}")
    for group in testbed.groups:
        require(testbed.group_of(group) == group, f"group_of({group!r}) is not the group itself")
    for text in (*HOSTILE_KEYS, *(group.upper() for group in testbed.groups)):
        with calling(f"group_of({short(text)})"):
            group = testbed.group_of(text)
        require(group is None or group in testbed.groups, f"group_of({short(text)}) is {short(group)}, neither a group nor None")


def _cells(testbed: AnyTestbed, request: Any, levels: Sequence[str]) -> None:
    cells = testbed.cells(request)
    names = [cell.name for cell in cells]
    require(len(set(names)) == len(names), "two cells have the same name")
    for cell in cells:
        require(cell.group in testbed.groups, f"the cell {cell.name} is of the group {short(cell.group)}, which there is not")
        values: Mapping[str, Any] = mapping(cell.levels, f"the levels of {cell.name}")
        require(set(values) == set(levels), f"the cell {cell.name} sets {sorted(values)}, not {sorted(levels)}")
        require(all(finite(value) for value in values.values()), f"the levels of {cell.name} are {short(dict(values))}")
    if cells:
        drawn = testbed.generate(testbed.random_configuration(request, 0), request, 0)
        outside = [cell for cell in (testbed.place(i).cell for i in drawn) if testbed.cell_of(cell) not in names]
        require(not outside, f"cell_of({outside[0] if outside else ''!r}) is none of the cells")
    with calling("cell_of() of an unknown cell", T2TError):
        testbed.cell_of("no such cell")
