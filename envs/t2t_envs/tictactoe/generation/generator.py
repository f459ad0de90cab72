"""Games from a configuration: their counts are exact, and every stretch of them covers the configuration evenly."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from math import floor

from t2t_core.seeding import Stream
from t2t_core.shares import apportion

from .. import rules
from ..instance import EMPTY, MOVERS, Instance, board_text, start_fault
from .configuration import BANDS, P_STEP, Band, BandKnobs, Configuration
from .request import Request

MOST_STONES = 7  # the most stones of a mid-game start, so that at least two cells are free
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: its multiples fill the circle evenly at every length
_CIRCLE = 1 << 64


def generate(configuration: Configuration, request: Request, seed: int) -> list[Instance]:
    """`request.count` games, the same for the same arguments; ids are `<band>_<number>`.

    Bands have exact counts, by largest remainder, with ties to the weaker opponent. Of a band's n games, floor(share * n + 1/2)
    have the policy moving first, and the number of mid-game starts is rounded likewise (our choice). Consecutive games are spread
    evenly over the bands, and within a band over its range of p, over who moves first and over starts (our choice: bands take
    turns by their shares, and p steps through the range by the golden ratio). Without `request.stratified`, each game is drawn by
    itself and the counts are left to chance.
    """
    stream = Stream.of(seed, "games")
    plans = _stratified(configuration, request.count, stream) if request.stratified else _drawn(configuration, request, stream)
    games = []
    for number, (band, p, first, mid_game) in enumerate(plans):
        games.append(_game(f"{band.name}_{number:05d}", p, first, mid_game, request, stream.fork(number)))
    return games


Plan = tuple[Band, float, bool, bool]  # band, p, whether the policy moves first, whether it starts in mid-game


def _stratified(configuration: Configuration, count: int, stream: Stream) -> list[Plan]:
    placed: list[tuple[float, int, Plan]] = []
    for rank, band in enumerate(BANDS):
        share = configuration.counts(count)[band.name]
        for i, plan in enumerate(_band(band, configuration[band.name], share, stream)):
            placed.append(((i + 0.5) / share, rank, plan))
    return [plan for _, _, plan in sorted(placed, key=lambda item: item[:2])]


def _band(band: Band, knobs: BandKnobs, count: int, stream: Stream) -> list[Plan]:
    """The games of one band, in an order in which every stretch is even."""
    start = stream.next()
    plans = []
    for i, kind in enumerate(_spread(_mixtures(knobs, count))):
        p = _within(band, knobs, (start + i * _GOLDEN) % _CIRCLE / _CIRCLE)
        plans.append((band, p, kind in (0, 1), kind in (0, 2)))
    return plans


def _mixtures(knobs: BandKnobs, count: int) -> list[int]:
    """How many games are (first, mid-game), (first, start), (second, mid-game) and (second, start). Both shares are exact, and
    the mid-game starts are divided in proportion between moving first and moving second."""
    if not count:
        return []
    first, mid_game = (floor(share * count + 0.5) for share in (knobs.first, knobs.mid_game))
    of_first, of_second = apportion([first, count - first], mid_game)
    return [of_first, first - of_first, of_second, count - first - of_second]


def _spread(counts: Sequence[int]) -> list[int]:
    """The kinds in an order that spreads each of them evenly over the whole."""
    placed = [((i + 0.5) / count, kind) for kind, count in enumerate(counts) for i in range(count)]
    return [kind for _, kind in sorted(placed)]


def _within(band: Band, knobs: BandKnobs, share: float) -> float:
    """The p at this share of the band's range, as a multiple of P_STEP within the band."""
    p = floor((knobs.p_low + share * (knobs.p_high - knobs.p_low)) / P_STEP + 1e-6) * P_STEP
    return round(min(max(p, band.low), band.highest), 4)


def _drawn(configuration: Configuration, request: Request, stream: Stream) -> list[Plan]:
    bands = [(band, knobs) for band, knobs in zip(BANDS, configuration.knobs, strict=True) if knobs.share > 0]
    ends = list(accumulate(knobs.share for _, knobs in bands))
    plans = []
    for _ in range(request.count):
        band, knobs = bands[min(bisect(ends, stream.uniform()), len(bands) - 1)]
        p = _within(band, knobs, stream.uniform())
        plans.append((band, p, stream.uniform() < knobs.first, stream.uniform() < knobs.mid_game))
    return plans


def _game(id: str, p: float, first: bool, mid_game: bool, request: Request, stream: Stream) -> Instance:
    mover = MOVERS[0] if first else MOVERS[1]
    board = mid_game_start(mover, stream) if mid_game else EMPTY
    while True:
        game = Instance(board, mover, p, request.opponent, stream.next() >> 11, request.seeded, id)
        if game.identity() not in request.exclude:
            return game


def mid_game_start(mover: str, stream: Stream) -> str:
    """A position that a game can start from with this player to move: 1 to 7 stones, all counts equally likely, put there by
    random moves of both players."""
    count = 1 + stream.below(MOST_STONES)
    cells = list(rules.CELLS)
    while True:
        stream.shuffle(cells)
        # The player to move did not make the last move, so the stones alternate backwards from the other one's.
        other = sum(1 << cell for cell in cells[0:count:2])
        own = sum(1 << cell for cell in cells[1:count:2])
        policy, opponent = (own, other) if mover == "policy" else (other, own)
        if start_fault(policy, opponent, mover) is None:
            return board_text(policy, opponent)
