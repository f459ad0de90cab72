"""The outer loop on a pool that pretends to train: it learns, is never held up by the slowest job, and can be resumed."""

import json
import math
import os
from dataclasses import replace

import desks
import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.store.paths import SafePath
from t2t_jobs import hidden, office
from t2t_jobs.episode import EpisodeResult
from t2t_jobs.ledger import Ledger
from t2t_jobs.probe import probe
from t2t_jobs.room import Room
from t2t_jobs.training.advantages import advantages
from t2t_jobs.training.figures import position_of, step_record
from t2t_jobs.training.groups import family_of
from t2t_jobs.training.outer import OuterPlan, read_steps, train_agent
from t2t_jobs.training.settings import OuterSettings

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train
SETTINGS = OuterSettings(steps=3, groups=2, group=4, ahead=0, device="cpu")


@pytest.fixture(autouse=True)
def pretended(monkeypatch):
    """No base is measured, and no job tried by an update."""
    monkeypatch.setattr(office, "probe", lambda folder, family, *_: probe(folder, family))
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here is about power cuts
    monkeypatch.setattr(hidden, "baseline_scores", lambda *_: {"small": 0.1, "large": 0.25})


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A toy agent that writes jobs of the pretend families."""
    from t2t_jobs.agents.tiny.warmup import export, learn

    folder = tmp_path_factory.mktemp("warm")
    model, tokenizer, _ = learn([desks.family(name) for name in ("pretend", "other", "kept")], 0, 600, 120)
    export(model, tokenizer, folder)
    return folder


def room(folder):
    return Room(folder, "pretend", secret=5)


def trained(out, warm, settings=SETTINGS, families=("pretend", "other"), say=lambda line: None):
    return train_agent(OuterPlan(f"tiny:{warm}", families, 3, settings), SafePath(out), room, say)


# --- what needs no model


def test_advantages_worked_out_by_hand():
    assert advantages([1, 1, 1]) == [0, 0, 0]
    assert advantages([0, 2]) == pytest.approx([-1, 1], abs=1e-5)
    assert advantages([0, 0, 0, 4]) == pytest.approx([-1 / math.sqrt(3)] * 3 + [math.sqrt(3)], abs=1e-5)


def test_every_family_comes_once_in_a_block():
    names = ["a", "b", "c"]
    blocks = [sorted(family_of(3 * block + place, names, 7) for place in range(3)) for block in range(5)]
    assert blocks == [names] * 5
    assert len({tuple(family_of(3 * block + place, names, 7) for place in range(3)) for block in range(9)}) > 1


def test_where_a_value_lies_between_its_bounds():
    bounds = desks.family().bounds
    rate, share, base = bounds["training.learning_rate"], bounds['configuration."0-0.25".share'], bounds["base"]
    assert [position_of(rate, value) for value in (1e-6, 1e-4, 1e-2)] == pytest.approx([0, 0.5, 1])
    assert position_of(share, 0.25) == 0.25 and [position_of(base, name) for name in ("small", "large")] == [0, 1]


def test_the_figures_of_a_step_worked_out_by_hand():
    """Two families that differ in what may be edited: a value counts where it may be."""
    pretend, other = desks.family("pretend"), replace(desks.family("other"), bounds={"base": desks.BOUNDS["base"]})

    def result(family, valid_at, values, post):
        reward = {
            "validation": 1.0 if valid_at else 0.0,
            "quality": 0.5 if post else 0.0,
            "speed": 0.0,
            "total": 0.65 if post else 0.0,
        }
        return EpisodeResult(
            name="e", family=family, agent="a", seed=0, final=False, ended="submitted", turns=1, tokens=10, usd=0.0,
            submissions=[], parsable=True, valid_at=valid_at, base=values.get("base"), values=values,
            pre={"small": 0.1, "large": 0.25}, best_pre=0.25, post=post, cpu_seconds=2.0, reward=reward,
        )  # fmt: skip

    results = [
        result("pretend", 1, {"base": "large", "training.learning_rate": 1e-4}, 0.45),
        result("pretend", 2, {"base": "small"}, 0.15),
        result("other", 1, {"base": "large"}, 0.35),
        result("other", None, {}, None),
    ]
    step = step_record(1, [0], [0], [], results, {"pretend": pretend, "other": other}, {})
    assert (step.valid, step.first_try, step.trained, step.stronger) == (0.75, 0.5, 0.75, pytest.approx(2 / 3))
    assert step.score == pytest.approx(0.95 / 3) and step.gain == pytest.approx(0.2 / 3)
    assert step.knobs["training.learning_rate"] == 0.5 and step.positions == {"training.learning_rate": pytest.approx(0.5)}
    assert step.bases == {"large": 2, "small": 1} and step.families == {
        "pretend": pytest.approx(0.65),
        "other": pytest.approx(0.325),
    }
    assert step.tokens == 40 and step.cpu_seconds == 8.0


# --- learning


@pytest.mark.slow
def test_it_learns_what_is_worth_more(tmp_path, warm):
    """A pretend world in which the larger base and a learning rate near 1e-3 are worth more: the reward rises."""
    desks.register()
    settings = replace(SETTINGS, steps=8, groups=4, group=8, lag=0)
    steps = trained(tmp_path, warm, settings)
    first, last = steps[:2], steps[-2:]
    assert sum(step.reward for step in last) > sum(step.reward for step in first) + 0.1
    assert sum(step.valid for step in last) > sum(step.valid for step in first)
    assert [step.lags for step in steps] == [[0] * 4] * 8
    assert all(step.learner["ratio"] == pytest.approx(1, abs=1e-3) for step in steps), "what acted is what learns"
    assert Ledger(tmp_path).total(kind="job").cpu_seconds == sum(step.cpu_seconds for step in steps)


def test_a_step_is_not_held_up_by_the_slowest_job(tmp_path, warm):
    """Every job of the first group hangs. The other groups make up the steps, and the group is dropped once it lags too far."""
    desks.register(desks.PretendPool(holds=lambda job: job.startswith("g0-")))
    steps = trained(tmp_path, warm, replace(SETTINGS, steps=4, lag=2, ahead=2))
    assert all(0 not in step.groups for step in steps) and [n for step in steps for n in step.stale] == [0]
    assert max(lag for step in steps for lag in step.lags) <= 2
    older = [step for step in steps if any(step.lags)]
    assert older and all(step.learner["ratio_off"] > 1e-3 for step in older), "what acted is another than what learns"


def test_it_goes_on_where_it_was_killed(tmp_path, warm):
    """Killed after its first step, it ends with as many steps, and no episode is played twice."""
    pool = desks.register()
    settings = replace(SETTINGS, lag=0)

    def kill(line):
        raise KeyboardInterrupt

    whole = trained(tmp_path / "whole", warm, settings)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "killed", warm, settings, say=kill)
    before = len(pool.done)
    steps = trained(tmp_path / "killed", warm, settings)
    assert [step.groups for step in steps] == [[0, 1], [2, 3], [4, 5]]
    assert [step.reward for step in steps] == [step.reward for step in whole]
    assert (tmp_path / "killed/versions/3/model.safetensors").read_bytes() == (
        tmp_path / "whole/versions/3/model.safetensors"
    ).read_bytes()
    assert len(set(pool.done[before:])) == len(pool.done[before:])
    assert trained(tmp_path / "killed", warm, settings) == steps


def test_a_warm_start_begins_with_anothers_last_version(tmp_path, warm):
    desks.register()
    settings = replace(SETTINGS, steps=1)
    trained(tmp_path / "first", warm, settings)
    trained(tmp_path / "second", tmp_path / "first/versions/1", settings)
    weights = "model.safetensors"
    assert (tmp_path / "second/versions/0" / weights).read_bytes() == (tmp_path / "first/versions/1" / weights).read_bytes()


def test_the_same_code_trains_a_language_model_with_lora(tmp_path, warm):
    """A network of another shape with random weights, which uses tags in plain text: its adapter changes, its base does not."""
    pytest.importorskip("peft")
    from transformers import LlamaConfig, LlamaForCausalLM

    from t2t_jobs.agents.tiny.model import make_tokenizer, words

    desks.register(families=("pretend",))
    vocabulary = words([desks.family()])
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape |= {"vocab_size": len(vocabulary), "max_position_embeddings": 8192, "pad_token_id": 0, "eos_token_id": 1}
    model = LlamaForCausalLM(LlamaConfig(**shape))
    model.save_pretrained(tmp_path / "model")
    tokenizer = make_tokenizer(vocabulary)
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(tmp_path / "model")
    settings = replace(SETTINGS, steps=1, groups=1, lora_rank=2, batch_tokens=100_000)
    plan = OuterPlan(f"llm:hf:{tmp_path / 'model'},protocol=text,max_tokens=20", ("pretend",), 3, settings)
    steps = train_agent(plan, SafePath(tmp_path / "out"), room)
    assert steps[0].reward == -0.1 and steps[0].valid == 0
    assert (tmp_path / "out/versions/1/adapter_model.safetensors").exists()


def test_who_can_be_trained_and_on_what(tmp_path, warm):
    desks.register()
    for agent, why in (("rule", "cannot be trained"), ("llm:hf:x", "by tool calls"), ("tiny:/nowhere", "no checkpoint")):
        with pytest.raises(T2TError, match=why):
            train_agent(OuterPlan(agent, ("pretend",), 0, SETTINGS), SafePath(tmp_path / "a"), room)
    with pytest.raises(T2TError, match="held out"):
        trained(tmp_path / "b", warm, families=("pretend", "kept"))


def test_the_command_ends_in_a_page(tmp_path, warm):
    desks.register()
    arguments = ["train-agent", "--agent", f"tiny:{warm}", "--families", "pretend other", "--pool", "pretend"]
    arguments += ["--out", str(tmp_path / "out")]
    sets = [word for text in ("steps=2", "groups=2", "group=4", "device=cpu") for word in ("--set", text)]
    shown = CliRunner().invoke(cli, [*arguments, *sets], catch_exceptions=False)
    assert "step 2: reward" in shown.output
    page = (tmp_path / "out/report.html").read_text()
    assert "stronger base" in page and "reported, not ours" in page
    assert len(read_steps(SafePath(tmp_path / "out"))) == 2
    settings = json.loads((tmp_path / "out/run.json").read_text())["settings"]
    assert settings["settings"]["groups"] == 2
    of_a_model = ["--families", "pretend", "--preset", "llm-lora", "--dry-run"]
    dry = CliRunner().invoke(cli, [*arguments[:3], *of_a_model], catch_exceptions=False)
    assert "lora_rank = 8" in dry.output and "2160 episodes on pretend" in dry.output
