"""The trainer `grpo`: TRL's losses and gradients, whole conversations, resuming in the same bytes, and that it learns."""

from __future__ import annotations

import functools
import importlib
import itertools
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
import qwen

import guessing
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.length_reward import AdaptiveWeights
from t2t_core.plugins import installed
from t2t_core.records import Message, Verdict
from t2t_core.store import schema
from t2t_plugins.trainers.facts import CellFacts, CellRecord, Judged
from t2t_plugins.trainers.grpo import Grpo
from t2t_plugins.trainers.grpo.batch import Batch, advantages_of
from t2t_plugins.trainers.grpo.packing import pack
from t2t_plugins.trainers.grpo.playing import Rollout, Turn
from t2t_plugins.trainers.grpo.settings import Settings
from t2t_plugins.trainers.grpo.states import STATE, read_state
from t2t_plugins.trainers.grpo.training import Training

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train
torch.set_num_threads(1)


class Numbers(guessing.Guessing):
    """No protected sets, so that any game may be trained on; the first character of an answer counts."""

    def protected_sets(self):
        return ()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    qwen.random_model(folder)
    return folder


def job(checkpoint, folder, testbed=None, count=8, **settings):
    testbed = testbed or Numbers()
    request = testbed.request(count)
    instances = testbed.generate(guessing.Spans(1.0), request, 3)
    values = {"group": 4, "prompts": 4, "max_tokens": 3, "prompt_format": "plain", **settings}
    return TrainingJob(checkpoint, instances, testbed, values, folder, seed=5)


def games(count=6):
    """Conversations of one or two turns, of different lengths."""
    stream = torch.Generator().manual_seed(1)

    def ids(length):
        return torch.randint(5, 200, (length,), generator=stream).tolist()

    return [Rollout(0, (), (), [Turn(ids(3 + n), ids(1 + n % 4), True) for _ in range(1 + n % 2)]) for n in range(count)]


def trl_inputs(rows, advantages):
    """The same turns as TRL's padded tensors: prompts padded on the left, completions on the right."""
    left = max(len(turn.prompt) for turn in rows)
    right = max(len(turn.tokens) for turn in rows)

    def padded(values, width, front):
        fill = [0] * (width - len(values))
        return [*fill, *values] if front else [*values, *fill]

    ones = [[1] * len(turn.prompt) for turn in rows], [[1] * len(turn.tokens) for turn in rows]
    return {
        "prompt_ids": torch.tensor([padded(turn.prompt, left, True) for turn in rows]),
        "prompt_mask": torch.tensor([padded(mask, left, True) for mask in ones[0]]),
        "completion_ids": torch.tensor([padded(turn.tokens, right, False) for turn in rows]),
        "completion_mask": torch.tensor([padded(mask, right, False) for mask in ones[1]]),
        "advantages": torch.tensor(advantages),
        "num_items_in_batch": torch.tensor(sum(len(turn.tokens) for turn in rows)),
    }


