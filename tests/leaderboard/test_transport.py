"""A row is determined by what was asked, not how: addresses, time-outs and prices may change on resume, and each start records
them."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import addition
import lake
from t2t_core import transport
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.evaluation import demonstrations
from t2t_core.plugins import installed
from t2t_core.registry import Spec
from t2t_core.store import folders
from t2t_leaderboard import rescoring

sys.path.append(str(Path(__file__).parents[1] / "plugins"))

from fake_server import FakeServer  # noqa: E402


@pytest.fixture(autouse=True)
def _addition():
    addition.register()


def bench(*arguments):
    command = ["bench", "--testbed", "addition", "--limit", "2", *map(str, arguments)]
    result = CliRunner().invoke(cli, command, standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def rows(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("rows/*/row.json"))]


def board(folder):
    return json.loads((folder / "leaderboard.json").read_text())["tables"][0]["rows"]


def server():
    return FakeServer(lambda prompt, nth: "7")


def test_a_server_that_moves_goes_on_with_its_row(tmp_path):
    out = tmp_path / "out"
    with server() as first:
        first.script = lambda prompt, nth: "7" if len(first.requests) <= 2 else "500"
        spec = f"endpoint:m,base_url={first.url},timeout=5,attempts=1,concurrency=1,limit_field=max_tokens"
        bench("--policy", spec, "--out", out)
    with server() as second:
        spec = f"endpoint:m,limit_field=max_tokens,timeout=60,base_url={second.url},attempts=3,backoff=0.1,price_in=1,price_out=2"
        assert bench("--policy", spec, "--out", out).return_value == 0
        assert len(second.requests) == 2, "only what is missing"
    (row,) = rows(out)
    assert row["policy"] == "endpoint:m,limit_field=max_tokens"
    told = [session["transport"] for session in row["sessions"]]
    assert [t["base_url"] for t in told] == [first.url, second.url]
    assert [t.get("timeout") for t in told] == [5, 60] and told[1]["price_out"] == 2
    assert first.url not in json.dumps(row["describe"]) and "base_url" not in row["describe"]
    assert rescoring.verify(out).verified
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    bench("--policy", spec, "--out", out)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before, "the same start adds nothing"


def test_where_a_server_refuses_the_first_question_nothing_is_damaged(tmp_path):
    out = tmp_path / "out"
    with FakeServer(lambda prompt, nth: "401") as refusing:
        assert bench("--policy", f"endpoint:m,base_url={refusing.url},attempts=1", "--out", out).return_value == 1
    assert rescoring.verify(out).verified and "NOT VERIFIED" not in (out / "leaderboard.md").read_text()
    with server() as serving:
        assert bench("--policy", f"endpoint:m,base_url={serving.url},attempts=1", "--out", out).return_value == 0
    assert rescoring.verify(out).verified


def test_an_address_on_the_command_line_too(tmp_path):
    out = tmp_path / "out"
    for _ in range(2):
        with server() as endpoint:
            bench("--policy", "endpoint:m", "--base-url", endpoint.url, "--concurrency", 3, "--out", out)
    assert len(rows(out)) == 1 and len(board(out)) == 1


def test_what_is_asked_makes_another_row(tmp_path):
    out = tmp_path / "out"
    with server() as endpoint:
        for spec in (
            "endpoint:m",
            "endpoint:other",
            "endpoint:m,reasoning_effort=low",
            'endpoint:m,extra_body={"seed": 1, "a": 2}',
        ):
            bench("--policy", spec, "--base-url", endpoint.url, "--out", out)
    assert len(rows(out)) == 4


def test_a_folder_of_an_earlier_version_goes_on(tmp_path):
    """In that version the address was part of the row's name and of the policy's description."""
    out = tmp_path / "out"
    with server() as endpoint:
        bench("--policy", "endpoint:m", "--base-url", endpoint.url, "--out", out)
        (path,) = out.glob("rows/*/row.json")
        facts = json.loads(path.read_text())
        del facts["sessions"]
        facts["policy"] = "endpoint:m,base_url=http://127.0.0.1:9/v1,timeout=3"
        facts["describe"] |= {"base_url": "http://127.0.0.1:9/v1", "price_in": None, "price_out": None}
        path.write_text(json.dumps(facts))
        path.parent.rename(path.parent.with_name("endpoint-m-base_url-0123abcd"))
        asked = len(endpoint.requests)
        bench("--policy", "endpoint:m", "--base-url", endpoint.url, "--out", out)
        assert len(endpoint.requests) == asked and len(rows(out)) == 1
    assert rows(out)[0]["policy"] == "endpoint:m" and rescoring.verify(out).verified


def test_a_label_names_a_row(tmp_path):
    out = tmp_path / "out"
    with server() as endpoint, server() as other:
        specs = [f"endpoint:m,label=full precision,base_url={endpoint.url}", f"endpoint:m,label=fp8,base_url={other.url}"]
        bench("--policy", specs[0], "--policy", specs[1], "--out", out)
        assert sorted(row["label"] for row in board(out)) == ["fp8", "full precision"]
        assert len(endpoint.requests) == len(other.requests) == 4
        bench("--policy", f"endpoint:m,base_url={endpoint.url},label=fp8", "--out", out)
        assert len(endpoint.requests) == 4, "it is known by its label"
        with pytest.raises(T2TError, match="two policies are the same row"):
            bench("--policy", f"endpoint:m,base_url={endpoint.url}", "--policy", f"endpoint:m,base_url={other.url}", "--out", out)
    assert "fp8" in (out / "leaderboard.md").read_text() and "fp8" in (out / "leaderboard.html").read_text()
    result = bench("--policy", "adder:label=fp8", "--out", out)
    assert result.return_value == 1 and "another row of the folder is called 'fp8'" in result.stderr
    bench("--policy", "adder", "--out", out)
    result = bench("--policy", "adder:off=1,label=adder", "--out", out)
    assert result.return_value == 1 and "another row of the folder is called 'adder'" in result.stderr
    with pytest.raises(T2TError, match="two rows would be called 'adder'"):
        bench("--policy", "adder:off=1,label=adder", "--policy", "adder", "--out", out)
    assert rescoring.verify(out).verified


@pytest.mark.parametrize("label", ["", " ", "a\nb", "x" * 61, "\x1b[31m"])
def test_a_label_that_is_none(label):
    with pytest.raises(T2TError, match="a label is a few plain words"):
        bench("--policy", f"adder:label={label}")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("endpoint:m,base_url=http://h/v1,temperature=0.6", "endpoint:m,temperature=0.6"),
        ("endpoint:m,timeout=3", "endpoint:m"),
        ("openai:gpt-5.4", "openai:gpt-5.4"),
        ('endpoint:a,b,attempts=2,extra_body={"x": 1, "y": 2}', 'endpoint:a,b,extra_body={"x": 1, "y": 2}'),
        ("cbs", "cbs"),
        ("nobody:x,timeout=3", "nobody:x,timeout=3"),
    ],
)
def test_the_question_in_a_spec(text, question):
    assert transport.question(installed().policies, text) == question
    assert Spec.parse(str(Spec.parse(text))) == Spec.parse(text)


def test_the_question_of_a_designer_is_its_policys():
    designers = installed().designers
    assert (
        transport.question(designers, "llm:endpoint:m,base_url=http://h/v1,attempts=5,temperature=1")
        == "llm:endpoint:m,temperature=1"
    )
    assert transport.question(designers, "rule") == "rule"


def test_a_run_goes_on_with_another_address_and_says_so(tmp_path):
    """What runs, sweeps and files of answers are told apart by; the addresses are on record in their order."""
    settings = {"policy": "tiny", "designer": "llm:endpoint:m,base_url=http://a/v1", "rounds": 3}
    moved = {**settings, "designer": "llm:endpoint:m,base_url=http://b/v1,timeout=9"}
    folders.open_manifest(tmp_path, "run", settings, asked=transport.asked)
    folders.open_manifest(tmp_path, "run", settings, asked=transport.asked)
    manifest = folders.open_manifest(tmp_path, "run", moved, asked=transport.asked)
    assert [s.get("changed") for s in manifest["sessions"]] == [
        {"designer": settings["designer"]},
        {"designer": moved["designer"]},
    ]
    assert manifest["settings"] == moved, "what the folder says is what was asked last"
    for other in ({**moved, "rounds": 4}, {**moved, "designer": "llm:endpoint:n,base_url=http://b/v1"}):
        with pytest.raises(T2TError, match="the folder holds another run"):
            folders.open_manifest(tmp_path, "run", other, asked=transport.asked)


def test_a_file_of_answers_goes_on_with_another_address(tmp_path):
    testbed, out = lake.Lake(), tmp_path / "answers.jsonl"
    instances = [lake.Number(f"n{i}", "3", 1000 + i, i) for i in range(4)]
    with server() as first:
        first.script = lambda prompt, nth: "7" if len(first.requests) <= 2 else "500"
        request = demonstrations.Request(f"endpoint:m,base_url={first.url},attempts=1,concurrency=1")
        assert demonstrations.collect(testbed, instances, request, out).unanswered == 2
    with server() as second:
        request = demonstrations.Request(f"endpoint:m,base_url={second.url}")
        assert demonstrations.collect(testbed, instances, request, out).unanswered == 0
        assert len(second.requests) == 2
