"""`tensorboard`: a run's figures as event files, in the run's folder `tensorboard`, or below FOLDER with `tensorboard:FOLDER`.

TensorBoard's own library writes them, so torch is not needed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_core.hookspecs import TrackedRun
from t2t_core.settings import flat, read_settings

FLUSH_SECONDS = 10  # the longest time before a figure is in the file


class TensorBoard:
    """Writes figures as scalars, named by their axis, and events as texts."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        read_settings(settings, "tracker tensorboard", {})
        self._folder = argument

    def begin(self, run: TrackedRun) -> str:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        folder = Path(self._folder).expanduser() / run.name if self._folder else run.folder / "tensorboard"
        first = not folder.exists()
        self._writer, self._trains = EventFileWriter(str(folder), flush_secs=FLUSH_SECONDS), False
        if first:
            rows = [f"|{name}|{value}|" for name, value in flat(run.settings)]
            self._text(0, "settings", "\n".join(["|setting|value|", "|---|---|", *rows]))
        return f"tensorboard --logdir {self._folder or run.folder}"

    def figures(self, axis: str, step: int, figures: Mapping[str, float]) -> None:
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb

        if axis == "update" and not self._trains:
            self._mark(step)
        for name, value in figures.items():
            self._add(step, summary=scalar_pb(f"{axis}/{name}", value))

    def event(self, step: int, title: str, text: str) -> None:
        self._text(step, "round/events", f"### {title}\n\n{text}")

    def end(self) -> None:
        self._writer.close()

    def _mark(self, step: int) -> None:
        """A session's training begins here. If it continues from a saved update, TensorBoard drops what the session before
        logged for later updates. Figures of rounds stay: a round has at least one update, so its number is below the step."""
        from tensorboard.compat.proto.event_pb2 import SessionLog

        self._trains = True
        self._add(step, session_log=SessionLog(status=SessionLog.START))

    def _text(self, step: int, tag: str, text: str) -> None:
        from tensorboard.plugins.text.summary_v2 import text_pb

        self._add(step, summary=text_pb(tag, text))

    def _add(self, step: int, **what: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=step, **what))
