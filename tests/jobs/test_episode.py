"""An episode: it is bounded, saved call by call, and ends in the same bytes whatever interrupts it."""

import json
import sys
from contextlib import closing
from dataclasses import replace

import desks
import pytest

from t2t_core.errors import BudgetSpent, NotReady, T2TError
from t2t_core.hookspecs import EpisodeState
from t2t_core.records import AgentTurn, Response, ToolCall
from t2t_core.store import jsonlines
from t2t_core.store.paths import SafePath
from t2t_jobs.agents.rule import Rule
from t2t_jobs.agents.search import RandomSearch, SuccessiveHalving
from t2t_jobs.episode import Episode, Setup
from t2t_jobs.playing import play

FAMILY = desks.family()


def tool(name, **arguments):
    return ToolCall("1", name, json.dumps(arguments))


class Script:
    """An agent that says the same turns whoever asks."""

    def __init__(self, *turns):
        self.turns = turns

    def act(self, state: EpisodeState) -> AgentTurn:
        return self.turns[min(len(state.exchanges), len(self.turns) - 1)]

    def describe(self):
        return {}


LOOKS = tool("read_file", path="README.md"), tool("get_baseline_scores"), tool("read_file", path="../secret.json")
GUESSES = tool("write_file", path="job.toml", content='base = "huge"\n[training]\nlearning_rate = 5\n'), tool("submit_job")
MENDS = tool("edit_file", path="job.toml", old="huge", new="large"), tool("edit_file", path="job.toml", old="5", new="1e-3")
SUBMITS = tool("submit_job"), tool("write_file", path="job.toml", content="too late")
WRITES = Script(AgentTurn("I look.", LOOKS), AgentTurn("I guess.", GUESSES), AgentTurn("I mend.", (*MENDS, *SUBMITS)))


def begin(place, desk=None, budget=None, **setup):
    family = desks.family(budget=budget) if budget else FAMILY
    return Episode(SafePath(place) / "episode", Setup("e", family, "script", 7, **setup), desk or desks.PretendDesk(family))


def finished(place, agent, desk=None, **more):
    episode = begin(place, desk, **more)
    with closing(episode):
        play([episode], agent)
        return episode.result()


def lines(place):
    return [{k: v for k, v in line.value.items() if k != "at"} for line in jsonlines.read(place / "episode" / "calls.jsonl")]


def test_a_job_is_written_mended_and_submitted(tmp_path):
    result = finished(tmp_path, WRITES)
    assert (result.ended, result.valid_at, result.base, result.turns) == ("submitted", 2, "large", 3)
    assert [fault.where for fault in result.submissions[0].faults] == ["job.toml, base", "job.toml, training.learning_rate"]
    assert result.values == {"base": "large", "training.learning_rate": 1e-3}
    assert (result.best_pre, result.post) == (0.25, 0.75)
    # second submission 0.8; quality 0.25 * 0.75 + 0.75 * (0.5 + 0.5 * 0.5 / 0.75); a quarter of the time gone
    assert result.total == pytest.approx(0.35 * 0.8 + 0.6 * (0.1875 + 0.75 * (0.5 + 1 / 3)) + 0.05 * 0.75)
    assert (
        tmp_path / "episode" / "submissions" / "2" / "job.toml"
    ).read_text() == 'base = "large"\n[training]\nlearning_rate = 1e-3\n'
    assert (tmp_path / "episode" / "workspace" / "job.toml").read_text().endswith("1e-3\n"), "nothing is done after the end"


def test_every_call_is_on_the_disk_and_told(tmp_path):
    finished(tmp_path, WRITES)
    tools = [line["tool"] for line in lines(tmp_path) if "tool" in line]
    assert tools == [
        "read_file",
        "get_baseline_scores",
        "read_file",
        "write_file",
        "submit_job",
        "edit_file",
        "edit_file",
        "submit_job",
    ]
    told = [line["text"] for line in lines(tmp_path) if "tool" in line]
    assert told[1] == "small: 0.100\nlarge: 0.250"
    assert "leads out of the workspace" in told[2]
    assert told[4].startswith("2 things are wrong with the job; 2 submissions left.\n1. ") and "huge" in told[4]


