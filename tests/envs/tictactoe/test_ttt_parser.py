"""Moves read out of what policies write, and boards out of what the environment writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.conversation import play
from t2t_core.records import Message
from t2t_envs.tictactoe.instance import Instance
from t2t_envs.tictactoe.parser import format_move, read_move
from t2t_envs.tictactoe.prompt import make_prompt, read_board
from t2t_envs.tictactoe.testbed import TicTacToe


@given(cell=st.integers(0, 8), thought=st.text(st.characters(exclude_characters="<"), min_size=1).filter(str.strip))
def test_a_move_written_is_the_move_read(cell: int, thought: str) -> None:
    assert read_move(format_move(cell, thought=thought), "think") == (cell, True)
    assert read_move(format_move(cell, "compact"), "compact") == (cell, True)


@pytest.mark.parametrize(
    "text",
    [
        "<think>a fork</think>\n<move>4</move>",
        "<think>x < 3</think> <move> 4 </move>\n",
        "the chat template wrote the opening mark</think>\n\n<move>4</move>",
        "<think>not <move>3</move> but</think><move>4</move>",
    ],
)
def test_the_form_of_think(text: str) -> None:
    assert read_move(text, "think") == (4, True)


@pytest.mark.parametrize(
    "text",
    [
        "<move>4</move>",
        "<think></think><move>4</move>",
        "<think> \n</think><move>4</move>",
        "<think>a</think>So I play <move>4</move>",
        "<think>a</think><move>4</move> Good luck!",
        "<think>a</think><think>b</think><move>4</move>",
        "<think>a</think><move>4</move><move>4</move>",
        "<think>a</think><move>cell 4</move>",
        "<THINK>a</THINK><MOVE>4</MOVE>",
        "<think>a</think>\n4",
        "<think>a</think><move>4",
        "<move>4</move><think>so</think>",
        "~~<move>2</move>~~ <move>4</move>",
        "<draft><move>2</move></draft><move>4</move>",
        "4",
        "**4**",
        "4.",
        "Move: 4",
        "My move is cell 4!",
        "I'll play on square 4",
        "X: 4",
        '{"move": 4}',
        "\\boxed{4}",
        "- 4",
        "Final answer: **4**",
    ],
)
def test_moves_that_are_clear_and_not_in_the_form_of_think(text: str) -> None:
    assert read_move(text, "think") == (4, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "<think>4",
        "<think><move>4</move></think>",
        "<think>a</think><move></move>",
        "<think>a</think><move>0-8</move>",
        "<move>3</move> or <move>4</move>",
        "<move>3, then 4</move>",
        "3 or 4",
        "I have 2 options",
        "4 is taken, so 5",
        "4.5",
        "-4",
        "move -4",
        "4th",
        "four",
        "٤",
        "(1, 1)",
        "1,1",
        "3x3",
    ],
)
def test_what_is_no_move_or_not_one_only(text: str) -> None:
    assert read_move(text, "think") == (None, False)


@pytest.mark.parametrize(("text", "cell"), [("<move>9</move>", 9), ("10", 10), ("007", 7), ("<move>12</move>", 12)])
def test_cells_off_the_board_are_read_as_what_they_are(text: str, cell: int) -> None:
    assert read_move(text, "think").cell == cell


@pytest.mark.parametrize(("text", "form"), [("4", True), (" 4\n", True), ("4.", False), ("<move>4</move>", False)])
def test_the_form_of_compact(text: str, form: bool) -> None:
    assert read_move(text, "compact") == (4, form)


def test_mentions_of_the_form_are_no_moves() -> None:
    assert read_move("In the form <move>0-8</move>: <move>4</move>").cell == 4


@pytest.mark.parametrize("format", ["think", "compact"])
@pytest.mark.parametrize("instance", [Instance(), Instance(mover="opponent", seed=3), Instance("X...O....", seed=5, p=1.0)])
def test_every_message_of_the_environment_shows_the_board(instance: Instance, format: str) -> None:
    bed, boards = TicTacToe(), []

    def speak(seen: tuple[Message, ...]) -> Message:
        shown = read_board(seen[-1].content)
        assert shown is not None and shown.format == format
        boards.append(shown.board)
        assert len(seen) == 1 or format == "think", "compact says all there is each time"
        return Message("assistant", "?" if len(boards) == 2 else format_move(shown.board.index("."), format, "next"))

    play(bed, instance, format, speak)
    assert boards[1] == boards[2] and boards[0].count("O") == instance.board.count("O") + (instance.mover == "opponent")
    counts = [board.count(".") for board in boards]
    assert counts == sorted(counts, reverse=True) and counts[0] - counts[1] == 2


def test_no_prompt_shows_how_strong_the_opponent_is() -> None:
    for format in ("think", "compact"):
        assert make_prompt(Instance(p=0.0, seed=1), format) == make_prompt(Instance(p=1.0, seed=2, opponent="second"), format)


def test_what_shows_no_board() -> None:
    assert read_board("hello") is None and read_board("....") is None and read_board("0 1 2\n3 4 5") is None


PROMPT = """\
Let's play tic-tac-toe. You are X, your opponent is O. The cells are numbered

0 1 2
3 4 5
6 7 8

and the board shows the number of every free cell. You take turns; whoever has three in a row, column or diagonal wins, and a \
full board without one is a draw. A move that is not on a free cell does not count, and it is your turn again; you have at \
most 8 turns, and a game that is not over by then is lost.

In each turn, think first, then name the cell you move on, in exactly this form:
<think>your thoughts</think>
<move>a number from 0 to 8</move>

The game has begun already. O moves first, on cell 2.

X 1 O
3 O 5
6 7 8"""


def test_the_prompt_word_for_word() -> None:
    seed = next(s for s in range(100) if make_prompt(Instance("X...O....", "opponent", 1.0, seed=s), "compact")[2] == "O")
    assert make_prompt(Instance("X...O....", "opponent", 1.0, seed=seed), "think") == PROMPT
    assert make_prompt(Instance("X...O....", "opponent", 1.0, seed=seed), "compact") == "X.O.O...."
