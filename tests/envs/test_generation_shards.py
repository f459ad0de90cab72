"""A request for instances, drawn in parts: merged, they are what one process would have written, byte for byte."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from addition import t2t
from t2t_core.errors import T2TError
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.generation.generator import generate


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(3, 7), min_size=1, max_size=4, unique=True),
    hole_ratio=st.sampled_from([0.0, 0.1, 0.25]),
    count=st.integers(1, 60),
    agents=st.integers(1, 3),
    parts=st.integers(1, 7),
    seed=st.integers(0, 2**40),
)
def test_the_parts_of_an_order_are_the_whole(sizes, hole_ratio, count, agents, parts, seed):
    ratios = {str(s): {"data_ratio": 1 / len(sizes), "hole_ratio": hole_ratio, "wait_ratio": 0.0} for s in sizes}
    configuration = Configuration.from_dict(ratios)
    try:
        whole = generate(configuration, count, agents, seed)
    except T2TError:  # 3x3 cannot hold them, say
        with pytest.raises(T2TError):
            for number in range(1, parts + 1):
                generate(configuration, count, agents, seed, shard=(number, parts))
        return
    drawn = [generate(configuration, count, agents, seed, shard=(number, parts)) for number in range(1, parts + 1)]
    places = sorted((position, x) for part in drawn for position, x in zip(part.positions, part, strict=True))
    assert [position for position, _ in places] == list(range(count))
    assert [x.to_dict() for _, x in places] == [x.to_dict() for x in whole]
    assert sum(part.report.drawn for part in drawn) == whole.report.drawn


LAKE = ("generate", "--configuration", "random", "--count", "60", "--agents", "3", "--seed", "3")
GAMES = ("generate", "--testbed", "tictactoe", "--configuration", "random", "--count", "40")


def draw(words, parts, folder):
    paths = [folder / f"part-{number}.jsonl" for number in range(1, parts + 1)]
    for number, path in enumerate(paths, 1):
        t2t(*words, "--shard", f"{number}/{parts}", "--out", path)
    return paths


@pytest.mark.parametrize("words", [LAKE, (*LAKE, "--labels", "both", "--repeats", "forbid"), GAMES])
@pytest.mark.parametrize("parts", [1, 3, 12])
def test_merged_files_are_the_whole_byte_for_byte(words, parts, tmp_path):
    t2t(*words, "--out", tmp_path / "whole.jsonl")
    t2t("merge", *reversed(draw(words, parts, tmp_path)), "--out", tmp_path / "merged.jsonl")
    assert (tmp_path / "merged.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_another_form_of_the_whole(tmp_path):
    paths = draw(LAKE, 2, tmp_path)
    for command in ((*LAKE, "--out", tmp_path / "whole"), ("merge", *paths, "--out", tmp_path / "merged")):
        t2t(*command, "--format", "hf")
    for path in (p for p in (tmp_path / "whole").rglob("*") if p.is_file()):
        assert (tmp_path / "merged" / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()


def test_what_are_no_parts_of_one_whole(tmp_path):
    part, other = draw(LAKE, 2, tmp_path)
    t2t(*LAKE, "--out", tmp_path / "whole.jsonl")
    for words, name in (((*LAKE[:-1], "4"), "seed"), (LAKE, "cut"), (LAKE, "damaged")):
        t2t(*words, "--shard", "2/2", "--out", tmp_path / name)
    t2t(*LAKE, "--shard", "3/3", "--out", tmp_path / "third")
    cut = (tmp_path / "cut").read_text().splitlines(keepends=True)
    (tmp_path / "cut").write_text("".join(cut[:-1]))
    (tmp_path / "damaged").write_text("".join([*cut[:-1], json.dumps({"position": 0, "instance": 3}) + "\n"]))
    for sources, complaint in (
        ([part], "part 2/2 is missing"),
        ([part, part], "there twice"),
        ([part, tmp_path / "seed"], "different orders: settings, configuration differ"),
        ([part, tmp_path / "third"], "different orders: parts differs"),
        ([part, tmp_path / "cut"], "its end is missing"),
        ([part, tmp_path / "damaged"], "no instance with its place"),
        ([part, tmp_path / "whole.jsonl"], "no part of an order"),
        ([tmp_path / "whole.jsonl", part], "no part of an order"),
    ):
        with pytest.raises(T2TError) as error:
            t2t("merge", *sources, "--out", tmp_path / "merged.jsonl")
        assert complaint in str(error.value)
    assert other.exists() and not (tmp_path / "merged.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--shard", "0/2"), "no part of a whole"),
        (("--shard", "3/2"), "no part of a whole"),
        (("--shard", "1/2", "--format", "hf"), "its own file format"),
        (("--shard", "1/2", "--answers-from", "cbs"), "is for drawing"),
    ],
)
@pytest.mark.parametrize("command", [LAKE, GAMES])
def test_a_shard_that_cannot_be(command, words, complaint, tmp_path):
    with pytest.raises(T2TError, match=complaint):
        t2t(*command, *words, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
