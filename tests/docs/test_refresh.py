"""The check of the README's board: solvers must match to the digit, toy models approximately."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("refresh", Path(__file__).parents[2] / "docs" / "refresh.py")
refresh = importlib.util.module_from_spec(spec)
spec.loader.exec_module(refresh)

BOARD = "| policy |\n| cbs | measured | 94.33 [92.9–95.5] |\n| tiny (toy policy) | measured | 48.58 [45.9–51.2] |"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("", "", True),
        ("94.33", "94.34", False),
        ("48.58 [45.9", "48.33 [45.6", True),
        ("48.58", "47.58", False),
        ("tiny (toy policy)", "tiny:2agents (toy policy)", False),
        ("| policy |\n", "", False),
    ],
)
def test_a_board_is_stale(old, new, same):
    assert refresh.same(BOARD, BOARD.replace(old, new) if old else BOARD) is same
