"""Project for any testbed: a proposal settled against the knobs that are declared, with every correction named.

Shares are made non-negative and sum to 1. A group that is not named keeps its other knobs; its share becomes 0 if the named
ones sum to 1 (+- 0.02), else keeps its previous value before renormalising. Shares that are all zero, or an unreadable proposal,
keep the previous ones. The other knobs are clipped to their bounds. Unknown groups and knobs are dropped; NaN, infinities,
non-numbers and shares whose sum overflows count as missing. Numbers are never reinterpreted (30 is not 30 %). (Our choice.)

A testbed whose generator cannot fill everything within these bounds continues from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.hostile import as_number, shown
from t2t_core.records import Change, Knob

Values = dict[str, dict[str, float]]
NAMED_SUM = 0.02  # named shares that sum to 1 this closely leave nothing for the groups not named
SUM_TOLERANCE = 1e-7  # shares that sum to 1 this closely are left as they are
MISSING = "missing or not a number"


class Settling:
    """A configuration while the rules are applied to it: `values` (group -> knob -> number) and the `changes` so far.

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
        named = self._read(proposal)
        self._set_shares(named)
        for group, numbers in named.items():
            for knob in self._knobs:
                if knob.name != self._share and knob.name in numbers:
                    number = numbers[knob.name]
                    clipped = min(max(number, float(knob.low)), float(knob.high))
                    self.put(group, knob.name, number, clipped, f"clipped to {knob.low:g}..{knob.high:g}")

    def put(self, group: str, knob: str, proposed: float | None, used: float, reason: str) -> None:
        """Set a knob; a change is recorded where `used` is not what was proposed."""
        if used != proposed:
            self.changes.append(Change(f"{group}.{knob}", proposed, used, reason))
        self.values[group][knob] = used

    def _read(self, proposal: object) -> Values:
        """The usable numbers of a proposal."""
        if not isinstance(proposal, Mapping):
            kept = f"not an object from {self._group} to knobs: the previous one is kept"
            self.changes.append(Change("proposal", _plain(proposal), None, kept))
            return {}
        named: Values = {}
        for name, knobs in proposal.items():
            if not isinstance(name, str) or name not in self.values:
                self.changes.append(Change(_name(name), _plain(knobs), None, f"unknown {self._group}: dropped"))
            elif not isinstance(knobs, Mapping):
                self.changes.append(Change(name, _plain(knobs), None, "not an object of knobs: counts as not named"))
            else:
                named[name] = self._read_group(name, knobs)
        return named

    def _read_group(self, group: str, knobs: Mapping[Any, Any]) -> dict[str, float]:
        known = [knob.name for knob in self._knobs]
        for name in knobs:
            if name not in known:
                self.changes.append(Change(f"{group}.{_name(name)}", _plain(knobs[name]), None, "unknown knob: dropped"))
        numbers: dict[str, float] = {}
        for name in known:
            number = as_number(knobs.get(name))
            if number is not None:
                numbers[name] = number
            elif name != self._share:
                before = self.values[group][name]
                self.changes.append(Change(f"{group}.{name}", _plain(knobs.get(name)), before, f"{MISSING}: kept"))
        return numbers

    def _set_shares(self, named: Values) -> None:
        shares = self._proposed_shares(named)
        total = sum(shares.values())
        if total == 0:
            if shares:
                self.changes.append(Change(self._share, 0.0, None, "all shares are zero: the previous ones are kept"))
            shares = {group: values[self._share] for group, values in self.values.items()}
            total = sum(shares.values())
        exact = abs(total - 1) <= SUM_TOLERANCE
        if not exact:
            self.changes.append(Change(self._share, total, 1.0, "the shares do not sum to 1: renormalised"))
        for group, share in shares.items():
            self.values[group][self._share] = share if exact else share / total

    def _proposed_shares(self, named: Values) -> dict[str, float]:
        """Before renormalising, for all groups; empty if none was named."""
        shares = {group: numbers[self._share] for group, numbers in named.items() if self._share in numbers}
        if sum(max(0.0, share) for share in shares.values()) == float("inf"):
            self.changes.append(Change(self._share, None, None, "the sum overflows: they count as missing"))
            shares = {}
        for group, share in shares.items():
            if share < 0:
                self.changes.append(Change(f"{group}.{self._share}", share, 0.0, "negative: set to 0"))
                shares[group] = 0.0
        if not shares:
            for group in named:
                kept = self.values[group][self._share]
                self.changes.append(Change(f"{group}.{self._share}", None, kept, f"{MISSING}: kept"))
            return {}
        complete = round(abs(sum(shares.values()) - 1), 9) <= NAMED_SUM  # in floats 1.02 - 1 is a little more than 0.02
        for group, values in self.values.items():
            if group not in shares:
                before = values[self._share]
                shares[group] = 0.0 if complete else before
                reason = "the named shares sum to 1: set to 0" if complete else "not named: kept before renormalising"
                if before > 0 or group in named:
                    self.changes.append(Change(f"{group}.{self._share}", None, shares[group], reason))
        return shares


def _name(key: object) -> str:
    return key[:40] if isinstance(key, str) else shown(key)


def _plain(value: object) -> Any:
    """A proposed value for the record: short text unless it is a finite number."""
    number = as_number(value)
    return number if number is not None else None if value is None else shown(value)
