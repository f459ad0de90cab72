"""The trainers: what they refuse, the order and the reward they train with, the KL term, and resuming."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import pytest

from t2t_core.errors import T2TError
from t2t_core.evaluation.demonstrations import Request, collect
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.length_reward import AdaptiveWeights
from t2t_core.records import InstanceSet, Sampling, Task
from t2t_envs.frozen_lake import Configuration, Instance, generate, solve, verify
from t2t_envs.frozen_lake.parser import format_answer
from t2t_envs.frozen_lake.testbed import MAPFFrozenLake, make
from t2t_plugins.trainers import trl_sft
from t2t_plugins.trainers.common import last_saved, refuse_overlap, stratified
from t2t_plugins.trainers.none import NoTrainer
from t2t_plugins.trainers.settings import check_settings
from t2t_plugins.trainers.trl_grpo.callbacks import watch, write_weights
from t2t_plugins.trainers.trl_grpo.reward import GRAIN, Reward, read_facts
from t2t_plugins.trainers.trl_grpo.settings import Settings
from t2t_plugins.trainers.trl_grpo.trainer import Grpo, schedule
from t2t_plugins.trainers.trl_grpo.trl_config import grpo_config
from t2t_plugins.trainers.weights import read_weights

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


class OwnSets(type(make())):
    """The testbed with one protected set of one's own, so that no frozen file matters."""

    protected: ClassVar[tuple[Instance, ...]] = ()

    def protected_sets(self):
        return ("mine",)

    def load_set(self, name):
        return InstanceSet(name, "evaluation", "", self.protected)


def job_of(instances, folder, settings=(), **more):
    return TrainingJob(more.pop("checkpoint", None), instances, OwnSets(), dict(settings), folder, seed=5, **more)


@pytest.fixture(scope="module")
def instances():
    return list(generate(Configuration.uniform(0.2, 0.3), 80, seed=1))


def test_none_hands_the_checkpoint_back(tmp_path, instances):
    assert NoTrainer().train(job_of(instances, tmp_path, checkpoint=tmp_path)).checkpoint == tmp_path
    with pytest.raises(T2TError):
        NoTrainer("something")


def test_settings_are_read_from_text_and_numbers_and_refused_by_name():
    given = {"group": "4", "beta": 0, "learning_rate": "1e-3"}
    assert check_settings(Settings, given, "x") == Settings(4, beta=0.0, learning_rate=1e-3)
    for wrong in ({"grop": 4}, {"group": 2.5}, {"group": True}, {"beta": -1}, {"beta": float("nan")}, {"loss": "best"}):
        with pytest.raises(T2TError):
            check_settings(Settings, wrong, "trainer x")


def test_an_instance_of_a_protected_set_is_refused_up_to_its_canonical_form(tmp_path, instances):
    class Guarded(OwnSets):
        protected = (Instance(3, [(0, 1)], [(1, 0), (2, 0)], [(2, 2), (1, 2)], id="frozen_1"),)

    turned = Instance(3, [(1, 2)], [(0, 0), (0, 1)], [(2, 1), (2, 0)], id="mine_7")
    assert turned.canonical() == Guarded.protected[0].canonical()
    refuse_overlap(TrainingJob(None, instances, OwnSets(), {}, tmp_path, 0))
    with pytest.raises(T2TError, match="1 training instances belong to the set mine") as refusal:
        refuse_overlap(TrainingJob(None, [*instances, turned], Guarded(), {}, tmp_path, 0))
    assert "mine_7 is frozen_1" in str(refusal.value)


def test_every_update_holds_the_sizes_in_their_shares_and_every_pass_every_instance_once(tmp_path, instances):
    job = job_of(instances, tmp_path)
    assert sorted(stratified(job, 1)) == list(range(80))
    rows = schedule(job, Settings(prompts=16, epochs=3))
    passes = [rows[i : i + 80] for i in range(0, 240, 80)]
    assert all(sorted(order) == list(range(80)) for order in passes) and passes[0] != passes[1]
    for start in range(0, 240, 16):
        sizes = Counter(instances[i].size for i in rows[start : start + 16])
        assert set(sizes) == set(range(3, 11)) and max(sizes.values()) <= 4
    assert len(schedule(job, Settings(prompts=32, epochs=2))) == 128, "the last partial batch of a pass is dropped"
    with pytest.raises(T2TError):
        schedule(job, Settings(prompts=81))


@dataclass
class Accelerator:
    device: str = "cpu"

    def gather(self, values):
        return values