def trl_trainer(checkpoint, tmp_path, loss, beta):
    trl = importlib.import_module("trl")
    from datasets import Dataset

    config = trl.GRPOConfig(
        output_dir=str(tmp_path), per_device_train_batch_size=4, num_generations=2, loss_type=loss, beta=beta, report_to=[],
        use_cpu=True, bf16=False, gradient_checkpointing=False, max_completion_length=8, temperature=0.7, epsilon=0.2,
        epsilon_high=1.2 if loss == "cispo" else 0.2, model_init_kwargs={"dtype": "float32"},
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": "1"}]}] * 4)
    return trl.GRPOTrainer(model=str(checkpoint), reward_funcs=lambda completions, **_: [0.0] * len(completions),
                           args=config, train_dataset=rows)  # fmt: skip


@pytest.mark.parametrize(("loss", "beta"), [("dapo", 0.0), ("dapo", 0.05), ("grpo", 0.05), ("dr_grpo", 0.0), ("cispo", 0.02)])
def test_loss_and_gradients_are_trls(checkpoint, tmp_path, loss, beta):
    trainer = trl_trainer(checkpoint, tmp_path, loss, beta)
    trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation = 1
    model = trainer.model.train()
    settings = Settings(loss=loss, beta=beta, temperature=0.7, max_tokens=8)
    played = games() if loss in ("dapo", "cispo") else [replace(game, turns=game.turns[:1]) for game in games()]
    advantages = [0.9, -1.1, 0.3, -0.2, 1.4, -1.0]
    rows = [(turn, advantage) for game, advantage in zip(played, advantages, strict=True) for turn in game.turns]
    shift = torch.linspace(-0.3, 0.3, sum(len(turn.tokens) for turn, _ in rows))  # as if the policy had moved since
    inputs = trl_inputs([turn for turn, _ in rows], [advantage for _, advantage in rows])

    batch = Batch.of(played, advantages, settings)
    ours = batch.logprobs(model, 0.7)
    order = sorted(range(len(rows)), key=lambda at: len(rows[at][0].prompt) + len(rows[at][0].tokens))
    old, away = ours.detach() + shift, ours.detach() - shift / 2
    for name, flat in (("old_per_token_logps", old), ("ref_per_token_logps", away)):
        table, at = torch.zeros(inputs["completion_ids"].shape), 0
        for row in order:
            length = len(rows[row][0].tokens)
            table[row, :length] = flat[at : at + length]
            at += length
        inputs[name] = table
    theirs = trainer._compute_loss(model, inputs)
    theirs.backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    loss_value, _ = batch.loss(ours, old, away if beta else None, settings)
    loss_value.backward()
    assert loss_value.item() == pytest.approx(theirs.item(), abs=2e-6)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=2e-6)


def test_equal_turns_are_read_once_and_lose_nothing(checkpoint, tmp_path):
    training = Training(job(checkpoint, tmp_path), Settings(prompt_format="plain"))
    played = games()
    twice = [*played, *played]
    advantages = [0.9, -1.1, 0.3, -0.2, 1.4, -1.0, *[0.5] * len(played)]
    batch = Batch.of(twice, advantages, training.settings)
    assert sum(len(ids) for ids in [part.ids for part in batch.parts]) == sum(len(game.turns) for game in played)
    logprobs = batch.logprobs(training.model, 1.0)
    value, _ = batch.loss(logprobs, logprobs.detach(), None, training.settings)
    apart = [Batch.of([game], [a], training.settings) for game, a in zip(twice, advantages, strict=True)]
    tokens = sum(game.tokens for game in twice)
    summed = sum(
        b.loss(own := b.logprobs(training.model, 1.0), own.detach(), None, training.settings)[0] * game.tokens / tokens
        for b, game in zip(apart, twice, strict=True)
    )
    assert value.item() == pytest.approx(summed.item(), abs=1e-6)


@pytest.mark.parametrize("row, tokens", [(512, 1024), (512, 30), (12, 1024), (1, 1)])
def test_an_answer_in_a_shared_row_reads_as_if_it_stood_there_alone(checkpoint, tmp_path, row, tokens):
    model = Training(job(checkpoint, tmp_path), Settings(prompt_format="plain")).model
    prompts = (5, 9, 11), (7,), (5, 9, 11, 20, 3)
    turns = [(prompt, answer) for prompt in prompts for answer in ((4, 8, 15), (4, 8), (16,), (23, 42, 4, 8))]
    parts, starts = pack(turns, tokens, row)
    assert starts.keys() == set(turns) and sum(len(part.own) for part in parts) == sum(len(answer) for _, answer in turns)
    packed = torch.cat([part.logprobs(model, 0.7) for part in parts])
    for (prompt, answer), start in starts.items():
        logits = model(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1] / 0.7
        alone = logits.log_softmax(-1).gather(-1, torch.tensor(answer)[:, None])[:, 0]
        assert torch.allclose(packed[start : start + len(answer)], alone, atol=1e-5)


