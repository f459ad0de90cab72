"""How many answers per second are verified: parsed, put through the eight checks, and costed.

    python benchmarks/answers.py

Each row is verified in two ways: as `verify` does it, and by the rules in Python alone (which also judge whatever the native core
does not read). Rows and ways take turns `--repeats` times on one pinned core. Rates are per second of processor time. There is no
peer. The texts are optimal solutions in the documented form, the same with other arrows, bullets and bold labels, and the
documented form without the last step of the first path. Each run writes one JSON file to benchmarks/results/.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from measuring import arguments, pin, spread, text, write

from t2t_core.records import Verdict
from t2t_envs.frozen_lake import Configuration, Instance, format_answer, generate, solve, verify
from t2t_envs.frozen_lake.verifier import reference_verify

Verify = Callable[[Instance, str], Verdict]
GOAL = 30_000
CELLS = ((3, 2), (5, 2), (8, 3), (10, 5))  # size, agents


def with_markup(answer: str) -> str:
    """The same paths as a chatty model would write them."""
    lines = answer.splitlines()
    lines[1:-1] = [line.replace("Agent ", "- **Agent ").replace(":", "**:").replace("->", "→") for line in lines[1:-1]]
    return "Here are the paths.\n\n" + "\n".join(lines) + "\n\nNobody meets."


def cut(answer: str) -> str:
    """The answer with the first path ending a step before its goal."""
    first, rest = answer.split("\nAgent 1", 1)
    return first.rpartition(" -> ")[0] + "\nAgent 1" + rest


KINDS: dict[str, Callable[[str], str]] = {"as documented": str, "with markup": with_markup, "a step short": cut}


def answers(size: int, agents: int, count: int = 300) -> list[tuple[Instance, str]]:
    one_size = Configuration.from_dict({str(size): {"data_ratio": 1.0, "hole_ratio": 0.2, "wait_ratio": 0.5}})
    return [(instance, format_answer(solve(instance).paths)) for instance in generate(one_size, count, agents, 0)]


def rate(way: Verify, batch: list[tuple[Instance, str]], valid: bool, seconds: float) -> float:
    done, begin = 0, time.process_time()
    while (taken := time.process_time() - begin) < seconds:
        for instance, answer in batch:
            if way(instance, answer).valid is not valid:
                raise SystemExit(f"not judged right: {instance.id} {answer}")
        done += len(batch)
    return done / taken


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="per row, way and repeat")
    given = parser.parse_args()
    pin()
    batches = {}
    for size, agents in CELLS:
        plain = answers(size, agents)
        for kind, spell in KINDS.items():
            batches[f"{size}x{size}, {agents} agents, {kind}"] = [(instance, spell(answer)) for instance, answer in plain]
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in batches}
    for _ in range(given.repeats):
        for name, batch in batches.items():
            valid = not name.endswith("a step short")
            rates[name].append((rate(verify, batch, valid, given.seconds), rate(reference_verify, batch, valid, given.seconds)))
    rows = [
        {
            "row": name,
            "goal_per_s": GOAL,
            "per_s": spread([ours for ours, _ in rates[name]]),
            "readable_per_s": spread([readable for _, readable in rates[name]]),
            "ours_over_readable": spread([ours / readable for ours, readable in rates[name]]),
            "characters": sum(len(answer) for _, answer in batch) / len(batch),
        }
        for name, batch in batches.items()
    ]
    for row in rows:
        verdict = "met" if row["per_s"]["median"] >= GOAL else "MISSED"
        print(f"{row['row']:>32} ({row['characters']:3.0f} characters): {text(row['per_s'])} /s, goal {GOAL:,}: {verdict}; "
              f"by the rules in Python {text(row['readable_per_s'])}, ratio {text(row['ours_over_readable'], 1)}")  # fmt: skip
    write("answers", given.out, {"rows": rows})


if __name__ == "__main__":
    main()