def test_the_reward_and_its_weights_are_those_computed_by_hand(tmp_path):
    lake = Instance(3, [], [(0, 0), (2, 0)], [(0, 2), (2, 2)], optimal_makespan=2)
    best = format_answer([[(0, 0), (0, 1), (0, 2)], [(2, 0), (2, 1), (2, 2)]])
    late = format_answer([[(0, 0), (0, 0), (0, 1), (0, 2)], [(2, 0), (2, 1), (2, 2)]])  # cost 3: a gap of 1 at optimum 2
    settings = Settings(group=4, length_start=4, length_end=8)
    reward = Reward(job_of([lake], tmp_path), settings, AdaptiveWeights(0.7))
    reward.gather = Accelerator().gather
    logged = {}
    totals = reward(
        prompts=None,
        completions=[[{"content": best}], [{"content": late}], [{"content": "no"}], [{"content": best}]],
        completion_ids=[[0] * 4, [0] * 6, [0] * 9, [0] * 7],
        index=[0, 0, 0, 0],
        log_metric=logged.__setitem__,
    )
    # s = 0.7 lies halfway between 0.5 and 0.9: weights (0.65, 0.35). Accuracy of `late`: 1 - 0.7 * 1 / 4 = 0.825.
    expected = [0.65, 0.65 * 0.825 - 0.35 * 0.5, -0.35, 0.65 - 0.35 * 0.75]
    assert totals == pytest.approx(expected, abs=GRAIN)
    assert reward.weights == AdaptiveWeights(0.7), "an update's weights stay until it is done"
    reward.settle()
    assert reward.weights.share == pytest.approx(0.9 * 0.7 + 0.1 * 0.25)  # one of four is short
    assert logged["valid"] == 0.75 and logged["optimal"] == 0.5


def test_what_an_update_sampled_is_counted_by_cell_once_it_is_done(tmp_path):
    """A group may be spread over processes: what is gathered is counted, by all of them alike."""
    lake = Instance(3, [], [(0, 0), (2, 0)], [(0, 2), (2, 2)], optimal_makespan=2)
    best = format_answer([[(0, 0), (0, 1), (0, 2)], [(2, 0), (2, 1), (2, 2)]])
    reward = Reward(job_of([lake], tmp_path), Settings(group=4, length_start=40, length_end=80), AdaptiveWeights(0.5))
    reward.gather = Process().gather
    answers = [[{"content": best}], [{"content": "no"}]]
    reward(None, answers, [[0] * 4, [0] * 9], index=[0, 0], log_metric=lambda name, value: None)
    assert reward.facts.to_dict() == {}, "an update that is broken off is sampled again"
    reward.settle()
    reward.settle()  # of a batch that is trained on twice
    (facts,) = reward.facts.to_dict().values()
    assert facts == {
        "group": "3", "groups": 1, "answers": 4, "reward": pytest.approx(0.25, abs=GRAIN), "advantage": pytest.approx(1.0),
        "dead": 0.0, "valid": 0.5, "tokens": 26, "first_failures": {"parsable": 2},
    }  # fmt: skip
    write_weights(reward, tmp_path / "state")
    assert read_facts(tmp_path / "state", reward.job.testbed).to_dict() == reward.facts.to_dict()
    assert read_facts(tmp_path, reward.job.testbed).to_dict() == {}


class Process(Accelerator):
    """One of two, of which the other sampled the same."""

    def gather(self, values):
        return values.repeat(2, 1)


def test_without_a_length_term_the_reward_is_the_testbeds_under_the_runs_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(MAPFFrozenLake, "length_term", False)
    lake = Instance(3, [], [(0, 0), (2, 0)], [(0, 2), (2, 2)], optimal_makespan=2)
    best = format_answer([[(0, 0), (0, 1), (0, 2)], [(2, 0), (2, 1), (2, 2)]])
    job = replace(job_of([lake], tmp_path), reward={"accuracy": 3.0})
    reward = Reward(job, Settings(group=2, length_start=4, length_end=8), AdaptiveWeights(0.7))
    reward.gather = Accelerator().gather
    answers = [[{"content": best}], [{"content": "no"}]]
    totals = reward(None, answers, [[0] * 4, [0] * 9], index=[0, 0], log_metric=lambda name, value: None)
    assert totals == pytest.approx([3.0, 0.0]), "however long they are"


