"""The reader of proposals: what it mends, what it refuses, and that no text can slow it down or break it."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_plugins.designers.reader import MAX_DEPTH, read_reply, take_summary

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def plain(value: object) -> bool:
    """No lone surrogates, which no file can hold, and no marks of thought."""
    text = json.dumps(value, ensure_ascii=False)
    return "think>" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


@given(st.dictionaries(st.text(), values, max_size=5), st.sampled_from(["", "Thus:\n```json\n", '{so} <think>{"3": 1}</think>']))
@settings(max_examples=200)
def test_every_json_object_is_read_as_json_reads_it(data: dict[str, object], before: str) -> None:
    if plain(data):
        assert read_reply(before + json.dumps(data, indent=1) + "\n```\nDone.").data == data


@pytest.mark.parametrize(
    ("text", "data", "note"),
    [
        ('{"3": [1, 2,],}', {"3": [1, 2]}, "trailing comma"),
        ('{"3": 1, // a thought\n "4": 2 /* and another */}', {"3": 1, "4": 2}, "comment"),
        ('{"3": NaN, "4": -Infinity, "5": 1e999}', {"3": None, "4": None, "5": None}, "missing"),
        ('{"3": ' + "9" * 10_000 + "}", {"3": None}, "10000 characters"),
        ('{"3": 1, "3": 2}', {"3": 2}, "twice"),
        ('first {"3": 1} then {"4": 2} so be it', {"4": 2}, ""),
        ("no object at all", None, "no complete JSON object"),
        ('{"3": {"a": 1}, "4": {"a"', None, "no complete JSON object"),
        ('<think>{"3": 1}', None, "within its thoughts"),
        ("{" + '"a":{' * 100 + "}" * 101, None, ""),
        ('{"3": 0.2', None, "no complete"),
        ('{"3": 01x}', None, "no complete"),
    ],
)
def test_what_is_mended_is_said(text: str, data: object, note: str) -> None:
    reading = read_reply(text)
    assert reading.data == data or (data is None and reading.data is not None and "{" * MAX_DEPTH not in str(reading.data))
    assert note in " ".join(reading.notes)


@given(st.text(alphabet='{}[]":,/*\\ \n-+.eE019aNIntrufl', max_size=300))
@settings(max_examples=500)
def test_no_text_breaks_it(text: str) -> None:
    reading = read_reply(text)
    json.dumps(reading.data, allow_nan=False)


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a":',
        '{"a":[',
        "{/*",
        "{//",
        '{"a',
        '{"\\',
        '{"a":"',
        "[{",
        '{"a":1,',
        '{"a":{},',
        "{-",
        '{"a":-',
        '{"a":1e',
        "<think>",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    read_reply(text)
    assert time.process_time() - started < 3


def test_the_summary_is_taken_off_and_made_printable() -> None:
    rest, summary = take_summary({"3": 1, "summary": "because\x1b[31m\n of it" + "x" * 5000})
    assert rest == {"3": 1}
    assert summary is not None and summary.startswith("because[31m of it") and len(summary) == 2000
    assert take_summary({"summary": 3}) == ({}, None)
