"""The scores of the shipped baselines do not depend on the reader's version: they were the same under the first one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2t_core.plugins import installed
from t2t_core.records import Sampling, Task
from t2t_envs.frozen_lake import Instance, verify

LAKE = installed().testbeds.make("mapf-frozenlake")
SETS = ("3agents", "4agents", "5agents")
TOYS = [json.loads(line) for line in (Path(__file__).parent / "toy_answers.jsonl").read_text("utf-8").splitlines()]
# Valid and optimal answers to every 25th instance of three sets.
SCORES = {"cbs": (126, 126), "prioritized": (124, 121), "pibt": (124, 83), "independent": (36, 36), "random": (0, 0)}


@pytest.mark.parametrize("name", SCORES)
def test_the_scores_of_the_baselines_do_not_move(name: str) -> None:
    instances = [instance for set_name in SETS for instance in LAKE.load_set(set_name).instances[::25]]
    tasks = [Task(instance.id, 0, "unread", instance.unlabelled(), number) for number, instance in enumerate(instances)]
    texts = [response.text for _, response in installed().policies.make(name).respond(tasks, Sampling())]
    verdicts = [verify(instance, text) for instance, text in zip(instances, texts, strict=True)]
    assert (sum(v.valid for v in verdicts), sum(bool(v.optimal) for v in verdicts)) == SCORES[name]


@pytest.mark.parametrize("answer", TOYS, ids=lambda answer: answer["instance"]["id"])
def test_what_a_toy_policy_wrote_is_read_as_before(answer: dict) -> None:
    verdict = verify(Instance.from_dict(answer["instance"]), answer["text"])
    assert (dict(verdict.checks), verdict.valid, verdict.optimal) == (answer["checks"], answer["valid"], answer["optimal"])
