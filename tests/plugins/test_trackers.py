"""The trackers with their own libraries, without any network: everything they received can be read back, even after a stop."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrackedRun
from t2t_core.plugins import installed
from t2t_core.testing import check_tracker

os.environ["TRACKIO_DIR"] = tempfile.mkdtemp(prefix="t2t-trackio-")  # which trackio reads once, when it is imported


def run_of(folder: Path) -> TrackedRun:
    folder.mkdir(exist_ok=True)
    settings = {"seed": 3, "training": {"group": 8, "trl": {"optim": "adamw_torch"}}, "text": "a|b\nc" * 150}
    return TrackedRun(hashlib.sha256(str(folder).encode()).hexdigest()[:16], "runs/mine", folder, settings)


def first_session(tracker: str, run: TrackedRun) -> None:
    made = installed().trackers.make(tracker)
    made.begin(run)
    made.figures("round", 0, {"configuration/holes/3 × 3": 0.2})
    for update in (1, 2, 3, 4):
        made.figures("update", update, {"reward": float(update), "kl": 0.5})
    made.end()


def second_session(tracker: str, run: TrackedRun) -> None:
    """It begins again after the update that was saved."""
    made = installed().trackers.make(tracker)
    made.begin(run)
    for update in (3, 4, 5):
        made.figures("update", update, {"reward": update + 10.0, "kl": 0.5})
    made.figures("round", 0, {"valid/all": 0.75})
    made.event(0, "design after round 0", "- holes of 3: 0.2 → 0.3")
    made.end()


def stopped_and_gone_on(tracker: str, run: TrackedRun) -> None:
    first_session(tracker, run)
    second_session(tracker, run)


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow", "trackio"])
def test_every_tracker_keeps_its_contract(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(name)
    without_network(monkeypatch, tmp_path)
    check_tracker(lambda: installed().trackers.make(name), tmp_path / "run")


def without_network(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (folder / "mlruns").as_uri())
    off = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HF_HUB_OFFLINE": "1"}
    for variable, value in {**off, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}.items():
        monkeypatch.setenv(variable, value)


def test_tensorboard_shows_what_counts_after_a_stop(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

    run = run_of(tmp_path / "run")
    stopped_and_gone_on("tensorboard", run)
    read = EventAccumulator(str(run.folder / "tensorboard"))
    read.Reload()
    rewards = [(event.step, event.tensor_proto.float_val[0]) for event in read.Tensors("update/reward")]
    assert rewards == [(1, 1.0), (2, 2.0), (3, 13.0), (4, 14.0), (5, 15.0)], "what was told of updates that were lost is gone"
    assert [event.step for event in read.Tensors("round/configuration/holes/3 × 3")] == [0]
    assert read.Tensors("round/valid/all")[0].tensor_proto.float_val[0] == 0.75
    (design,) = read.Tensors("round/events")
    assert design.step == 0 and "holes of 3: 0.2 → 0.3" in design.tensor_proto.string_val[0].decode()
    (settings,) = read.Tensors("settings")
    assert "|training.trl.optim|adamw_torch|" in settings.tensor_proto.string_val[0].decode()


def test_tensorboard_in_a_folder_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    made = installed().trackers.make(f"tensorboard:{tmp_path / 'all'}")
    assert made.begin(run_of(tmp_path / "run")) == f"tensorboard --logdir {tmp_path / 'all'}"
    made.end()
    assert list((tmp_path / "all" / "runs" / "mine").glob("events.out.*")) and not list((tmp_path / "run").iterdir())


def test_mlflow_goes_on_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    without_network(monkeypatch, tmp_path)
    stopped_and_gone_on(f"mlflow:lakes,uri={(tmp_path / 'mlruns').as_uri()}", run_of(tmp_path / "run"))
    client = mlflow.MlflowClient((tmp_path / "mlruns").as_uri())
    (run_found,) = client.search_runs([client.get_experiment_by_name("lakes").experiment_id])
    assert run_found.info.run_name == "runs/mine" and run_found.info.status == "FINISHED"
    assert run_found.data.params["training.trl.optim"] == "adamw_torch" and run_found.data.metrics["round/valid/all"] == 0.75
    rewards = client.get_metric_history(run_found.info.run_id, "update/reward")
    assert sorted((item.step, item.value) for item in rewards)[-1] == (5, 15.0)
    assert [item.path for item in client.list_artifacts(run_found.info.run_id, "events")] == ["events/round_0.md"]


def test_wandb_offline_keeps_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    without_network(monkeypatch, tmp_path)
    run = run_of(tmp_path / "run")
    # Each session in a process of its own, as it is: W&B's service keeps a run's id for as long as its process lives.
    rooms = [str(Path(__file__).parent), *filter(None, sys.path)]
    for session in ("first", "second"):
        code = f"import sys; sys.path[:0] = {rooms!r}; from pathlib import Path; import test_trackers as t; "
        code += f"t.{session}_session('wandb:lakes', t.run_of(Path({str(run.folder)!r})))"
        subprocess.run([sys.executable, "-c", code], check=True)
    sessions = sorted((run.folder / "wandb").glob("offline-run-*"))
    assert len(sessions) == 2 and all(next(session.glob("run-*.wandb")).stem == f"run-{run.id}" for session in sessions)
    records = list(read_wandb(sessions[-1]))
    told = [{".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in r.history.item} for r in records]
    rewards = [(line["update"], line["update/reward"]) for line in told if "update/reward" in line]
    assert rewards[-1] == (5, 15.0) and any(line.get("round/valid/all") == 0.75 for line in told)
    assert [line["round"] for line in told if line.get("round/events._type") == "html-file"] == [0]
    assert "holes of 3" in next((sessions[-1] / "files").rglob("*.html")).read_text()


def read_wandb(session: Path) -> Iterator[Any]:
    """The figures of an offline session. Its file is a log of records as LevelDB writes them: blocks of 32 kB with pieces in
    them, each with 7 bytes before it (a checksum, its length, and whether it is whole, a first, a middle or a last one)."""
    from wandb.proto import wandb_internal_pb2

    data, at, begun = next(session.glob("run-*.wandb")).read_bytes(), 7, b""
    while at + 7 <= len(data):
        room = 32768 - at % 32768
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        if room < 7 or kind == 0:
            at += room
            continue
        begun, at = begun * (kind > 2) + data[at + 7 : at + 7 + length], at + 7 + length
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(begun)
            if record.WhichOneof("record_type") == "history":
                yield record


def test_wandb_without_a_login_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")

    def refuses(**settings: Any) -> None:
        raise wandb.errors.UsageError("No API key configured. Use `wandb login` to log in.")

    monkeypatch.setattr(wandb, "init", refuses)
    with pytest.raises(T2TError, match="W&B cannot be used") as error:
        installed().trackers.make("wandb").begin(run_of(tmp_path / "run"))
    assert "No API key" in str(error.value.cause) and "WANDB_MODE=offline" in str(error.value.next)


def test_trackio_goes_on_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trackio = pytest.importorskip("trackio")
    without_network(monkeypatch, tmp_path)
    run = run_of(tmp_path / "run")
    stopped_and_gone_on("trackio:lakes", run)
    (run_found,) = trackio.Api().runs("lakes")
    assert run_found.name == f"runs/mine {run.id[:6]}"


@pytest.mark.parametrize("spec", ["tensorboard:x,project=y", "wandb:a,entitty=b", "mlflow:a,url=b", "trackio:a,spaces=b"])
def test_an_unknown_setting_is_named(spec: str) -> None:
    with pytest.raises(T2TError, match="there is no setting"):
        installed().trackers.make(spec)
