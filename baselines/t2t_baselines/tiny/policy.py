"""`tiny`: the toy policies, as shipped or from a folder (`tiny:runs/x/round_2/checkpoint`).

That of the lakes answers one form of question, the compact one, whatever form an evaluation asks in: it writes that form from
the instance. That of tic-tac-toe asks to be asked in its compact form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Response, Sampling, Task
from t2t_core.registry import Spec

SHIPPED = {
    "base": "the warm-up, 2 to 5 agents",
    "2agents": "a warm-up that saw 2 agents only",
    "designed": "the warm-up after three rounds of `t2t run`, which designed its own training data",
    "control": "the same with round 0's configuration for good",
    "tictactoe": "plays tic-tac-toe: the warm-up on a mediocre player's games",
}


def shipped(name: str = "base") -> Path:
    """The folder of a shipped checkpoint."""
    return Path(__file__).parent / "checkpoints" / name


class Tiny:
    """A toy policy that shows the pipeline; its numbers say nothing about language models.

    Args:
        argument: "" or a name in SHIPPED for a shipped checkpoint, else the folder of one that was trained from it.
        settings: those of `hf`; one thread unless told otherwise, since more cost such a small model time.

    `checkpoint` is its folder, where a loop may start its training.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        name = argument or "base"
        self.checkpoint = shipped(name) if name in SHIPPED else Path(argument)
        if not (self.checkpoint / "config.json").is_file():
            raise T2TError(
                f"there is no checkpoint of the toy policy in {self.checkpoint}",
                where=f"tiny:{argument}",
                cause="shipped ones are " + ", ".join(SHIPPED),
                next="python -m t2t_baselines.tiny.warmup --out DIR makes one; for tic-tac-toe tiny.tictactoe.warmup",
            )
        self._model = installed().policies.make(Spec("hf", str(self.checkpoint), {"threads": "1", **(settings or {})}))

    def describe(self) -> Mapping[str, Any]:
        """As `hf`; `model` of a shipped one is its name rather than a path of this machine."""
        said = dict(self._model.describe())
        if self.checkpoint.parent == shipped().parent:
            said["model"] = f"tiny:{self.checkpoint.name}"
        return {**said, "caveat": "toy policy"}

    def close(self) -> None:
        """Free the memory that the model takes."""
        self._model.close()

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        yield from self._model.respond([_compact(task) for task in tasks], sampling)


def _compact(task: Task) -> Task:
    """The task in the form that was taught. One without a lake (a designer's brief) stays as it is."""
    from t2t_envs.frozen_lake.instance import Instance
    from t2t_envs.frozen_lake.prompt import make_prompt

    return replace(task, prompt=make_prompt(task.instance, "compact")) if isinstance(task.instance, Instance) else task
