"""The agent as a trainer sees it: a causal language model whose turns become likelier or less likely by what they led to.

The same code trains the toy agent, with all its weights, and a language model with LoRA. Episodes may be a few updates old, so a
turn's tokens are weighted by how much likelier they are now than under the version of the agent that said them (importance
sampling, clipped as in PPO).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.records import Message
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_jobs.training.settings import OuterSettings

STATE = "learner.pt"


@dataclass(frozen=True)
class Spoken:
    """A turn of an agent: the conversation before it, its words, whether it ended by itself, the version that said it and at
    which temperature, and the advantage of its episode."""

    messages: Sequence[Message]
    text: str
    ended: bool
    version: int
    advantage: float
    temperature: float = 1.0


@dataclass(frozen=True)
class _Row:
    """A turn as tokens; the answer begins at `start`."""

    tokens: Sequence[int]
    start: int
    turn: Spoken


class Learner:
    """Holds the model and its optimizer, and reads earlier versions when it needs them.

    Args:
        start: the checkpoint's folder, or a model's id.
        settings: how it learns.
        versions: the folder of the versions, each in a folder named by its number.
    """

    def __init__(self, start: str, settings: OuterSettings, versions: SafePath) -> None:
        torch, transformers = _libraries()
        torch.set_num_threads(1 if settings.device != "cuda" and not torch.cuda.is_available() else torch.get_num_threads())
        self.settings, self._versions, self.version = settings, versions, 0
        self.device = settings.device if settings.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(start, padding_side="left")
        model = transformers.AutoModelForCausalLM.from_pretrained(start, use_safetensors=True, dtype="auto")
        self.model = _with_lora(model, settings) if settings.lora_rank else model
        self.model.to(self.device).eval()  # no dropout, so that the ratio is 1 in the first pass over a new episode
        self._trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            list(self._trained.values()), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    # --- learning

    def update(self, turns: Sequence[Spoken]) -> dict[str, float]:
        """Learn from the turns of one outer step. Returns its figures: the mean loss, the mean importance ratio in the first pass
        and the largest distance of a ratio from 1, the share of clipped tokens, the gradient's norm, and the tokens."""
        import torch

        rows = [row for row in map(self._row, turns) if len(row.tokens) > row.start]
        counted = sum(len(row.tokens) - row.start for row in rows)
        if not counted:
            return {"tokens": 0.0}
        before = self._before(rows)
        figures = {"loss": 0.0, "clipped": 0.0, "grad_norm": 0.0}
        ratios: list[Any] = []
        for epoch in range(self.settings.epochs):
            for batch in self._batches(rows):
                new = self._logprobs([rows[i] for i in batch])
                old = torch.cat([before[i] for i in batch])
                weight = torch.cat([torch.full((len(before[i]),), rows[i].turn.advantage) for i in batch]).to(self.device)
                ratio = (new - old).exp()
                kept = ratio.clamp(1 - self.settings.clip_low, 1 + self.settings.clip_high)
                gained = torch.minimum(ratio * weight, kept * weight)
                loss = -gained.sum() / counted
                loss.backward()  # type: ignore[no-untyped-call]
                figures["loss"] += loss.item() / self.settings.epochs
                figures["clipped"] += (ratio * weight > kept * weight).sum().item() / counted / self.settings.epochs
                if epoch == 0:
                    ratios.append(ratio.detach())
            norm = torch.nn.utils.clip_grad_norm_(list(self._trained.values()), self.settings.max_grad_norm)
            figures["grad_norm"] += float(norm) / self.settings.epochs
            self.optimizer.step()
            self.optimizer.zero_grad()
        first = torch.cat(ratios)
        figures |= {"ratio": first.mean().item(), "ratio_off": (first - 1).abs().max().item(), "tokens": float(counted)}
        self.version += 1
        return figures

    def _row(self, turn: Spoken) -> _Row:
        said = [message.to_dict() for message in turn.messages]
        front = self.tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
        tokens = self.tokenizer(front, add_special_tokens=False)["input_ids"]
        answer = self.tokenizer(turn.text + self.tokenizer.eos_token * turn.ended, add_special_tokens=False)["input_ids"]
        return _Row([*tokens, *answer], len(tokens), turn)

    def _batches(self, rows: Sequence[_Row]) -> Iterator[list[int]]:
        """Batches of the indices of rows with similar lengths; with padding, each has at most `batch_tokens` tokens."""
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].tokens))
        batch: list[int] = []
        for i in order:
            if batch and (len(batch) + 1) * len(rows[i].tokens) > self.settings.batch_tokens:
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _logprobs(self, rows: Sequence[_Row]) -> Any:
        """The log-probability of every token of the answers, one row after another, at the temperature it was sampled at."""
        import torch

        width = max(len(row.tokens) for row in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask, answers = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for index, row in enumerate(rows):
            ids[index, : len(row.tokens)] = torch.tensor(row.tokens)
            mask[index, : len(row.tokens)] = 1
            answers[index, row.start : len(row.tokens)] = True
        ids, mask, answers = ids.to(self.device), mask.to(self.device), answers.to(self.device)
        logits = self.model(input_ids=ids, attention_mask=mask).logits[:, :-1][answers[:, 1:]].float()
        temperatures = torch.tensor([row.turn.temperature for row in rows], device=self.device)
        each = temperatures[:, None].expand(-1, width - 1)[answers[:, 1:]]
        tokens = ids[:, 1:][answers[:, 1:]]
        logprobs = torch.log_softmax(logits / each[:, None], dim=-1)
        return logprobs.gather(-1, tokens[:, None])[:, 0]

    def _before(self, rows: Sequence[_Row]) -> list[Any]:
        """Each row's log-probabilities under the version that said it."""
        import torch

        answer_logprobs: list[Any] = [None] * len(rows)
        current = self._weights()
        for version in sorted({row.turn.version for row in rows}):
            own = [i for i, row in enumerate(rows) if row.turn.version == version]
            if version != self.version:
                self._put(self._read(version))
            with torch.no_grad():
                for batch in self._batches([rows[i] for i in own]):
                    indices = [own[i] for i in batch]
                    lengths = [len(rows[i].tokens) - rows[i].start for i in indices]
                    for i, logprobs in zip(indices, self._logprobs([rows[i] for i in indices]).split(lengths), strict=True):
                        answer_logprobs[i] = logprobs
            if version != self.version:
                self._put(current)
        return answer_logprobs

    # --- versions

    def _weights(self) -> dict[str, Any]:
        return {name: p.detach().clone() for name, p in self._trained.items()}

    def _put(self, weights: Mapping[str, Any]) -> None:
        import torch

        with torch.no_grad():
            for name, p in self._trained.items():
                p.copy_(weights[name])

    def _read(self, version: int) -> dict[str, Any]:
        import torch

        state = torch.load((self._versions / str(version) / STATE).checked_path(), weights_only=True, map_location=self.device)
        return dict(state["trained"])

    def save(self, folder: SafePath) -> None:
        """Write this version as transformers (or PEFT) reads it, together with the state that learning continues from."""
        import torch

        self.model.save_pretrained(folder.path)
        self.tokenizer.save_pretrained(folder.path)
        state = {"trained": self._weights(), "optimizer": self.optimizer.state_dict(), "version": self.version}
        with folders.replacing(folder / STATE) as file:
            torch.save(state, file)

    def load(self, version: int) -> None:
        """Continue from that version."""
        import torch

        path = (self._versions / str(version) / STATE).checked_path()
        state = torch.load(path, weights_only=True, map_location=self.device)
        self._put(state["trained"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.version = version


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise T2TError(f"training an agent needs the training extra: {error}", next=advice.extra("train")) from error
    return torch, transformers


def _with_lora(model: Any, settings: OuterSettings) -> Any:
    from peft import LoraConfig, get_peft_model

    adapter = LoraConfig(r=settings.lora_rank, lora_alpha=settings.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, adapter)
