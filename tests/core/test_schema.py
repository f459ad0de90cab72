"""The declared shape of every file that is read back: errors name the file and the field, and no data is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.report.summary import Summary
from t2t_core.report.sweep_document import SweepResult
from t2t_core.run.schemas import BenchTable, Breakdown, Design, Generation, Projected, Training
from t2t_core.store import folders, schema
from t2t_leaderboard.schemas import BenchSettings, RowRecord, SubmissionRecord, VerificationRecord

KINDS = [Training, Generation, Breakdown, Design, Projected, BenchTable, Summary, SweepResult, folders.Manifest]
KINDS += [BenchSettings, RowRecord, SubmissionRecord, VerificationRecord]
TRAINING = {"checkpoint": "round_0/checkpoint", "samples": 8, "updates": 1, "tokens": 0}
COST = {"calls": 1, "prompt_tokens": 2, "completion_tokens": 3, "usd": 0}
DESIGN = {"designer": "rule", "outcome": "proposed", "parsed": {"3": {}}, "summary": None, "notes": [], "raw": "", "cost": COST}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**99), 10**99) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        (Training, {**TRAINING, "samples": "8"}, "samples"),
        (Training, {**TRAINING, "samples": True}, "samples"),
        (Training, {**TRAINING, "samples": -1}, "samples"),
        (Training, {**TRAINING, "samples": 10**30}, "samples"),
        (Training, {**TRAINING, "samples": 1.5}, "samples"),
        (Training, {k: v for k, v in TRAINING.items() if k != "tokens"}, "tokens"),
        (Training, {**TRAINING, "checkpoint": 3}, "checkpoint"),
        (Design, {**DESIGN, "notes": ["a", 3]}, "notes[1]"),
        (Design, {**DESIGN, "cost": {**COST, "usd": -0.1}}, "cost.usd"),
        (Design, {**DESIGN, "cost": None}, "cost"),
        (Design, {**DESIGN, "calls": [3]}, "calls[0]"),
        (Projected, {"configuration": {"3": {"a": "x"}}, "changes": [], "note": None}, "configuration"),
        (Projected, {"configuration": {}, "changes": [{"knob": "a"}], "note": None}, "changes[0].proposed"),
        (BenchTable, {"sets": [{"name": "a", "sha256": "", "instances": 1, "rows": [{}], "differences": []}]}, "rows[0].arm"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_field(tmp_path: Path, kind: type[Any], data: Any, field: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(data))
    with pytest.raises(T2TError) as caught:
        folders.read_record(path, kind)
    assert field in caught.value.what and caught.value.where == str(path) and "edited" in caught.value.cause


BOMBS = [b"[" * 100_000, b'{"a": ' + b"9" * 200 + b"}", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"\xff", b"[]"]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_its_shape_is_looked_at(tmp_path: Path, bomb: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(bomb)
    with pytest.raises(T2TError, match="not what was written"):
        folders.read_record(path, Training)


@given(JSON, st.sampled_from(KINDS))
@settings(max_examples=400, deadline=None)
def test_any_json_is_read_or_refused_in_short_plain_words(data: Any, kind: type[Any]) -> None:
    try:
        schema.check(data, kind, "file.json")
    except T2TError as error:
        assert str(error).isascii() and "\x1b" not in str(error)
        assert len(str(error)) < 600


def test_what_is_read_is_what_was_written_defaults_and_strangers_values_included(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    odd = {"3": {"a": [None, 1.5, 10**60, "\ud800\x1b"]}}
    design = schema.check({**DESIGN, "parsed": odd}, Design, "x")
    folders.write_json(path, design)
    assert folders.read_record(path, Design) == design
    assert json.loads(path.read_text()) == {**DESIGN, "parsed": odd, "calls": []}
    read = schema.check({**TRAINING, "later": 1}, Training, "x")
    assert schema.plain(read) == {**TRAINING, "metrics": {}, "keep_updates": False}


def test_what_earlier_versions_left_is_read() -> None:
    for folder in sorted((Path(__file__).parents[2] / "studies" / "tiny").glob("*/seed_*/*/summary.json")):
        summary = folders.read_record(folder, Summary)
        assert summary.rounds and summary.budgets["designed"].rounds >= 1
    for path in sorted((Path(__file__).parents[2] / "studies" / "tiny").glob("*/sweep.json")):
        assert folders.read_record(path, SweepResult).differences
