"""Searches every byte of the output for a planted key."""

import contextlib
import io
import logging
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import lake
from fake_server import FakeServer, completion
from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.plugins import load
from t2t_core.records import Sampling, Task
from t2t_plugins.policies.endpoint.providers import PROVIDERS

KEY = "sk-planted-4f9a7c31e5d2b8"
POLICIES = load().policies
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    for provider in PROVIDERS.values():
        monkeypatch.setenv(provider.key_variable, KEY)


def echo(prompt, nth):
    """Sends the key back in every place a server can."""
    number = int(prompt.split()[-1]) % 6
    told = [
        completion(f"your key is {KEY}"),
        completion(None, message={"refusal": f"no, {KEY}"}),
        (400, {}, b'{"error": {"message": "Incorrect API key: ' + KEY.encode() + b'"}}'),
        (500, {}, KEY.encode()),
        (200, {}, f"<html>{KEY}</html>".encode()),
        "drop",
    ]
    return told[number]


def test_the_key_is_sent_and_never_shown(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("OPENAI_LOG", "debug")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1234567890")
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    try:
        instances = [lake.Number(f"n{i}", "3", i, i) for i in range(24)]
        with FakeServer(echo) as server:
            policy = POLICIES.make("endpoint:m", base_url=server.url, attempts="2", backoff="0.01", give_up="0")
            evaluate(Evaluation(lake.Lake(), instances), policy, tmp_path)
            shown = repr(policy) + str(vars(policy)) + str(policy.describe())
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(logging.WARNING)
    assert all(r["headers"]["authorization"] == f"Bearer {KEY}" for r in server.requests)
    assert not any("org-1234567890" in str(r["headers"]) for r in server.requests)
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"your key is [key]" in written
    out, err = capfd.readouterr()
    assert KEY not in shown + out + err + log.getvalue() and KEY.encode() not in written
    with pytest.raises((TypeError, pickle.PicklingError, AttributeError)):
        assert KEY.encode() not in pickle.dumps(policy)


def test_no_byte_of_a_bench_holds_the_key(tmp_path):
    """`t2t bench` as a process of its own, against a server that sends the key back in every place it can."""
    asked = []

    def script(prompt, nth):
        asked.append(prompt)
        if len(asked) == 1:  # while the process runs: its command line, which everybody on the machine can read
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    lines.append(path.read_bytes())
        return echo(f"n {len(asked)}", nth)

    lines = []
    with FakeServer(script) as server:
        places = [f"{ROOT}{room}" for room in ("", "/envs", "/plugins", "/baselines", "/leaderboard")]
        start = f"import sys; sys.path[:0] = {places}; from t2t_core.cli import main; main()"
        spec = "endpoint:m,attempts=2,backoff=0.01,give_up=0"
        arguments = ["--policy", spec, "--base-url", server.url, "--agents", "3", "--limit", "2", "--out", tmp_path / "out"]
        environment = {**os.environ, "OPENAI_LOG": "debug"}
        done = subprocess.run([sys.executable, "-c", start, "bench", *arguments], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    written = [p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert len(asked) >= 16 and any(b"your key is [key]" in data for data in written) and len(lines) > 1
    assert not any(KEY.encode() in data for data in (*written, *lines, done.stdout, done.stderr))
    assert all(r["headers"]["authorization"] == f"Bearer {KEY}" for r in server.requests)


CONFIGURATION = """
testbed = "mapf-frozenlake"
policy = "independent"
designer = "llm:endpoint:m,base_url=URL,attempts=2,backoff=0.01,give_up=0"
rounds = 3
[generation]
samples = 8
[validation]
set = "validation_2agents"
limit = 1
"""


@pytest.mark.thorough
@pytest.mark.parametrize("asked", [0, 1, 2], ids=["it answers", "it refuses", "it fails"])
def test_no_byte_of_a_run_or_a_design_holds_the_key(tmp_path, asked):
    """`t2t run` and `t2t design` as processes of their own; the designer is an endpoint that sends the key back."""
    lines, requests = [], []

    def script(prompt, nth):
        requests.append(prompt)
        for path in Path("/proc").glob("[0-9]*/cmdline") if len(requests) == 1 else ():
            with contextlib.suppress(OSError):
                lines.append(path.read_bytes())
        reply = '{"3": {"data_ratio": 1, "%s": "%s"}, "summary": "the key is %s"}' % ((KEY,) * 3)
        return [completion(reply), (400, {}, KEY.encode()), (500, {}, KEY.encode())][asked]

    places = [f"{ROOT}{room}" for room in ("", "/envs", "/plugins", "/baselines", "/leaderboard")]
    start = f"import sys; sys.path[:0] = {places}; from t2t_core.cli import main; main()"
    out, config, shown = tmp_path / "out", tmp_path / "run.toml", []
    with FakeServer(script) as server:
        config.write_text(CONFIGURATION.replace("URL", server.url))
        for command in (
            ["run", "--config", config, "--out", out],
            ["design", "--run", out, "--show-context", "--out", tmp_path / "steps"],
            *([] if asked else [["analyze", out], ["report", out]]),
        ):
            arguments = [sys.executable, "-c", start, *map(str, command)]
            done = subprocess.run(arguments, capture_output=True, env={**os.environ, "OPENAI_LOG": "debug"})
            shown += [done.stdout, done.stderr]
            assert done.returncode in (0, 2), done.stderr  # with a debug log there may be the client's own tracebacks
    written = [p.read_bytes() for folder in (out, tmp_path / "steps") for p in folder.rglob("*") if p.is_file()]
    assert len(requests) >= 4 and len(written) > 20
    assert asked or ((out / "report.html").exists() and any(b"the key is [key]" in data for data in written))
    assert not any(KEY.encode() in data for data in (*written, *lines, *shown))


def test_no_traceback_shows_it():
    refusal = (401, {}, b'{"error": {"message": "bad key ' + KEY.encode() + b'"}}')
    with FakeServer(lambda prompt, nth: refusal) as server:
        policy = POLICIES.make("endpoint:m", base_url=server.url)
        with pytest.raises(T2TError) as error:
            list(policy.respond([Task("i", 0, "p", None, 0)], Sampling()))
    assert KEY not in "".join(traceback.format_exception(error.value)) and "[key]" in str(error.value)


@pytest.mark.parametrize("name", ["api_key", "key", "token", "authorization"])
def test_a_key_as_a_setting_is_refused_and_not_repeated(name):
    with pytest.raises(T2TError, match="holds a key") as error:
        POLICIES.make(f"openai:gpt,{name}={KEY}")
    assert KEY not in str(error.value) and "environment variable" in str(error.value)


def test_a_key_given_where_its_variable_belongs_is_not_repeated():
    with pytest.raises(T2TError, match="holds a key") as error:
        POLICIES.make(f"openai:gpt,api_key_env={KEY}")
    assert KEY not in str(error.value)


@pytest.mark.parametrize("key", [f"{KEY}\nX: y", f"{KEY}\u00e9", f"Bearer {KEY}"])
def test_a_key_with_a_line_break_is_refused_and_not_repeated(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(T2TError, match="character that no key has") as error:
        POLICIES.make("openai:gpt")
    assert KEY not in str(error.value)


def test_a_providers_key_is_not_sent_to_another_address(monkeypatch):
    monkeypatch.delenv("T2T_API_KEY")
    with FakeServer(lambda prompt, nth: "fine") as server:
        for spec in ("openai:gpt", "endpoint:m", "local:m"):
            list(POLICIES.make(spec, base_url=server.url).respond([Task("i", 0, "p", None, 0)], Sampling()))
        assert [r["headers"]["authorization"] for r in server.requests] == ["Bearer EMPTY"] * 3
        named = POLICIES.make("openai:gpt", base_url=server.url, api_key_env="OPENAI_API_KEY")
        list(named.respond([Task("i", 0, "p", None, 0)], Sampling()))
        assert server.requests[-1]["headers"]["authorization"] == f"Bearer {KEY}"