def test_games_without_an_advantage_are_left_out_and_still_weigh(checkpoint, tmp_path):
    training = Training(job(checkpoint, tmp_path), Settings(prompt_format="plain"))
    played = games()
    batch = Batch.of(played, [1.0, *[0.0] * (len(played) - 1)], training.settings)
    assert len(batch.advantages) == played[0].tokens
    assert float(batch.weights.sum()) == pytest.approx(played[0].tokens / sum(game.tokens for game in played))
    assert len(Batch.of(played, [0.0] * len(played), training.settings).advantages) == sum(game.tokens for game in played)
    kept = replace(training.settings, beta=0.1)  # the KL term moves them all
    assert len(Batch.of(played, [1.0, *[0.0] * (len(played) - 1)], kept).advantages) == sum(game.tokens for game in played)


class Differing(Numbers):
    """Every rollout of a game has a secret of its own."""

    def rollout(self, instance, number):
        return replace(instance, number=number % 8)


def test_a_testbed_may_give_every_rollout_a_chance_of_its_own(checkpoint, tmp_path):
    asked = []

    class Watched(Differing):
        def verify(self, instance, answer, format=""):
            asked.append(instance.number)
            return super().verify(instance, answer, format)

    training = Training(job(checkpoint, tmp_path, Watched()), Settings(group=4, prompts=2, max_tokens=3, prompt_format="plain"))
    training.update([0, 1])
    assert asked == [0, 1, 2, 3] * 2


def test_advantages_by_hand():
    rows = advantages_of([[1.0, 0.0], [0.5, 0.5]], "group")
    assert rows[0] == pytest.approx([0.5 / (0.5**0.5 + 1e-4), -0.5 / (0.5**0.5 + 1e-4)]) and rows[1] == [0.0, 0.0]
    assert advantages_of([[1.0, 0.0]], "none") == [[0.5, -0.5]]


def test_it_plays_whole_conversations_and_only_its_own_tokens_count(checkpoint, tmp_path):
    training = Training(job(checkpoint, tmp_path), Settings(group=2, prompts=2, max_tokens=3, prompt_format="plain"))
    played = [Rollout(training.job.instances[at], (Message("user", "Guess a number below 8."),)) for at in (0, 0, 1, 1)]
    training.player.play(played, 0, 0)
    for game in played:
        assert [m.role for m in game.messages[::2]] == ["assistant"] * len(game.turns)
        assert 1 <= len(game.turns) <= guessing.Guessing.turns
        assert all(1 <= len(turn.tokens) <= 3 for turn in game.turns)
        prompts = [len(turn.prompt) for turn in game.turns]
        assert prompts == sorted(prompts) and len(set(prompts)) == len(prompts), "the conversation so far is the prompt"
    batch = Batch.of(played, [1.0, -1.0, 1.0, -1.0], training.settings)
    assert len(batch.advantages) == sum(game.tokens for game in played)
    assert float(batch.weights.sum()) == pytest.approx(1.0)


def test_in_a_memoryless_format_each_turn_is_a_question_of_its_own(checkpoint, tmp_path):
    training = Training(job(checkpoint, tmp_path), Settings(group=2, prompts=1, max_tokens=3, prompt_format="last"))
    played = [Rollout(training.job.instances[0], (Message("user", "Guess a number below 8."),)) for _ in range(2)]
    training.player.play(played, 0, 0)
    assert max(len(turn.prompt) for game in played for turn in game.turns) < 120


def test_stopped_and_begun_again_it_ends_in_the_same_bytes(checkpoint, tmp_path):
    whole = Grpo().train(job(checkpoint, tmp_path / "whole", count=12, save_every=1))

    class Stop(Exception):
        pass

    def stop(figures):
        if figures["update"] == 2:
            raise Stop

    part = replace(job(checkpoint, tmp_path / "part", count=12, save_every=1), progress=stop)
    with pytest.raises(Stop):
        Grpo().train(part)
    begun = Grpo().train(replace(part, progress=None))
    assert begun.updates == whole.updates == 3 and begun.tokens == whole.tokens
    assert begun.metrics == whole.metrics
    weights = [(folder / "model.safetensors").read_bytes() for folder in (tmp_path / "whole", tmp_path / "part")]
    assert weights[0] == weights[1]
    assert [p.name for p in (tmp_path / "whole" / "updates").iterdir()] == ["update-3"]


