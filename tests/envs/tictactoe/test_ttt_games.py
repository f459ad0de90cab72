"""Instances, opponents, generated games and the frozen sets."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import pytest
import ttt_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.records import Message
from t2t_core.seeding import Stream
from t2t_envs.tictactoe import rules, sets
from t2t_envs.tictactoe.game import replay
from t2t_envs.tictactoe.generation import frozen_sets
from t2t_envs.tictactoe.generation.configuration import BANDS, NAMES, BandKnobs, Configuration, band_of
from t2t_envs.tictactoe.generation.generator import generate, mid_game_start
from t2t_envs.tictactoe.generation.projection import random_configuration
from t2t_envs.tictactoe.generation.request import Request
from t2t_envs.tictactoe.instance import MAX_SEED, MOVERS, Instance, start_fault, stones
from t2t_envs.tictactoe.opponents import opponent_move
from t2t_envs.tictactoe.testbed import TicTacToe

BED = TicTacToe()
SEEDS = st.integers(0, MAX_SEED)
OPEN = [(board, mover) for board, mover in oracle.reachable() if mover == "O" and not oracle.over(board)]


def reply(board: str, **options: object) -> int:
    """The opponent's move: it is O."""
    return opponent_move(Instance(**options), stones(board, "X"), stones(board, "O"))


# --- instances


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("board", "XXX......", "not the policy's turn"),
        ("board", "XXXOO.O..", "won already"),
        ("board", "XOXOXOOX.", "fewer than two"),
        ("board", "xo.......", "board"),
        ("board", "....", "board"),
        ("board", 7, "board"),
        ("mover", "nobody", "mover"),
        ("mover", None, "mover"),
        ("p", 1.5, "p must be"),
        ("p", float("nan"), "p must be"),
        ("p", True, "p must be"),
        ("opponent", "third", "opponent"),
        ("seed", -1, "seed"),
        ("seed", 2**53, "seed"),
        ("seed", 1.0, "seed"),
        ("seeded", 1, "seeded"),
        ("id", "\x1b[31m", "id"),
    ],
)
def test_instances_are_checked(field: str, value: object, says: str) -> None:
    with pytest.raises(T2TError, match=says):
        Instance.from_dict(Instance().to_dict() | {field: value})


def test_no_game_starts_where_the_opponent_would_end_it() -> None:
    with pytest.raises(T2TError, match="before the policy has moved"):
        Instance("XX.OO....", "opponent")
    assert Instance("XX.OO....").mover == "policy"


def test_fields_missing_and_unknown() -> None:
    with pytest.raises(T2TError, match="no field 'seed'"):
        Instance.from_dict({"board": "." * 9, "mover": "policy", "p": 1})
    with pytest.raises(T2TError, match="unknown field 'colour'"):
        Instance.from_dict(Instance().to_dict() | {"colour": "red"})


@given(seed=SEEDS, board=st.sampled_from(oracle.reachable()), places=st.sampled_from(rules.SYMMETRIES))
def test_identity_is_position_up_to_symmetry_mover_and_seed(
    seed: int, board: tuple[str, str], places: tuple[int, ...]
) -> None:
    start, mover = board[0], "policy" if board[1] == "X" else "opponent"
    if start_fault(stones(start, "X"), stones(start, "O"), mover) is not None:
        return
    turned = "".join(start[places.index(cell)] for cell in range(9))
    game = Instance(start, mover, 0.5, seed=seed)
    assert game.identity() == Instance(turned, mover, 0.1, "second", seed, id="other").identity()
    assert game.identity() != replace(game, seed=(seed + 1) & MAX_SEED).identity()
    back = json.loads(json.dumps(game.to_dict()))
    assert Instance.from_dict(back) == game


def test_identities_tell_games_apart() -> None:
    assert Instance().identity() != Instance(mover="opponent").identity()
    assert Instance("X...O....").identity() == Instance("..X.O....").identity() != Instance(".X..O....").identity()


# --- opponents


def test_a_perfect_opponent_draws_uniformly_among_all_optimal_moves() -> None:
    for board, _ in OPEN[::40]:
        best = [c for c in oracle.free(board) if -oracle.outcome(oracle.put(board, c, "O"), "X") == oracle.outcome(board, "O")]
        drawn = Counter(reply(board, p=0.0, seed=seed) for seed in range(60 * len(best)))
        assert set(drawn) == set(best)
        assert sum((n - 60) ** 2 / 60 for n in drawn.values()) < 30, "chi-square with at most 8 degrees of freedom"


