"""Players of tic-tac-toe that read the board they are shown."""

from __future__ import annotations

from t2t_core.errors import T2TError
from t2t_core.records import Task
from t2t_core.seeding import Stream
from t2t_core.settings import number
from t2t_envs.tictactoe import rules
from t2t_envs.tictactoe.instance import OPPONENT, POLICY, Instance, stones
from t2t_envs.tictactoe.parser import format_move
from t2t_envs.tictactoe.prompt import read_board

from .solver_policy import Planner

_RESULTS = {1: "a win", 0: "a draw", -1: "a loss"}


class Player(Planner):
    """A player that answers in the form it was asked for; subclasses implement `choose`."""

    world, instances = "tic-tac-toe", Instance

    def choose(self, own: int, other: int, stream: Stream) -> tuple[int, str]:
        """The cell to move on, and the reason in a few words; `own` and `other` are both players' stones as bitmasks."""
        raise NotImplementedError

    def answer(self, task: Task, stream: Stream) -> str:
        seen = read_board(task.messages[-1].content)
        if seen is None:
            raise T2TError("the message shows no board", where=f"instance {task.instance_id}", cause="another prompt format")
        cell, thought = self.choose(stones(seen.board, POLICY), stones(seen.board, OPPONENT), stream)
        return format_move(cell, seen.format, thought)


class Minimax(Player):
    """The exact player: an immediate win if there is one, else a random optimal move, by exhaustive search (minimax). It never
    loses from the empty board. It must be 100 % optimal, or something is broken.

    With the setting `p`, each move is a random free cell with that probability. This gives a player of any strength, whose games
    can be filtered for a warm-up (`minimax:p=0.5`).
    """

    name = "minimax"
    readers = {"p": number(0, 1)}

    def choose(self, own: int, other: int, stream: Stream) -> tuple[int, str]:
        """One of the moves that keep the game's value; with probability `p`, any move."""
        free = rules.free_cells(own | other)
        if stream.uniform() < self.settings.get("p", 0.0):
            return stream.choice(free), "Any free cell will do."
        at_once = rules.wins(own, other)
        if at_once:
            return at_once[0], f"Cell {at_once[0]} wins at once."
        best = rules.optimal_moves(own, other)
        cells = f"only cell {best[0]} keeps" if len(best) == 1 else f"cells {', '.join(map(str, best))} keep"
        return stream.choice(best), f"With best play this is {_RESULTS[rules.value(own, other)]}, and {cells} it."


class FirstFree(Player):
    """The first free cell. What it measures: what a mere habit is worth."""

    name = "first-free"

    def choose(self, own: int, other: int, stream: Stream) -> tuple[int, str]:
        """The free cell with the lowest number."""
        return rules.free_cells(own | other)[0], "The first free cell."


class RandomMoves(Player):
    """A random free cell: the floor."""

    name = "random"

    def choose(self, own: int, other: int, stream: Stream) -> tuple[int, str]:
        """Any free cell, each as likely."""
        return stream.choice(rules.free_cells(own | other)), "Any free cell."
