"""How far a toy policy's designs agree with the teacher that taught it their form.

    python -m t2t_baselines.tiny.agreement [FOLDER ...]

Compare the figures before and after training on lakes, so that you do not mistake the form of a design for a diagnosis.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from t2t_baselines.tiny import teacher
from t2t_core.plugins import installed
from t2t_core.records import Sampling, Task
from t2t_core.seeding import Stream

BRIEFS = 200
KNOBS = ("data_ratio", "hole_ratio", "wait_ratio")


def agreement(spec: str, briefs: int = BRIEFS, seed: int = 0, teach: teacher.Teacher = teacher.proposal) -> dict[str, float]:
    """Compare the policy `spec`, greedily on random briefs, with the teacher `teach`.

    `readable` is the share of replies that are a JSON object with three numbers for each size. Over those replies, the other
    figures are: per knob, the mean absolute difference from the teacher without noise, in percentage points, and how much `keep`
    (proposing the briefs' own configuration again) would differ; and the share of hole and wait ratios that moved in the
    teacher's direction.
    """
    rows = [teacher.random_rows(Stream.of(seed, "agreement", number)) for number in range(briefs)]
    tasks = [Task(f"brief-{i}", 0, teacher.brief(table), None, i) for i, table in enumerate(rows)]
    policy = installed().policies.make(spec)
    differences: dict[str, list[float]] = {name: [] for knob in KNOBS for name in (knob, f"keep_{knob}")}
    directions: list[bool] = []
    readable = 0
    for position, response in policy.respond(tasks, Sampling(max_tokens=150)):
        proposed = _read(response.text)
        readable += proposed is not None
        if proposed is None:
            continue
        taught = _read(teach(rows[position], None)) or {}
        for row in rows[position]:
            before, mine, theirs = (row.data, row.hole, row.wait), proposed[row.size], taught[row.size]
            for knob, old, my, their in zip(KNOBS, before, mine, theirs, strict=True):
                differences[knob].append(abs(my - their))
                differences[f"keep_{knob}"].append(abs(old - their))
            directions += [_sign(m - b) == _sign(t - b) for b, m, t in list(zip(before, mine, theirs, strict=True))[1:]]
    figures = {"briefs": float(briefs), "readable": readable / briefs}
    figures |= {name: round(sum(gaps) / max(1, len(gaps)), 2) for name, gaps in differences.items()}
    return figures | {"same_direction": round(sum(directions) / max(1, len(directions)), 3)}


def _read(text: str) -> dict[int, list[int]] | None:
    """A compact proposal for all sizes; None for anything else."""
    try:
        data = json.loads(text)
        numbers = {int(size): [int(v) for v in values] for size, values in data.items()}
    except (ValueError, AttributeError, TypeError):
        return None
    complete = set(numbers) == set(teacher.SIZES) and all(len(values) == 3 for values in numbers.values())
    return numbers if complete else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def main(folders: Sequence[str]) -> None:
    for folder in folders or [""]:
        print(json.dumps({"policy": f"tiny:{folder}" if folder else "tiny", **agreement(f"tiny:{folder}" if folder else "tiny")}))


if __name__ == "__main__":
    main(sys.argv[1:])