@pytest.mark.thorough
def test_it_is_the_same_whatever_interrupts_it(tmp_path, monkeypatch):
    """Killed before and after every line of its log, it leaves the same files as an undisturbed one."""
    whole = finished(tmp_path / "whole", WRITES)
    assert whole is not None
    bytes_of = (tmp_path / "whole" / "episode" / "episode.json").read_bytes()
    append, count = jsonlines.Appender.append, len(lines(tmp_path / "whole"))
    for kill in range(2 * count):
        place, desk, at = tmp_path / f"kill_{kill}", desks.PretendDesk(FAMILY), iter(range(count + 1))

        def dying(self, value, at=at, kill=kill):
            number = next(at)
            if number == kill // 2 and kill % 2 == 0:
                raise KeyboardInterrupt
            append(self, value)
            if number == kill // 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(jsonlines.Appender, "append", dying)
        episode = begin(place, desk)
        with pytest.raises(KeyboardInterrupt):
            play([episode], WRITES)
        monkeypatch.setattr(jsonlines.Appender, "append", append)
        episode.close()
        finished(place, WRITES, desk)
        assert lines(place) == lines(tmp_path / "whole")
        assert (place / "episode" / "episode.json").read_bytes() == bytes_of
        assert set(desk.submitted) == {"e-2"}


def test_a_torn_last_line_is_cut_off(tmp_path):
    whole = finished(tmp_path, WRITES)
    path = tmp_path / "episode" / "calls.jsonl"
    (tmp_path / "episode" / "episode.json").unlink()
    path.write_bytes(path.read_bytes()[:-20])
    assert finished(tmp_path, WRITES) == whole


@pytest.mark.parametrize(
    ("agent", "budget", "ended"),
    [
        (Script(AgentTurn("Hm.")), {}, "turns"),
        (Script(AgentTurn("", (tool("list_files"),))), {"turns": 3}, "turns"),
        (
            Script(AgentTurn("", (tool("write_file", path="job.toml", content='base = "x"'), tool("submit_job")))),
            {},
            "submissions",
        ),
        (Script(AgentTurn("", (), Response("", 900, 100))), {"tokens": 1500}, "tokens"),
        (Script(AgentTurn("", (), Response("", 9, 1, cost_usd=0.02))), {"usd": 0.03}, "usd"),
        (Script(AgentTurn("")), {"seconds": 0.0}, "seconds"),
    ],
)
def test_every_budget_ends_it(tmp_path, agent, budget, ended):
    result = finished(tmp_path, agent, budget=replace(desks.BUDGET, **budget))
    assert result.ended == ended and result.valid_at is None
    assert result.total == (0 if ended == "submissions" else -0.1), "one was submitted that could be read; of the others none"


def test_a_job_that_cannot_be_read_is_worth_less_than_none_that_is_valid(tmp_path):
    broken = Script(AgentTurn("", (tool("write_file", path="job.toml", content="base = "), tool("submit_job"))))
    assert finished(tmp_path, broken).total == -0.1


def test_nobody_waits_for_the_job(tmp_path):
    desk = desks.PretendDesk(FAMILY, delay=2)
    episode = begin(tmp_path, desk)
    play([episode], WRITES)
    assert episode.over == "submitted" and episode.result() is None and episode.result() is None
    assert episode.result() is not None
    assert not (tmp_path / "episode" / "submissions" / "3").exists()


def test_an_agent_that_cannot_be_asked_is_asked_again_by_the_same_command(tmp_path):
    failing = Script(AgentTurn("", (), Response("", finish_reason="error", error="HTTP 503")))
    episode = begin(tmp_path)
    with pytest.raises(T2TError, match="could not be asked"):
        play([episode], failing)
    episode.close()
    assert lines(tmp_path) == []
    assert finished(tmp_path, WRITES).ended == "submitted"


def test_costs_are_charged_once_whatever_is_killed(tmp_path):
    charged = {}
    said = AgentTurn("", (tool("list_files"),), Response("", 100, 10, cost_usd=0.01))
    for _ in range(3):
        episode = Episode(SafePath(tmp_path) / "e", Setup("e", FAMILY, "script", 7), desks.PretendDesk(FAMILY),
                          lambda call, *cost: charged.__setitem__(call, cost))  # fmt: skip
        episode.take(said)
        episode.close()
    assert charged == {f"e/turn-{n}": (100, 10, 0.01) for n in range(3)} and episode.usd == pytest.approx(0.03)


