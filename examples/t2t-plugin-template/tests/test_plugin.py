"""The suite's own checks on this plugin, and tests of what it is for."""

import dataclasses
import json

import pytest
from t2t_plugin_template.coins import fewest_coins
from t2t_plugin_template.policy import largest_first, pay

from t2t_core.cli import cli
from t2t_core.conversation import judge, play
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Message, ToolCall
from t2t_core.testing import check_agent, check_context, check_designer, check_policy, check_testbed, check_tracker, check_trainer
from t2t_jobs.job import document
from t2t_jobs.probe import probe
from t2t_jobs.queue import Queue


@pytest.fixture(scope="module")
def testbed():
    return installed().testbeds.make("change")


def solve(payment):
    return str(fewest_coins(payment.coins, payment.amount)[payment.amount])


def test_it_is_loaded_and_nothing_of_it_is_refused():
    assert "template" in installed().loaded
    assert not [r for r in installed().refused if "template" in r]


def test_the_testbed(testbed):
    check_testbed(testbed, solve=solve)


def test_the_agent():
    check_agent(installed().agents.make("best-base"), installed().families.make("draw-optimal"))


def test_the_family(tmp_path):
    family = installed().families.make("draw-briefly")
    (tmp_path / "job.toml").write_text("[generation]\nsamples = 2048\n")
    job, failures = probe(tmp_path, family)
    assert job is not None and ["is the budget" in failure.what for failure in failures] == [True]
    (tmp_path / "job.toml").write_text(document(family.start))
    assert probe(tmp_path, family)[1] == []


def test_the_pool_begins_one_worker_and_ends_it(tmp_path):
    pool = installed().pools.make("submitted")
    queue = Queue(tmp_path)
    for _ in range(3):
        pool.start(queue.folder.path)
    pool.stop()
    pool.stop()


def test_the_policy(testbed):
    check_policy(installed().policies.make("coins"), testbed)


def test_the_tool_tells_what_coins_come_to(testbed):
    payment = testbed.load_set("usual").instances[0]
    heard = []

    def speak(messages):
        heard.append(messages[-1])
        written = ['{"coins": [3, 4]}', "[3", '{"coins": ["3"]}']
        calls = [ToolCall(str(n), "total", text) for n, text in enumerate(written)] if len(heard) == 1 else []
        return Message("assistant", "" if calls else f"[{payment.amount}]", tuple(calls))

    said = play(testbed, payment, "plain", speak)
    assert [message.role for message in said] == ["assistant", "tool", "tool", "tool", "assistant"]
    assert said[1].content == "7" and said[1].tool_call_id == "0" and "must be a list" in said[2].content == said[3].content
    assert judge(testbed, payment, said).checks["amount"]


def test_the_policy_uses_the_tool(testbed):
    check_policy(installed().policies.make("coins:check=true"), testbed)


@pytest.mark.parametrize("name", ["change", "mapf-frozenlake"])
def test_the_designer_and_the_context_module_on_any_testbed(name):
    world = installed().testbeds.make(name)
    check_designer(installed().designers.make("focus:strength=0.3"), world)
    check_context(installed().contexts.make("W"), world)


def test_the_tracker(tmp_path):
    check_tracker(lambda: installed().trackers.make("lines"), tmp_path)
    lines = (tmp_path / "figures.tsv").read_text().splitlines()
    assert lines[0] == "update\t1\treward\t0.5" and sum(line.startswith("#") for line in lines) == 2


def test_the_trainer(testbed, tmp_path):
    result = check_trainer(installed().trainers.make("remember"), testbed, tmp_path, settings={"tries": 4})
    assert json.loads((result.checkpoint / "memory.json").read_text())


def test_misspelt_settings_are_refused():
    with pytest.raises(T2TError, match="strength"):
        installed().designers.make("focus:strenght=0.3")


def test_the_order_of_the_coins_is_a_symmetry(testbed):
    request = testbed.request(20)
    for payment in testbed.generate(testbed.random_configuration(request, 1), request, 1):
        turned = dataclasses.replace(payment, coins=payment.coins[::-1])
        assert testbed.identity(turned) == testbed.identity(payment)
        assert testbed.identity(dataclasses.replace(payment, amount=payment.amount % 200 + 1)) != testbed.identity(payment)


def test_what_is_remembered_beats_the_largest_coin_first():
    assert largest_first((3, 4), 6) == [4], "4, and then nothing fits"
    assert pay((3, 4), 10, {"3,4": {"6": [3, 3]}}) == [3, 3, 4]


def test_the_loop_trains_a_better_policy(tmp_path):
    cli(["run", "--testbed", "change", "--out", str(tmp_path / "run")], standalone_mode=False)
    sets = json.loads((tmp_path / "run" / "bench" / "table.json").read_text())["sets"]
    (designed, base) = (sum(row["rates"]["valid"]["value"] for row in rows) for rows in zip(*(
        sorted(frozen_set["rows"], key=lambda row: row["arm"] != "designed") for frozen_set in sets
    ), strict=True))  # fmt: skip
    assert designed > base