def test_an_opponent_of_strength_p_moves_at_random_that_often() -> None:
    board = "XX..O...."  # one optimal move: to block on 2
    for p in (0.0, 0.3, 1.0):
        drawn = Counter(reply(board, p=p, seed=seed) for seed in range(6000))
        assert drawn[2] / 6000 == pytest.approx(1 - p + p / 6, abs=0.03)
        assert len(drawn) == (1 if p == 0 else 6)


def test_the_second_player_is_optimal_and_has_habits_of_its_own() -> None:
    firsts = 0
    for board, _ in OPEN:
        cell = reply(board, p=0.0, opponent="second", seed=1)
        worth = {c: -oracle.outcome(oracle.put(board, c, "O"), "X") for c in oracle.free(board)}
        best = [c for c in worth if worth[c] == max(worth.values())]
        assert cell in best and cell == reply(board, p=0.0, opponent="second", seed=2), "it draws nothing"
        at_once = oracle.completes(board, "O")
        if at_once:
            assert cell == at_once[-1]
        else:
            losing = {c: _losing(oracle.put(board, c, "O")) for c in best}
            assert cell == max(c for c in best if losing[c] == max(losing.values()))
        first = reply(board, p=0.0, opponent="first", seed=1)
        assert first == best[0]
        firsts += first != cell
    assert firsts > len(OPEN) / 4


def _losing(board: str) -> int:
    return sum(oracle.outcome(oracle.put(board, c, "X"), "O") == 1 for c in oracle.free(board))


@given(seed=SEEDS, p=st.floats(0, 1), order=st.permutations([0, 2, 6]), mover=st.sampled_from(MOVERS))
def test_rollouts_of_one_game_differ_by_the_policys_play_only(seed: int, p: float, order: list[int], mover: str) -> None:
    """Whatever was said on the way: where the board is the same, the opponent moves alike."""
    instance = Instance(mover=mover, p=p, seed=seed)
    answers: dict[str, int | None] = {}
    for said in (order, [order[0], 99, *order[1:]], sorted(order), [*order, 8, 1, 3]):
        for words, format in (("{}", "compact"), ("<think>other words</think>{}", "think")):
            game = replay(instance, [Message("assistant", words.format(cell)) for cell in said], format)
            for turn in game.turns:
                if turn.cell is not None:
                    after = f"{turn.policy | 1 << turn.cell} {turn.opponent}"
                    assert answers.setdefault(after, turn.answer) == turn.answer
    assert answers


@given(seed=SEEDS, number=st.integers(0, 100))
def test_only_games_without_a_seed_give_rollouts_their_own_chance(seed: int, number: int) -> None:
    game = Instance(p=1.0, seed=seed)
    assert BED.rollout(game, number) is game
    free = replace(game, seeded=False)
    assert BED.rollout(free, number) == BED.rollout(free, number)
    assert BED.rollout(free, number).seed != BED.rollout(free, number + 1).seed
    assert BED.rollout(free, number).seeded is False


# --- the generator

EVEN = Configuration.uniform(0.2, 0.7, first=0.5, mid_game=0.25)


def test_uniform_ranges_are_spread_over_the_bands_they_touch() -> None:
    assert [round(k.share, 6) for k in EVEN.knobs] == [0.0, 0.4, 0.5, 0.1]
    assert (EVEN["0.5-0.75"].p_low, EVEN["0.5-0.75"].p_high) == (0.5, 0.7)
    assert [k.share for k in Configuration.uniform(1.0, 1.0).knobs] == [1.0, 0.0, 0.0, 0.0]
    assert [k.share for k in Configuration.uniform(0.25, 0.25).knobs] == [0.0, 0.0, 1.0, 0.0]
    for ends in ((0.7, 0.2), (-0.1, 0.5), (0, 2), (None, 1)):
        with pytest.raises(T2TError, match="p_low to p_high"):
            Configuration.uniform(*ends)  # type: ignore[arg-type]


