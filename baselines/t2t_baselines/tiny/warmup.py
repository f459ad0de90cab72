"""The warm-up: supervised learning from scratch on exact answers, stopped while there is room to learn.

    python -m t2t_baselines.tiny.warmup --out DIR --steps 5000
    python -m t2t_baselines.tiny.warmup --out DIR --weak --kept-out FILE --kept-out FILE

There are two stages: answers with a few designs among them, then half as many steps with many designs, which teaches the policy
to copy numbers. `--weak` is one short stage of answers on a skewed diet (`data.skewed_chunk`), which leaves much to learn, and
more on large maps. The same command again resumes; `--from-scratch` forgets what DIR holds. Everything follows from the seed and
the number of steps (on one machine with one thread, bit for bit). The learning rate is constant and falls linearly to zero over
the last part, so a run that has not reached that part may be given another number of steps.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from t2t_baselines.tiny import data
from t2t_baselines.tiny.model import make_model, make_tokenizer
from t2t_core.records import InstanceSet
from t2t_core.seeding import Stream
from t2t_core.store import folders, jsonlines

CHUNK = 4000  # examples drawn at a time
BATCH_TOKENS = 2600  # in one update, including padding; answers of similar length share an update
RISE = 100  # updates of rising learning rate
STEPS, WEAK_STEPS = 5000, 480
MAX_ANSWER = 200  # tokens; the longest exact answer of 5 agents on 10x10 has about 150
PROMPT_FORMAT = "compact"
WHAT = "a toy policy that shows the pipeline: supervised warm-up from scratch on exact answers"
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


def encode(tokenizer: Any, examples: Sequence[data.Example]) -> list[tuple[list[int], int]]:
    """The token ids of every example, and where its answer begins."""
    chats = [[{"role": "user", "content": e.prompt}] for e in examples]
    fronts = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    prompts = tokenizer(fronts)["input_ids"]
    answers = tokenizer([e.answer + tokenizer.eos_token for e in examples])["input_ids"]
    return [(p + a, len(p)) for p, a in zip(prompts, answers, strict=True)]


def batches(rows: list[tuple[list[int], int]], stream: Stream) -> Iterator[tuple[Any, Any]]:
    """(ids, targets) of shape (rows, columns), right-padded; a target is the next token of an answer, else -100."""
    import torch

    groups: list[list[tuple[list[int], int]]] = [[]]
    for row in sorted(rows, key=lambda r: len(r[0])):
        if (len(groups[-1]) + 1) * len(row[0]) > BATCH_TOKENS:
            groups.append([])
        groups[-1].append(row)
    stream.shuffle(groups)
    for group in groups:
        width = max(len(ids) for ids, _ in group)
        ids = torch.zeros(len(group), width, dtype=torch.long)
        targets = torch.full((len(group), width), -100)
        for i, (tokens, start) in enumerate(group):
            ids[i, : len(tokens)] = torch.tensor(tokens)
            targets[i, start - 1 : len(tokens) - 1] = ids[i, start : len(tokens)]
        yield ids, targets


def quickened(model: Any) -> Any:
    """Compile the decoder of `model` and do its matrix products in bfloat16: the same weights, 1.7 times as fast on a CPU that
    has the instructions for it (AVX512-BF16)."""
    import torch

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any, weight: Any) -> Any:
            x, weight = x.to(torch.bfloat16), weight.to(torch.bfloat16)
            context.save_for_backward(x, weight)
            return torch.nn.functional.linear(x, weight).float()

        @staticmethod
        def backward(context: Any, *gradients: Any) -> Any:
            x, weight = context.saved_tensors
            gradient = gradients[0].to(torch.bfloat16)
            of_weight = gradient.reshape(-1, gradient.shape[-1]).t() @ x.reshape(-1, x.shape[-1])
            return (gradient @ weight).float(), of_weight.float()

    def linear(module: Any, x: Any) -> Any:
        product: Any = Product.apply
        return product(x, module.weight)

    def norm(module: Any, x: Any) -> Any:
        return torch.nn.functional.rms_norm(x, (x.shape[-1],), module.weight, module.variance_epsilon)

    for module in model.model.modules():
        if isinstance(module, torch.nn.Linear):
            module.forward = partial(linear, module)  # type: ignore[method-assign]
        elif type(module).__name__ == "Qwen3RMSNorm":
            module.forward = partial(norm, module)
    return torch.compile(model.model, dynamic=True)


@dataclass(frozen=True)
class Stage:
    """Updates `first` to `last`: the share of designs among the examples, the highest learning rate, and the last share of the
    stage, over which the rate falls linearly to zero."""

    first: int
    last: int
    designs: float
    rate: float
    fall: float

    def rate_at(self, step: int) -> float:
        """The learning rate at a step: it rises for RISE steps and falls linearly in the last part of the stage."""
        falling = (self.last - step) / (self.fall * (self.last - self.first))
        return self.rate * min(1.0, (step - self.first + 1) / RISE, falling)


def stages(steps: int, weak: bool = False) -> tuple[Stage, ...]:
    """The stages of a warm-up with `steps` updates in the first one."""
    if weak:
        return (Stage(0, steps, 0.0, 4e-3, 0.3),)
    return Stage(0, steps, 0.03, 4e-3, 0.3), Stage(steps, steps + steps // 2, 0.4, 2e-3, 1.0)


Examples = Callable[[int, Stage], list[data.Example]]  # the examples of a chunk, by its number and the stage


class Warmup:
    """The state of one supervised training in the folder `out`: model, optimizers, position.

    Args:
        examples: gives the examples of a chunk, by its number and the stage.
        start: folder of the checkpoint to continue from; None for fresh weights, which follow from the seed.
        quick: see `quickened`.
    """

    def __init__(self, out: Path, seed: int, examples: Examples, start: Path | None = None, quick: bool = False) -> None:
        import torch

        torch.set_num_threads(1)
        self.out, self.seed, self.examples_of = out, seed, examples
        self.tokenizer, self.model = make_tokenizer(), make_model(seed)
        if start is not None:
            self.model = type(self.model).from_pretrained(start, dtype=torch.float32)
        self.quick = quick
        self.decoder = quickened(self.model) if quick else self.model.model
        matrices = [p for n, p in self.model.named_parameters() if p.ndim == 2 and "embed" not in n]
        others = [p for n, p in self.model.named_parameters() if p.ndim != 2 or "embed" in n]
        self.optimizers = [
            torch.optim.Muon(matrices, lr=0.0, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
        ]
        self.step = self.chunk = self.examples = 0
        self.seconds = 0.0

    @property
    def state_file(self) -> Path:
        """Where the state is saved that an interrupted warm-up continues from."""
        return self.out / "state.pt"

    def resume(self, from_scratch: bool = False) -> None:
        """Continue from the folder's state, if it has one; `from_scratch` forgets it."""
        if from_scratch:
            folders.remove(self.state_file)
            folders.remove(self.out / "metrics.jsonl")
        if self.state_file.exists():
            self._load()

    def _load(self) -> None:
        import torch

        state = torch.load(self.state_file, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.chunk, self.examples = state["step"], state["chunk"], state["examples"]
        self.seconds = state["seconds"]

    def save(self) -> None:
        """Save that state, atomically."""
        import torch

        state = {
            "model": self.model.state_dict(),
            "optimizers": [o.state_dict() for o in self.optimizers],
            "step": self.step,
            "chunk": self.chunk,
            "examples": self.examples,
            "seconds": self.seconds,
        }
        with folders.replacing(self.state_file) as file:
            torch.save(state, file)

    def run(self, stage: Stage, chunks: int | None = None) -> None:
        """Train to the end of the stage, whole chunks at a time (the last one is cut), for at most `chunks` chunks."""
        last = self.chunk + chunks if chunks else None
        while self.step < stage.last and self.chunk != last:
            begun = time.monotonic()
            examples = self.examples_of(self.chunk, stage)
            stream = Stream.of(self.seed, "batches", self.chunk)
            losses = []
            for ids, targets in batches(encode(self.tokenizer, examples), stream):
                if self.step == stage.last:
                    break
                losses.append(self.update(ids, targets, stage.rate_at(self.step)))
                self.examples += len(ids)
            self.chunk += 1
            self.seconds += time.monotonic() - begun
            self.save()
            self.log(sum(losses) / len(losses))

    def update(self, ids: Any, targets: Any, rate: float) -> float:
        """One step on `ids` (rows, tokens); a target below 0 does not count. Returns the loss."""
        import torch

        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
        hidden = self.decoder(input_ids=ids).last_hidden_state
        mask = targets >= 0
        loss = torch.nn.functional.cross_entropy(self.model.lm_head(hidden[mask]), targets[mask])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        return loss.item()

    def log(self, loss: float) -> None:
        """Append a line of figures to `metrics.jsonl`, and print it."""
        line = {"step": self.step, "loss": round(loss, 5), "examples": self.examples, "seconds": round(self.seconds)}
        with closing(jsonlines.Appender(self.out / "metrics.jsonl")) as metrics:
            metrics.append(line)
        print(json.dumps(line), flush=True)

    def export(self, what: str, command: str, facts: dict[str, Any]) -> None:
        """Write the checkpoint as transformers reads it, with its recipe: what it is, the command, and `facts`."""
        self.model.config.t2t_prompt_format, self.model.config.t2t_brief = PROMPT_FORMAT, "compact"
        self.model.save_pretrained(self.out)
        self.tokenizer.save_pretrained(self.out)
        recipe = {
            "what": what,
            "command": command + " --quick" * self.quick,
            "seed": self.seed,
            "updates": self.step,
            "examples": self.examples,
            "seconds": round(self.seconds),
            "parameters": self.model.num_parameters(),
            "versions": {name: metadata.version(name) for name in PACKAGES},
            "quick": self.quick,
            **facts,
        }
        folders.write_json(self.out / "recipe.json", recipe)


@dataclass(frozen=True)
class KeptOut:
    """What the warm-up must not learn from: the frozen sets by name, and files of instances by path."""

    frozen: Mapping[str, InstanceSet]
    own: Mapping[str, InstanceSet]

    @classmethod
    def of(cls, paths: Sequence[Path], toy: bool) -> KeptOut:
        """All frozen sets (none with `toy`) and those files."""
        from t2t_core.plugins import installed
        from t2t_core.store.instance_files import file_set
        from t2t_envs.frozen_lake.sets import NAMES, load_set

        testbed = installed().testbeds.make("mapf-frozenlake")
        own = {str(path): file_set(testbed, path) for path in paths}
        return cls({} if toy else {name: load_set(name) for name in NAMES}, own)

    def by_cell(self) -> dict[data.Cell, list[bytes]]:
        """The canonical forms of all of them, by (size, holes, agents)."""
        sets = [*self.frozen.values(), *self.own.values()]
        return data.by_cell(instance for instance_set in sets for instance in instance_set.instances)

    def facts(self) -> dict[str, Any]:
        """The hash of each set and file, for the recipe."""
        return {
            "excluded_sets": {name: instances.sha256 for name, instances in self.frozen.items()},
            "kept_out": {name: instances.sha256 for name, instances in self.own.items()},
        }

    def options(self) -> str:
        """The files as options of the command."""
        return "".join(f" --kept-out {name}" for name in self.own)


def measure(folder: Path) -> dict[str, dict[str, float]]:
    """Valid and optimal rates in percent, greedily, on every frozen set, and the share of answers that ended by themselves."""
    from t2t_core.evaluation.questions import Evaluation
    from t2t_core.plugins import installed
    from t2t_core.records import Sampling
    from t2t_envs.frozen_lake.sets import NAMES

    testbed = installed().testbeds.make("mapf-frozenlake")
    policy = installed().policies.make(f"hf:{folder}")
    rates = {}
    for name in NAMES:
        instance_set = testbed.load_set(name)
        evaluation = Evaluation(
            testbed, instance_set.instances, sampling=Sampling(max_tokens=MAX_ANSWER), prompt_format=PROMPT_FORMAT
        )
        tasks = [evaluation.task(i) for i in range(len(evaluation))]
        verdicts = []
        for position, response in policy.respond(tasks, evaluation.sampling):
            verdicts.append(testbed.verify(instance_set.instances[position], response.text))
        count = len(verdicts)
        rates[name] = {
            "instances": count,
            "valid": round(100 * sum(v.valid for v in verdicts) / count, 2),
            "optimal": round(100 * sum(v.optimal is True for v in verdicts) / count, 2),
        }
    return rates


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options().parse_args(arguments)
    out: Path = options.out
    folders.make_folder(out)
    kept_out = KeptOut.of(options.kept_out, options.toy)
    exclude = kept_out.by_cell()
    agents = tuple(data.WEAK_AGENTS) if options.weak else options.agents
    steps = options.steps or (WEAK_STEPS if options.weak else STEPS)

    def examples(chunk: int, stage: Stage) -> list[data.Example]:
        if options.weak:
            return data.skewed_chunk(options.seed, chunk, CHUNK, exclude)
        return data.chunk(options.seed, chunk, agents, CHUNK, exclude, stage.designs)

    warmup = Warmup(out, options.seed, examples, quick=options.quick)
    warmup.resume(options.from_scratch)
    for stage in stages(steps, options.weak):
        warmup.run(stage)
    diet = "--weak" if options.weak else f"--agents {','.join(map(str, agents))}"
    command = f"python -m t2t_baselines.tiny.warmup --out DIR --steps {steps} --seed {options.seed} {diet} --from-scratch"
    warmup.export(WHAT, command + kept_out.options(), {"agents": list(agents), **kept_out.facts()})
    if not options.toy:
        recipe = folders.read_json(out / "recipe.json")
        recipe["measured"] = measure(out)
        folders.write_json(out / "recipe.json", recipe)
        print(json.dumps(recipe["measured"], indent=2))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m t2t_baselines.tiny.warmup", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint, its log and its state")
    steps = f"updates of the first stage (default {STEPS}, with --weak {WEAK_STEPS}, as shipped)"
    parser.add_argument("--steps", type=int, default=0, help=steps)
    parser.add_argument("--weak", action="store_true", help="the short, skewed warm-up of tiny:weak")
    parser.add_argument("--kept-out", type=Path, action="append", default=[], help="instances never to learn from (repeatable)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", type=_agents, default=(2, 3, 4, 5), help="agent counts to learn from, e.g. 2 or 2,3,4,5")
    parser.add_argument("--from-scratch", action="store_true", help="forget what the folder holds instead of resuming")
    parser.add_argument("--quick", action="store_true", help="compile, and multiply in bfloat16 (needs a C++ compiler)")
    parser.add_argument("--toy", action="store_true", help="exclude no frozen set and measure nothing: to try the script itself")
    return parser


def _agents(text: str) -> tuple[int, ...]:
    agents = tuple(sorted({int(piece) for piece in text.split(",")}))
    if not agents or not set(agents) <= set(data.AGENT_SHARES):
        raise argparse.ArgumentTypeError(f"agent counts are among {', '.join(map(str, data.AGENT_SHARES))}")
    return agents


if __name__ == "__main__":
    main()
