"""Configurations of declared knobs: read strictly from a file, or settled from a proposal with every correction named.

Project's general rules are in `Settling`. Shares are made non-negative and sum to 1. A group that is not named keeps its other
knobs; its share becomes 0 if the named ones sum to 1 (+- 0.02), and otherwise keeps its previous value before renormalising. If
all shares are zero, or the proposal is unreadable, the previous ones are kept. The other knobs are clipped to their bounds.
Unknown groups and knobs are dropped; NaN, infinities, non-numbers and shares whose sum overflows count as missing. Numbers are
never reinterpreted (30 is not 30 %). (Our choice.)

A testbed whose generator cannot fill everything within these bounds continues from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hostile import as_number, brief_key, brief_value, shown
from t2t_core.records import Change, Knob
from t2t_core.shares import check_sum, in_words, is_exact

Values = dict[str, dict[str, float]]
"""group -> knob -> number"""
NAMED_SUM = 0.02  # named shares that sum to 1 this closely leave nothing for the groups not named
MISSING = "missing or not a number"
_KEPT = "not named: kept before renormalising"


def read_values(
    data: object,
    groups: Sequence[str],
    knobs: Sequence[Knob],
    group: str,
    absent: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> Values:
    """Read a configuration strictly, as `Testbed.read_configuration` does: every group with every knob, each within its bounds,
    and shares that sum to 1.

    Args:
        data: JSON of any kind.
        groups: those of every configuration, in order.
        knobs: what is declared, one of them the share.
        group: the word for a group, in the messages.
        absent: the numbers of groups that need not be named.

    Raises:
        T2TError: a group or knob that is unknown or missing, a number out of bounds, shares that do not sum to 1.
    """
    if not isinstance(data, Mapping):
        raise T2TError(f"a configuration is a JSON object from {group} to knobs, not {shown(data)}")
    data = {**absent, **data}
    _refuse_keys(data, groups, group, "", "a configuration has ")
    values = {name: _read_numbers(data[name], knobs, f"{group} {name}") for name in groups}
    share = next(knob.name for knob in knobs if knob.role == "share")
    check_sum((numbers[share] for numbers in values.values()), share, f"each {group}'s share of the instances")
    return values


def _read_numbers(data: object, knobs: Sequence[Knob], where: str) -> dict[str, float]:
    if not isinstance(data, Mapping):
        raise T2TError(f"{where} must be a JSON object, not {shown(data)}", where=where)
    _refuse_keys(data, [knob.name for knob in knobs], "knob", where, "each has ")
    for knob in knobs:
        number = as_number(data[knob.name])
        if number is None or not knob.low <= number <= knob.high:
            bounds = f"{knob.low:g}..{knob.high:g}"
            raise T2TError(
                f"{knob.name} must be a number in {bounds}, not {shown(data[knob.name])}", where=f"{where}, {knob.name}"
            )
    return {knob.name: data[knob.name] for knob in knobs}


def _refuse_keys(data: Mapping[Any, Any], known: Sequence[str], word: str, where: str, cause: str) -> None:
    """T2TError for the first key that is unknown, else for the first that is missing."""
    unknown = [key for key in data if not isinstance(key, str) or key not in known]
    missing = [key for key in known if key not in data]
    if unknown or missing:
        problem = f"unknown {word} {shown(unknown[0])}" if unknown else f"the {word} {shown(missing[0])} is missing"
        raise T2TError(problem, where=where, cause=cause + ", ".join(known))


class Settling:
    """A configuration while Project's rules are applied to it: `values` (group -> knob -> number) and the `changes` so far.

    `settle` applies all of them. A testbed with rules in between calls `read`, `set_shares` and `clip` itself.

    Args:
        previous: the configuration in force; every group with every knob.
        knobs: what is declared, one of them the share.
        group: the word for a group, in the reasons.
    """

    def __init__(self, previous: Mapping[str, Mapping[str, float]], knobs: Sequence[Knob], group: str) -> None:
        self.values: Values = {name: {knob.name: values[knob.name] for knob in knobs} for name, values in previous.items()}
        self.changes: list[Change] = []
        self._knobs, self._group = list(knobs), group
        self._share = next(knob.name for knob in knobs if knob.role == "share")

    def settle(self, proposal: object) -> None:
        """Apply a proposal: JSON of any kind; usable is an object from group to an object of knobs."""
        named = self.read(proposal)
        self.set_shares(named)
        for group, numbers in named.items():
            self.clip(group, numbers)

    def put(self, group: str, knob: str, proposed: float | None, used: float, reason: str) -> None:
        """Set a knob; a change is recorded where `used` is not what was proposed."""
        if used != proposed:
            self.note(f"{group}.{knob}", proposed, used, reason)
        self.values[group][knob] = used

    def note(self, knob: str, proposed: Any, used: float | None, reason: str) -> None:
        """Record a change."""
        self.changes.append(Change(knob, proposed, used, reason))

    def read(self, proposal: object) -> Values:
        """The usable numbers of a proposal; whatever else it holds is noted as dropped."""
        if not isinstance(proposal, Mapping):
            kept = f"not an object from {self._group} to knobs: the previous one is kept"
            self.note("proposal", brief_value(proposal), None, kept)
            return {}
        named: Values = {}
        for name, knobs in proposal.items():
            if not isinstance(name, str) or name not in self.values:
                self.note(brief_key(name), brief_value(knobs), None, f"unknown {self._group}: dropped")
            elif not isinstance(knobs, Mapping):
                self.note(name, brief_value(knobs), None, "not an object of knobs: counts as not named")
            else:
                named[name] = self.read_group(name, knobs)
        return named

    def read_group(self, group: str, knobs: Mapping[Any, Any]) -> dict[str, float]:
        """The usable numbers of one group. A level that is missing keeps its value."""
        self.drop_unknown(group, knobs)
        numbers = self.usable(knobs)
        for knob in self._knobs:
            if knob.name not in numbers and knob.name != self._share:
                self.keep(group, knob.name, knobs)
        return numbers

    def drop_unknown(self, group: str, knobs: Mapping[Any, Any], besides: Sequence[str] = ()) -> None:
        """Note every key of a group that is no knob and none of `besides`, which the testbed reads itself."""
        known = [*(knob.name for knob in self._knobs), *besides]
        for name in knobs:
            if name not in known:
                self.note(f"{group}.{brief_key(name)}", brief_value(knobs[name]), None, "unknown knob: dropped")

    def usable(self, knobs: Mapping[Any, Any]) -> dict[str, float]:
        """The declared knobs that are finite numbers."""
        return {knob.name: number for knob in self._knobs if (number := as_number(knobs.get(knob.name))) is not None}

    def keep(self, group: str, knob: str, knobs: Mapping[Any, Any]) -> None:
        """Note that a knob without a usable number keeps its value."""
        self.note(f"{group}.{knob}", brief_value(knobs.get(knob)), self.values[group][knob], f"{MISSING}: kept")

    def clip(self, group: str, numbers: Mapping[str, float]) -> None:
        """Set the levels and mixtures of a group that are named, within their bounds."""
        for knob in self._knobs:
            if knob.name != self._share and knob.name in numbers:
                number = numbers[knob.name]
                clipped = min(max(number, float(knob.low)), float(knob.high))
                self.put(group, knob.name, number, clipped, f"clipped to {knob.low:g}..{knob.high:g}")

    def set_shares(self, named: Values) -> None:
        """Set every group's share, so that they sum to 1."""
        words, shares = in_words(self._share), self._proposed_shares(named)
        total = sum(shares.values())
        if total == 0:
            if shares:
                self.note(self._share, 0.0, None, f"all {words} are zero: the previous ones are kept")
            shares = {group: values[self._share] for group, values in self.values.items()}
            total = sum(shares.values())
        exact = is_exact(total)
        if not exact:
            self.note(self._share, total, 1.0, f"the {words} do not sum to 1: renormalised")
        for group, share in shares.items():
            self.values[group][self._share] = share if exact else share / total

    def _proposed_shares(self, named: Values) -> dict[str, float]:
        """Before renormalising, for all groups; empty if none was named."""
        shares = {group: numbers[self._share] for group, numbers in named.items() if self._share in numbers}
        if sum(max(0.0, share) for share in shares.values()) == float("inf"):
            self.note(self._share, None, None, "the sum overflows: they count as missing")
            shares = {}
        for group, share in shares.items():
            if share < 0:
                self.note(f"{group}.{self._share}", share, 0.0, "negative: set to 0")
                shares[group] = 0.0
        if not shares:
            for group in named:
                self.note(f"{group}.{self._share}", None, self.values[group][self._share], f"{MISSING}: kept")
            return {}
        complete = round(abs(sum(shares.values()) - 1), 9) <= NAMED_SUM  # in floats 1.02 - 1 is a little more than 0.02
        for group, values in self.values.items():
            if group not in shares:
                before = values[self._share]
                shares[group] = 0.0 if complete else before
                reason = f"the named {in_words(self._share)} sum to 1: set to 0" if complete else _KEPT
                if before > 0 or group in named:
                    self.note(f"{group}.{self._share}", None, shares[group], reason)
        return shares
