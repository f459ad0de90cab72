"""Teach a toy policy for lakes to design by another rule, and leave its answers as they are.

    python -m t2t_baselines.tiny.reteach --out DIR --policy tiny --teacher failures

Most of the examples are briefs with the teacher's proposals. The others are lakes with the policy's own earlier answers, sampled
as in training. They keep its answers as they are, so that a study of designers has the same student whoever taught it to design.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from t2t_baselines.tiny import data, teacher
from t2t_baselines.tiny.agreement import agreement
from t2t_baselines.tiny.policy import SHIPPED, shipped
from t2t_baselines.tiny.warmup import CHUNK, MAX_ANSWER, KeptOut, Stage, Warmup, measure
from t2t_core.plugins import installed
from t2t_core.records import Message, Sampling, Task
from t2t_core.seeding import Stream
from t2t_core.store import folders

STEPS = 10_000
RATE = 2e-3
DESIGNS = 0.7  # share of the examples
RATES_ALONE, WITH_HISTORY = 0.15, 0.2  # shares of the briefs
AGENTS = tuple(data.AGENT_SHARES)


def own_answers(spec: str, seed: int, chunk: int, count: int, exclude: dict[data.Cell, list[bytes]]) -> list[data.Example]:
    """About `count` lakes of the warm-up's distribution with the answers of the policy `spec`, sampled at temperature 1.

    An answer that was cut off or broke is left out.
    """
    lakes = data.chunk(Stream.of(seed, "own answers").next(), chunk, AGENTS, count, exclude, 0.0)
    tasks = [Task(f"lake-{i}", 0, lake.prompt, None, i, messages=(Message("user", lake.prompt),)) for i, lake in enumerate(lakes)]
    policy = installed().policies.make(spec)
    answers = []
    for position, response in policy.respond(tasks, Sampling(temperature=1.0, max_tokens=MAX_ANSWER)):
        if not response.error and response.finish_reason == "stop":
            answers.append((position, response.text))
    return [data.Example(lakes[i].prompt, text, "own", lakes[i].agents) for i, text in sorted(answers)]


def designs(teach: teacher.Teacher, seed: int, chunk: int, count: int) -> list[data.Example]:
    """Random briefs and what the teacher would propose, with its noise. Some briefs hide what failed (the context F:rates), and
    some report earlier rounds (F,H), which the teacher ignores."""
    stream = Stream.of(seed, "designs", chunk)
    return [_design(teach, stream) for _ in range(count)]


def _design(teach: teacher.Teacher, stream: Stream) -> data.Example:
    rows = teacher.random_rows(stream)
    if stream.uniform() < RATES_ALONE:
        rows = [replace(row, failure="none") for row in rows]
    earlier = [teacher.random_rows(stream) for _ in range(1 + stream.below(3))] if stream.uniform() < WITH_HISTORY else []
    return data.Example(teacher.brief(rows, earlier, stream.below(6)), teach(rows, stream), "design")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options().parse_args(arguments)
    folders.make_folder(options.out)
    start = shipped(options.policy.removeprefix("tiny:") if ":" in options.policy else "base")
    kept_out = KeptOut.of(options.kept_out, options.toy)
    exclude = kept_out.by_cell()
    teach, count = teacher.TEACHERS[options.teacher], options.count

    def examples(chunk: int, stage: Stage) -> list[data.Example]:
        own = own_answers(options.policy, options.seed, chunk, round(count * (1 - DESIGNS)), exclude)
        both = [*own, *designs(teach, options.seed, chunk, round(count * DESIGNS))]
        Stream.of(options.seed, "reteach", chunk).shuffle(both)
        return both

    training = Warmup(options.out, options.seed, examples, start, options.quick)
    training.resume(options.from_scratch)
    training.run(Stage(0, options.steps, DESIGNS, RATE, 1.0))
    command = f"python -m t2t_baselines.tiny.reteach --out DIR --policy {options.policy} --teacher {options.teacher}"
    command += f" --steps {options.steps} --seed {options.seed} --from-scratch{kept_out.options()}"
    what = f"{options.policy}, taught to design by the teacher {options.teacher!r} and to answer as it did before"
    training.export(what, command, kept_out.facts())
    if options.toy:
        return
    recipe = folders.read_json(options.out / "recipe.json")
    recipe["measured"] = measure(options.out)
    recipe["agreement_with_teacher"] = agreement(f"tiny:{options.out}", teach=teach)
    folders.write_json(options.out / "recipe.json", recipe)
    print(json.dumps({key: recipe[key] for key in ("measured", "agreement_with_teacher")}, indent=2))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m t2t_baselines.tiny.reteach", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    names = [name for name in SHIPPED if "tictactoe" not in name]
    specs = ["tiny", *(f"tiny:{name}" for name in names)]
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint, its log and its state")
    parser.add_argument("--policy", choices=specs, default="tiny", metavar="SPEC", help="who is taught: " + ", ".join(specs))
    parser.add_argument("--teacher", choices=list(teacher.TEACHERS), default="failures", help="by which rule (default: failures)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"updates (default {STEPS}, as shipped)")
    parser.add_argument("--count", type=int, default=CHUNK, help=argparse.SUPPRESS)
    parser.add_argument("--kept-out", type=Path, action="append", default=[], help="instances never to be asked (repeatable)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from-scratch", action="store_true", help="forget what the folder holds instead of resuming")
    parser.add_argument("--quick", action="store_true", help="compile, and multiply in bfloat16 (needs a C++ compiler)")
    parser.add_argument("--toy", action="store_true", help="exclude no frozen set and measure nothing: to try the script itself")
    return parser


if __name__ == "__main__":
    main()
