"""JSON as models write it: what is repaired and reported as repaired, what is refused, and that no text is slow to read."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_core.reading.loose_json import MAX_DEPTH, Broken, Value, values

STARTS = re.compile(r"[{\[]")
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
).filter(lambda value: not any("\ud800" <= c <= "\udfff" for c in json.dumps(value, ensure_ascii=False)))


def first(text: str) -> Value | Broken:
    return next(values(text, STARTS))


@given(
    st.dictionaries(st.text(alphabet='abc 3"\\\né'), plain, max_size=5) | st.lists(plain, max_size=5),
    st.none() | st.integers(0, 3),
)
@settings(max_examples=300)
def test_json_is_read_as_json_reads_it_and_nothing_is_noted(data: Any, indent: int | None) -> None:
    value = first(json.dumps(data, indent=indent))
    assert isinstance(value, Value) and value.data == data and not value.notes


@given(plain.filter(lambda v: isinstance(v, (dict, list))))
def test_python_writes_what_is_read_the_same(data: Any) -> None:
    value = first(repr(data))
    assert isinstance(value, Broken) or json.dumps(value.data) == json.dumps(data)


@pytest.mark.parametrize(
    ("text", "data", "note"),
    [
        ('{"3": [1, 2,],}', {"3": [1, 2]}, "trailing comma"),
        ('{"3": 1 "4": 2}', {"3": 1, "4": 2}, "missing comma"),
        ('{"3": {"a": 1}\n"4": 2}', {"3": {"a": 1}, "4": 2}, "missing comma"),
        ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}], "missing comma"),
        ("[[1, 2] [3, 4]]", [[1, 2], [3, 4]], "missing comma"),
        ('{"3": 1, // a thought\n "4": 2 /* and another */} # third', {"3": 1, "4": 2}, "comment"),
        ('{"3": 1, # like YAML\n "4": 2}', {"3": 1, "4": 2}, "comment"),
        ('{"3": NaN, "4": -Infinity, "5": 1e999}', {"3": None, "4": None, "5": None}, "missing"),
        ('{"3": ' + "9" * 10_000 + "}", {"3": None}, "10000 characters"),
        ("{'3': 'it', “4”: ‘so’}", {"3": "it", "4": "so"}, "other quotes"),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}, "raw line break"),
        ("{data_ratio: .5, 3: +1, 4x4: 2.}", {"data_ratio": 0.5, "3": "+1", "4x4": 2.0}, "without quotes"),
        ('{"a"：1，"b_c"：[1，2]}', {"a": 1, "b_c": [1, 2]}, ""),
        (r'{"a\_b": "\*c\* \\_ \n"}', {"a_b": "*c* \\_ \n"}, "Markdown"),
        ("{'a': True, 'b': None, 'c': (1, 2), 'd': (3,)}", {"a": True, "b": None, "c": [1, 2], "d": [3]}, "tuple"),
        ('{"a": 30%, "b": 12.5 %}', {"a": "30%", "b": "12.5%"}, ""),
        ('{"3": 1, "3": 1}', {"3": 1}, "twice"),
        (r"{'a': 'it\'s A\n'}", {"a": "it's A\n"}, "other quotes"),
    ],
)  # fmt: skip
def test_what_is_mended_is_said(text: str, data: Any, note: str) -> None:
    value = first(text)
    assert isinstance(value, Value) and value.data == data
    assert note in " ".join(value.notes)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"3": 1, "3": 2}', "twice, with two values"),
        ("[1 2]", "a comma or ]"),
        ('{"a": 1 b: 2}', "a comma or }"),
        ('{"a": 1,, "b": 2}', "a key is expected"),
        ('{"a" 1}', "a colon"),
        ('{"a": 0,3}', "a colon"),
        ('{"a": 1.2.3}', "is no number"),
        ('{"a": 3x3}', "is no number"),
        ('{"a": (3)}', "in parentheses"),
        ('{"a": "the "hard" ones"}', "a comma or }"),
        ('{"a": ' * 30 + "1" + "}" * 30, "too deeply"),
        ('{"a": 1', "ends where a comma"),
        ('{"a": "b', "does not end"),
        ('{"a": 1 /* so }', "does not end"),
        ('{"a": "\\q"}', "escape"),
        ('{"a": yes}', "a value is expected"),
        ("[" + "0," * 30_000 + "0]", "too many values"),
    ],
)
def test_what_could_mean_two_things_or_nothing_is_refused(text: str, why: str) -> None:
    value = first(text)
    assert isinstance(value, Broken) and why in value.why


@pytest.mark.parametrize(
    ("text", "meant", "sketch"),
    [
        ("{so}", False, False),
        ("{x: x > 3}", False, True),
        ('{"3"', False, False),
        ('{"3": {', True, False),
        ("{3: {a: 1 b", True, False),
        ('{"3": {...}, ...}', True, True),
        ('{"3": {"a": <number>}}', True, True),
        ('{"3": {"a": 0.5, ...}}', True, False),
        ("{…}", False, True),
        ('{"3": {"a": x, "b": y}}', True, True),
        ('{"3": {"a": 0.5, "b": y}}', True, False),
    ],
)
def test_how_much_of_an_object_was_meant(text: str, meant: bool, sketch: bool) -> None:
    value = first(text)
    assert isinstance(value, Broken) and (value.meant, value.sketch) == (meant, sketch)


def test_of_a_sketch_nothing_counts_to_its_last_bracket() -> None:
    parsed = list(values('{"a": {"b": x, "c": {"d": 1}}} then {"e": 2} {"f": [..., {"g": 3}', STARTS))
    assert [v.data if isinstance(v, Value) else None for v in parsed] == [None, {"e": 2}, None]


def test_every_outermost_value_comes_in_order_and_none_from_within_another() -> None:
    parsed = list(values('a {"b": [1, {}]} then [2] and {broken} and {"c": 3}', STARTS))
    assert [v.data if isinstance(v, Value) else None for v in parsed] == [{"b": [1, {}]}, [2], None, {"c": 3}]
    assert all(v.start < v.end for v in parsed)


@given(st.text(alphabet="{}[]()\"':,/*\\# \n-+.eE%019aNIntrufl…“”", max_size=300))
@settings(max_examples=500)
def test_no_text_breaks_it(text: str) -> None:
    end = 0
    for value in values(text, STARTS):
        assert value.start >= end <= value.end <= len(text)
        end = value.end
        if isinstance(value, Value):
            json.dumps(value.data, allow_nan=False)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        "{",
        "[",
        "(",
        '{"a":',
        '{"a":[',
        "{/*",
        "{//",
        "{#",
        '{"a',
        "{'a",
        '{"\\',
        '{"a":"',
        "[{",
        '{"a":1,',
        '{"a":{},',
        "{-",
        '{"a":-',
        '{"a":1e',
        "{a:",
        "{a",
        "[1 ",
        "[[] ",
        '{"a":1"b":',
        "{“",
        "\\",
        "[(1,2),",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.process_time()
    assert all(v.end - v.start <= len(text) for v in values(text, STARTS))
    assert time.process_time() - began < 5  # what is not linear takes minutes here


def test_depth_is_bounded() -> None:
    assert isinstance(first("[" * MAX_DEPTH + "]" * MAX_DEPTH), Value)
    assert isinstance(first("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2)), Broken)
