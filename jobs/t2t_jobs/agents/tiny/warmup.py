"""The toy agent's warm-up: supervised learning from scratch on the noisy corpus of jobs.

    python -m t2t_jobs.agents.tiny.warmup --out DIR

Everything follows from the seed (bit for bit on one machine with one thread). The corpus also has jobs of held-out families; this
tells the model nothing about them, since all jobs are drawn at random and none is ever scored.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from t2t_core.plugins import installed
from t2t_core.seeding import Stream
from t2t_core.store import folders
from t2t_jobs.agents.tiny.corpus import Pair, corpus
from t2t_jobs.agents.tiny.model import CONTEXT, make_model, make_tokenizer, words
from t2t_jobs.family import Family

PAIRS, STEPS, BATCH = 12_000, 900, 48
RATE, RISE, FALL = 4e-3, 50, 0.4  # the learning rate rises over the first 50 updates and falls to 0 over the last 40 %
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


def encode(tokenizer: Any, pairs: Sequence[Pair]) -> list[tuple[list[int], int]]:
    """The token ids of each pair, and where its answer begins. Pairs too long for the context are left out."""
    chats = [[{"role": "user", "content": pair.question}] for pair in pairs]
    fronts = tokenizer([tokenizer.apply_chat_template(chat, tokenize=False) for chat in chats])["input_ids"]
    answers = tokenizer([pair.text + tokenizer.eos_token for pair in pairs])["input_ids"]
    rows = [(front + answer, len(front)) for front, answer in zip(fronts, answers, strict=True)]
    return [row for row in rows if len(row[0]) <= CONTEXT]


def learn(families: Sequence[Family], seed: int, pairs: int, steps: int, log: Any = None) -> tuple[Any, Any, float]:
    """Train a model on `steps` batches of the corpus. Returns the model, its tokenizer, and the mean of the last 100 losses."""
    import torch

    torch.set_num_threads(1)
    vocabulary = words(families)
    tokenizer, model = make_tokenizer(vocabulary), make_model(seed, len(vocabulary))
    rows = encode(tokenizer, corpus(families, seed, pairs))
    stream = Stream.of(seed, "batches")
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    optimizers: list[Any] = [
        torch.optim.Muon(matrices, lr=0.0, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    model.train()
    losses: list[float] = []
    for step in range(steps):
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = RATE * min(1.0, (step + 1) / RISE, (steps - step) / (FALL * steps))
        ids, targets = batch(rows, stream)
        hidden = model.model(input_ids=ids).last_hidden_state
        mask = targets >= 0
        loss = torch.nn.functional.cross_entropy(model.lm_head(hidden[mask]), targets[mask])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        if log and (step + 1) % 100 == 0:
            log(step + 1, sum(losses[-100:]) / 100)
    last = losses[-100:]
    return model.eval(), tokenizer, sum(last) / len(last)


def batch(rows: Sequence[tuple[list[int], int]], stream: Stream) -> tuple[Any, Any]:
    """Draw a batch of rows of similar length, padded on the right. Returns ids and targets of shape (rows, columns); a target is
    the next token within an answer, and -100 elsewhere."""
    import torch

    drawn = sorted((rows[stream.below(len(rows))] for _ in range(4 * BATCH)), key=lambda row: len(row[0]))
    at = BATCH * stream.below(4)
    pairs = drawn[at : at + BATCH]
    ids = torch.zeros(len(pairs), max(len(tokens) for tokens, _ in pairs), dtype=torch.long)
    targets = torch.full(ids.shape, -100)
    for row, (tokens, start) in enumerate(pairs):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        targets[row, start - 1 : len(tokens) - 1] = ids[row, start : len(tokens)]
    return ids, targets


def export(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write the checkpoint as transformers reads it. Its configuration says that the model expects the compact form."""
    model.config.t2t_brief = "compact"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options().parse_args(arguments)
    out: Path = options.out
    folders.make_folder(out)
    names = options.families or [entry.name for entry in installed().families]
    families = [installed().families.make(name) for name in names]
    begun = time.process_time()
    model, tokenizer, loss = learn(
        families, options.seed, options.pairs, options.steps, lambda step, mean: print(step, round(mean, 4), flush=True)
    )
    export(model, tokenizer, out)
    recipe = {
        "what": "a toy agent that writes jobs: supervised warm-up from scratch on a noisy corpus of jobs, none of them scored",
        "command": f"python -m t2t_jobs.agents.tiny.warmup --out DIR --seed {options.seed} --pairs {options.pairs} "
        f"--steps {options.steps}",
        "families": names,
        "batch": BATCH,
        "learning_rate": RATE,
        "loss": round(loss, 4),
        "parameters": model.num_parameters(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "cpu_seconds": round(time.process_time() - begun, 1),
    }
    folders.write_json(out / "recipe.json", recipe)
    print(json.dumps(recipe, indent=2))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m t2t_jobs.agents.tiny.warmup", description="Make the toy agent.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"jobs in the corpus (default {PAIRS})")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"updates of {BATCH} jobs (default {STEPS})")
    parser.add_argument(
        "--families", nargs="+", default=[], metavar="NAME", help="families of the corpus (default: all that are installed)"
    )
    return parser


if __name__ == "__main__":
    main()
