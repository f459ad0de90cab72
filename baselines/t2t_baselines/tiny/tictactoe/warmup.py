"""The warm-up: supervised learning from scratch on the games that a mediocre player did not lose.

    python -m t2t_baselines.tiny.tictactoe.warmup --out DIR

The player moves at random half of the time and optimally otherwise, against random moves. Its lost games are dropped, as in the
talk. Every move is learnt in the board's eight symmetric views. So the policy learns most of what is legal and a little more, and
still has much to learn. Everything follows from the seed (on one machine with one thread, bit for bit).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from t2t_baselines.tictactoe import Minimax
from t2t_baselines.tiny.tictactoe.model import make_model, make_tokenizer
from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.plugins import installed
from t2t_core.records import Sampling
from t2t_core.seeding import Stream
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_envs.tictactoe import sets
from t2t_envs.tictactoe.game import advance, begin
from t2t_envs.tictactoe.generation.configuration import Configuration
from t2t_envs.tictactoe.generation.generator import generate
from t2t_envs.tictactoe.generation.request import Request
from t2t_envs.tictactoe.parser import Move
from t2t_envs.tictactoe.rules import SYMMETRIES

GAMES, STEPS, BATCH = 200, 150, 128
# The learning rate, the number of updates over which it rises, and the last share of them, over which it falls to zero.
RATE, RISE, FALL = 4e-3, 20, 0.3
TEACHER_P = 0.5  # how often the teacher moves at random
PROMPT_FORMAT = "compact"
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


def demonstrations(seed: int, games: int) -> list[tuple[str, int]]:
    """The teacher's moves, (board, cell), in the games that it did not lose, without games of a frozen set."""
    teacher = Minimax(settings={"p": str(TEACHER_P)})
    moves = []
    request = Request(games, sets.identities())
    for number, instance in enumerate(generate(Configuration.uniform(1.0, 1.0), request, seed)):
        stream, game = Stream.of(seed, "teacher", number), begin(instance)
        while game.result is None:
            cell, _ = teacher.choose(game.policy, game.opponent, stream)
            before, game = game, advance(instance, game, Move(cell, True))
            moves.append((before.board, cell, number))
        if game.result == "loss":
            moves = [move for move in moves if move[2] != number]
    return [(board, cell) for board, cell, _ in moves]


def views(moves: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Every move on every symmetric view of its board."""
    pairs = []
    for board, cell in moves:
        for cells in SYMMETRIES:
            marks = dict(zip(cells, board, strict=True))
            pairs.append(("".join(marks[at] for at in range(9)), cells[cell]))
    return pairs


def learn(seed: int, moves: Sequence[tuple[str, int]], steps: int) -> tuple[Any, Any, float]:
    """Train a model on `steps` batches of these moves. Returns it, its tokenizer, and the last loss."""
    import torch

    torch.set_num_threads(1)
    tokenizer, model = make_tokenizer(), make_model(seed)
    chats = [[{"role": "user", "content": board}] for board, _ in moves]
    fronts = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    answers = [f"{cell}{tokenizer.eos_token}" for _, cell in moves]
    ids = torch.tensor(tokenizer([front + answer for front, answer in zip(fronts, answers, strict=True)])["input_ids"])
    front = ids.shape[1] - 2  # every board has three words, every answer one word and an end
    generator = torch.Generator().manual_seed(seed)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    optimizers: list[Any] = [
        torch.optim.Muon(matrices, lr=0.0, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    model.train()
    loss = torch.zeros(())
    for step in range(steps):
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = RATE * min(1.0, (step + 1) / RISE, (steps - step) / (FALL * steps))
        batch = ids[torch.randint(len(ids), (BATCH,), generator=generator)]
        logits = model.lm_head(model.model(input_ids=batch[:, :-1]).last_hidden_state[:, front - 1 :])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, front:].flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return model.eval(), tokenizer, loss.item()


def measure(folder: Path, games: Path) -> dict[str, dict[str, float]]:
    """Percent of games won, drawn, lost and with an invalid move, greedily, on every evaluation set. `games` stores the games."""
    testbed = installed().testbeds.make("tictactoe")
    policy = installed().policies.make(f"hf:{folder},threads=1")
    rates = {}
    for name in sets.EVALUATION:
        instances = testbed.load_set(name).instances
        evaluation = Evaluation(testbed, instances, sampling=Sampling(max_tokens=2), prompt_format=PROMPT_FORMAT)
        evaluate(evaluation, policy, games / name)
        verdicts = [answer.verdict for answer in scored(evaluation, SafePath.of(games / name) / ANSWERS)]
        rates[name] = {
            figure: round(100 * sum(verdict.figures[figure] for verdict in verdicts) / len(verdicts), 2)
            for figure in ("win", "draw", "loss", "invalid")
        }
    return rates


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options().parse_args(arguments)
    out: Path = options.out
    folders.make_folder(out)
    begun = time.process_time()
    moves = demonstrations(options.seed, options.games)
    model, tokenizer, loss = learn(options.seed, views(moves), options.steps)
    model.config.t2t_prompt_format = PROMPT_FORMAT
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    recipe: dict[str, Any] = {
        "what": "a toy policy that shows the pipeline: supervised warm-up from scratch on a mediocre player's games",
        "command": f"python -m t2t_baselines.tiny.tictactoe.warmup --out DIR --seed {options.seed} --games {options.games} "
        f"--steps {options.steps}",
        "games": options.games,
        "moves": len(moves),
        "teacher_p": TEACHER_P,
        "batch": BATCH,
        "learning_rate": RATE,
        "loss": round(loss, 4),
        "parameters": model.num_parameters(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "excluded_sets": {name: sets.load_set(name).sha256 for name in sets.NAMES},
        "cpu_seconds": round(time.process_time() - begun, 1),
        "measured": measure(out, out / "games"),
    }
    folders.write_json(out / "recipe.json", recipe)
    print(json.dumps(recipe["measured"], indent=2))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m t2t_baselines.tiny.tictactoe.warmup", description="Make the toy policy.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--games", type=int, default=GAMES, help=f"games of the teacher, lost ones included (default {GAMES})")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"updates of {BATCH} moves (default {STEPS})")
    return parser


if __name__ == "__main__":
    main()
