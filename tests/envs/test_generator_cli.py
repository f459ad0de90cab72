"""`t2t generate`: files, standard output, the report, exclusions and errors."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from t2t_core.errors import T2TError
from t2t_envs.cli.generate import generate
from t2t_envs.frozen_lake.jsonl import read_instances


def run(*arguments):
    result = CliRunner().invoke(generate, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "configuration.json"
    path.write_text(json.dumps({"3": {"data_ratio": 1, "hole_ratio": 0.1, "wait_ratio": 0.5}}))
    return path


def test_a_file_comes_out_the_same_twice_and_equals_standard_output(small, tmp_path):
    arguments = ("--configuration", small, "--count", 12, "--seed", 4, "--labels", "both")
    report = run(*arguments, "--out", tmp_path / "a.jsonl").stderr
    run(*arguments, "--out", tmp_path / "b.jsonl", "--threads", 2)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert run(*arguments, "--out", "-").stdout == (tmp_path / "a.jsonl").read_text()
    instances = read_instances(tmp_path / "a.jsonl")
    assert len(instances) == 12 and sum(bool(x.requires_wait) for x in instances) == 6
    assert all(x.optimal_sum_of_costs for x in instances)
    assert "12 instances in" in report and sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", small.name]


def test_excluded_files_share_no_form(small, tmp_path):
    run("--configuration", small, "--count", 40, "--out", tmp_path / "a.jsonl")
    run("--configuration", small, "--count", 40, "--exclude", tmp_path / "a.jsonl", "--out", tmp_path / "b.jsonl")
    first, other = ({x.canonical() for x in read_instances(tmp_path / name)} for name in ("a.jsonl", "b.jsonl"))
    assert not first & other


def test_named_configurations(tmp_path):
    for name in ("uniform", "random"):
        run("--configuration", name, "--count", 9, "--agents", 3, "--out", tmp_path / name)
        assert len(read_instances(tmp_path / name)) == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "cannot"), ("{", "cannot be read"), ("[]", "JSON object"), ('{"3": {}}', "is missing"), ("[" * 9999, "cannot")],
)
def test_bad_configurations_name_the_file(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(T2TError, match=message) as error:
        run("--configuration", path, "--out", "-")
    assert str(path) in error.value.where


def test_what_is_missing_or_impossible_is_said(small):
    with pytest.raises(T2TError, match="--configuration and --out must be given"):
        run("--count", 3)
    with pytest.raises(T2TError, match="^--configuration must be given"):
        run("--out", "-")
    with pytest.raises(T2TError, match="48 wait forms") as error:
        run("--configuration", small, "--count", 200, "--repeats", "forbid", "--out", "-")
    assert "3.wait_ratio" in error.value.next
