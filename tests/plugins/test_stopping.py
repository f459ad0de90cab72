"""A training that is asked to stop saves its state between two backward passes, and continues to the same bytes. If the disk is
full, it keeps the state before. Lost processes are reported."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from letters import Letters, questions
from qwen import random_model

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob
from t2t_core.store.interrupts import Interrupts
from t2t_plugins.trainers import common
from t2t_plugins.trainers.common import last_saved
from t2t_plugins.trainers.grpo import Grpo as Own
from t2t_plugins.trainers.trl_grpo import launch
from t2t_plugins.trainers.trl_grpo.settings import Settings
from t2t_plugins.trainers.trl_grpo.trainer import Grpo

torch = pytest.importorskip("torch")
SETTINGS = {"group": 4, "prompts": 4, "epochs": 2, "max_tokens": 12, "length_start": 4, "length_end": 12, "beta": 0.1,
            "learning_rate": 1e-3, "threads": 1, "save_every": 100, "prompt_format": "long"}  # fmt: skip
TRL = {**SETTINGS, "micro_batch": 4}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("trl")
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("qwen3")
    random_model(folder, texts=[q.text for q in questions(8)] + ["Please write letters."])
    return folder


def job(model: Path, folder: Path, settings: dict[str, Any], **more: Any) -> TrainingJob:
    return TrainingJob(model, questions(8), Letters(), settings, folder, 5, **more)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def after(looks: int) -> Callable[[], bool]:
    """Asked to stop from the look of that number on."""
    count = iter(range(looks))
    return lambda: next(count, None) is None


@pytest.fixture(scope="module")
def calm(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calm") / "checkpoint"
    Grpo().train(job(model, folder, TRL))
    return folder


@pytest.mark.train
# An update has four backward passes and as many looks; the first look comes before all of them.
@pytest.mark.parametrize(("looks", "saved"), [(0, None), (2, None), (5, 1), (7, 1), (11, 2)])
def test_it_stops_within_an_update_and_goes_on_to_the_same_bytes(
    model: Path, calm: Path, tmp_path: Path, looks: int, saved: int | None
) -> None:
    folder, seen = tmp_path / "checkpoint", list[int]()
    with pytest.raises(KeyboardInterrupt):
        Grpo().train(job(model, folder, TRL, stop=after(looks)))
    state = last_saved(folder / "updates")
    assert (state.name if state else None) == (f"checkpoint-{saved}" if saved else None)
    if looks in (0, 7):
        Grpo().train(job(model, folder, TRL, progress=lambda told: seen.append(told["update"])))
        assert seen == list(range((saved or 0) + 1, 5)) and weights(folder) == weights(calm)
        assert (folder / "adaptive_weights.json").read_bytes() == (calm / "adaptive_weights.json").read_bytes()


@pytest.mark.train
def test_with_several_updates_a_batch_it_stops_where_a_batch_ends(model: Path, tmp_path: Path) -> None:
    settings, folder = {**TRL, "iterations": 2}, tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        Grpo().train(job(model, folder, settings, stop=after(2)))
    assert last_saved(folder / "updates") is None
    told: list[int] = []
    asked_after_the_third: Any = {"progress": lambda figures: told.append(figures["update"]), "stop": lambda: 3 in told}
    with pytest.raises(KeyboardInterrupt):
        Grpo().train(job(model, folder, settings, **asked_after_the_third))
    assert last_saved(folder / "updates").name == "checkpoint-4"  # type: ignore[union-attr]


@pytest.mark.train
def test_the_trainer_of_embedded_policies_stops_between_updates(model: Path, tmp_path: Path) -> None:
    settings = {name: value for name, value in SETTINGS.items() if name != "prompt_format"}
    Own().train(job(model, tmp_path / "calm", settings))
    with pytest.raises(KeyboardInterrupt):
        Own().train(job(model, tmp_path / "stopped", settings, stop=after(1)))
    assert (tmp_path / "stopped" / "updates" / "update-2").is_dir()
    Own().train(job(model, tmp_path / "stopped", settings))
    assert weights(tmp_path / "stopped") == weights(tmp_path / "calm")


@pytest.mark.train
@pytest.mark.parametrize("trainer", [Grpo, Own])
def test_a_full_disk_leaves_the_state_before(model: Path, tmp_path: Path, trainer: Any) -> None:
    """A real refusal of the system's: from the third update on no file may be longer than 50 kB."""
    settings = {**SETTINGS, "save_every": 2}
    trainer().train(job(model, tmp_path / "calm", settings))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(told: Any) -> None:
        if told["update"] == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))

    folder = tmp_path / "checkpoint"
    try:
        with pytest.raises(T2TError, match="no room|cannot be written") as error:
            trainer().train(job(model, folder, settings, progress=fill))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "too large" in str(error.value.cause)
    assert {path.name for path in (folder / "updates").iterdir()} <= {"checkpoint-2", "update-2", "README.md"}
    trainer().train(job(model, folder, settings))
    assert weights(folder) == weights(tmp_path / "calm")


def test_words_of_a_full_disk_are_known_and_others_pass() -> None:
    for text in ("I/O error: No space left on device (os error 28)", "Disk quota exceeded", "File too large (os error 27)"):
        with pytest.raises(T2TError, match="no room"), common.saving(Path("nowhere")):
            raise RuntimeError(text)
    with pytest.raises(RuntimeError), common.saving(Path("nowhere")):
        raise RuntimeError("something else")


def test_a_first_sigterm_asks_and_the_second_stops() -> None:
    with Interrupts() as interrupts:
        with interrupts.asking() as asked:
            assert not asked()
            signal.raise_signal(signal.SIGTERM)
            assert asked()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
        with interrupts.asking(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


LOST = [
    "step 3: something of the process's own",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "W1130 16:20:01.000000 71 torch/distributed/elastic/multiprocessing/api.py:1010] Sending process 90 closing signal SIGTERM",
    "Traceback (most recent call last):",
    '  File "accelerate/commands/launch.py", line 1196, in launch_command',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "  exitcode  : -9 (pid: 91)",
    "  traceback : Signal 9 (SIGKILL) received by PID 91",
]


@pytest.mark.parametrize(
    ("lines", "said", "to_do"),
    [
        (LOST, "CUDA out of memory", "training.micro_batch"),
        ([LOST[0], *LOST[2:]], "Signal 9 (SIGKILL)", "dmesg"),
        (["I/O error: No space left on device"], "No space left", "free some of the disk"),
        (["Segmentation fault"] + [""] * 300, "Segmentation fault", "the same command goes on"),
    ],
)
def test_a_lost_process_is_told_by_its_last_words_and_what_to_do(lines: list[str], said: str, to_do: str) -> None:
    error = launch.crashed(replace(Settings(), processes=2), 1, lines)
    assert said in str(error.cause) and "launch_command" not in str(error.cause)
    assert to_do in str(error.next) and "goes on from the last saved update" in str(error.next)
