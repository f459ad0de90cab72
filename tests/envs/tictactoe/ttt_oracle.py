"""Tic-tac-toe written once more from the rules alone, slowly: boards are strings of nine characters, and nothing is the suite's.

`mover` is "X" or "O". The policy is X. A finished game is judged from the list of its positions.
"""

from functools import cache

TRIPLES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def other(mark):
    return "O" if mark == "X" else "X"


def winner(board):
    for a, b, c in TRIPLES:
        if board[a] != "." and board[a] == board[b] == board[c]:
            return board[a]
    return None


def over(board):
    return winner(board) is not None or "." not in board


def free(board):
    return [cell for cell in range(9) if board[cell] == "."]


def put(board, cell, mark):
    assert board[cell] == "."
    return board[:cell] + mark + board[cell + 1 :]


@cache
def outcome(board, mover):
    """For the player to move, both playing as well as they can: 1, 0 or -1."""
    if winner(board) is not None:
        return 1 if winner(board) == mover else -1
    if "." not in board:
        return 0
    return max(-outcome(put(board, cell, mover), other(mover)) for cell in free(board))


@cache
def reachable():
    """Every position of every game that X begins, with the player to move."""
    seen, waiting = set(), [("." * 9, "X")]
    while waiting:
        position = waiting.pop()
        if position in seen:
            continue
        seen.add(position)
        board, mover = position
        if not over(board):
            waiting += [(put(board, cell, mover), other(mover)) for cell in free(board)]
    return sorted(seen)


def completes(board, mark):
    """The cells on which this player has a line at once."""
    return [cell for cell in free(board) if winner(put(board, cell, mark)) == mark]


def classify(board, mover, cell):
    """The name of what is wrong with a move, None for nothing."""
    if completes(board, mover):
        return None if cell in completes(board, mover) else "missed_win"
    threats = completes(board, other(mover))
    after = put(board, cell, mover)
    if len(threats) == 1 and completes(after, other(mover)):
        return "missed_block"
    if outcome(board, mover) > -1 and outcome(after, other(mover)) == 1:
        return "fork"
    return None


def failures(moves, last):
    """The failed checks of a game of legal moves in their form: `moves` are X's (board before, cell), `last` the final board."""
    kinds = set()
    won = winner(last) == "X"
    if not won and any(classify(board, "X", cell) == "missed_win" for board, cell in moves):
        kinds.add("no_missed_win")
    if winner(last) == "O":
        board, cell = moves[-1]
        if completes(board, "X"):
            kinds.add("no_missed_win")
        elif len(completes(board, "O")) == 1:
            kinds.add("no_missed_block")
        else:
            fatal = [m for m in moves if outcome(m[0], "X") > -1 and outcome(put(*m, "X"), "O") == 1]
            kind = classify(fatal[-1][0], "X", fatal[-1][1]) if fatal else "fork"
            kinds.add("no_" + kind)
    return kinds


def given_away(moves):
    """How many half points X's moves gave away."""
    return sum(outcome(board, "X") + outcome(put(board, cell, "X"), "O") for board, cell in moves)


def lines(board, mover):
    """Every way the game can go on from a position: the lists of cells, in turn."""
    if over(board):
        yield []
        return
    for cell in free(board):
        for rest in lines(put(board, cell, mover), other(mover)):
            yield [cell, *rest]
