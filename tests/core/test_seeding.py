"""The suite's own random integers: fixed for good. (The native core's are compared in tests/envs.)"""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from t2t_core.seeding import Stream, key

SEEDS = st.integers(0, 2**64 - 1)


def test_documented_values():
    """Every frozen set, label and resumed run depends on these values. Changing them means a new format."""
    stream = Stream(0)
    assert [stream.next() for _ in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]  # SplitMix64
    stream = Stream(1234567)
    assert [stream.next() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert key(0) == 15793235383387715774
    assert key(0, "generate", 3) == 11012034379822591964
    assert key(7, "generate", 3) == 6128701396892595368
    stream = Stream.of(7, "generate", 3)
    assert [stream.below(10) for _ in range(8)] == [7, 3, 7, 1, 4, 6, 0, 2]


def test_neighbouring_seeds_and_purposes_share_nothing():
    draws = [Stream.of(seed, purpose).next() for seed in range(200) for purpose in ("a", "b", 0, 1)]
    assert len(set(draws)) == len(draws)


@given(SEEDS, st.integers(1, 2**32 - 1))
def test_below_stays_below(seed, n):
    assert 0 <= Stream(seed).below(n) < n


@given(SEEDS)
def test_uniform_and_fork(seed):
    stream = Stream(seed)
    fork = stream.fork(1)
    first = fork.next()
    assert 0 <= stream.uniform() < 1
    assert Stream(seed).fork(1).next() == first != Stream(seed).fork(2).next()
    assert first != Stream(seed).next()


def test_below_is_uniform():
    stream = Stream.of(0, "uniform")
    counts = Counter(stream.below(6) for _ in range(60_000))
    chi_square = sum((counts[i] - 10_000) ** 2 / 10_000 for i in range(6))
    assert chi_square < 20.5  # 5 degrees of freedom, p = 0.001; the draw is fixed


@given(SEEDS, st.lists(st.integers(), max_size=30))
def test_shuffle_and_choice(seed, items):
    shuffled = items.copy()
    Stream(seed).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)
    if items:
        assert Stream(seed).choice(items) in items


def test_shuffle_is_uniform():
    stream = Stream.of(1, "shuffle")
    counts = Counter()
    for _ in range(24_000):
        items = [0, 1, 2, 3]
        stream.shuffle(items)
        counts[tuple(items)] += 1
    assert len(counts) == 24
    assert sum((n - 1000) ** 2 / 1000 for n in counts.values()) < 49.8  # 23 degrees of freedom, p = 0.001
