"""Tic-tac-toe as a taskset of verifiers."""

from t2t_tictactoe.taskset import TicTacToeEnv, TicTacToeTaskset

__all__ = ["TicTacToeEnv", "TicTacToeTaskset"]
