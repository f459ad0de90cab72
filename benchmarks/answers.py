"""How many answers a second are verified: parsed, put through the eight checks, costs and all.

    python benchmarks/answers.py

The rows take turns `--repeats` times on one pinned core; rates are per second of processor time. There is no peer. The texts are
optimal solutions in the documented form, and the same with the brackets, arrows and bold labels that need the tolerant reader.
One JSON per run goes to benchmarks/results/.
"""

from __future__ import annotations

import time

from measuring import arguments, pin, spread, text, write

from t2t_envs.frozen_lake import Configuration, Instance, format_answer, generate, solve, verify

GOAL = 30_000
CELLS = ((3, 2), (5, 2), (8, 3), (10, 5))  # size, agents


def tolerant(answer: str) -> str:
    """The same paths as a chatty model writes them."""
    lines = answer.splitlines()
    lines[1:-1] = [line.replace("Agent ", "- **Agent ").replace(":", "**:").replace("->", "→") for line in lines[1:-1]]
    return "Here are the paths.\n\n" + "\n".join(lines) + "\n\nNobody meets."


def answers(size: int, agents: int, count: int = 300) -> list[tuple[Instance, str]]:
    one_size = Configuration.from_dict({str(size): {"data_ratio": 1.0, "hole_ratio": 0.2, "wait_ratio": 0.5}})
    return [(instance, format_answer(solve(instance).paths)) for instance in generate(one_size, count, agents, 0)]


def rate(batch: list[tuple[Instance, str]], seconds: float) -> float:
    done, begin = 0, time.process_time()
    while (taken := time.process_time() - begin) < seconds:
        for instance, answer in batch:
            if not verify(instance, answer).valid:
                raise SystemExit(f"not valid: {instance.id} {answer}")
        done += len(batch)
    return done / taken


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="per row and repeat")
    given = parser.parse_args()
    pin()
    batches = {}
    for size, agents in CELLS:
        plain = answers(size, agents)
        batches[f"{size}x{size}, {agents} agents, as documented"] = plain
        batches[f"{size}x{size}, {agents} agents, with markup"] = [(instance, tolerant(answer)) for instance, answer in plain]
    rates: dict[str, list[float]] = {name: [] for name in batches}
    for _ in range(given.repeats):
        for name, batch in batches.items():
            rates[name].append(rate(batch, given.seconds))
    rows = [
        {
            "row": name,
            "goal_per_s": GOAL,
            "per_s": spread(rates[name]),
            "characters": sum(len(answer) for _, answer in batch) / len(batch),
        }
        for name, batch in batches.items()
    ]
    for row in rows:
        verdict = "met" if row["per_s"]["median"] >= GOAL else "MISSED"
        print(f"{row['row']:>38} ({row['characters']:4.0f} characters): {text(row['per_s'])} /s, goal {GOAL:,}: {verdict}")
    write("answers", given.out, {"rows": rows})


if __name__ == "__main__":
    main()
