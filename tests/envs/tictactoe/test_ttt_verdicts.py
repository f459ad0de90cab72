"""Verdicts of games, against an oracle that looks at boards as people do; the opponent plays what the test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
import ttt_oracle as oracle

from t2t_core.records import Message, Verdict
from t2t_core.reward import reward
from t2t_core.seeding import Stream
from t2t_envs.tictactoe import game as games
from t2t_envs.tictactoe.instance import Instance, start_fault, stones
from t2t_envs.tictactoe.parser import format_move
from t2t_envs.tictactoe.testbed import TicTacToe

BED = TicTacToe()


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message("assistant", text) for text in texts)


def judged(board: str, mover: str, line: Sequence[int], patch: pytest.MonkeyPatch) -> tuple[Verdict, set[str], int]:
    """The verdict of a whole game whose moves stand in `line`, and what the oracle says of it."""
    moves, mine, theirs, mark = [], [], iter(line[mover == "X" :: 2]), mover
    for cell in line:
        if mark == "X":
            moves.append((board, cell))
            mine.append(cell)
        board, mark = oracle.put(board, cell, mark), oracle.other(mark)
    before = moves[0][0]
    start = Instance(before) if mover == "X" else Instance(_start(before, line[0]), "opponent")
    patch.setattr(games, "opponent_move", lambda *position: next(theirs))
    verdict = BED.verify(start, said(*(format_move(cell, thought="so") for cell in mine)), "think")
    ended = {None: "draw", "X": "win", "O": "loss"}[oracle.winner(board)]
    assert [name for name in ("win", "draw", "loss") if verdict.figures[name]] == [ended]
    return verdict, oracle.failures(moves, board), oracle.given_away(moves)


def _start(board: str, cell: int) -> str:
    """The board before the opponent's first move."""
    assert board[cell] == "O"
    return board[:cell] + "." + board[cell + 1 :]


def starts() -> list[tuple[str, str]]:
    """Every position that a game can start from, with the player to move."""
    boards = {board for board, _ in oracle.reachable()}
    boards |= {board.translate(str.maketrans("XO", "OX")) for board in boards}
    pairs = [(board, mover) for board in sorted(boards) for mover in "XO"]
    who = {"X": "policy", "O": "opponent"}
    return [(b, m) for b, m in pairs if start_fault(stones(b, "X"), stones(b, "O"), who[m]) is None]


def some_lines(board: str, mover: str, stream: Stream) -> Iterator[list[int]]:
    """All continuations where at most four cells are free, else a few random ones."""
    if board.count(".") <= 4:
        yield from oracle.lines(board, mover)
        return
    for _ in range(3):
        line, now, mark = [], board, mover
        while not oracle.over(now):
            line.append(stream.choice(oracle.free(now)))
            now, mark = oracle.put(now, line[-1], mark), oracle.other(mark)
        yield line


