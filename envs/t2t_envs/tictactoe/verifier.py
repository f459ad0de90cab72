"""The verdict of a game: five strict checks, every one decided exactly by minimax (our choice of checks).

* `format`: every message had the form that the prompt format asks for;
* `legal`: every message named a free cell, and the game came to its end;
* `no_missed_win`: in a game that was not won, no immediate win was missed;
* `no_missed_block`: the game was not lost to a single threat that could have been blocked;
* `no_fork`: the game was not lost to two threats at once.

`valid` means that all of them hold: every move was legal, the game was not lost, and a drawn game had no win there for the
taking. A loss with legal moves fails one of the last three. If it came by two threats at once, the failed check is that of the
policy's last move that turned a position into a lost one (`rules.mistake`); if the start was already lost, it is `no_fork`.

`optimal` means valid, and no move gave away value against best play. The `cost` of a valid game is how much its moves gave away,
in half points, so its optimum is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2t_core.records import Fault, Message, Verdict

from . import rules
from .game import Game, Turn, replay
from .instance import Instance
from .parser import FORMATS

CHECKS = ("format", "legal", "no_missed_win", "no_missed_block", "no_fork")
_MISTAKES = {"missed_win": "no_missed_win", "missed_block": "no_missed_block", "fork": "no_fork"}


def verify(instance: Instance, messages: Sequence[Message], format: str = "") -> Verdict:
    """The verdict of a game.

    Args:
        instance: the game.
        messages: everything said after the opening. Only the policy's messages count, and nothing after the game's end.
        format: the prompt format of the game; "" is the first one.

    Returns:
        `faults` say in which turn (from 0) and on which cell each failed check first failed: for a missed win or block, the cell
        to move on; for a fork, the move that allowed it. `figures` has "win", "draw", "loss" and "invalid" (0 or 1), "form" (the
        share of the messages that had their form) and "turns" (the policy's).
    """
    return judge_game(replay(instance, messages, format or FORMATS[0]))


def judge_game(game: Game) -> Verdict:
    """The verdict of a game, finished or not."""
    faults = _faults(game)
    checks = {name: name not in faults for name in CHECKS}
    valid = not faults
    moves = [turn for turn in game.turns if turn.legal]
    lost = sum(rules.value(t.policy, t.opponent) - rules.value_after(t.policy, t.opponent, _cell(t)) for t in moves)
    cost = lost if valid else None
    known = {} if cost is None else {"given_away": cost}
    figures = {name: float(game.result == name) for name in ("win", "draw", "loss")} | {
        "invalid": float(len(moves) < len(game.turns)),
        "form": sum(turn.move.form for turn in game.turns) / max(1, len(game.turns)),
        "turns": float(len(game.turns)),
    }
    return Verdict(checks, valid, valid and cost == 0, cost, known, cost, faults, known, figures)


def _cell(turn: Turn) -> int:
    """The cell of a legal turn."""
    return -1 if turn.cell is None else turn.cell


def _faults(game: Game) -> dict[str, Fault]:
    faults: dict[str, Fault] = {}
    for turn in game.turns:
        if not turn.move.form:
            faults.setdefault("format", _at(turn, "the message does not have the form that was asked for"))
        if not turn.legal:
            faults.setdefault("legal", _illegal(turn))
        missed = rules.wins(turn.policy, turn.opponent)
        if game.result != "win" and turn.legal and missed and turn.cell not in missed:
            faults.setdefault("no_missed_win", _at(turn, f"a win on cell {missed[0]} was left out", missed[0]))
    if game.result is None:
        last = {"turn": len(game.turns)}
        faults.setdefault("legal", Fault(f"turn {len(game.turns)}: the game was not played to its end", "unfinished", last))
    if rules.has_line(game.opponent):
        check, fault = _loss(game)
        faults.setdefault(check, fault)
    return faults


def _at(turn: Turn, message: str, cell: int | None = None, kind: str | None = None) -> Fault:
    where = {"turn": turn.number} if cell is None else {"turn": turn.number, "cell": cell}
    return Fault(f"turn {turn.number}: {message}", kind, where)


def _illegal(turn: Turn) -> Fault:
    cell = turn.move.cell
    if cell is None:
        return _at(turn, "no move can be read", kind="unreadable")
    if cell not in rules.CELLS:
        return _at(turn, f"there is no cell {cell}", kind="off the board")
    return _at(turn, f"cell {cell} is taken", cell, kind="taken")


def _loss(game: Game) -> tuple[str, Fault]:
    """The check that fails in a loss to the opponent's line, and where."""
    moves = [turn for turn in game.turns if turn.legal]
    last = moves[-1]
    threats = rules.wins(last.opponent, last.policy)
    kind = rules.mistake(last.policy, last.opponent, _cell(last))
    blame = last
    if kind is None:  # two threats at once: which move allowed them?
        fatal = [t for t in moves if rules.value(t.policy, t.opponent) >= 0 > rules.value_after(t.policy, t.opponent, _cell(t))]
        blame = fatal[-1] if fatal else last
        kind = rules.mistake(blame.policy, blame.opponent, _cell(blame)) or "fork"
    if kind == "missed_win":
        cell = rules.wins(blame.policy, blame.opponent)[0]
        return _MISTAKES[kind], _at(blame, f"a win on cell {cell} was left out", cell)
    if kind == "missed_block":
        cell = rules.wins(blame.opponent, blame.policy)[0]
        return _MISTAKES[kind], _at(blame, f"the threat on cell {cell} was left open", cell)
    if blame is last:
        return _MISTAKES[kind], _at(last, f"lost from the start to two threats, on cells {threats[0]} and {threats[1]}")
    what = f"cell {_cell(blame)} let the opponent win by two threats at once, in the end on cells {threats[0]} and {threats[1]}"
    return _MISTAKES[kind], _at(blame, what, _cell(blame))