def test_the_last_complete_state_counts(tmp_path):
    assert last_saved(tmp_path) is None
    for step in (5, 20, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
    for step, text in ((5, "{}"), (20, "{}"), (100, '{"torn')):
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(text)
    assert last_saved(tmp_path).name == "checkpoint-20"


def test_the_weights_of_an_update_are_on_disk_before_it_counts_as_saved(tmp_path):
    pytest.importorskip("transformers")
    reward = Reward(job_of([], tmp_path), Settings(), AdaptiveWeights(0.7))
    callback = watch(reward.job, reward.settings, reward)
    for step, due in ((3, False), (4, True)):
        reward.short = [0.5]
        state = SimpleNamespace(global_step=step, is_world_process_zero=True)
        callback.on_step_end(SimpleNamespace(output_dir=tmp_path), state, SimpleNamespace(should_save=due))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-4"]
    assert read_weights(tmp_path / "checkpoint-4") == reward.weights != AdaptiveWeights(0.7)


TINY = {"group": 4, "prompts": 8, "epochs": 1, "learning_rate": 1e-3, "max_tokens": 24, "length_start": 12, "length_end": 24}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """An untrained toy policy."""
    pytest.importorskip("trl")
    from t2t_baselines.tiny.model import make_model, make_tokenizer

    folder = tmp_path_factory.mktemp("fresh")
    model = make_model(0, num_hidden_layers=1)
    model.config.t2t_prompt_format = "compact"
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.train
def test_a_stopped_training_goes_on_from_its_last_saved_update_to_the_same_weights(tmp_path, fresh, instances):
    class Stopped(Exception):
        pass

    def stop_at(update):
        def progress(figures):
            if figures["update"] == update:
                raise Stopped

        return progress

    settings = {**TINY, "save_every": 2}
    whole = Grpo().train(job_of(instances[:40], tmp_path / "whole", settings, checkpoint=fresh))
    assert (whole.updates, whole.samples) == (5, 160)
    seen = []
    for stop in (2, 4):
        with pytest.raises(Stopped):
            Grpo().train(job_of(instances[:40], tmp_path / "parts", settings, checkpoint=fresh, progress=stop_at(stop)))
    resumed = job_of(instances[:40], tmp_path / "parts", settings, checkpoint=fresh, progress=lambda f: seen.append(f["update"]))
    Grpo().train(resumed)
    assert seen == [3, 4, 5], "update 4 was reached, but 2 was the last one saved"
    names = ("model.safetensors", "adaptive_weights.json")
    assert all((tmp_path / "whole" / n).read_bytes() == (tmp_path / "parts" / n).read_bytes() for n in names)


@pytest.mark.train
def test_the_kl_term_is_k3_against_the_policy_the_round_started_from(tmp_path, fresh, instances):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from t2t_plugins.trainers.trl_grpo.one_shot import rollout

    figures = []
    settings = {**TINY, "max_updates": 2, "beta": 0.5, "learning_rate": 1e-2}
    Grpo().train(job_of(instances[:16], tmp_path / "one", {**settings, "max_updates": 1}, checkpoint=fresh))
    after_one = AutoModelForCausalLM.from_pretrained(tmp_path / "one", dtype=torch.float32).eval()
    job = job_of(instances[:16], tmp_path / "two", settings, checkpoint=fresh, progress=figures.append)
    told = Grpo().train(job).metrics
    named = {"reward", "entropy", "zero_variance", "kl", "response_tokens"}
    assert (
        named | {"responses_per_second", "eta_seconds"} <= set(figures[1])
        and {n: told[n] for n in named}.items() <= figures[1].items()
    )
    # Update 2 samples from the policy after update 1; its KL is against the policy of the beginning.
    tokenizer = AutoTokenizer.from_pretrained(fresh, padding_side="left")
    checked = check_settings(Settings, settings, "x")
    trainer = SimpleNamespace(
        accelerator=SimpleNamespace(unwrap_model=lambda model: model, process_index=0, device="cpu"),
        model=after_one,
        processing_class=tokenizer,
        state=SimpleNamespace(global_step=1),
    )
    rows = schedule(job, checked)[8:16]
    chats = [[{"role": "user", "content": job.testbed.prompt(instances[i], "compact")}] for i in rows for _ in range(4)]
    sampled = rollout(job, checked, str(fresh))(chats, trainer)
    reference = AutoModelForCausalLM.from_pretrained(fresh, dtype=torch.float32).eval()
    terms = []
    for prompt, answer in zip(sampled["prompt_ids"], sampled["completion_ids"], strict=True):
        log = []
        for model in (reference, after_one):
            with torch.no_grad():
                logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
            log.append(logits.log_softmax(-1).gather(-1, torch.tensor(answer)[:, None])[:, 0])
        ratio = log[0] - log[1]
        terms.append(ratio.exp() - ratio - 1)
    assert float(torch.cat(terms).mean()) == pytest.approx(figures[1]["kl"], rel=1e-3)
    assert figures[1]["kl"] > 1e-3 and figures[0]["kl"] == pytest.approx(0, abs=1e-9)


@pytest.mark.train
def test_optimizer_state_and_weights_travel_to_the_next_round_where_asked(tmp_path, fresh, instances):
    first = Grpo().train(job_of(instances[:16], tmp_path / "one", TINY, checkpoint=fresh))
    assert read_weights(first.checkpoint).share > 0
    assert sum(cell["groups"] for cell in first.metrics["cells"].values()) == 16
    after = {}
    for name in ("keep", "reset"):
        settings = {**TINY, "optimizer": name}
        job = job_of(instances[:16], tmp_path / name, settings, checkpoint=first.checkpoint, resume_from=first.checkpoint)
        after[name] = (Grpo().train(job).checkpoint / "model.safetensors").read_bytes()
    assert after["keep"] != after["reset"]


def half_solved(instances, samples=16):
    """Those of the instances to which a quarter to three quarters of the toy policy's samples are valid: where hardly a
    response of a group ever earns anything, GRPO has nothing to go by, and where all do, nothing to learn."""
    from t2t_baselines.tiny.policy import Tiny

    asked = [(instance, sample) for instance in instances for sample in range(samples)]
    tasks = [Task(i.id, sample, "", i.unlabelled(), n) for n, (i, sample) in enumerate(asked)]
    hits = Counter(
        tasks[position].instance_id
        for position, response in Tiny().respond(tasks, Sampling(temperature=1.0, max_tokens=64))
        if verify(tasks[position].instance, response.text).valid
    )
    return [i for i in instances if samples <= 4 * hits[i.id] <= 3 * samples]


@pytest.mark.train
@pytest.mark.slow
def test_eight_prompts_trained_over_and_over_reach_nearly_the_best_reward(tmp_path, instances):
    from t2t_baselines.tiny.policy import shipped

    figures = []
    eight = half_solved([i for i in instances if i.size <= 7])[:8]
    assert len(eight) == 8
    settings = {**TINY, "group": 16, "epochs": 60, "learning_rate": 4e-4, "max_tokens": 64, "length_start": 48, "length_end": 64}
    Grpo().train(job_of(eight, tmp_path / "eight", settings, checkpoint=shipped(), progress=figures.append))
    accuracies = [f["reward"] / f["w_acc"] for f in figures]
    assert sum(accuracies[-5:]) / 5 > 0.9 > sum(accuracies[:2]) / 2


@pytest.mark.train
def test_supervised_training_learns_the_kept_answers_only(tmp_path, fresh, instances):
    settings = {"answers_from": "independent", "keep": "optimal", "epochs": 2, "batch": 8, "learning_rate": 1e-3}
    losses = []
    job = job_of(instances[:40], tmp_path / "sft", settings, checkpoint=fresh, progress=lambda f: losses.append(f["loss"]))
    result = trl_sft.Sft().train(job)
    kept = [json.loads(line) for line in (tmp_path / "sft" / "answers.jsonl").read_text().splitlines()]
    assert 0 < len(kept) < 40 and result.metrics["answers"] == len(kept)
    for line in kept:
        instance = Instance.from_dict(line["instance"])
        verdict = OwnSets().verify(instance, line["completion"][0]["content"])
        assert verdict.optimal and verdict.cost == solve(instance).cost
    assert losses[-1] < losses[0]
    assert (tmp_path / "sft" / "model.safetensors").exists()


def demonstrations_of(instances, folder, policy):
    collect(make(), instances, Request(policy), folder / "answers.jsonl")
    return folder / "answers.jsonl"


@pytest.mark.train
def test_a_file_of_demonstrations_is_learnt_from_in_the_form_the_checkpoint_was_taught(tmp_path, fresh, instances):
    path = demonstrations_of(instances[:24], tmp_path, "independent")
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert 0 < len(kept) < 24 and "Plan paths" in kept[0]["prompt"][0]["content"]
    settings = {"answers_file": str(path), "epochs": 2, "batch": 8, "learning_rate": 1e-3, "threads": 1}
    losses = []
    job = job_of(instances[40:44], tmp_path / "sft", settings, checkpoint=fresh, progress=lambda f: losses.append(f["loss"]))
    learnt = trl_sft.from_file(job, check_settings(trl_sft.Settings, settings, "x"))
    compact = [make().prompt(example.instance.unlabelled(), "compact") for example in learnt]
    assert [example.prompt[0]["content"] for example in learnt] == compact
    result = trl_sft.Sft().train(job)
    assert result.metrics["answers"] == len(kept) == result.samples / 2 and losses[-1] < losses[0]
    assert (tmp_path / "sft" / "model.safetensors").exists()


def test_a_file_of_demonstrations_is_refused_where_it_holds_protected_instances_or_is_not_there(tmp_path, instances):
    class Guarded(OwnSets):
        protected = (instances[7],)

    settings = check_settings(trl_sft.Settings, {"answers_file": str(demonstrations_of(instances[:12], tmp_path, "cbs"))}, "x")
    job = TrainingJob(tmp_path, [], Guarded(), {}, tmp_path, 0)
    with pytest.raises(T2TError, match="1 training instances belong to the set mine"):
        trl_sft.from_file(job, settings)
    assert len(trl_sft.from_file(job_of([], tmp_path, checkpoint=tmp_path), settings)) == 12
    with pytest.raises(T2TError, match="no such file of answers"):
        trl_sft.Sft().check(TrainingOrder(tmp_path, OwnSets(), {"answers_file": str(tmp_path / "nowhere.jsonl")}, 8))


def test_a_launched_process_ends_with_its_launcher():
    code = f"import sys, time; sys.path[:0] = {sys.path}; from t2t_plugins.trainers.trl_grpo.process import end_with_launcher"
    command = [sys.executable, "-c", f"{code}; end_with_launcher(); time.sleep(300)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        process.stdin.close()
        assert process.wait(timeout=200) == 1


@pytest.mark.train
@pytest.mark.slow
def test_two_launched_processes_share_an_update_and_its_weights(tmp_path, fresh, instances):
    figures = []
    settings = {**TINY, "processes": 2, "max_updates": 2, "buckets": 2}
    job = job_of(instances[:16], tmp_path / "two", settings, checkpoint=fresh, progress=figures.append)
    result = Grpo().train(job)
    assert (result.updates, result.samples) == (2, 64)
    assert [f["update"] for f in figures] == [1, 2]
    assert 0 < read_weights(result.checkpoint).share < 0.3


@pytest.mark.train
def test_adapters_and_the_plain_engine_train_too_and_the_checkpoint_has_them_merged(tmp_path, fresh, instances):
    from safetensors.torch import load_file

    settings = {**TINY, "lora": 2, "max_updates": 1, "micro_batch": 8}
    result = Grpo().train(job_of(instances[:16], tmp_path / "lora", settings, checkpoint=fresh))
    before, after = (load_file(folder / "model.safetensors") for folder in (fresh, result.checkpoint))
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed and all("proj" in name for name in changed)


@pytest.mark.train
@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_a_vllm_server_without_vllm_here_is_a_sentence(tmp_path, fresh, instances):
    with pytest.raises(T2TError, match="needs vLLM beside the trainer"):
        Grpo().train(job_of(instances[:16], tmp_path, {**TINY, "engine": "vllm-server"}, checkpoint=fresh))


@pytest.mark.train
def test_weights_are_float32_unless_bfloat16_is_asked_for(tmp_path):
    """A step of 2e-6 is lost in a bfloat16 weight, so "auto" must not keep them so."""
    auto, half = (grpo_config(Settings(dtype=d), tmp_path, 0, 1) for d in ("auto", "bfloat16"))
    assert (auto.model_init_kwargs["dtype"], half.model_init_kwargs["dtype"]) == ("float32", "bfloat16")
    assert auto.bf16 is torch.cuda.is_available()


@pytest.mark.train
@pytest.mark.slow
def test_settings_in_the_trainers_name_reach_every_process(tmp_path, fresh, instances):
    trainer = Grpo(settings={"max_updates": "1", "processes": "2", "buckets": "2"})
    kept = {k: v for k, v in TINY.items() if k not in ("max_updates", "processes", "buckets")}
    assert trainer.train(job_of(instances[:16], tmp_path, kept, checkpoint=fresh)).updates == 1
