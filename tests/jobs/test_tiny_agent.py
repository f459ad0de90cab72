"""The toy agent: its corpus of jobs, many of them spoilt, its vocabulary, and its warm-up."""

import json
from pathlib import Path

import desks
import pytest

from t2t_core.plugins import installed
from t2t_core.seeding import Stream
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_jobs.agents.tiny.corpus import beyond, corpus
from t2t_jobs.probe import probe

FAMILY = desks.family()


def looked_at(place, text):
    folders.write_atomic(SafePath(place) / "job.toml", text)
    return probe(Path(place), FAMILY)


@pytest.mark.thorough
def test_the_corpus_is_noisy_and_most_of_it_valid(tmp_path):
    """A good third of the jobs is spoilt: some cannot be read, some are out of bounds or beyond the budget."""
    pairs = corpus([FAMILY], 0, 200)
    judged_pairs = [looked_at(tmp_path / str(n), pair.text) for n, pair in enumerate(pairs)]
    valid = sum(job is not None and not failures for job, failures in judged_pairs)
    unread = sum(job is None for job, _ in judged_pairs)
    assert 110 <= valid <= 160 and 5 <= unread <= 50
    said = " ".join(failure.what for _, failures in judged_pairs for failure in failures)
    for what in ("must be", "is no TOML", "is the budget"):
        assert what in said


def test_the_corpus_follows_from_the_seed_and_asks_in_every_way():
    pairs = corpus([FAMILY, desks.family("other")], 3, 120)
    assert pairs == corpus([FAMILY, desks.family("other")], 3, 120)[:120] and pairs[:10] == corpus(
        [FAMILY, desks.family("other")], 3, 10
    )
    asked = {pair.question for pair in pairs}
    assert {"job tictactoe pretend", "job tictactoe other", "job tictactoe anew"} <= asked
    assert any("\nagain\nwrong " in question for question in asked)


@pytest.mark.parametrize("key", list(FAMILY.bounds))
def test_what_lies_beyond_a_bound_is_refused_by_it(key):
    bound, stream = FAMILY.bounds[key], Stream.of(0, "beyond")
    assert all(bound.fault(beyond(bound, stream)) for _ in range(50))


@pytest.mark.train
def test_every_text_comes_back_from_its_words():
    from t2t_jobs.agents.tiny.model import make_tokenizer, words

    vocabulary = words([FAMILY])
    tokenizer = make_tokenizer(vocabulary)
    for pair in corpus([FAMILY], 1, 60):
        ids = tokenizer(pair.text)["input_ids"]
        assert tokenizer.decode(ids) == pair.text and len(ids) < len(pair.text) / 2
    assert len(set(vocabulary)) == len(vocabulary)


@pytest.mark.train
def test_one_command_makes_it(tmp_path, capsys):
    from t2t_jobs.agents.tiny.agent import TinyAgent
    from t2t_jobs.agents.tiny.warmup import main
    from t2t_jobs.episode import Episode, Setup
    from t2t_jobs.playing import play

    desks.register(families=("pretend",))
    main(["--out", str(tmp_path / "made"), "--pairs", "60", "--steps", "3", "--families", "pretend"])
    recipe = json.loads((tmp_path / "made" / "recipe.json").read_text())
    assert recipe["families"] == ["pretend"] and recipe["parameters"] > 200_000
    agent = TinyAgent(str(tmp_path / "made"))
    assert agent.protocol == "compact" and agent.describe()["caveat"] == "toy agent"
    episode = Episode(SafePath(tmp_path) / "episode", Setup("e", FAMILY, "tiny", 0), desks.PretendDesk(FAMILY))
    play([episode], agent)
    assert episode.result() is not None


# --- as it is shipped


@pytest.mark.train
def test_the_shipped_agent_writes_jobs_of_every_family_many_of_them_invalid(tmp_path):
    """The warm-up leaves something to learn: more than a third of its jobs are valid, but not all."""
    from t2t_core.hookspecs import EpisodeState
    from t2t_jobs.hidden import make_family

    agent, valid, asked = installed().agents.make("tiny"), 0, 0
    for name in sorted(entry.name for entry in installed().families):
        family = make_family(name)
        states = [EpisodeState(family, "", submissions=3, tokens=10_000, turns=9, seed=seed) for seed in range(16)]
        for number, turn in enumerate(agent.act_all(states)):
            place = tmp_path / name / str(number)
            folders.write_atomic(SafePath(place) / "job.toml", turn.response.text)
            job, failures = probe(place, family)
            valid, asked = valid + (job is not None and not failures), asked + 1
    assert asked >= 96 and 0.35 < valid / asked < 0.95


@pytest.mark.train
def test_its_recipe_says_how_it_was_made():
    from t2t_jobs.agents.tiny.agent import shipped

    recipe = json.loads((shipped() / "recipe.json").read_text())
    assert recipe["families"] == sorted(entry.name for entry in installed().families)
    assert recipe["command"].startswith("python -m t2t_jobs.agents.tiny.warmup --out DIR --seed 0")
    assert sum(path.stat().st_size for path in shipped().iterdir()) < 3_000_000
