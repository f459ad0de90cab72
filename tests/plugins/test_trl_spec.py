"""A testbed in TRL's own form: its rewards follow from the verifier, and no protected instance is trained on."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from qwen import random_model

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_envs.frozen_lake import format_answer, solve
from t2t_plugins.trl import TestbedSpec

ROOT = Path(__file__).parents[2]


def lake_spec(**more: Any) -> TestbedSpec:
    return TestbedSpec("mapf-frozenlake", count=12, agents=2, prompt_format="compact", **more)


def test_a_row_asks_without_labels_and_pays_what_the_verifier_says() -> None:
    spec = lake_spec()
    instances = list(spec.instances)
    rows = [spec._row(instance) for instance in instances]
    answers = [[{"role": "assistant", "content": format_answer(solve(i).paths)}] for i in instances[:6]]
    answers += [[{"role": "assistant", "content": "no idea"}]] * 6
    logged: dict[str, float] = {}
    columns = {"instance": [row["instance"] for row in rows], "id": [row["id"] for row in rows]}
    paid = spec.reward_funcs(prompts=None, completions=answers, log_metric=logged.__setitem__, **columns)
    assert paid == [1.0] * 6 + [0.0] * 6 and logged == {"valid": 0.5, "optimal": 0.5}
    assert "optimal" not in json.dumps([row["prompt"] for row in rows]) and spec.environment_factory is None
    assert spec.reward_funcs(completions=["no idea"], instance=columns["instance"][:1]) == [0.0]  # a dataset of plain texts


def test_what_is_protected_is_not_trained_on() -> None:
    kept = installed().testbeds.make("mapf-frozenlake").load_set("validation_2agents").instances
    with pytest.raises(T2TError, match="3 of 3 instances are in a set that is kept for evaluation"):
        lake_spec(instances=kept[:3])
    with pytest.raises(T2TError, match="no prompt format"):
        TestbedSpec(count=1, prompt_format="board2")


def test_a_configuration_may_be_a_file_or_a_mapping(tmp_path: Path) -> None:
    bed = installed().testbeds.make("mapf-frozenlake")
    uniform = bed.random_configuration(bed.request(12), 3).to_dict()
    (tmp_path / "c.json").write_text(json.dumps(uniform))
    spec, again = lake_spec(configuration=uniform, seed=5), lake_spec(configuration=tmp_path / "c.json", seed=5)
    assert [i.to_dict() for i in spec.instances] == [i.to_dict() for i in again.instances]


def test_a_game_is_played_by_one_tool_and_paid_when_it_is_over() -> None:
    spec = TestbedSpec("tictactoe", count=8, prompt_format="think")
    policy = installed().policies.make("minimax")
    factory = spec.environment_factory
    assert factory is not None
    games = []
    for instance in spec.instances:
        game = factory()
        game.reset(**{k: v for k, v in spec._row(instance).items() if k != "prompt"})
        assert "Args:" in str(game.answer.__doc__)
        replied = ""
        for move in range(9):
            replied = game.answer(f"<think>x</think><move>{move}</move>")
            if "over" in replied:
                break
        assert game.answer("<move>0</move>") == "The conversation is over." and replied
        games.append(game)
    paid = spec.reward_funcs(environments=games)
    assert paid == [spec.pays(game.instance, game._verdict()) for game in games] and len(set(paid)) > 1
    assert policy is not None


QUIET = {"use_cpu": True, "bf16": False, "report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}


@pytest.mark.train
def test_the_lines_of_the_docs_train(tmp_path: Path) -> None:
    """As they stand but for the sizes: a model that is at hand, a few short answers, two updates."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "trl.md").read_text(), re.DOTALL)
    small = {
        '"Qwen/Qwen3-0.6B"': repr(str(installed().policies.make("tiny").checkpoint)),
        '"out", num_generations=8, max_completion_length=2048': "FOLDER, num_generations=4, max_completion_length=48, **SMALL",
        "count=1024, agents=2": 'count=12, agents=2, prompt_format="compact"',
    }
    for words, other in small.items():
        assert words in block
        block = block.replace(words, other)
    known: dict[str, Any] = {"FOLDER": str(tmp_path), "SMALL": {"per_device_train_batch_size": 4, "max_steps": 2, **QUIET}}
    exec(block, known)
    state = known["trainer"].state
    assert state.global_step == 2 and any("valid" in key for line in state.log_history for key in line)


@pytest.mark.train
def test_a_game_goes_round_trls_tool_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random model whose every turn is replaced by the same tool call: TRL parses it, plays it, and rewards the game."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    import trl

    spec = TestbedSpec("tictactoe", count=4, prompt_format="think")
    texts = [row["prompt"][0]["content"] for row in map(spec._row, spec.instances)]
    tags = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
    random_model(tmp_path / "model", texts=texts, more_special=tags)
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    (tmp_path / "model" / "chat_template.jinja").write_text(template.read_text())
    sizes = {"per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 900, "max_steps": 1}
    calls = {"max_tool_calling_iterations": 4, "chat_template_kwargs": {"enable_thinking": False}}
    config = trl.GRPOConfig(str(tmp_path), **sizes, **calls, **QUIET)
    model = str(tmp_path / "model")
    trainer = trl.GRPOTrainer(model, spec.reward_funcs, config, spec.train_dataset, environment_factory=spec.environment_factory)
    tokenizer, generate = trainer.processing_class, trainer._generate_single_turn
    moves = itertools.cycle("40826")

    def scripted(prompt_ids: Any, *rest: Any, **named: Any) -> Any:
        call = {"name": "answer", "arguments": {"text": f"<think>mine</think><move>{next(moves)}</move>"}}
        text = f"<tool_call>\n{json.dumps(call)}\n</tool_call><|im_end|>"
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return ([list(ids) for _ in prompt_ids], None, *generate(prompt_ids, *rest, **named)[2:])

    trainer._generate_single_turn = scripted
    trainer.generation_config.max_new_tokens = 1  # what it generates is thrown away
    trainer.train()
    (line,) = [line for line in trainer.state.log_history if "tools/call_frequency" in line]
    assert line["tools/call_frequency"] >= 3 and line["tools/failure_frequency"] == 0 and line["reward"] > 0
