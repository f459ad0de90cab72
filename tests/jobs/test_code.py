"""Code in a job: it is off unless allowed by name, and then runs in a process that can reach nothing, whatever it tries."""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.store.paths import SafePath
from t2t_jobs import code
from t2t_jobs.hidden import drawn
from t2t_jobs.job import make_job, read_job, to_experiment
from t2t_jobs.probe import probe
from t2t_jobs.queue import Queue
from t2t_jobs.running import with_code
from t2t_jobs.worker import work


def family():
    return installed().families.make("draw-optimal")


def confined(tmp_path, text, name="reward.py"):
    (tmp_path / name).write_text(text)
    try:
        return code.Confined(tmp_path / name)
    except code.Refused as refused:
        pytest.skip(str(refused))


def test_code_is_off_unless_it_is_allowed_by_name(tmp_path):
    (tmp_path / "job.toml").write_text("rounds = 1\n")
    (tmp_path / "reward.py").write_text("def reward(*a): return 1")
    (tmp_path / "environment.py").write_text("")
    _, failures = read_job(tmp_path, family())
    assert [failure.what for failure in failures] == ["environment.py may not run here", "reward.py may not run here"]
    job, failures = read_job(tmp_path, family(), ["reward.py"])
    assert [failure.where for failure in failures] == ["environment.py"] and job.code == ("reward.py",)


TRICKS = {
    "reads the machine's files": ("def reward(*a): return open('/etc/passwd').read()", "No such file"),
    "lists what there is": ("import os\ndef reward(*a): return {*os.listdir('/')} - {'__pycache__'} == {'code.py'}", True),
    "reaches the network": ("def reward(*a):\n import socket", "No module named"),
    "fills the disk": ("def reward(*a):\n f = open('/x', 'wb')\n while True: f.write(b'x' * 65536); f.flush()", "No space left"),
    "forks without end": ("import os\ndef reward(*a):\n while True: os.fork()", "temporarily unavailable"),
    "takes all memory": ("def reward(*a): return len('x' * (8 << 30))", "MemoryError"),
    "kills everybody": ("import os\ndef reward(*a): os.kill(-1, 9); return 1", "No such process"),
    "ends its process": ("import os\ndef reward(*a): os._exit(0)", "died in reward"),
    "breaks out by chroot": ("import os\ndef reward(*a): os.mkdir('/x'); os.chroot('/x')", "not permitted"),
    "makes another namespace": (
        "import ctypes\ndef reward(*a): return ctypes.CDLL(None).unshare(0x10000000) or ctypes.CDLL(None).unshare(0x20000)", -1
    ),
    "has no such function": ("x = 1", "no attribute 'reward'"),
    "is no Python": ("def", "SyntaxError"),
    "answers what is no JSON": ("def reward(*a): return {1, 2}", "not JSON serializable"),
    "answers what is no number": ("def reward(*a): return float('nan')", "JSON"),
    "hides in another's answer": ("import os\ndef reward(*a): os.write(4, b'{{\\n'); return 1", None),
}  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
def test_whatever_it_tries_stays_in_its_process(tmp_path, trick):
    text, comes = TRICKS[trick]
    confined_code = confined(tmp_path, text)
    try:
        if isinstance(comes, str):
            with pytest.raises(code.CodeFault, match="(?s)" + comes):
                confined_code.call("reward", {}, {}, {})
        elif comes is None:
            with pytest.raises(code.CodeFault):
                confined_code.call("reward", {}, {}, {})
        else:
            assert confined_code.call("reward", {}, {}, {}) == comes
    finally:
        confined_code.close()


def test_one_that_does_not_answer_is_ended(tmp_path, monkeypatch):
    hangs = confined(tmp_path, "import time\ndef reward(*a): time.sleep(600)")
    monkeypatch.setattr(code, "PATIENCE", 0.2)
    with pytest.raises(code.CodeFault, match="took more than"):
        hangs.call("reward", {}, {}, {})
    assert hangs._process.poll() is not None


def test_without_namespaces_it_is_refused(tmp_path, monkeypatch):
    (tmp_path / "reward.py").write_text("def reward(*a): return 1")
    script = "import json; print(json.dumps({'refused': 'unshare: Operation not permitted'}))"
    real = code.subprocess.Popen
    monkeypatch.setattr(code.subprocess, "Popen", lambda command, **more: real([sys.executable, "-c", script], **more))
    with pytest.raises(code.Refused, match="no namespaces"):
        code.Confined(tmp_path / "reward.py")


@pytest.fixture
def coded():
    """A queue, and the family's world with one file of code."""
    with ExitStack() as stack:
        yield lambda tmp_path, name, text: _coded(stack, tmp_path, name, text)


