"""`t2t generate --answers-from`: which policy is asked what, which answers are kept, and that none is lost or asked for twice."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.evaluation import demonstrations
from t2t_core.plugins import installed
from t2t_core.records import Response, Sampling
from t2t_envs.frozen_lake import Configuration, generate
from t2t_envs.frozen_lake.jsonl import write_instances
from t2t_envs.frozen_lake.testbed import make


def t2t(*arguments: Any) -> Result:
    result = CliRunner().invoke(cli, ["generate", *map(str, arguments)], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


UNIFORM = ("--configuration", "uniform", "--count", 60)


def test_the_solvers_answers_are_all_kept_and_are_what_was_asked(tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    said = t2t(*UNIFORM, "--answers-from", "cbs", "--keep", "optimal", "--out", out).stderr
    assert "60 questions, 60 asked now, 0 errors; 60 valid, 60 optimal; 60 kept in" in said
    lake = make()
    for line, read in zip(lines(out), demonstrations.read(lake, out), strict=True):
        assert read.instance.to_dict() == line["instance"] and read.verdict.optimal
        assert read.prompt == [{"role": "user", "content": lake.prompt(read.instance.unlabelled(), "board")}]
        assert line["completion"] == [{"role": "assistant", "content": read.answer}]
        assert line["policy"] == "cbs" and line["verdict"]["valid"] and line["verdict"]["gap"] == 0
    forms = {i.canonical() for name in lake.protected_sets() for i in lake.load_set(name).instances}
    assert not forms & {demonstration.instance.canonical() for demonstration in demonstrations.read(lake, out)}


def test_what_is_kept_can_be_chosen_again_without_asking(tmp_path: Path) -> None:
    kept: dict[str, Any] = {}
    easy = tmp_path / "easy.json"
    easy.write_text(json.dumps({"3": {"data_ratio": 1, "hole_ratio": 0, "wait_ratio": 0}}))
    for keep in ("valid", "optimal", "valid"):
        asking = ("--answers-from", "random", "--samples", 4, "--out", tmp_path / "a.jsonl")
        said = t2t("--configuration", easy, "--count", 60, *asking, "--keep", keep, "--prompt-format", "compact").stderr
        assert f"240 questions, {240 * (not kept)} asked now, 0 errors" in said
        kept[keep] = lines(tmp_path / "a.jsonl")
        assert f"{len(kept[keep])} kept" in said
    assert 0 < len(kept["optimal"]) < len(kept["valid"]) < 240
    assert [line for line in kept["valid"] if line["verdict"]["optimal"]] == kept["optimal"]
    assert all(line["prompt"][0]["content"].startswith("N ") for line in kept["valid"])


def test_the_questions_may_be_a_files_but_never_a_protected_sets(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    write_instances(own, generate(Configuration.uniform(0.2, 0.0), 8, 3, seed=4))
    t2t("--instances", own, "--answers-from", "cbs", "--out", tmp_path / "a.jsonl")
    assert [line["instance"]["id"] for line in lines(tmp_path / "a.jsonl")] == [line["id"] for line in lines(own)]
    write_instances(own, make().load_set("3agents").instances[:3])
    with pytest.raises(T2TError, match="3 training instances belong to the set 3agents"):
        t2t("--instances", own, "--answers-from", "cbs", "--out", tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl.asked").exists()


def test_another_question_is_not_mixed_into_a_folder(tmp_path: Path) -> None:
    t2t(*UNIFORM, "--answers-from", "cbs", "--out", tmp_path / "a.jsonl")
    for other in (("--seed", 1), ("--samples", 2), ("--temperature", 1)):
        with pytest.raises(T2TError, match="the folder holds another question"):
            t2t(*UNIFORM, *other, "--answers-from", "cbs", "--out", tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", "optimal"), "--keep only applies to answers"),
        (("--instances", "x"), "--instances only applies to answers"),
        (("--answers-from", "cbs", "--out", "-"), "answers need a file"),
        (("--answers-from", "cbz"), "no policy called"),
        (("--answers-from", "endpoint:m,base_url=http://a:b@127.0.0.1/v1"), "holds a key"),
        (("--answers-from", "cbs", "--prompt-format", "verse"), "no prompt format"),
        (("--answers-from", "cbs", "--temperature", "nan"), "--temperature must be"),
    ],
)
def test_a_mistake_is_one_sentence_and_asks_nothing(tmp_path: Path, options: tuple[Any, ...], message: str) -> None:
    with pytest.raises(T2TError, match=message):
        t2t(*UNIFORM, "--out", tmp_path / "a.jsonl", *options)
    assert not list(tmp_path.iterdir())


class Mortal:
    """Answers like nobody, notes every question, and may kill its process after some of them."""

    def __init__(self, log: Path, kill_after: int | None) -> None:
        self.log, self.kill_after = log, kill_after

    def describe(self) -> dict[str, Any]:
        return {"deterministic": True, "batch_size": 7}

    def respond(self, tasks: Any, sampling: Sampling) -> Any:
        for position, task in enumerate(tasks):
            if self.kill_after == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.kill_after is not None:
                self.kill_after -= 1
            with open(self.log, "a") as log:
                log.write(f"{task.instance_id} {task.sample}\n")
            yield position, Response("broken" if task.sample else "", error="down" if self.failing(task) else None)

    def failing(self, task: Any) -> bool:
        return self.kill_after is not None and task.instance_id.endswith("3")


def test_killed_again_and_again_no_finished_answer_is_asked_twice(tmp_path: Path) -> None:
    instances = generate(Configuration.uniform(0.2, 0.0), 10, seed=1)
    log, lake, out = tmp_path / "log", make(), tmp_path / "a.jsonl"
    request = demonstrations.Request("mortal", samples=2)

    def collect(kill_after: int | None) -> demonstrations.Counts:
        installed().policies.entries.pop("mortal", None)
        installed().policies.add("mortal", lambda argument, settings: Mortal(log, kill_after))
        return demonstrations.collect(lake, instances, request, out)

    for _ in range(4):
        child = os.fork()
        if not child:
            collect(kill_after=4)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL and not out.exists()
    asked = log.read_text().splitlines()
    again = [question for question in set(asked) if asked.count(question) > 1]
    assert len(asked) == 16 and all(question.split()[0].endswith("3") for question in again), "only what failed is asked again"
    counts = collect(kill_after=None)
    assert (counts.questions, counts.unanswered, counts.valid, counts.kept) == (20, 0, 0, 0) and out.read_bytes() == b""
    assert len(set(log.read_text().splitlines())) == 20
    assert counts.asked == 20 - len({question for question in asked if not question.split()[0].endswith("3")})
    del installed().policies.entries["mortal"]


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Eight lines of a file of demonstrations."""
    out = tmp_path_factory.mktemp("eight") / "a.jsonl"
    t2t("--configuration", "uniform", "--count", 8, "--answers-from", "cbs", "--out", out)
    return lines(out)


def written(lines: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instance": {}}, "instance has no field"),
        ({"prompt": "text"}, "prompt: expected `array`, got `str`"),
        ({"completion": []}, "completion: expected `array` of length >= 1"),
        ({"completion": [{"role": "assistant", "content": None}]}, r"completion\[0\]\.content: expected `str`, got `null`"),
        ({"completion": [{"role": "assistant", "content": "a"}] * 2}, "completion: 2 messages"),
    ],
)
def test_a_damaged_line_is_named(eight: list[dict[str, Any]], tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = written([*eight[:5], eight[5] | change, *eight[6:]], tmp_path / "a.jsonl")
    with pytest.raises(T2TError, match=message) as error:
        list(demonstrations.read(make(), path))
    assert error.value.where is not None and error.value.where.endswith("line 6")


def test_an_edited_answer_is_verified_again(eight: list[dict[str, Any]], tmp_path: Path) -> None:
    edited = eight[2] | {"completion": [{"role": "assistant", "content": "nonsense"}]}  # its stored verdict still says valid
    path = written([*eight[:2], edited, *eight[3:]], tmp_path / "a.jsonl")
    assert [demonstration.verdict.valid for demonstration in demonstrations.read(make(), path)] == [i != 2 for i in range(8)]