class Vowels(Numbers):
    """One turn, and every vowel in the answer pays: random weights find some, and learn to find more."""

    turns, tools, memoryless, prompt_formats = 1, (), (), ("plain",)
    rubric, reward_range = {"vowels": 1.0}, (0.0, 1.0)

    def verify(self, instance, answer, format=""):
        share = sum(letter in "aeiouAEIOU" for letter in answer) / 12
        return Verdict({"numbers": share > 0, "guessed": share > 0}, share > 0, share > 0, None, gaps={"vowels": share})

    def reward_terms(self, instance, verdict):
        return {"vowels": min(1.0, verdict.gaps["vowels"])}


def test_it_learns_what_pays(checkpoint, tmp_path):
    seen = []
    trained = replace(
        job(checkpoint, tmp_path, Vowels(), 64, group=8, prompts=8, learning_rate=3e-3, max_tokens=12, epochs=4),
        progress=lambda figures: seen.append(figures["reward"]),
    )
    Grpo().train(trained)
    assert sum(seen[-4:]) / 4 > 3 * sum(seen[:4]) / 4


def test_dynamic_sampling_plays_on_until_the_update_is_full(checkpoint, tmp_path):
    training = Training(job(checkpoint, tmp_path, count=24), Settings(group=4, prompts=4, max_tokens=3, dynamic=True))
    groups = list(training._played(training.schedule()[0]))
    assert 4 <= len(groups) <= 12
    assert len({group.instance for group in groups[:4]}) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"done": -1}, "done: expected `int` >= 0"),
        ({"weights": {"share": 2.0, "decay": 0.9}}, "weights.share: expected `float` <= 1"),
        ({"weights": {"decay": 0.9}}, "weights.share: is missing"),
        ({"facts": {"near": {"group": "near"}}}, "facts.near.groups: is missing"),
        ({"last": None}, "last: expected `object`"),
    ],
)
def test_a_saved_state_says_which_of_its_fields_is_wrong(tmp_path, change, said):
    state = {"done": 3, "tokens": 9, "weights": {"share": 0.5, "decay": 0.9}, "last": {}, "facts": {}}
    (tmp_path / STATE).write_text(json.dumps(state))
    assert read_state(tmp_path).adaptive_weights == AdaptiveWeights(0.5)
    (tmp_path / STATE).write_text(json.dumps({**state, **change}))
    with pytest.raises(T2TError, match=said) as error:
        read_state(tmp_path)
    assert error.value.where == str(tmp_path / STATE)


def test_the_facts_of_a_cell_are_what_was_sampled():
    testbed = Numbers()
    instance = testbed.load_set("numbers").instances[0]
    verdict = testbed.verify(instance, [Message("assistant", str(instance.number))])
    wrong = testbed.verify(instance, [Message("assistant", "x")])
    facts = CellFacts(testbed)

    def judged(*answers):
        return [Judged(reward, judgement.valid, judgement.failure) for judgement, reward in answers]

    facts.add(instance, judged((verdict, 1.0), (wrong, 0.0)), 10)
    facts.add(instance, judged((wrong, 0.8), (wrong, 0.8 + 1e-8)), 6)
    read = schema.check(json.loads(json.dumps(facts.state())), dict[str, CellRecord], "state.json")
    again = CellFacts(testbed, read)
    assert again.state() == facts.state()
    assert again.to_dict() == {
        "near": {
            "group": "near", "groups": 2, "answers": 4, "reward": pytest.approx(0.65), "advantage": pytest.approx(0.5),
            "dead": 0.5, "valid": 0.25, "tokens": 16, "first_failures": {"numbers": 3},
        }
    }  # fmt: skip


