"""`tiny`: the toy policies, as shipped or from a folder (`tiny:runs/x/round_2/checkpoint`).

The policy for lakes knows only the compact form of question. Whatever form an evaluation uses, it is asked in the compact form,
written from the instance. The policy for tic-tac-toe is likewise shown only the board, and its move is written in the form that
was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Message, Response, Sampling, Task
from t2t_core.registry import Spec
from t2t_envs.tictactoe.parser import format_move
from t2t_envs.tictactoe.prompt import read_board

SHIPPED = {
    "base": "the warm-up, 2 to 5 agents",
    "weak": "a short, skewed warm-up: three in five valid on 3x3, one in eight on 10x10",
    "failures": "the warm-up, taught again to design: it reads what failed",
    "2agents": "a warm-up that saw 2 agents only",
    "designed": "the warm-up after three rounds of `t2t run`, which designed its own training data",
    "control": "the same with round 0's configuration for good",
    "tictactoe": "plays tic-tac-toe: the warm-up on a mediocre player's games",
    "tictactoe-weak": "the same from half the games in three quarters of the updates: many lines left open",
}
# Checkpoint -> the command that makes it. Only studies need these, so the wheel omits them.
REMADE = {"weak": "warmup --out DIR --weak", "failures": "reteach --out DIR --teacher failures"}
MOVES = tuple("012345678")
THOUGHT = "A move that was learnt, without words."  # the format "think" requires one


def shipped(name: str = "base") -> Path:
    """The folder of a shipped checkpoint."""
    return Path(__file__).parent / "checkpoints" / name


class Tiny:
    """A toy policy that shows the pipeline; its numbers say nothing about language models.

    Args:
        argument: "" or a name in SHIPPED for a shipped checkpoint, else the folder of a checkpoint that was trained from it.
        settings: those of `hf`, but one thread by default, because more make such a small model slower.

    `checkpoint` is its folder, where a loop may start its training.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        name = argument or "base"
        self.checkpoint = shipped(name) if name in SHIPPED else Path(argument)
        if not (self.checkpoint / "config.json").is_file():
            raise _missing(argument, self.checkpoint)
        self._model = installed().policies.make(Spec("hf", str(self.checkpoint), {"threads": "1", **(settings or {})}))

    def describe(self) -> Mapping[str, Any]:
        """As `hf`, but the `model` of a shipped checkpoint is its name instead of a path on this machine."""
        said = dict(self._model.describe())
        if self.checkpoint.parent == shipped().parent:
            said["model"] = f"tiny:{self.checkpoint.name}"
        return {**said, "caveat": "toy policy"}

    def close(self) -> None:
        """Free the memory that the model takes."""
        self._model.close()

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        for position, response in self._model.respond([_compact(task) for task in tasks], sampling):
            yield position, _in_form(response, tasks[position])


def _missing(argument: str, folder: Path) -> T2TError:
    make = "python -m t2t_baselines.tiny."
    if argument in REMADE:
        return T2TError(
            f"the checkpoint {argument} is not part of the wheel",
            where=f"tiny:{argument}",
            cause="only studies need it, and it would make the download a sixth larger",
            next=f"clone the repository, or make it in some minutes: {make}{REMADE[argument]}, then tiny:DIR",
        )
    return T2TError(
        f"there is no checkpoint of the toy policy in {folder}",
        where=f"tiny:{argument}",
        cause="shipped ones are " + ", ".join(name for name in SHIPPED if shipped(name).is_dir()),
        next=f"{make}warmup --out DIR makes one; for tic-tac-toe tiny.tictactoe.warmup",
    )


def _compact(task: Task) -> Task:
    """The task in the form that was taught. A task without a lake or a board (a designer's brief) stays as it is."""
    from t2t_envs import tictactoe
    from t2t_envs.frozen_lake.instance import Instance
    from t2t_envs.frozen_lake.prompt import make_prompt

    if isinstance(task.instance, Instance):
        return replace(task, prompt=make_prompt(task.instance, "compact"))
    if isinstance(task.instance, tictactoe.Instance) and (seen := read_board(task.prompt)):
        return replace(task, prompt=seen.board, messages=(Message("user", seen.board),))
    return task


def _in_form(response: Response, task: Task) -> Response:
    """A move in the form in which the game was asked about; anything else as it is."""
    seen = read_board(task.prompt) if not response.error else None
    if seen is None or seen.format == "compact" or response.text not in MOVES:
        return response
    return replace(response, text=format_move(int(response.text), seen.format, THOUGHT))
