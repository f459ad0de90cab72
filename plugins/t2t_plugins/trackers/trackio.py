"""`trackio`: a run's figures in trackio, `trackio:PROJECT,space=HUB_SPACE`; without `space` they stay here (`trackio show`)."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.hookspecs import TrackedRun
from t2t_core.settings import flat, read_settings

PROJECT = "t2t"


class Trackio:
    """One run of trackio, which a resumed run continues."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        self._project = argument or PROJECT
        self._space = read_settings(settings, "tracker trackio", {"space": str}).get("space")

    def begin(self, run: TrackedRun) -> str:
        import trackio

        settings = {name: str(value) for name, value in flat(run.settings)}
        name = f"{run.name} {run.id[:6]}"  # trackio identifies a run by its name
        self._run = trackio.init(self._project, name=name, space_id=self._space, config=settings, resume="allow", embed=False)
        return f"trackio show --project {self._project}"

    def figures(self, axis: str, step: int, figures: Mapping[str, float]) -> None:
        self._run.log({f"{axis}/{name}": value for name, value in figures.items()}, step=step)

    def event(self, step: int, title: str, text: str) -> None:
        import trackio

        self._run.log({"round/events": trackio.Markdown(f"### {title}\n\n{text}")}, step=step)

    def end(self) -> None:
        self._run.finish()