BASE = {"epochs": 2, "temperature": 0.9, "learning_rate": 1e-3, "beta": 0.01}
OTHERWISE = {
    "group": 3,
    "prompts": 2,
    "epochs": 1,
    "max_updates": 2,
    "learning_rate": 2e-3,
    "weight_decay": 0.5,
    "beta2": 0.5,
    "beta": 0.0,
    "temperature": 0.5,
    "max_tokens": 4,
    "length_start": 2,
    "length_end": 1600,
    "loss": "dr_grpo",
    "clip": 1e-6,
    "iterations": 2,
    "scale": "none",
    "dynamic": True,
    "stratify": False,
    "prompt_format": "last",
}
BESIDES = {"clip": {"iterations": 2}, "length_end": {"length_start": 1}, "dynamic": {"group": 2, "max_tokens": 1}}


def trained(checkpoint, folder, **settings):
    from safetensors.torch import load_file

    figures = []
    made = job(checkpoint, folder, Measured(), **{**BASE, **settings})
    result = Grpo().train(replace(made, progress=figures.append))
    plain = [{name: value for name, value in told.items() if name != "eta_seconds"} for told in figures]
    return result, plain, load_file(folder / "model.safetensors")


def same(first, other):
    return first[1] == other[1] and all(torch.equal(first[2][name], other[2][name]) for name in first[2])


class Measured(Numbers):
    """With a reward that differs from answer to answer, even of a model that has learnt nothing, and a price on length."""

    length_term = True

    def verify(self, instance, answer, format=""):
        verdict = super().verify(instance, answer, format)
        said = sum(ord(c) for message in answer for c in message.content)
        return replace(verdict, cost=(said * instance.number) % 7)


@pytest.fixture(scope="module")
def usual(checkpoint, tmp_path_factory):
    """A round with the settings of BASE and so many others; made once each."""

    @functools.cache
    def make(besides):
        return trained(checkpoint, tmp_path_factory.mktemp("usual"), **dict(besides))

    return make


@pytest.mark.parametrize("setting", OTHERWISE)
def test_a_setting_does_something(setting, checkpoint, usual, tmp_path):
    besides = BESIDES.get(setting, {})
    other = trained(checkpoint, tmp_path / "other", **besides, **{setting: OTHERWISE[setting]})
    assert not same(usual(tuple(besides.items())), other)


def test_the_same_settings_do_the_same(checkpoint, usual, tmp_path):
    assert same(usual(()), trained(checkpoint, tmp_path))


def test_every_setting_does_something(checkpoint, tmp_path):
    elsewhere = {"save_every", "threads", "optimizer"}
    assert {f.name for f in fields(Settings)} == {*OTHERWISE, *elsewhere}
    kept, _, _ = trained(checkpoint, tmp_path / "one", optimizer="keep", save_every=3)
    assert kept.keep_updates and not trained(checkpoint, tmp_path / "two", optimizer="reset")[0].keep_updates
    seen = []
    made = job(checkpoint, tmp_path / "three", threads=2)
    Grpo().train(replace(made, progress=lambda told: seen.append(torch.get_num_threads())))
    assert set(seen) == {2} and torch.get_num_threads() == 1


