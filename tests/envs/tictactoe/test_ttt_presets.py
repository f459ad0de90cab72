"""The presets that tic-tac-toe brings: they read, say what the talk's stages were, and stand where none is named."""

from __future__ import annotations

import pytest

from t2t_core.plugins import installed
from t2t_core.run.experiment import resolve
from t2t_core.run.sets import request

TESTBED = installed().testbeds.make("tictactoe")


def experiment(name):
    return resolve(name, None, [], {}, {})


@pytest.mark.parametrize(
    ("name", "low", "high", "temperature"),
    [("tictactoe", 0.2, 0.7, 1.0), ("tictactoe-stage1", 0.2, 0.7, 1.0), ("tictactoe-stage2", 0.0, 0.25, 1.25)],
)
def test_a_preset_plays_the_games_of_its_stage(name, low, high, temperature):
    made = experiment(name)
    games = TESTBED.generate(TESTBED.read_configuration(made.configuration), request(made, TESTBED), 1)
    strengths = sorted(game.p for game in games)
    assert low <= strengths[0] < low + 0.02 and high - 0.02 < strengths[-1] <= high
    assert abs(sum(strengths) / len(strengths) - (low + high) / 2) < 0.02, "spread evenly"
    assert made.training["temperature"] == temperature
    assert len(games) >= made.training["prompts"] * 30


def test_every_update_holds_every_band_in_its_share():
    made = experiment("tictactoe")
    games = TESTBED.generate(TESTBED.read_configuration(made.configuration), request(made, TESTBED), 1)
    size = made.training["prompts"]
    for first in range(0, len(games), size):
        columns = [TESTBED.place(game).column for game in games[first : first + size]]
        for band, share in (("0.5-0.75", 0.4), ("0.25-0.5", 0.5), ("0-0.25", 0.1)):
            assert abs(columns.count(f"p {band}") - share * size) <= 1
        movers = [game.mover for game in games[first : first + size]]
        assert abs(movers.count("policy") - size / 2) <= 2


def test_it_stands_where_none_is_named():
    assert TESTBED.preset == "tictactoe" and TESTBED.preset in installed().presets