def compare(lines: Iterator[tuple[str, str, list[int]]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for board, mover, line in lines:
            verdict, failed, lost = judged(board, mover, line, patch)
            assert {name for name, passed in verdict.checks.items() if not passed} == failed == set(verdict.faults), (board, line)
            assert (verdict.valid, verdict.optimal) == (not failed, not failed and lost == 0)
            assert verdict.cost == (lost if verdict.valid else None)
            assert verdict.valid or len(failed) >= 1
            counts.update(failed or {"valid"})
            counts["games"] += 1
    return counts


@pytest.mark.thorough
def test_games_from_every_position() -> None:
    stream = Stream.of(0, "lines")
    counts = compare((board, mover, line) for board, mover in starts() for line in some_lines(board, mover, stream))
    assert len(starts()) > 5000 and counts["games"] > 30_000
    assert min(counts[name] for name in ("valid", "no_missed_win", "no_missed_block", "no_fork")) > 500


@pytest.mark.slow
def test_all_games_from_the_empty_board() -> None:
    counts = compare(("." * 9, mover, line) for mover in "XO" for line in oracle.lines("." * 9, mover))
    assert counts["games"] == 2 * 255_168


def test_where_a_mistake_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def played(theirs: Sequence[int], *mine: int, mover: str = "policy") -> Verdict:
        cells = iter(theirs)
        monkeypatch.setattr(games, "opponent_move", lambda *position: next(cells))
        return BED.verify(Instance(mover=mover), said(*(format_move(c, thought="so") for c in mine)), "think")

    block = played([0, 1, 2], 4, 8, 7)  # O holds 0 and 1, X plays 7
    assert block.failure == "no_missed_block" and block.faults["no_missed_block"].where == {"turn": 2, "cell": 2}
    assert not block.valid and block.optimal is False and block.cost is None
    fork = played([0, 4, 3, 6], 1, 8, 5, mover="opponent")  # X answered the corner with the edge beside it
    assert fork.failure == "no_fork" and fork.faults["no_fork"].where == {"turn": 0, "cell": 1}
    assert "in the end on cells 5 and 6" in fork.faults["no_fork"].message
    missed = played([3, 4, 5], 0, 1, 8)  # X had 0 and 1, and O then took 5
    assert missed.failure == "no_missed_win" and missed.faults["no_missed_win"].where == {"turn": 2, "cell": 2}


def test_illegal_moves_cost_once_and_the_game_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = iter([4, 3])
    monkeypatch.setattr(games, "opponent_move", lambda *position: next(cells))
    texts = ["0", "4", "9", "I don't know", "1", "2"]
    verdict = BED.verify(Instance(), said(*texts), "compact")
    assert verdict.figures == {"win": 1, "draw": 0, "loss": 0, "invalid": 1, "form": 4 / 6, "turns": 6}
    assert [name for name, passed in verdict.checks.items() if not passed] == ["format", "legal"]
    legal = verdict.faults["legal"]
    assert (legal.kind, legal.where, legal.message) == ("taken", {"turn": 1, "cell": 4}, "turn 1: cell 4 is taken")
    assert reward(BED, Instance(), verdict) == pytest.approx(1 + 0.2 * 4 / 6 - 0.1)


def test_a_game_that_is_not_over_after_eight_turns_is_lost() -> None:
    verdict = BED.verify(Instance(), said(*["?"] * 12), "compact")
    assert verdict.figures == {"win": 0, "draw": 0, "loss": 1, "invalid": 1, "form": 0, "turns": 8}
    assert verdict.faults["legal"].kind == "unreadable" and reward(BED, Instance(), verdict) == pytest.approx(-0.1)


def test_a_game_that_was_broken_off_is_not_valid_and_nobody_has_won() -> None:
    for messages in (said(), said("4")):
        verdict = BED.verify(Instance(p=1.0), messages, "compact")
        assert not verdict.valid and verdict.faults["legal"].kind == "unfinished"
        assert [verdict.figures[name] for name in ("win", "draw", "loss")] == [0, 0, 0]


def test_what_follows_the_end_of_a_game_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = iter([3, 4])
    monkeypatch.setattr(games, "opponent_move", lambda *position: next(cells))
    verdict = BED.verify(Instance(), said("0", "1", "2", "nonsense"), "compact")
    assert verdict.valid and verdict.optimal is True and verdict.figures["turns"] == 3


def test_rewards_are_the_rubrics() -> None:
    instance = Instance()

    def worth(**figures: float) -> float:
        known = dict.fromkeys(("win", "draw", "loss", "invalid", "form"), 0.0) | figures
        return reward(BED, instance, Verdict({}, True, True, 0, figures=known))

    assert [worth(win=1), worth(draw=1), worth(loss=1)] == [1.0, 0.5, 0.0]
    assert worth(win=1, form=1) == pytest.approx(1.2) and worth(loss=1, invalid=1) == pytest.approx(-0.1)
    assert worth(draw=1, form=0.5, invalid=1) == pytest.approx(0.5)
