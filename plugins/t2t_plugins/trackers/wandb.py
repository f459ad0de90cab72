"""`wandb`: a run's figures at Weights & Biases, `wandb:PROJECT,entity=TEAM`.

Its usual variables apply: WANDB_API_KEY (or `wandb login`), WANDB_MODE=offline, WANDB_DIR, WANDB_BASE_URL.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrackedRun
from t2t_core.settings import read_settings

WHERE = "tracker wandb"
PROJECT = "t2t"


class Wandb:
    """One run of W&B, which a resumed run continues. Each axis is a separate step metric."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        self._project = argument or os.environ.get("WANDB_PROJECT", PROJECT)
        self._entity = read_settings(settings, WHERE, {"entity": str}).get("entity")

    def begin(self, run: TrackedRun) -> str | None:
        import wandb

        named: dict[str, Any] = {"project": self._project, "entity": self._entity, "id": run.id, "name": run.name}
        where = {} if "WANDB_DIR" in os.environ else {"dir": str(run.folder)}
        quiet = wandb.Settings(console="off")  # do not capture what the run prints
        try:
            self._run = wandb.init(**named, **where, resume="allow", config=dict(run.settings), settings=quiet)
        except wandb.errors.UsageError as error:
            offline = "wandb login, or WANDB_MODE=offline"
            raise T2TError("W&B cannot be used", where=WHERE, cause=" ".join(str(error).split())[:300], next=offline) from None
        for axis in ("update", "round"):
            self._run.define_metric(f"{axis}/*", step_metric=axis)
        return self._run.url or f"wandb sync {Path(self._run.dir).parent}"

    def figures(self, axis: str, step: int, figures: Mapping[str, float]) -> None:
        self._run.log({axis: step, **{f"{axis}/{name}": value for name, value in figures.items()}})

    def event(self, step: int, title: str, text: str) -> None:
        import wandb

        page = f"<h3>{html.escape(title)}</h3><pre>{html.escape(text)}</pre>"
        self._run.log({"round": step, "round/events": wandb.Html(page)})

    def end(self) -> None:
        self._run.finish()
