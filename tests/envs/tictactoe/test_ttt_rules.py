"""The rules against an oracle written from them alone, over every position that can be reached."""

from __future__ import annotations

from collections import Counter
from itertools import product

import ttt_oracle as oracle

from t2t_envs.tictactoe import rules
from t2t_envs.tictactoe.instance import stones


def sides(board: str, mover: str) -> tuple[int, int]:
    return stones(board, mover), stones(board, oracle.other(mover))


def test_there_are_5478_positions() -> None:
    assert len(oracle.reachable()) == 5478


def test_lines_and_ends_of_every_position() -> None:
    for board, mover in oracle.reachable():
        own, other = sides(board, mover)
        assert (rules.has_line(own), rules.has_line(other)) == tuple(
            oracle.winner(board) == mark for mark in (mover, oracle.other(mover))
        )
        assert rules.is_over(own, other) == oracle.over(board)
        assert list(rules.free_cells(own | other)) == oracle.free(board)


def test_values_and_optimal_moves_of_every_position() -> None:
    for board, mover in oracle.reachable():
        if oracle.over(board):
            continue
        own, other = sides(board, mover)
        assert rules.value(own, other) == oracle.outcome(board, mover)
        worth = {cell: -oracle.outcome(oracle.put(board, cell, mover), oracle.other(mover)) for cell in oracle.free(board)}
        assert {cell: rules.value_after(own, other, cell) for cell in worth} == worth
        assert list(rules.optimal_moves(own, other)) == [cell for cell in worth if worth[cell] == max(worth.values())]
        assert list(rules.wins(own, other)) == oracle.completes(board, mover)


def test_mistakes_of_every_move_in_every_position() -> None:
    counts: Counter[str | None] = Counter()
    for board, mover in oracle.reachable():
        if oracle.over(board):
            continue
        for cell in oracle.free(board):
            named = rules.mistake(*sides(board, mover), cell)
            assert named == oracle.classify(board, mover, cell), (board, mover, cell)
            counts[named] += 1
    assert set(counts) == {None, "missed_win", "missed_block", "fork"}
    assert sum(counts.values()) == 16167  # the moves of all positions that are not over


def test_ways_to_lose() -> None:
    for board, mover in oracle.reachable():
        if oracle.over(board):
            continue
        for cell in oracle.free(board):
            after, reply = oracle.put(board, cell, mover), oracle.other(mover)
            losing = [] if oracle.over(after) else [
                c for c in oracle.free(after) if oracle.outcome(oracle.put(after, c, reply), mover) == 1
            ]  # fmt: skip
            assert rules.ways_to_lose(*sides(board, mover), cell) == len(losing)


def test_the_symmetries_are_those_of_the_square() -> None:
    lines = {frozenset(triple) for triple in oracle.TRIPLES}
    edges = {frozenset((a, b)) for a, b in product(range(9), repeat=2) if abs(a // 3 - b // 3) + abs(a % 3 - b % 3) == 1}
    assert len(set(rules.SYMMETRIES)) == 8
    for places in rules.SYMMETRIES:
        assert sorted(places) == list(range(9))
        for shapes in (lines, edges):
            assert {frozenset(places[cell] for cell in shape) for shape in shapes} == shapes


def test_765_positions_up_to_symmetry() -> None:
    forms = {rules.canonical(stones(board, "X"), stones(board, "O")) for board, _ in oracle.reachable()}
    assert len(forms) == 765
    for board, _ in oracle.reachable()[::50]:
        turned = ["".join(board[places.index(cell)] for cell in range(9)) for places in rules.SYMMETRIES]
        assert len({rules.canonical(stones(b, "X"), stones(b, "O")) for b in turned}) == 1
