"""Pictures of games: they agree with the game, escape what strangers wrote, and load nothing."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from t2t_core.conversation import opening
from t2t_core.records import Message
from t2t_envs.tictactoe import Game, Instance, render_ansi, render_html, render_svg, replay
from t2t_envs.tictactoe.draw.frames import frames, opponent_text
from t2t_envs.tictactoe.testbed import TicTacToe

BED = TicTacToe()
INSTANCE = Instance("XX.OO....", p=0.0, opponent="second", id="game")
EVIL = "</pre><script>alert(1)</script>\x1b]0;evil\x07 \u202e"


def played(*texts: str, format: str = "compact") -> tuple[Game, tuple[Message, ...]]:
    said = tuple(Message("assistant", text) for text in texts)
    return replay(INSTANCE, said, format), said


def test_frames_tell_what_happened_and_what_was_wrong() -> None:
    game, _ = played("0", "?", "8")
    start, taken, unreadable, missed = frames(INSTANCE, game)
    assert (start.board, start.caption) == ("XX.OO....", "start")
    assert (taken.caption, taken.fault) == ("turn 0: X on 0", "is not a free cell")
    assert (unreadable.caption, unreadable.fault) == ("turn 1: no move", "cannot be read")
    assert (missed.caption, missed.fault, missed.missed) == ("turn 2: X on 8, O on 5", "missed win", 2)
    assert missed.new == (8, 5) and missed.line == (3, 4, 5) and missed.board == "XX.OOO..X"


@pytest.mark.parametrize(
    ("p", "opponent", "says"),
    [
        (0.0, "mixed", "the opponent plays optimally"),
        (0.0, "first", "the opponent plays optimally, always the first of equal moves"),
        (0.25, "mixed", "25 % of the opponent's moves are random, the others optimal"),
        (0.0, "second", "the opponent plays optimally, with the habits of the second optimal player"),
        (1.0, "second", "the opponent moves at random"),
    ],
)
def test_the_opponent_is_described(p: float, opponent: str, says: str) -> None:
    assert opponent_text(Instance(p=p, opponent=opponent)) == says


def test_as_text() -> None:
    game, _ = played("8")
    assert render_ansi(INSTANCE) == " X  X  2\n O  O  5\n 6  7  8\nstart\n\n"
    text = render_ansi(INSTANCE, game)
    assert "X !2" in text and "missed win" in text and text.endswith("lost by X, the policy\n")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", render_ansi(INSTANCE, game, color=True))
    assert [line.rstrip() for line in plain.split("\n")] == text.split("\n")
    game, _ = played(*"00000000")
    assert render_ansi(INSTANCE, game).endswith("lost by X, the policy: not over after 8 turns\n")


@pytest.mark.parametrize("texts", [(), ("2",), ("8",), tuple("00000000")])
def test_as_svg(texts: tuple[str, ...]) -> None:
    game, _ = played(*texts)
    root = ElementTree.fromstring(render_svg(INSTANCE, game))
    space = "{http://www.w3.org/2000/svg}"
    boards = root.findall(f"{space}g")
    assert len(boards) == len(game.turns) + 1
    circles, rings = len(root.findall(f".//{space}circle")), sum(frame.board.count("O") for frame in frames(INSTANCE, game))
    assert circles == rings
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for board in boards:
        x, y = map(float, re.findall(r"[0-9.]+", board.get("transform", "")))
        assert 0 <= x < width - 138 and 0 <= y < height - 138


def test_the_boards_of_a_moving_picture_take_turns() -> None:
    """At every moment one board is to be seen, each for as long."""
    game, _ = played("2", "8")
    root = ElementTree.fromstring(render_svg(INSTANCE, game, animate=True))
    turns = [dict(board.attrib) for board in root.iter("{http://www.w3.org/2000/svg}animate")]
    count = len(game.turns) + 1
    assert len(turns) == count and len({turn["dur"] for turn in turns}) == 1
    for moment in range(count):
        seen = []
        for turn in turns:
            times, values = (turn[name].split(";") for name in ("keyTimes", "values"))
            seen.append([v for t, v in zip(times, values, strict=True) if float(t) <= (moment + 0.5) / count][-1])
        assert seen.index("1") == moment and seen.count("1") == 1


def test_as_html_the_transcript_is_word_for_word_and_harmless() -> None:
    game, said = played("8", EVIL)
    verdict = BED.verify(INSTANCE, said, "compact")
    page = render_html(INSTANCE, game, verdict, (*opening(BED, INSTANCE, "compact"), *said, Message("user", EVIL)), EVIL)
    assert page.startswith("<!doctype html>") and "default-src 'none'" in page
    assert "<script" not in page and "\x1b" not in page and "\u202e" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;\\x1b]0;evil\\x07") >= 2
    assert "no_missed_win: turn 0: a win on cell 2 was left out" in page and page.count('class="said') == 4
    won, said = played("2")
    page = render_html(INSTANCE, won, BED.verify(INSTANCE, said, "compact"), said)
    assert "valid, optimal" in page and "won by X" in page
