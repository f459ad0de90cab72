"""The testbed plug: the contract, where games stand, what designers write, reported rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core import hookspecs
from t2t_core.conversation import judge, play
from t2t_core.errors import T2TError
from t2t_core.evaluation.columns import columns_of
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.tables import tabulate
from t2t_core.plugins import installed
from t2t_core.records import Message, Place, Response, Sampling, Scored, Task
from t2t_core.run.closing_bench import measure
from t2t_core.seeding import key
from t2t_core.testing import check_testbed
from t2t_envs.tictactoe import CHECKS, Instance, sets
from t2t_envs.tictactoe.generation.configuration import NAMES
from t2t_envs.tictactoe.testbed import TicTacToe, make, parse_opponents

BED: hookspecs.AnyTestbed = TicTacToe()


def test_it_is_a_testbed() -> None:
    check_testbed(make())
    assert installed().testbeds.make("tictactoe").name == BED.name == "tictactoe"
    with pytest.raises(T2TError, match="no argument"):
        installed().testbeds.make("tictactoe:x")


def test_places() -> None:
    def place(**fields: Any) -> Place:
        return BED.place(Instance(**fields))

    assert place(p=1.0) == Place("against random moves", "moving first", "0.75-1 first start", "0.75-1")
    assert place(p=0.0, mover="opponent").table == "against optimal play"
    assert place(p=0.0, mover="opponent").column == "moving second"
    assert place(p=0.0, opponent="second").table == "against the second optimal player"
    assert place(p=0.25, board="X...O....") == Place("against mixed play", "p 0.25-0.5", "0.25-0.5 first mid-game", "0.25-0.5")
    assert place(p=0.0, opponent="first").table == "against mixed play, first"


def test_a_set_of_two_tables_that_name_columns_alike_keeps_them_apart() -> None:
    """A run's closing bench as the leaderboard: a file of one's own may hold games against several opponents."""
    games = [*BED.load_set("random").instances[:6], *BED.load_set("optimal").instances[:6]]
    evaluation = Evaluation(BED, games)
    answers = []
    for game in games:
        speaker = "4" if game.p == 1 else "nonsense"
        messages = play(BED, game, "compact", lambda seen, speaker=speaker: Message("assistant", f"<move>{speaker}</move>"))
        answers.append(Scored(game, 0, Response(""), judge(BED, game, messages, "compact"), messages))
    tables = tabulate(BED, answers, 1)
    measured = measure(evaluation, answers)
    for metric in measured.rates:
        for table in tables:
            for column, figures in tables[table].cells.items():
                rates = measured.rates[metric][f"{table}, {column}"]
                assert sum(rates.values()) / len(rates) == pytest.approx(figures[metric].value / 100), (metric, table, column)
    columns = columns_of(BED, games)
    assert set(columns.values()) == {f"{table}, moving {turn}" for table in tables for turn in ("first", "second")}
    assert set(columns_of(BED, games[:6]).values()) == {"moving first", "moving second"}


def test_every_validation_game_is_in_a_cell_of_the_curricula() -> None:
    cells = [cell.name for cell in BED.cells(BED.request(1))]
    assert len(cells) == len(set(cells)) == 16
    assert {BED.cell_of(BED.place(game).cell) for game in BED.load_set("validation").instances} == set(cells)
    assert BED.cell_of("0-0.25") is None and BED.cell_of("") is None


@pytest.mark.parametrize(
    "text",
    ["0.25-0.5", "[0.25, 0.5)", "0.25 – 0.50", "p 0.25 to 0.5", "p: .25-.5", "band 0.25..0.5", "Opponent band 0.25-0.5 "],
)
def test_bands_that_designers_mean(text: str) -> None:
    assert BED.group_of(text) == "0.25-0.5"


@pytest.mark.parametrize("text", ["", "0.25", "0.2-0.5", "0.5-0.25", "25-50", "easy", "0.25-0.5-0.75", "٠-١", "-0.25-0.5"])
def test_what_is_no_band(text: str) -> None:
    assert BED.group_of(text) is None


def test_bands_are_read_as_they_are_written() -> None:
    assert [BED.group_of(name) for name in BED.groups] == list(NAMES) == list(BED.groups)
    assert (BED.group_of("0-.25"), BED.group_of("0.75-1.0")) == ("0-0.25", "0.75-1")


def test_opponents_choose_the_sets() -> None:
    (option,) = BED.options()
    assert list(BED.set_names({"opponents": option.parse(option.default)})) == ["random", "optimal", "second"]
    assert parse_opponents("second, random,second") == ("second", "random")
    for text in ("", "x", "random,", "validation"):
        with pytest.raises(T2TError, match="no set against"):
            parse_opponents(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: st.dictionaries(st.sampled_from([*NAMES, "share", "p_low", "p_high", "first", "mid_game"]), inner),
    max_leaves=20,
)


@given(proposal=JSON, seed=st.integers(0, 99))
def test_whatever_project_passes_generate_fills(proposal: Any, seed: int) -> None:
    request = BED.request(20)
    projected = BED.project(proposal, BED.random_configuration(request, seed), request)
    assert len(BED.generate(projected.configuration, request, seed)) == 20
    again = BED.project(projected.configuration.to_dict(), projected.configuration, request)
    assert again.configuration == projected.configuration and not again.changes


def test_project_keeps_p_in_its_band_and_says_so() -> None:
    request = BED.request(20)
    previous = BED.random_configuration(request, 0)
    even = {name: {"share": 0.25, "p_low": 0.9, "p_high": 0.3, "first": 0.5, "mid_game": 0.0} for name in NAMES}
    projected = BED.project(even, previous, request)
    ends = {name: (values["p_low"], values["p_high"]) for name, values in projected.configuration.to_dict().items()}
    assert ends == {"0.75-1": (0.75, 0.9), "0.5-0.75": (0.5, 0.75), "0.25-0.5": (0.3, 0.5), "0-0.25": (0.25, 0.25)}
    reasons = [change.reason for change in projected.changes]
    assert any("clipped to the band, 0.25..0.5" in reason for reason in reasons)
    assert sum("exchanged" in reason for reason in reasons) == 6


def games(policy: str, instances: Any, format: str) -> list[Scored]:
    """Games of a policy, turn by turn."""
    player = installed().policies.make(policy)
    scored = []
    for instance in instances:

        def speak(seen: Any, instance: Instance = instance) -> Message:
            turn = sum(message.role == "assistant" for message in seen)
            task = Task(instance.id, 0, seen[-1].content, instance, key(1, instance.id, seen[-1].content), seen, turn, ())
            ((_, response),) = player.respond([task], Sampling())
            return Message("assistant", response.text)

        messages = play(BED, instance, format, speak)
        scored.append(Scored(instance, 0, Response(""), BED.verify(instance, messages, format), messages))
    return scored


@pytest.mark.parametrize("format", BED.prompt_formats)
def test_minimax_never_loses_and_never_gives_anything_away(format: str) -> None:
    for name in sets.EVALUATION:
        instances = sets.load_set(name).instances[:100]
        scored = games("minimax", instances, format)
        assert all(s.verdict.valid and s.verdict.optimal for s in scored)
        assert all(s.verdict.figures["form"] == 1 for s in scored)
        if name != "random":
            assert all(s.verdict.figures["draw"] == 1 for s in scored), "it draws itself in every game"


def test_players_are_as_strong_as_they_say() -> None:
    def won(policy: str, name: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for s in games(policy, sets.load_set(name).instances[:200], "compact"):
            counts.update(ending for ending in ("win", "draw", "loss") if s.verdict.figures[ending])
            assert s.verdict.checks["legal"] and s.verdict.checks["format"]
        return counts

    strength = [won(policy, "random")["win"] for policy in ("random", "minimax:p=0.5", "minimax")]
    assert strength == sorted(strength) and strength[0] < 110 and strength[2] > 160
    assert won("random", "optimal")["win"] == won("minimax", "optimal")["win"] == 0
    assert won("minimax:p=1", "optimal")["draw"] < 50
    assert won("first-free", "random")["loss"] > 20


def test_planners_know_their_world() -> None:
    lake = installed().testbeds.make("mapf-frozenlake").load_set("validation_2agents").instances[0]
    task = Task(lake.id, 0, "", lake.unlabelled(), 1)
    with pytest.raises(T2TError, match="plans on tic-tac-toe instances"):
        list(installed().policies.make("minimax").respond([task], Sampling()))
    game = Task("game", 0, ".........", Instance(id="game"), 1)
    with pytest.raises(T2TError, match="plans on MAPF-FrozenLake instances"):
        list(installed().policies.make("cbs").respond([game], Sampling()))
    random = installed().policies.make("random:max_steps=3")
    answers = dict(random.respond([game, task], Sampling()))
    assert answers[0].text in "012345678" and answers[1].text.startswith("<answer>")
    with pytest.raises(T2TError, match="shows no board"):
        list(installed().policies.make("minimax").respond([Task("game", 0, "hello", Instance(id="game"), 1)], Sampling()))


def test_the_breakdown_tells_bands_and_failures() -> None:
    facts = BED.breakdown(games("minimax:p=1", BED.load_set("validation").instances, "compact"))
    assert list(facts["groups"]) == list(NAMES)
    assert list(facts["total"]["failures"]) == list(CHECKS)
    rates = [facts["groups"][name]["valid"] for name in NAMES]
    assert rates[0] > rates[3], "the groups rise in difficulty"
    failed = facts["total"]["first_failures"]
    assert failed["no_missed_win"] and failed["no_missed_block"] and failed["no_fork"] and not failed["legal"]


def test_metrics() -> None:
    verdict = BED.verify(Instance(p=1.0, seed=1), (Message("assistant", "0"),) * 8, "compact")
    response = Response("", completion_tokens=8)
    assert {metric.name: metric.value(verdict, response) for metric in BED.metrics} == {
        "win": 0, "draw": 0, "loss": 1, "valid": 0, "optimal": 0, "format": 1, "invalid": 1, "turns": 8, "response_tokens": 8,
    }  # fmt: skip


def test_reported_rows_are_the_courses() -> None:
    rows = {row["policy"]: row["total"] for row in BED.reported("random", ["moving first"])}
    assert len(rows) == 5 and rows["gpt-5-mini"] == {"win": {"value": 90.0}, "draw": {"value": 9.0}, "loss": {"value": 1.0}}
    for name in ("random", "optimal"):
        for row in BED.reported(name, []):
            assert sum(figure["value"] for figure in row["total"].values()) == 100
            assert "llm-rl-environments-lil-course" in row["source"] and row["cells"] == {}
    assert BED.reported("second", []) == [] == BED.reported("validation", [])


def test_shared_counts_starting_positions() -> None:
    mine = [Instance(seed=1), Instance(mover="opponent", seed=2), Instance("X...O....", seed=3)]
    assert BED.shared(mine, [Instance("..X.O....", seed=9)]) == {"starting positions": 1}


def test_the_guideline_names_no_round() -> None:
    assert 300 < len(BED.guideline) < 2000
