"""`tiny`: the toy agent as shipped, or a checkpoint of `t2t train-agent` that was trained from it (`tiny:OUT/versions/10`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Sampling
from t2t_core.registry import Spec
from t2t_jobs.agents.llm import LanguageModelAgent

MAX_TOKENS = 400  # of a job's text
SHIPPED = Path(__file__).parent / "checkpoints"


def shipped(name: str = "base") -> Path:
    """The folder of a shipped checkpoint: "base", the warm-up."""
    return SHIPPED / name


class TinyAgent(LanguageModelAgent):
    """A toy model that writes the job's text itself. Its results say nothing about real language models.

    Args:
        argument: "" or the name of a shipped checkpoint, else a checkpoint's folder.
        settings: those of the policy `hf`; it uses one thread unless `threads` says otherwise.
    """

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        name = argument or "base"
        self.checkpoint = shipped(name) if shipped(name).is_dir() else Path(argument)
        if not (self.checkpoint / "config.json").is_file():
            raise T2TError(
                f"there is no checkpoint of the toy agent in {self.checkpoint}",
                where=f"agent tiny:{argument}",
                next="python -m t2t_jobs.agents.tiny.warmup --out DIR makes one",
            )
        policy = installed().policies.make(Spec("hf", str(self.checkpoint), {"threads": "1", **(settings or {})}))
        super().__init__(policy, Sampling(temperature=1.0, max_tokens=MAX_TOKENS), "compact")

    def describe(self) -> Mapping[str, object]:
        """Like `llm`, but a shipped checkpoint is called by its name in `model`, not by a path on this machine."""
        said = dict(super().describe())
        if self.checkpoint.parent == SHIPPED:
            said["model"] = f"tiny:{self.checkpoint.name}"
        return {**said, "caveat": "toy agent"}
