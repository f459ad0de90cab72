"""`mlflow`: a run's figures in MLflow, `mlflow:EXPERIMENT,uri=ADDRESS`; without `uri`, MLFLOW_TRACKING_URI holds."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from t2t_core.hookspecs import TrackedRun
from t2t_core.settings import flat, read_settings

EXPERIMENT = "t2t"
TAG = "t2t.id"  # by which a resumed run finds its MLflow run again
_MOST_AT_ONCE = 100  # parameters per call: MLflow's own limit
_LONGEST = 500  # characters of a parameter's value


class Mlflow:
    """One run of MLflow, which a resumed run continues. Settings become its parameters, and events text artifacts."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        self._experiment = argument or EXPERIMENT
        self._uri = read_settings(settings, "tracker mlflow", {"uri": str}).get("uri")

    def begin(self, run: TrackedRun) -> str:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self._client = MlflowClient(self._uri)
        known = self._client.get_experiment_by_name(self._experiment)
        experiment = known.experiment_id if known else self._client.create_experiment(self._experiment)
        before = self._client.search_runs([experiment], filter_string=f"tags.`{TAG}` = '{run.id}'")
        if before:
            self._id = before[0].info.run_id
            self._client.update_run(self._id, status="RUNNING")
        else:
            self._id = self._client.create_run(experiment, tags={TAG: run.id}, run_name=run.name).info.run_id
            settings = [Param(_name(name), str(value)[:_LONGEST]) for name, value in flat(run.settings)]
            for at in range(0, len(settings), _MOST_AT_ONCE):
                self._client.log_batch(self._id, params=settings[at : at + _MOST_AT_ONCE])
        return f"run {run.name} of the experiment {self._experiment}"

    def figures(self, axis: str, step: int, figures: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(_name(f"{axis}/{name}"), value, now, step) for name, value in figures.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def event(self, step: int, title: str, text: str) -> None:
        self._client.log_text(self._id, f"# {title}\n\n{text}\n", f"events/round_{step}.md")

    def end(self) -> None:
        self._client.set_terminated(self._id)


def _name(text: str) -> str:
    """The text with the characters that MLflow does not allow in names replaced."""
    return re.sub(r"[^\w./ -]", "_", text, flags=re.ASCII)