def test_counts_are_exact() -> None:
    games = generate(EVEN, Request(1000), 1)
    assert Counter(band_of(g.p).name for g in games) == {"0.5-0.75": 400, "0.25-0.5": 500, "0-0.25": 100}
    for band, count in {"0.5-0.75": 400, "0.25-0.5": 500, "0-0.25": 100}.items():
        mine = [g for g in games if band_of(g.p).name == band]
        assert sum(g.mover == "policy" for g in mine) == count // 2
        assert sum(not g.starts_empty for g in mine) == count // 4
        kinds = Counter((g.mover, g.starts_empty) for g in mine)
        assert all(abs(kinds[mover, False] - count / 8) <= 0.5 for mover in MOVERS)
    assert all(0.2 <= g.p <= 0.7 for g in games)
    assert [g.id for g in games[:2]] == [f"{band_of(g.p).name}_{i:05d}" for i, g in enumerate(games[:2])]


@given(count=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_counts_follow_the_largest_remainder(count: int, seed: int) -> None:
    configuration = random_configuration(seed)
    counts = Counter(band_of(g.p).name for g in generate(configuration, Request(count), seed))
    for name, knobs in zip(NAMES, configuration.knobs, strict=True):
        assert abs(counts[name] - knobs.share * count) < 1
    assert {name: counts[name] for name in NAMES} == configuration.counts(count)


def test_every_stretch_is_even() -> None:
    games = generate(Configuration.uniform(0.0, 1.0), Request(1024), 3)
    for start in range(0, 1024, 32):
        batch = games[start : start + 32]
        assert Counter(band_of(g.p).name for g in batch) == dict.fromkeys(NAMES, 8)
        assert sum(g.mover == "policy" for g in batch) == 16
        ordered = sorted(g.p for g in batch)
        assert max(b - a for a, b in pairwise([0.0, *ordered, 1.0])) < 0.12
        for mover in MOVERS:
            assert sum(g.p for g in batch if g.mover == mover) / 16 == pytest.approx(0.5, abs=0.06)


def test_without_strata_each_game_is_drawn_by_itself() -> None:
    games = generate(Configuration.uniform(0.0, 1.0), Request(4096, stratified=False), 3)
    batches = [Counter(band_of(g.p).name for g in games[i : i + 32])["0-0.25"] for i in range(0, 4096, 32)]
    mean = sum(batches) / len(batches)
    variance = sum((b - mean) ** 2 for b in batches) / len(batches)
    assert mean == pytest.approx(8, abs=0.6) and variance == pytest.approx(32 * 0.25 * 0.75, rel=0.5)
    assert sum(g.p for g in games) / 4096 == pytest.approx(0.5, abs=0.03)
    only = generate(Configuration.from_dict({"0-0.25": knobs(0.1, 0.2)}), Request(50, stratified=False), 1)
    assert all(0.1 <= g.p <= 0.2 for g in only)


def knobs(low: float, high: float, **others: float) -> dict[str, float]:
    return {"share": 1.0, "p_low": low, "p_high": high, "first": 0.5, "mid_game": 0.0} | others


@pytest.mark.parametrize("band", BANDS, ids=NAMES)
def test_the_ends_of_a_band_lie_in_it(band) -> None:
    for p in (band.low, band.high):
        games = generate(Configuration.from_dict({band.name: knobs(p, p)}), Request(3), 0)
        assert {band_of(g.p).name for g in games} == {band.name}
        assert all(abs(g.p - p) <= 1e-4 for g in games)


def test_requests_reach_the_games() -> None:
    for opponent in ("second", "first"):
        games = generate(EVEN, BED.request(20, opponent=opponent, seeded=False), 1)
        assert {(g.opponent, g.seeded) for g in games} == {(opponent, False)}
    first = generate(EVEN, Request(5), 1)
    again = generate(EVEN, Request(5, frozenset(g.identity() for g in first)), 1)
    assert [g.p for g in first] == [g.p for g in again] and not {g.identity() for g in first} & {g.identity() for g in again}
    wrong = {"count": 0, "opponent": "best", "seeded": "no", "stratified": None, "exclude": "x"}
    for name, value in wrong.items():
        with pytest.raises(T2TError, match=name):
            Request(**{"count": 1, name: value})  # type: ignore[arg-type]
    with pytest.raises(T2TError, match="unknown generation option"):
        BED.request(10, agents=2)


def test_starts_in_mid_game_are_positions_of_random_play() -> None:
    for mover, mark in zip(MOVERS, "XO", strict=True):
        boards = Counter(mid_game_start(mover, Stream(seed)) for seed in range(3000))
        sizes = Counter(9 - board.count(".") for board in boards.elements())
        assert set(sizes) == set(range(1, 8)) and max(sizes.values()) < 1.3 * min(sizes.values())
        for board in boards:
            assert not oracle.over(board) and board.count(".") >= 2
            gap = board.count("X") - board.count("O")
            assert gap in ((0, -1) if mark == "X" else (0, 1))
            assert mark == "X" or not oracle.completes(board, "O")


def test_groups_must_be_sound() -> None:
    for data, says in (
        ({"0-1": knobs(0, 1)}, "unknown opponent band"),
        ({"0-0.25": {"share": 1}}, "missing"),
        ({"0-0.25": knobs(0, 0.2, agents=2)}, "unknown"),
        ({"0-0.25": knobs(0, 0.3)}, "p_high must be"),
        ({"0-0.25": knobs(0.2, 0.1)}, "above p_high"),
        ({"0-0.25": knobs(0.1, 0.2, share=0.5)}, "sum to 0.5"),
        ({"0-0.25": 3}, "JSON object"),
        ([], "JSON object"),
    ):
        with pytest.raises(T2TError, match=says):
            Configuration.from_dict(data)  # type: ignore[arg-type]
    with pytest.raises(T2TError, match="one BandKnobs"):
        Configuration((BandKnobs(1.0, 0.0, 0.1),))


# --- the frozen sets

FOLDER = files("t2t_envs.tictactoe.sets")


@pytest.mark.parametrize("plan", frozen_sets.PLANS, ids=lambda plan: plan.name)
def test_evaluation_sets_hold_200_seeds_and_both_movers(plan: frozen_sets.Plan) -> None:
    games = sets.load_set(plan.name).instances
    assert len(games) == 400 and len({g.seed for g in games}) == 200
    assert {(g.p, g.opponent, g.board, g.seeded) for g in games} == {(plan.p, plan.opponent, "." * 9, True)}
    for first, second in zip(games[::2], games[1::2], strict=True):
        assert first.seed == second.seed and (first.mover, second.mover) == MOVERS
        assert first.id.endswith("_first") and second.id.endswith("_second")


def test_the_validation_set_is_even() -> None:
    validation = sets.load_set("validation")
    assert (validation.kind, len(validation.instances)) == ("validation", 200)
    for band in BANDS:
        mine = [g for g in validation.instances if band_of(g.p) == band]
        assert len(mine) == 50 and sum(g.mover == "policy" for g in mine) == 25
        assert sum(not g.starts_empty for g in mine) == 13
        assert max(b - a for a, b in pairwise([band.low, *sorted(g.p for g in mine), band.high])) < 0.02


def test_no_game_is_in_two_sets_and_none_is_trained_on() -> None:
    everything = [g.identity() for name in sets.NAMES for g in sets.load_set(name).instances]
    assert len(set(everything)) == len(everything) == 1400
    assert sets.identities() == set(everything) == BED.request(1).exclude


def test_all_files_come_out_again_bit_for_bit(tmp_path) -> None:
    names = frozen_sets.write_files(tmp_path)
    assert set(names) == {path.name for path in FOLDER.iterdir() if path.suffix not in (".py", ".pyc", "")} | {"SHA256SUMS"}
    for name in names:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()
    sums = dict(reversed(line.split()) for line in (FOLDER / "SHA256SUMS").read_text().splitlines())
    assert sums == {n: hashlib.sha256((FOLDER / n).read_bytes()).hexdigest() for n in names if n != "SHA256SUMS"}


@pytest.mark.parametrize("name", sets.NAMES)
def test_a_twin_is_of_the_same_distribution_and_has_none_of_the_games(name: str) -> None:
    frozen, twin, other = sets.load_set(name), sets.twin(name, 1), sets.twin(name, 2)
    assert twin.kind == "twin" and twin.sha256 != other.sha256 and len(twin.instances) == len(frozen.instances)
    assert not {g.identity() for g in twin.instances} & sets.identities()

    def kinds(games):
        return [(g.mover, g.opponent, band_of(g.p).name, g.starts_empty) for g in games]

    assert kinds(twin.instances) == kinds(frozen.instances)
    assert [g.id for g in twin.instances] == [f"twin1_{g.id}" for g in frozen.instances]
    with pytest.raises(T2TError, match="seed"):
        sets.twin(name, -1)


def test_the_second_players_set_says_that_its_games_are_alike() -> None:
    assert "draws nothing" in sets.load_set("second").notes[0]
