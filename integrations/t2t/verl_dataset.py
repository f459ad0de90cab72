"""A data set for verl whose rows a designer redesigns while the training runs.

    python -m verl.trainer.main_ppo trainer.use_v1=False data.dataloader_num_workers=0 \\
        data.custom_cls.path=pkg://t2t.verl_dataset data.custom_cls.name=DesignedDataset \\
        data.train_files=designed data.val_files=validation.parquet \\
        +data.t2t.testbed=mapf-frozenlake +data.t2t.designer=rule +data.t2t.count=4096 +data.t2t.out=rounds ...

verl calls `on_batch_end` of its training set after each update. Its trainer "v1" does not, hence `use_v1=False`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf
from verl.utils.dataset.rl_dataset import RLHFDataset

from t2t.designed import DesignedStream, Settings
from t2t_core.errors import T2TError
from t2t_core.records import InstanceSet
from t2t_core.store.parquet import verl_row

DESIGNED = "designed"  # in place of a file name: the rows come from the generator


class DesignedDataset(RLHFDataset):
    """verl's data set. If its file is called "designed", our generator draws its rows. After `every` batches (setting
    `data.t2t.every`; default: as many as a round's instances fill), the designer reads how they were answered, and fresh rows
    replace them. Any other file, such as the validation file, is read as verl reads it."""

    def __init__(self, data_files: Any, tokenizer: Any, config: Any, *others: Any, **more: Any) -> None:
        files = [data_files] if isinstance(data_files, str) else list(data_files)
        self.stream: DesignedStream | None = None
        self.batches = 0
        if files == [DESIGNED]:
            if config.get("dataloader_num_workers", 0):
                what = "the loader's workers would continue with copies of the first rows"
                raise T2TError(what, where="data.dataloader_num_workers", next="set it to 0")
            given = config.get("t2t") or {}
            settings: Any = OmegaConf.to_container(given, resolve=True) if isinstance(given, DictConfig) else dict(given)
            self.every = int(settings.pop("every", 0))
            self.stream = DesignedStream(Settings.read(settings, "data.t2t"))
        super().__init__(data_files, tokenizer, config, *others, **more)

    def __getstate__(self) -> Any:
        """Leave the stream out: verl filters long prompts in separate processes, which need the data set but no designer."""
        return {**super().__getstate__(), "stream": None}

    def _download(self, use_origin_parquet: bool = False) -> None:
        if self.stream is None:
            super()._download(use_origin_parquet)

    def _read_files_and_tokenize(self) -> None:
        if self.stream is None:
            super()._read_files_and_tokenize()
            return
        from datasets import Dataset

        stream, name = self.stream, f"round_{self.stream.index}"
        drawn = InstanceSet(name, "train", "", stream.instances)
        rows = [verl_row(stream.testbed, instance, drawn, stream.form) for instance in stream.instances]
        self.dataframe = self.maybe_filter_out_long_prompts(Dataset.from_list(rows))
        if not len(self.dataframe):
            what = f"no prompt of {name} is short enough"
            raise T2TError(what, where="data.max_prompt_length", next="raise it, or set a shorter data.t2t.prompt_format")

    def __len__(self) -> int:
        """Designed rows have the same number in every round, whatever was filtered out, because samplers ask only once."""
        return int(super().__len__() if self.stream is None else self.stream.settings.count)

    def __getitem__(self, item: int) -> Any:
        return super().__getitem__(int(item) % len(self.dataframe))

    def on_batch_end(self, batch: Any) -> None:
        """verl calls this after each update, with what was sampled."""
        if self.stream is None:
            return
        answers = _answers(batch, self.tokenizer)
        for row, text in answers:
            self.stream.answered(self.stream.testbed.read_instance(json.loads(row["ground_truth"])), text)
        self.batches += 1
        prompts = len({row["ground_truth"] for row, _ in answers})
        if self.batches < (self.every or max(1, len(self) // max(1, prompts))):
            return
        self.batches = 0
        outcome = self.stream.redesign()
        self._read_files_and_tokenize()
        print(f"t2t: round {self.stream.index}; the designer {self.stream.settings.designer}: {outcome}")


def _answers(batch: Any, tokenizer: Any) -> list[tuple[Mapping[str, Any], str]]:
    """(reward_model, text) of every rollout in verl's `DataProto`, without padding."""
    tokens = batch.batch["responses"]
    mask = batch.batch["attention_mask"][:, -tokens.shape[1] :].bool()
    texts = [tokenizer.decode(row[kept], skip_special_tokens=True) for row, kept in zip(tokens, mask, strict=True)]
    return list(zip(batch.non_tensor_batch["reward_model"], texts, strict=True))
