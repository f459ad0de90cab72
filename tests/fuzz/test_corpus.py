"""Every input that the fuzzer keeps, those that once broke something included, is tried again without the fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import common
from fuzz.common import LONG, SECONDS, linear
from fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus"


@pytest.mark.thorough
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_the_fuzzer_keeps_breaks_a_reader(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "EVERY", 1)
    files = sorted((CORPUS / name).iterdir())
    assert files, "a corpus for every target"
    for file in files:
        try:
            TARGETS[name](file.read_bytes())
        except Exception as error:
            raise AssertionError(f"{file.name}: {type(error).__name__}: {error}") from error


def test_a_quadratic_reader_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "EVERY", 1)
    monkeypatch.setattr(common, "SECONDS", 0.1)
    with pytest.raises(AssertionError, match="characters"):
        linear(lambda text: [text.lower() for _ in range(len(text) // 64)], "a")
    assert SECONDS < 10 and LONG >= 1 << 16
