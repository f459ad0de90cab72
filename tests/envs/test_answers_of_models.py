"""Answers in shapes that public models write, collected by somebody who had read only the docs: each is read as it was meant, or
not at all if it could mean two things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from t2t_envs.frozen_lake.parser import read_answer

KEPT = [json.loads(line) for line in (Path(__file__).parent / "answers_of_models.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("answer", KEPT, ids=lambda answer: answer["name"])
def test_what_models_write_is_read_as_kept(answer: dict[str, Any]) -> None:
    reading = read_answer(answer["text"])
    paths = reading.paths and {str(label): [list(cell) for cell in path] for label, path in reading.paths.items()}
    assert paths == answer["paths"], reading.why