def test_the_state_is_saved_as_often_as_asked(checkpoint, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(Training, "_save", lambda self: saved.append(self.done))
    trained(checkpoint, tmp_path / "run", save_every=3)
    assert saved == [3, 4]


def test_the_optimizer_goes_on_where_it_is_kept(checkpoint, tmp_path):
    trained(checkpoint, tmp_path / "first", optimizer="keep")
    made = job(checkpoint, tmp_path / "second", **{**BASE, "optimizer": "keep"})
    going_on = Training(replace(made, resume_from=tmp_path / "first"), Settings(optimizer="keep"))
    assert going_on.optimizer.state_dict()["state"]
    with pytest.raises(T2TError, match="is not there"):
        Training(replace(made, resume_from=tmp_path / "nowhere"), Settings(optimizer="keep"))


@pytest.mark.parametrize(
    "settings", [{"group": 1}, {"temperature": 0}, {"prompts": 0}, {"beta2": 1}, {"loss": "best"}, {"epochs": 0}]
)
def test_what_cannot_be_trained_is_refused_before_a_run(settings):
    with pytest.raises(T2TError):
        Grpo().check(TrainingOrder(Path("anywhere"), Numbers(), settings, 1000))
    Grpo().check(TrainingOrder(Path("anywhere"), Numbers(), {}, 1000))


def test_too_few_instances_and_large_models_are_refused(checkpoint, tmp_path, monkeypatch):
    with pytest.raises(T2TError, match="do not fill"):
        Grpo().train(job(checkpoint, tmp_path, prompts=9))
    monkeypatch.setattr("t2t_plugins.trainers.grpo.settings.supports_config", lambda config: False)
    with pytest.raises(T2TError, match="trl-grpo"):
        Grpo().train(job(checkpoint, tmp_path))


def test_it_is_registered():
    assert installed().trainers.make("grpo").defaults["group"] == 8


# --- against trl-grpo, which holds a conversation as one sequence


def test_trl_and_grpo_agree_on_whole_conversations(checkpoint, tmp_path):
    """The same conversations, as one masked sequence each and as a row for each turn: loss and gradients are equal."""
    from t2t_plugins.trainers.trl_grpo.conversations import Talk
    from t2t_plugins.trainers.trl_grpo.settings import Settings as TrlSettings

    trainer = trl_trainer(checkpoint, tmp_path, "dapo", 0.0)
    trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation = 1
    order = job(checkpoint, tmp_path / "job")
    talk = Talk(order, TrlSettings(max_tokens=3, temperature=0.7), "plain", trainer.model, trainer.processing_class)
    held = talk.hold(order.instances[:6], seed=3)
    assert max(conversation.own.count(1) for conversation in held) > 3 and any(0 in conversation.own for conversation in held)

    played = []
    for conversation in held:
        turns, at = [], 0
        for own, run in itertools.groupby(conversation.own):
            length = len(list(run))
            if own:
                turns.append(Turn(conversation.prompt + conversation.tokens[:at], conversation.tokens[at : at + length], True))
            at += length
        assert len(turns) == sum(message.role == "assistant" for message in conversation.messages)
        played.append(Rollout(0, conversation.first, conversation.messages, turns))
    advantages = [0.9, -1.1, 0.3, -0.2, 1.4, -1.0]
    model = trainer.model.train()
    batch = Batch.of(played, advantages, Settings(temperature=0.7, max_tokens=3))
    ours = batch.logprobs(model, 0.7)
    value, _ = batch.loss(ours, ours.detach(), None, Settings())
    value.backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    whole = [Turn(conversation.prompt, conversation.tokens, True) for conversation in held]
    inputs = trl_inputs(whole, advantages)
    width = inputs["completion_ids"].shape[1]
    inputs["tool_mask"] = torch.tensor([[*conversation.own, *[1] * (width - len(conversation.own))] for conversation in held])
    inputs["num_items_in_batch"] = torch.tensor(sum(sum(conversation.own) for conversation in held))
    theirs = trainer._compute_loss(model, inputs)
    theirs.backward()
    assert value.item() == pytest.approx(theirs.item(), abs=2e-6)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=2e-6)


@pytest.mark.parametrize("loss", ["dapo", "cispo"])
def test_trl_grpo_trains_on_conversations_and_counts_its_own_tokens(checkpoint, tmp_path, loss):
    from t2t_plugins.trainers.trl_grpo.trainer import Grpo as TrlGrpo

    figures = []
    settings = {"group": 4, "prompts": 4, "max_tokens": 3, "epochs": 1, "prompt_format": "plain", "loss": loss}
    order = replace(job(checkpoint, tmp_path), settings=settings, progress=figures.append)
    result = TrlGrpo().train(order)
    assert result.updates == 2 and result.checkpoint == order.folder
    assert all(1 <= line["response_tokens"] <= 3 * guessing.Guessing.turns for line in figures if "response_tokens" in line)


def test_trl_grpo_refuses_a_memoryless_format(checkpoint, tmp_path):
    from t2t_plugins.trainers.trl_grpo.trainer import Grpo as TrlGrpo

    order = replace(job(checkpoint, tmp_path), settings={"group": 4, "prompts": 4, "max_tokens": 3, "prompt_format": "last"})
    with pytest.raises(T2TError, match="question of its own"):
        TrlGrpo().train(order)
