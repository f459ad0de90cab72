"""The probe tries a job before any worker takes it, and reports everything that is wrong at once."""

import json
import signal
import subprocess

import pytest

from t2t_core.plugins import installed
from t2t_core.store.paths import SafePath
from t2t_jobs import probe as probing
from t2t_jobs import trying
from t2t_jobs.job import make_job
from t2t_jobs.probe import probe
from t2t_jobs.queue import Queue


@pytest.fixture
def family():
    return installed().families.make("draw-optimal")


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path / "queue", secret=1)


def test_what_the_trainer_and_the_world_say_comes_with_the_rest(tmp_path, family, queue):
    text = "[training]\nprompts = 64\nlearning_rate = 7.0\n[generation]\nsamples = 16\n"
    text += '[configuration."0-0.25"]\nshare = 0.5\n'
    (tmp_path / "job.toml").write_text(text)
    _, failures = probe(tmp_path, family, queue, "e")
    told = " ".join(failure.what for failure in failures)
    assert len(failures) == 3
    for part in ("learning_rate must be", "do not fill an update of 64", "sum to 1.5"):
        assert part in told


def run_files(tmp_path, lines):
    place = tmp_path / "run" / "round_0" / "train"
    place.mkdir(parents=True)
    (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return SafePath(tmp_path)


@pytest.mark.parametrize(
    "figures, told",
    [
        ({"zero_variance": 1.0, "loss": 0.1}, "the rewards do not vary"),
        ({"zero_variance": 0.9, "loss": 0.1}, None),
        ({"loss": None}, "no finite number"),
        ({"loss": 0.5}, None),
    ],
)
def test_an_update_from_which_nothing_is_learnt_is_told(tmp_path, figures, told):
    whats = [failure.what for failure in trying._figures(run_files(tmp_path, [{"update": 1, **figures}]))]
    assert (told is None and not whats) or (len(whats) == 1 and told in whats[0])


def test_a_trial_is_one_update_on_a_handful(family):
    from t2t_jobs.job import to_experiment

    job = make_job(family, {"rounds": 3, "generation.samples": 2048, "training.epochs": 4, "training.prompts": 64})
    run = trying.small(to_experiment(job, 0))
    assert (run.rounds, run.samples, run.training["prompts"], run.training["epochs"]) == (1, 8, 8, 1)
    steps = trying.small(to_experiment(make_job(installed().families.make("pairs"), {"training.steps": 300_000}), 0))
    assert steps.training["steps"] == 1 and steps.training["learning_rate"] == 1e-4


def test_training_on_what_is_asked_in_an_evaluation_is_told(tmp_path, family, queue):
    """Uses a generator that ignores which instances it must not draw."""
    from t2t_core.run.round_files import RoundFiles
    from t2t_jobs.hidden import drawn
    from t2t_jobs.job import to_experiment

    kept = queue.hidden_instances(family, "e")
    (_, instances), *_ = drawn(family, queue.hidden_seed("e"))
    work = SafePath(tmp_path / "work")
    RoundFiles(work / "run", 0).write_instances(instances[:5])
    experiment = to_experiment(make_job(family, {}), 0, work, kept)
    (failure,) = trying._overlap(experiment, family, work)
    assert "5 of 5 training instances are asked in an evaluation" in failure.what


@pytest.mark.train
def test_a_job_is_tried(tmp_path, family, queue):
    (tmp_path / "job.toml").write_text('base = "large"\n')
    job, failures = probe(tmp_path, family, queue, "e")
    assert job.base == "large" and failures == []
    nothing = "[reward]\nwin = 0.0\ndraw = 0.0\ninvalid = 0.0\nformat = 0.0\n"
    (tmp_path / "job.toml").write_text(nothing)
    _, failures = probe(tmp_path, family, queue, "e")
    assert ["do not vary" in failure.what for failure in failures] == [True]
    probing._running().process.kill()
    (tmp_path / "job.toml").write_text(nothing + "[training]\nlearning_rate = 3.0\n")
    _, failures = probe(tmp_path, family, queue, "e")
    assert len(failures) == 2, "both at once, and the process that tries them is begun anew"


def test_ctrl_c_ends_the_trial_that_nobody_waits_for_any_more(monkeypatch):
    process = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    class Interrupted:
        def readline(self):
            raise KeyboardInterrupt

    with process.stdout:
        process.stdout, whole = Interrupted(), process.stdout
        monkeypatch.setattr(probing, "_running", lambda: probing._Helper(0, process))
        with pytest.raises(KeyboardInterrupt):
            probing._ask({"work": "here"})
        process.stdout = whole
    assert process.wait(30) == -signal.SIGTERM
    process.stdin.close()
