"""A job as an agent writes it: read, held against its family's bounds, turned into a run."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.seeding import Stream
from t2t_jobs.family import dotted, nested, path_of, value_at, values_of
from t2t_jobs.job import copy_job, document, make_job, read_job, to_experiment
from t2t_jobs.probe import probe

FAMILIES = sorted(installed().families.entries)


def family(name="draw-optimal"):
    return installed().families.make(name)


def read(folder, text):
    (folder / "job.toml").write_text(text)
    return read_job(folder, family())


@pytest.mark.parametrize("name", FAMILIES)
def test_the_job_to_start_from_is_valid(name, tmp_path):
    (tmp_path / "job.toml").write_text(document(family(name).start))
    job, failures = probe(tmp_path, family(name))
    assert not failures
    assert job.values == family(name).start
    assert to_experiment(job, 3).seed == 3


@pytest.mark.parametrize("name", FAMILIES)
def test_every_value_a_bound_draws_is_within_it(name):
    for seed in range(20):
        for key, bound in family(name).bounds.items():
            assert bound.fault(bound.draw(Stream.of(seed, key))) is None, key


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=4))
def test_a_dotted_key_is_read_as_it_was_written(path):
    assert path_of(dotted(path)) == tuple(path)


ODD = ["", "9" * 400, "nan", "-inf", "true", "[]", '"x"', "2.0", "1979-05-27", "\x00", '"\\n" = 1\n', "[", "=", "\U0001f600"]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_stands_in_a_job_it_is_told_and_nothing_breaks(data):
    """Reading a valid job that was damaged returns a list of what is wrong, or a job within its bounds."""
    text = document(family().start) + "[[round]]\n[round.configuration.'0-0.25']\nfirst = 0.5\n"
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        put = data.draw(st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6))
        text = text[:at] + put + text[at + cut :]
    with TemporaryDirectory() as folder:
        (Path(folder) / "job.toml").write_text(text)
        job, failures = probe(Path(folder), family())
    assert all(failure.what for failure in failures)
    if job is not None:
        for key, bound in family().bounds.items():
            assert bound.fault(value_at(job.values, key)) is None


@pytest.mark.parametrize("value", ["16.0", "9" * 300, "nan", "inf", "true", '"16"', "-1", "0x10000000000000000"])
def test_a_whole_number_is_one(tmp_path, value):
    _, failures = read(tmp_path, f"[generation]\nsamples = {value}\n[training]\ngroup = {value}\n")
    assert failures


def test_values_and_tables_are_inverse():
    start = family().start
    assert nested(values_of(start)) == start
    assert value_at(start, 'configuration."0-0.25".share') == 0.0


def test_all_that_is_wrong_comes_back_at_once(tmp_path):
    text = 'base = "huge"\nwish = 1\n[training]\nlearning_rate = 5.0\nmax_tokens = 9\n[generation]\nsamples = 3\n'
    job, failures = read(tmp_path, text)
    told = [failure.what for failure in failures]
    assert job is not None and len(told) == 5
    parts = ("wish", "base must be one of small, large", "learning_rate must be", "max_tokens may not be edited", "samples must")
    for part in parts:
        assert any(part in what for what in told), part


@pytest.mark.parametrize(
    "text, told",
    [
        ("base = ", "no TOML"),
        ("a = " + "[" * 5000, "no TOML"),
        ("rounds = 0", "rounds"),
        ('rounds = "two"', "rounds"),
        ("training = 3", "training"),
        ("[training]\nlearning_rate = nan", "learning_rate must be"),
        ("[training]\ngroup = true", "group must be"),
        ('[configuration."0-0.25"]\nshare = 0.5', "sum to 1.5"),
        ("[configuration.elsewhere]\nshare = 0.5", "may not be edited"),
        ("[[round]]\n[[round]]", "2 tables"),
        ('[[round]]\n[round.configuration."0-0.25"]\nshare = 7', "share must be"),
        ("\x00", "no TOML"),
    ],
)
def test_a_bad_job_is_told_in_words(tmp_path, text, told):
    (tmp_path / "job.toml").write_text(text)
    _, failures = probe(tmp_path, family())
    assert failures and any(told in str(failure) for failure in failures), [str(f) for f in failures]


@pytest.mark.parametrize(
    "text, told",
    [
        ('[evaluation]\ninstances = "own.jsonl"', "a job has no evaluation"),
        ('[validation]\nset = "random"', "a job has no validation"),
        ('testbed = "change"', "a job has no testbed"),
        ('policy = "minimax"', "a job has no policy"),
        ('checkpoint = "/somebody/elses"', "a job has no checkpoint"),
        ('designer = "schedule:/etc/passwd"', "a job has no designer"),
        ("seed = 3", "a job has no seed"),
        ('base = "/somebody/elses/checkpoint"', "base must be one of"),
        ('trainer = "trl-sft:x"', "trainer may not be edited"),
        ('[training]\nanswers_file = "/etc/passwd"', "training.answers_file may not be edited"),
        ("[generation]\nexclude = 0", "generation.exclude may not be edited"),
        ("[reward]\nlost_games = 5.0", "reward.lost_games may not be edited"),
    ],
)
def test_a_job_cannot_touch_what_measures_it(tmp_path, text, told):
    job, failures = read(tmp_path, text)
    assert any(told in str(failure) for failure in failures), [str(f) for f in failures]
    if job is not None:
        assert job.values == family().start, "and nothing of it is left in the job"


def test_a_job_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "secret").write_text('base = "large"')
    work = tmp_path / "work"
    work.mkdir()
    (work / "job.toml").symlink_to(tmp_path / "secret")
    job, failures = read_job(work, family())
    assert job is None and failures


def test_rounds_may_differ_and_the_last_stays(tmp_path):
    text = 'rounds = 3\n[[round]]\n[[round]]\n[round.configuration."0-0.25"]\nshare = 1.0\n'
    text += '[round.configuration."0.75-1"]\nshare = 0.0\n'
    job, failures = read(tmp_path, text)
    assert not failures
    shares = [step["0-0.25"]["share"] for step in job.configurations()]
    assert shares == [0.0, 1.0]


def test_the_budget_counts_every_conversation(tmp_path):
    job = make_job(family(), {"generation.samples": 2048, "training.group": 16, "rounds": 3, "training.epochs": 2})
    assert job.conversations == 3 * 2048 * 2 * 16
    (tmp_path / "job.toml").write_text(document(job.values))
    _, failures = probe(tmp_path, family())
    assert [failure.what for failure in failures] == [
        f"the job would play {job.conversations} conversations in training, and {family().budget.conversations} is the budget"
    ]


def test_only_the_jobs_own_files_are_taken(tmp_path):
    from t2t_core.store.paths import SafePath

    source = tmp_path / "workspace"
    source.mkdir()
    (source / "job.toml").write_text("rounds = 1\n")
    (source / "notes.txt").write_text("mine")
    copy_job(source, SafePath(tmp_path) / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["job.toml"]


def test_examples_show_a_question_and_a_good_answer():
    examples = family().examples(2)
    assert len(examples) == 2 and all(example.prompt and example.answer for example in examples)


def test_a_family_needs_two_bases():
    import dataclasses

    whole = family()
    with pytest.raises(T2TError, match="two or more bases"):
        dataclasses.replace(whole, bases={"small": whole.bases["small"]})