def _coded(stack, tmp_path, name, text):
    confined(tmp_path, text, name).close()
    queue = Queue(tmp_path / "queue", secret=5)
    kept = queue.hidden_instances(family(), "e")
    job = make_job(family(), {})
    job = type(job)(job.family, job.values, (name,))
    run = stack.enter_context(with_code(to_experiment(job, 0, SafePath(tmp_path), kept), job, SafePath(tmp_path)))
    return queue, installed().testbeds.make(run.testbed)


def test_a_reward_of_the_jobs_own_is_a_further_term(tmp_path, coded):
    text = "def reward(terms, verdict, instance): return 0.25 if verdict['valid'] and instance['p'] == 0 else -1"
    queue, world = coded(tmp_path, "reward.py", text)
    assert world.rubric["code"] == 1.0
    (_, (instance, *_)), *_ = drawn(family(), queue.hidden_seed("e"))
    verdict = world.verify(instance, [], "compact")
    assert world.reward_terms(instance, verdict)["code"] == -1.0


def test_an_environment_that_trains_on_the_hidden_evaluation_is_stopped_and_named(tmp_path, coded):
    """It cannot read it; here somebody told it."""
    queue = Queue(tmp_path / "queue", secret=5)
    (_, instances), *_ = drawn(family(), queue.hidden_seed("e"))
    games = [instance.to_dict() for instance in instances[:4]]
    text = f"false, true, null = False, True, None\nGAMES = {games!r}\ndef generate(count, seed): return GAMES[:count]"
    _, world = coded(tmp_path, "environment.py", text)
    with pytest.raises(T2TError, match="4 of 4 instances that the code makes are asked in an evaluation"):
        world.generate(None, world.request(4), 0)


def test_an_environment_of_the_jobs_own_makes_the_instances(tmp_path, coded):
    text = "def generate(count, seed):\n return [dict(id=f'g{n}', board='.........', mover='policy', p=0.5, opponent='mixed', "
    text += "seed=seed + n, seeded=True) for n in range(count)]"
    _, world = coded(tmp_path, "environment.py", text)
    made = world.generate(None, world.request(3), 7)
    assert [instance.seed for instance in made] == [7, 8, 9]
    with pytest.raises(T2TError):
        coded(tmp_path, "environment.py", "def generate(count, seed): return [{}] * count")[1].generate(None, world.request(2), 0)


def test_the_cpu_time_of_code_counts(tmp_path):
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    busy = confined(tmp_path, "def reward(*a): return sum(n % 7 for n in range(8_000_000)) and 1.0")
    assert busy.call("reward", {}, {}, {}) == 1.0
    busy.end()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 0.1


def docs_code():
    """The example of the docs: both files."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "jobs.md").read_text()
    block = next(block for block in page.split("```python\n")[1:] if block.startswith("# reward.py"))
    reward, environment = block.partition("```")[0].split("# environment.py\n")
    return {"reward.py": reward, "environment.py": environment}


@pytest.mark.slow
@pytest.mark.train
def test_the_code_of_the_docs_is_tried_trained_with_and_scored(tmp_path):
    folder, queue = tmp_path / "job", Queue(tmp_path / "queue", secret=5)
    folder.mkdir()
    confined(folder, "x = 1").close()
    (folder / "job.toml").write_text('base = "large"\n')
    for name, text in docs_code().items():
        (folder / name).write_text(text)
    allowed = ("reward.py", "environment.py")
    assert probe(folder, family(), queue, "e", allow_code=allowed)[1] == []
    queue.submit("with", folder, "draw-optimal", "e", allow_code=allowed)
    queue.submit("without", folder, "draw-optimal", "e")
    assert work(queue, keep=True) == 2
    assert queue.result("with").succeeded
    assert queue.result("without").failure_code == "invalid"
    instances = (tmp_path / "queue" / "work" / "with" / "run" / "round_0" / "instances.jsonl").read_text()
    assert '"id": "g0"' in instances


def test_code_that_fails_in_training_is_told_by_the_probe(tmp_path, monkeypatch):
    from t2t_jobs import trying

    job = make_job(family(), {})
    (tmp_path / "reward.py").write_text("def reward(*a): raise ValueError('of the job')")
    confined(tmp_path, (tmp_path / "reward.py").read_text()).close()
    job = type(job)(job.family, job.values, ("reward.py",))
    queue = Queue(tmp_path / "queue", secret=5)

    def fails(experiment, folder):
        world = installed().testbeds.make(experiment.testbed)
        (_, (instance, *_)), *_ = drawn(family(), 1)
        world.reward_terms(instance, world.verify(instance, [], "compact"))

    monkeypatch.setattr(trying, "trained", fails)
    hidden = queue.hidden_instances(family(), "e")
    (failure,) = trying.trial(job, SafePath(tmp_path), 0, hidden, SafePath(tmp_path / "work"))
    assert "ValueError: of the job" in failure.what and "reward.py" in failure.where
