"""verl, for real: its own data set class, loader, reward manager and batches, on the CPU. No GPU part (rollout, actor) runs.

    bash .ci/integrations verl
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.records import Proposal
from t2t_envs.frozen_lake import format_answer, solve

pytest.importorskip("verl.utils.dataset.rl_dataset")
sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))
BED = installed().testbeds.make("mapf-frozenlake")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: Any) -> Any:
    from qwen import random_model
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("model")
    random_model(folder)
    return AutoTokenizer.from_pretrained(folder)


def settings(**more: Any) -> Any:
    """verl's own defaults of `data`, changed as the page says."""
    import verl.trainer.config.data as home
    from omegaconf import OmegaConf

    base = OmegaConf.load(Path(next(iter(home.__path__))) / "legacy_data.yaml")
    cls = {"path": "pkg://t2t.verl_dataset", "name": "DesignedDataset"}
    own = {"testbed": "mapf-frozenlake", "count": 16, "prompt_format": "compact", **more.pop("t2t", {})}
    changes = {"custom_cls": cls, "dataloader_num_workers": 0, "max_prompt_length": 4096, "t2t": own, **more}
    base.filter_overlong_prompts_workers = 1
    return OmegaConf.merge(base, changes)


def dataset(config: Any, tokenizer: Any, files: Any = "designed") -> Any:
    from verl.trainer.ppo.utils import create_rl_dataset

    return create_rl_dataset(files, config, tokenizer, None)


def rollouts(rows: Any, tokenizer: Any, answer: Any) -> Any:
    """A batch as verl's trainer has it after the rollouts: tokens padded to one length, and the rows' columns."""
    import torch
    from verl import DataProto

    texts = [answer(BED.read_instance(json.loads(truth["ground_truth"])), n) for n, truth in enumerate(rows["reward_model"])]
    tokens = [tokenizer(text)["input_ids"] + [tokenizer.eos_token_id] for text in texts]
    longest = max(map(len, tokens))
    padded = torch.tensor([[*each, *[tokenizer.pad_token_id] * (longest - len(each))] for each in tokens])
    length = torch.tensor([len(each) for each in tokens])
    mask = (torch.arange(longest)[None] < length[:, None]).long()
    prompts = torch.zeros((len(tokens), 3), dtype=torch.long)
    whole = torch.cat([torch.ones_like(prompts), mask], dim=1)
    tensors = {"prompts": prompts, "responses": padded, "attention_mask": whole, "response_mask": mask}
    return DataProto.from_dict(tensors, non_tensors={name: rows[name] for name in ("reward_model", "data_source", "extra_info")})


def good_on_small(lake: Any, number: int) -> str:
    return format_answer(solve(lake).paths) if lake.size < 7 else "I give up."


def test_any_designer_redesigns_the_rows_of_a_training(tokenizer: Any, tmp_path: Path) -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader
    from verl.trainer.ppo.utils import create_rl_sampler
    from verl.utils.dataset.rl_dataset import collate_fn

    seen: list[Any] = []

    class OnlyFours:
        def propose(self, brief: Any) -> Proposal:
            seen.append(brief)
            four = {"data_ratio": 1.0, "hole_ratio": 0.25, "wait_ratio": 0.5}
            return Proposal("", {g: four if g == "4" else {**four, "data_ratio": 0.0} for g in BED.groups}, summary="fours")

    installed().designers.add("only-fours", lambda argument, settings: OnlyFours(), "a stranger's")
    config = settings(t2t={"designer": "only-fours", "out": str(tmp_path / "rounds")})
    data = dataset(config, tokenizer)
    loader = StatefulDataLoader(
        data, batch_size=8, num_workers=0, drop_last=True, collate_fn=collate_fn, sampler=create_rl_sampler(config, data)
    )
    kept = {BED.identity(i) for name in BED.protected_sets() for i in BED.load_set(name).instances}
    sizes: list[set[int]] = []
    for _ in range(2):  # epochs, each a round of two batches
        assert len(loader) == 2
        for batch in loader:
            lakes = [BED.read_instance(json.loads(row["ground_truth"])) for row in batch["reward_model"]]
            assert not kept & {BED.identity(lake) for lake in lakes}
            assert [m[0]["content"] for m in batch["raw_prompt"]] == [BED.prompt(BED.unlabelled(i), "compact") for i in lakes]
            sizes.append({lake.size for lake in lakes})
            data.on_batch_end(batch=rollouts(batch, tokenizer, good_on_small))
    assert len(sizes[0] | sizes[1]) > 1 and sizes[2] == sizes[3] == {4}
    total = seen[0].state.rounds[-1].breakdown["total"]
    assert total["answers"] == 16 and 0 < total["valid"] < 16
    assert "map size" in seen[0].text and seen[1].state.rounds[-1].breakdown["total"]["valid"] == 16
    record = [json.loads(line) for line in (tmp_path / "rounds" / "rounds.jsonl").read_text().splitlines()]
    assert [each["round"] for each in record] == [0, 1] and record[0]["outcome"] == "proposed"
    again = dataset(config, tokenizer)  # a stopped training goes on in the round it had come to, with the same rows
    assert again.stream.index == 2 and again.dataframe["reward_model"][:] == data.dataframe["reward_model"][:]