def test_a_budget_beyond_the_episode_is_no_fault_of_the_agents(tmp_path):
    """The agent is not graded for it: its turns are kept, and with more money the episode continues."""

    def refuse(*_):
        raise BudgetSpent("nothing is left")

    spends = Script(AgentTurn("", (tool("list_files"),), Response("", 100, 10, cost_usd=0.01)), *WRITES.turns[1:])
    place, setup, desk = SafePath(tmp_path) / "episode", Setup("e", FAMILY, "script", 7), desks.PretendDesk(FAMILY)
    with closing(Episode(place, setup, desk, refuse)) as episode, pytest.raises(BudgetSpent):
        play([episode], spends)
    assert len(lines(tmp_path)) == 1
    with closing(Episode(place, setup, desk)) as episode:
        play([episode], spends)
        assert episode.over == "submitted" and episode.usd == 0.01


# --- the agents that ask no model


def test_a_fault_of_this_machine_is_not_told_to_the_agent(tmp_path):
    """It could do nothing about it and would waste its turns. Once scores are available, the same command asks for them again."""
    desk = desks.PretendDesk(FAMILY)

    def broken():
        raise NotReady("local models need the training extra")

    desk.baselines, whole = broken, desk.baselines
    episode = begin(tmp_path, desk)
    with closing(episode), pytest.raises(NotReady):
        play([episode], WRITES)
    desk.baselines = whole
    assert finished(tmp_path, WRITES, desk) == finished(tmp_path / "undisturbed", WRITES)
    assert lines(tmp_path) == lines(tmp_path / "undisturbed")


def test_nothing_is_asked_where_the_jobs_could_not_run(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from t2t_core.cli import cli

    monkeypatch.setitem(sys.modules, "torch", None)
    command = ["episode", "--agent", "rule", "--family", "draw-optimal", "--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(cli, command)
    assert isinstance(shown.exception, NotReady) and not list((tmp_path / "out").rglob("calls.jsonl"))


def test_random_search_draws_within_bounds_and_ends_with_its_best(tmp_path):
    past = []
    for number in range(6):
        result = finished(tmp_path / str(number), RandomSearch(), past=tuple(past), final=number == 5)
        assert result.valid_at == 1, result.submissions
        past.append(result.tried())
    best = max(past[:5], key=lambda tried: tried.reward)
    assert past[5].values == best.values


def test_successive_halving_gives_the_best_more(tmp_path):
    agent, past = SuccessiveHalving(settings={"jobs": "13"}), []
    assert agent.widths == [9, 3, 1]
    for number in range(14):
        family = desks.family()
        setup = Setup("e", family, "sh", number, tuple(past), final=number == 13)
        episode = Episode(SafePath(tmp_path / str(number)) / "episode", setup, desks.PretendDesk(family))
        play([episode], agent)
        past.append(episode.result().tried())
    samples = [int(tried.values.get("generation.samples", 64)) for tried in past]
    top = sorted(past[:9], key=lambda tried: -tried.reward)[:3]
    assert samples[9:12] == [3 * int(tried.values["generation.samples"]) for tried in top]
    assert samples[12] == 3 * max(past[9:12], key=lambda tried: tried.reward).values["generation.samples"]
    assert past[13].values == past[12].values


def test_the_rule_takes_the_best_base_and_puts_back_what_is_wrong(tmp_path):
    result = finished(tmp_path, Rule())
    assert (result.base, result.valid_at, result.values["training.learning_rate"]) == ("large", 1, 1e-4)
    fault = desks.Failure("generation.samples is too many", where="job.toml")
    state = EpisodeState(FAMILY, "", begin(tmp_path / "b").state().exchanges, (), 3)
    asked = replace(state, exchanges=[desks.told("small: 0.1\nlarge: 0.2")])
    mended = Rule().act(replace(asked, failures=[fault], submissions=2))
    assert "samples" in Rule().act(asked).calls[0].arguments and "samples" not in mended.calls[0].arguments


@pytest.mark.parametrize("make", [RandomSearch, SuccessiveHalving, Rule])
def test_they_refuse_what_they_do_not_know(make):
    with pytest.raises(T2TError):
        make("anything")
    with pytest.raises(T2TError, match="no setting"):
        make("", {"joobs": "3"})
