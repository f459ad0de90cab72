"""Reads a designer's reply: the one configuration that it proposes, or the finding that there is none (our choice throughout).

A comparison of designers is only as good as its reader: a reply that is read wrongly counts as a decision of the designer. So a
reply is repaired only if it can mean one thing, each repair is noted, and everything else is unreadable. docs/designers.md
gives the rule case by case.

1. Thoughts are set aside (`t2t_core.reading.thoughts`). Of the rest every outermost JSON object is read, loosely
   (`t2t_core.reading.loose_json`). One that breaks off makes the reply unreadable, for what stands in it or behind it may be
   a part of it; one that only sketches the form (`{"3": {...}}`) is passed over.
2. An object proposes where it names a group, itself or in a wrapper, by group or by knob. What proposes nothing
   (`{}` in a closing remark, the bounds, the values before) is passed over. Without any object a table of groups and knobs
   counts.
3. Objects that name different groups are taken together. Where two differ in a group, the one that repeats a configuration
   that the brief showed is set aside; if two are left, the reply has two proposals and is unreadable.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2t_core.reading import loose_json
from t2t_core.reading.struck import without_struck
from t2t_core.reading.thoughts import set_aside_thoughts
from t2t_plugins.designers.reader_table import read_table
from t2t_plugins.designers.reader_terms import (
    Candidate,
    Form,
    Groups,
    Reader,
    Unreadable,
    Values,
    is_a_count,
    knob_of,
    nearest_knob,
    number_of,
    set_group,
    short,
    value_of,
    with_percent,
)

__all__ = ["Form", "Reading", "printable_summary", "read_reply"]

MAX_CHARACTERS = 200_000
MAX_SUMMARY = 2_000
_STARTS = re.compile(r"""\{(?=\s*+(?:["'“‘}\w$.…]|//|/\*|\#))|\[(?=\s*+\{)""")
_DEEPEST = 4  # wrappers around a configuration
_AND_SO_ON = re.compile(
    r"\.\.\.|…|\b(?:etc|same|others?|rest|remaining|unchanged|omitted|similar(?:ly)?|likewise|so on)\b", re.IGNORECASE
)
# The name of a wrapper that says that its values are changes, bounds or reports, and so are not proposed.
_NO_PROPOSAL = re.compile(
    r"(?:.*_)?(?:deltas?|diff(?:erence)?s?|increments?|increases?|decreases?|increase_by|decrease_by|offsets?|multipliers?|factors?"
    r"|relative|add|scale|old|previous|current|before|rejected|discarded|unused|not_\w+|avoid(?:ed)?|bad|wrong|draft|example"
    r"|template|schema|min(?:imum)?|max(?:imum)?|bounds?|limits?|lower|upper|ranges?|observed|measured|history|baseline"
    r"|alternatives?|fallback|backup|std|uncertainty|errors?|last_round|initial|expected(?:_\w+)?)"
)
# Words behind the proposal that take it back.
_TAKEN_BACK = re.compile(
    r"\b(?:scratch that|never ?mind|on second thoughts?|(?:disregard|ignore) (?:that|this|the (?:above|object|json))"
    r"|(?:wait|no|oops|sorry|hmm|actually)\W{1,3}(?:that|this)(?:['’]s| is| was) (?:wrong|a mistake|not (?:right|correct))"
    r"|correction\s?[:,—-])",
    re.IGNORECASE,
)
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))


@dataclass(frozen=True)
class Reading:
    """`data` is the proposed configuration (group -> knob -> value), None where the reply has none or more than one; `notes`
    say what was mended, or why it is unreadable."""

    data: Groups | None
    summary: str | None = None
    notes: tuple[str, ...] = ()


def read_reply(text: str, form: Form, cut: bool = False) -> Reading:
    """The configuration that a reply proposes. Never raises; of a longer reply the last 200,000 characters count. Of a reply
    that was `cut` at the token limit nothing counts unless it names every group: what is missing may have been still to come."""
    reader = Reader(form)
    try:
        groups, summary = _read(text, reader)
        if cut and not set(form.groups) <= set(groups):
            raise Unreadable("the reply was cut before it named every group")
    except Unreadable as error:
        return Reading(None, None, (*reader.notes, str(error)))
    return Reading(groups, summary, tuple(reader.notes))


def printable_summary(said: Any) -> str | None:
    """A designer's own explanation as one printable line of at most 2,000 characters; None where it gave none."""
    if not isinstance(said, str):
        return None
    return "".join(c for c in " ".join(said.split()) if c.isprintable())[:MAX_SUMMARY] or None


def _read(text: str, reader: Reader) -> tuple[Groups, str | None]:
    said = set_aside_thoughts(text)
    if said.unfinished:
        reader.note("the reply ends within its thoughts")
    if len(said.text) > MAX_CHARACTERS:
        reader.note(f"only the last {MAX_CHARACTERS} of {len(said.text)} characters were read")
    body = without_struck(said.text[-MAX_CHARACTERS:].translate(_INVISIBLE))
    candidates = _candidates(body, reader)
    unescaped = html.unescape(body.replace('\\"', '"'))
    if not candidates and unescaped != body and (candidates := _candidates(unescaped, reader)):
        reader.note("the quotes of an object were unescaped")
    candidates = candidates or read_table(body, reader)
    if not candidates:
        raise Unreadable(f"nothing in the reply names one of {', '.join(reader.form.groups)[:80]}")
    groups = _together(candidates, reader)
    if back := _TAKEN_BACK.search(body, max(body.rfind("}"), body.rfind("|")) + 1):
        raise Unreadable(f"what was proposed is taken back: {short(back[0])}")
    comment = next((c.abbreviated for c in candidates if c.abbreviated), "")
    if comment and not set(reader.form.groups) <= set(groups):
        raise Unreadable(f"a comment stands for what is left out: {short(comment)}")
    _as_in_force(groups, reader)
    return groups, next((c.summary for c in reversed(candidates) if c.summary), None)


def _candidates(text: str, reader: Reader) -> list[Candidate]:
    candidates: list[Candidate] = []
    nameless = False
    for value in loose_json.values(text, _STARTS):
        if isinstance(value, loose_json.Broken):
            if value.meant and not value.sketch:
                raise Unreadable(f"an object in the reply cannot be read: {value.why}"[:180])
            continue
        proposals = _proposals(value.data, reader, None, 0)
        if proposals:
            for note in value.notes:
                reader.note(note)
            comment = next((comment for comment in value.comments if _AND_SO_ON.search(comment)), "")
            proposals = [replace(candidate, abbreviated=comment) for candidate in proposals]
        candidates += proposals
        nameless = nameless or (not proposals and _of_no_group(value.data, reader.form))
    if candidates and nameless:
        raise Unreadable("an object sets knobs of a group that it does not name")
    return candidates


def _of_no_group(data: Any, form: Form) -> bool:
    """Whether an object sets knobs, of whichever group, rather than only quoting the values that a configuration of the brief
    has."""
    if not isinstance(data, dict):
        return False
    values = {knob: number for key, number in data.items() if (knob := knob_of(key, form)) and isinstance(number, (int, float))}
    return bool(values) and not any(_repeats({group: values}, known) for known in form.known for group in known[0])


# --- what one object proposes


def _proposals(data: Any, reader: Reader, summary: str | None, depth: int) -> list[Candidate]:
    """The configurations in a value: itself, or those it wraps."""
    if depth > _DEEPEST or not isinstance(data, (dict, list, str)):
        return []
    if isinstance(data, str):
        return _in_text(data, reader, summary, depth)
    if isinstance(data, list):
        rows = _rows(data, reader)
        return [Candidate(rows, summary)] if rows else [c for item in data for c in _proposals(item, reader, summary, depth + 1)]
    summary = printable_summary(data.get("summary")) or summary
    groups = _by_group(data, reader) or _by_knob(data, reader) or _rows([data], reader)
    if groups:
        return [Candidate(groups, summary)]
    inner = []
    for key, item in data.items():
        name = _NO_PROPOSAL.fullmatch(re.sub(r"\W+", "_", key.strip().casefold()))
        inner += [replace(c, other=c.other or key if name else c.other) for c in _proposals(item, reader, summary, depth + 1)]
    return inner


def _in_text(text: str, reader: Reader, summary: str | None, depth: int) -> list[Candidate]:
    """The proposals of an object that is a text inside another, like the arguments of a tool call."""
    if not text.lstrip().startswith("{"):
        return []
    candidates = []
    for value in loose_json.values(text, _STARTS):
        if isinstance(value, loose_json.Broken):
            raise Unreadable(f"an object that stands as text cannot be read: {value.why}"[:180])
        candidates += _proposals(value.data, reader, summary, depth + 1)
    if candidates:
        reader.note("an object that stood as text was read")
    return candidates


def _by_group(data: Mapping[str, Any], reader: Reader) -> Groups:
    """`{"a": {...}, "b": {...}}`; nothing if no group has knobs (remarks about groups may be anything)."""
    named = {key: _group(key, reader.form) for key in data}
    data = {key: value if named[key] is None else _unpacked(value, reader) for key, value in data.items()}
    if not any(named[key] is not None and _sets_knobs(value, reader.form) for key, value in data.items()):
        return {}
    groups: Groups = {}
    for key, value in data.items():
        group = named[key]
        if group is not None:
            if key != group:
                reader.note(f"the key {short(key)} was read as {group}")
            set_group(groups, group, _values(group, value, reader))
        elif _sets_knobs(value, reader.form):
            raise Unreadable(f"{short(key)} is set and names no group")
        elif key != "summary":
            reader.note(f"the key {short(key)} names no group and was left out")
    return groups


def _group(key: str, form: Form) -> str | None:
    """The group that a key means, even if it was encoded twice and has quotes of its own."""
    return form.group_of(key.strip("\"'` "))


def _unpacked(value: Any, reader: Reader) -> Any:
    """What stands for a group; the object where that stands as text."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    objects = list(loose_json.values(value, _STARTS))
    if len(objects) != 1 or isinstance(objects[0], loose_json.Broken) or not _sets_knobs(objects[0].data, reader.form):
        return value
    reader.note("an object that stood as text was read")
    return objects[0].data


def _sets_knobs(value: Any, form: Form) -> bool:
    if isinstance(value, dict):
        return any(knob_of(key, form) or key in form.parts for key in value)
    return isinstance(value, list) and bool(value) and all(isinstance(x, (int, float)) for x in value)


def _by_knob(data: Mapping[str, Any], reader: Reader) -> Groups:
    """`{"share": {"near": 0.5, "far": 0.5}, ...}`, turned round."""
    by_knob = {knob: values for key, values in data.items() if (knob := knob_of(key, reader.form))}
    if not any(isinstance(values, dict) for values in by_knob.values()):
        return {}
    groups: Groups = {}
    for knob, values in by_knob.items():
        if not isinstance(values, dict):
            raise Unreadable(f"{knob} is set for no group")
        for name, value in values.items():
            group = _group(name, reader.form)
            if group is None or isinstance(value, (dict, list)) or knob in groups.setdefault(group, {}):
                raise Unreadable(f"{knob} is set for {short(name)}, which is no group or stands twice")
            groups[group][knob] = value_of(f"{group}.{knob}", value, reader)
    reader.note("an object by knob was turned into one by group")
    return groups


def _rows(data: Sequence[Any], reader: Reader) -> Groups:
    """`[{"group": "near", "share": 0.5, ...}, ...]`: each names its group in one field."""
    groups: Groups = {}
    for item in data:
        if not isinstance(item, dict) or not any(knob_of(key, reader.form) for key in item):
            return {}
        others = [v for k, v in item.items() if not knob_of(k, reader.form) and isinstance(v, (str, int))]
        names = {name for v in others if (name := reader.form.group_of(str(v))) is not None}
        if len(names) != 1:
            return {}
        group = names.pop()
        set_group(groups, group, _values(group, {k: v for k, v in item.items() if knob_of(k, reader.form)}, reader))
    if groups:
        reader.note("a group that is named in a field was read")
    return groups


def _values(group: str, value: Any, reader: Reader) -> Values:
    """The proposal for one group."""
    knobs = reader.form.knobs
    if isinstance(value, list):
        if reader.form.of_list is None:
            raise Unreadable(f"the group {group} has a list: of which knobs, and in which unit? The form asked for is an object")
        if len(value) != len(knobs):
            raise Unreadable(f"the group {group} has {len(value)} values, not {len(knobs)}")
        return dict(reader.form.of_list(value))
    if not isinstance(value, dict):
        raise Unreadable(f"the group {group} has {short(str(value))} instead of its {len(knobs)} knobs")
    values: Values = {}
    for key, number in value.items():
        knob = knob_of(key, reader.form)
        name = knob or key
        if knob:
            number = value_of(f"{group}.{knob}", with_percent(key, number, reader), reader)
        if values.get(name, number) != number:
            raise Unreadable(f"{group}.{name} stands twice, with two values")
        if knob not in (None, key) and is_a_count(key, number):
            raise Unreadable(f"{group}.{short(key)} is {number}: a count, or a percentage?")
        if knob not in (None, key):
            reader.note(f"the key {short(key)} was read as {knob}")
        values[name] = number
    for key, number in values.items():
        meant = nearest_knob(key, values, reader.form)
        if key not in knobs and meant is not None and isinstance(number_of(number, reader), (int, float)):
            raise Unreadable(f"{group}.{short(key)} may mean {meant}")
    if not any(name in values for name in (*knobs, *reader.form.parts)):
        raise Unreadable(f"the group {group} names none of {', '.join(knobs)}")
    return values


# --- several objects


def _together(candidates: Sequence[Candidate], reader: Reader) -> Groups:
    """One proposal from all objects. Objects that repeat a whole configuration of the brief count only if nothing else does."""
    form = reader.form

    def quotes(candidate: Candidate) -> bool:
        return any(len(candidate.groups) == len(k[0]) > 1 and _repeats(candidate.groups, k) for k in form.known)

    new = [candidate for candidate in candidates if not quotes(candidate)]
    if new and len(new) < len(candidates):
        reader.note("a configuration that the brief showed was passed over")
    proposing = [candidate for candidate in new if not candidate.other]
    if new and not proposing:
        raise Unreadable(f"what stands under {short(new[0].other)} is no proposal")
    for candidate in new:
        if candidate.other:
            reader.note(f"what stands under {short(candidate.other)} was passed over")
    counted = proposing or candidates
    groups: Groups = {}
    for name in dict.fromkeys(name for candidate in counted for name in candidate.groups):
        proposed: list[Values] = []
        for values in sorted((c.groups[name] for c in counted if name in c.groups), key=len, reverse=True):
            if not any(values.items() <= fuller.items() for fuller in proposed):
                proposed.append(values)
        if len(proposed) > 1:
            proposed = [p for p in proposed if not any(_repeats({name: p}, k) for k in form.known)]
            if len(proposed) != 1:
                raise Unreadable(f"the reply has two different proposals for {short(name)}")
        groups[name] = proposed[0]
    if len(counted) > 1:
        reader.note(f"{len(counted)} objects were taken together")
    return groups


def _repeats(groups: Groups, known: tuple[Mapping[str, Any], Mapping[str, Any]]) -> bool:
    """Whether every value equals that of a known configuration, exactly or as the brief showed it."""

    def same(value: Any, group: str, knob: str) -> bool:
        exact, shown = (table.get(group, {}).get(knob) for table in known)
        numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (value, shown))
        return bool(value == exact or (value == shown and not numbers) or (numbers and abs(value - shown) < 1e-9))

    return all(same(value, group, knob) for group, values in groups.items() for knob, value in values.items())


def _as_in_force(groups: Groups, reader: Reader) -> None:
    """A reply that repeats the configuration in force as it was shown means that configuration, not its rounding."""
    if not reader.form.known or not _repeats(groups, reader.form.known[-1]):
        return
    for group, values in groups.items():
        for knob in values:
            values[knob] = reader.form.known[-1][0][group][knob]
    reader.note("the reply repeats the configuration in force")