def test_a_validation_file_is_read_as_verl_reads_it_and_scored_as_t2t_scores(tokenizer: Any, tmp_path: Path) -> None:
    from omegaconf import OmegaConf
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.dataset.rl_dataset import collate_fn

    words = ["export", "--set", "validation_2agents", "--format", "verl", "--prompt-format", "compact"]
    assert CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "v.parquet")], catch_exceptions=False).exit_code == 0
    data = dataset(settings(), tokenizer, [str(tmp_path / "v.parquet")])
    lakes = BED.load_set("validation_2agents").instances
    assert len(data) == len(lakes) == 400
    reward = {"custom_reward_function": {"path": "pkg://t2t.verl", "name": "compute_score"}}
    config = OmegaConf.create({"reward": reward})
    rows = collate_fn([data[n] for n in range(0, 400, 40)])
    batch = rollouts(rows, tokenizer, lambda lake, n: format_answer(solve(lake).paths) if n % 2 else "I give up.")

    async def scored() -> list[Any]:
        manager = NaiveRewardManager(config, tokenizer, get_custom_reward_fn(config))
        return [await manager.run_single(batch[n : n + 1]) for n in range(10)]

    paid = asyncio.run(scored())
    assert [each["reward_score"] for each in paid] == [0.0, 1.0] * 5
    assert [each["reward_extra_info"]["optimal"] for each in paid] == [0.0, 1.0] * 5


def test_what_cannot_work_is_said(tokenizer: Any) -> None:
    with pytest.raises(T2TError, match="copies of the first rows"):
        dataset(settings(dataloader_num_workers=2), tokenizer)
    with pytest.raises(T2TError, match="no setting 'designr'"):
        dataset(settings(t2t={"designr": "rule"}), tokenizer)
    with pytest.raises(T2TError, match="played in turns"):
        dataset(settings(t2t={"testbed": "tictactoe", "prompt_format": ""}), tokenizer)
    with pytest.raises(T2TError, match="no prompt of round_0 is short enough"):
        dataset(settings(max_prompt_length=3, filter_overlong_prompts=True), tokenizer)


def test_a_designer_that_fails_leaves_the_configuration(tokenizer: Any) -> None:
    def broken(argument: str, settings: Any) -> Any:
        class Broken:
            def propose(self, brief: Any) -> Proposal:
                raise RuntimeError("no idea")

        return Broken()

    installed().designers.add("broken", broken, "raises")
    data = dataset(settings(t2t={"designer": "broken", "every": 1}), tokenizer)
    before = data.stream.configuration.to_dict()
    from verl.utils.dataset.rl_dataset import collate_fn

    data.on_batch_end(batch=rollouts(collate_fn([data[0], data[1]]), tokenizer, good_on_small))
    assert data.stream.index == 1 and data.stream.configuration.to_dict() == before


def test_verl_takes_the_page_s_settings(tokenizer: Any) -> None:
    import verl.trainer.config as home
    from hydra import compose, initialize_config_dir

    page = (Path(__file__).parents[2] / "docs" / "verl.md").read_text()
    commands = re.findall(r"verl\.trainer\.main_ppo (.*?)\n(?:```|\S)", page.replace("\\\n", " "), re.DOTALL)
    assert len(commands) == 2
    with initialize_config_dir(str(Path(next(iter(home.__path__))).resolve()), version_base=None):
        plain, designed = (compose("ppo_trainer", overrides=command.split()) for command in commands)
    assert plain.data.train_files == "train.parquet" and designed.data.t2t.designer == "rule"
    designed.data.t2t.count, designed.data.t2t.out = 8, ""
    assert len(dataset(designed.data, tokenizer, designed.data.train_files)) == 8
