"""What one labelled instance costs, by map size, number of agents, hole ratio and wait ratio.

    python benchmarks/curve.py                       # some minutes
    python benchmarks/curve.py --draw RESULT.json    # only the plot again, from an earlier result

Each point is one cell of the generator (by default 8x8, hole ratio 0.2, wait ratio 0.5; one of them varies). It shows the
processor time per instance on one pinned core, for drawing, exact label and wait flag together, including candidates that were
rejected. The points take turns `--repeats` times, each time with other seeds. The plot shows the mean over all repeats; the JSON
also has each repeat. Hard instances are rare and cost a thousand times the median, so the curves are not smooth. A point's repeat
ends after `--seconds`. Writes docs/_static/cost.svg, which follows the reader's light or dark scheme, and one JSON file to
benchmarks/results/.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measuring import ROOT, arguments, pin, write

from t2t_core.seeding import key
from t2t_envs.frozen_lake.generation.configuration import hole_count
from t2t_envs.frozen_lake.generation.sampling import draw_stratum
from t2t_envs.frozen_lake.generation.strata import Quota, Stratum

PICTURE = ROOT / "docs" / "_static" / "cost.svg"
OBJECTIVES = ("makespan", "sum_of_costs")
TEAMS = (2, 3, 4, 5)
AXES: dict[str, tuple[float, ...]] = {
    "size": tuple(range(3, 11)),
    "hole ratio": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    "wait ratio": (0.0, 0.25, 0.5, 0.75, 1.0),
}
BATCH = 20  # instances per call


@dataclass(frozen=True)
class Point:
    axis: str
    at: float
    objective: str
    agents: int

    @property
    def stratum(self) -> Stratum:
        size = int(self.at) if self.axis == "size" else 8
        holes = hole_count(self.at if self.axis == "hole ratio" else 0.2, size)
        return Stratum(size, holes, self.agents, self.objective)

    @property
    def waits(self) -> int:
        return round(BATCH * (self.at if self.axis == "wait ratio" else 0.5))


def points() -> Iterator[Point]:
    for axis, values in AXES.items():
        for objective in OBJECTIVES:
            for agents in TEAMS:
                for at in values:
                    yield Point(axis, at, objective, agents)


def measure(point: Point, repeat: int, count: int, seconds: float) -> tuple[int, float, int]:
    """The number of instances made (at least one batch), the processor seconds they took, and the undecided candidates."""
    made = undecided = 0
    begin = time.process_time()
    while made < count and (made == 0 or time.process_time() - begin < seconds):
        quota = Quota(BATCH - point.waits, point.waits, distinct=False)
        draws = draw_stratum(point.stratum, key(repeat, "cost curve", made), quota)
        if len(draws.instances) < BATCH:
            raise SystemExit(f"{point}: only {len(draws.instances)} instances found")
        made += BATCH
        undecided += draws.undecided
    return made, time.process_time() - begin, undecided


# --- the picture

COLOURS = {2: "#5580e0", 3: "#3ca951", 4: "#c98a00", 5: "#e0533d"}  # readable on white and on black
STYLE = (
    "<style>.card{fill:#ffffff}.ink{fill:#24292f}.rule{stroke:#24292f;stroke-opacity:.16}"
    "@media (prefers-color-scheme: dark){.card{fill:#14181d}.ink{fill:#d5dbe1}.rule{stroke:#d5dbe1}}</style>"
)
WIDTH, HEIGHT, PANEL_W, PANEL_H, LEFT, TOP, GAP = 900, 530, 232, 190, 62, 62, 58


def draw(rows: list[dict[str, Any]]) -> str:
    """Two rows of panels (objectives), three columns (axes) and a line per number of agents; the costs are logarithmic."""
    costs = [row["ms"] for row in rows]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    title = "Processor time per labelled instance"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="11">',
        f"<title>{title}, over size, hole ratio and wait ratio, for 2 to 5 agents and both objectives</title>{STYLE}",
        f'<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="10"/>',
        f'<text class="ink" x="{LEFT}" y="26" font-size="15" font-weight="600">{title}</text>',
    ]
    for number, agents in enumerate(TEAMS):
        x = WIDTH - 350 + 86 * number
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="22" y2="22" stroke="{COLOURS[agents]}" stroke-width="2.5"/>')
        parts.append(f'<text class="ink" x="{x + 23}" y="26">{agents} agents</text>')
    for number, (axis, objective) in enumerate((axis, objective) for objective in OBJECTIVES for axis in AXES):
        left = LEFT + (number % 3) * (PANEL_W + GAP)
        top = TOP + (number // 3) * (PANEL_H + 62)
        mine = [row for row in rows if row["axis"] == axis and row["objective"] == objective]
        parts += _panel(left, top, axis, objective.replace("_", " "), mine, low, high)
    return "\n".join([*parts, "</svg>\n"])


def _panel(left: int, top: int, axis: str, objective: str, rows: list[dict[str, Any]], low: int, high: int) -> list[str]:
    values = AXES[axis]
    bottom = top + PANEL_H

    def x(at: float) -> float:
        return left + 8 + (PANEL_W - 16) * (at - values[0]) / (values[-1] - values[0])

    def y(ms: float) -> float:
        return bottom - PANEL_H * (math.log10(ms) - low) / (high - low)

    parts = [f'<text class="ink" x="{left}" y="{top - 10}" font-weight="600">{objective}, over the {axis}</text>']
    for power in range(low, high + 1):
        at = f"{y(10.0**power):.1f}"
        parts.append(f'<line class="rule" x1="{left}" x2="{left + PANEL_W}" y1="{at}" y2="{at}"/>')
        label = f"{10.0**power:g} ms" if power >= 0 else f"{10.0 ** (power + 3):g} µs"
        parts.append(f'<text class="ink" x="{left - 6}" y="{float(at) + 4:.1f}" text-anchor="end">{label}</text>')
    for at in values:
        parts.append(f'<text class="ink" x="{x(at):.1f}" y="{bottom + 16}" text-anchor="middle">{at:g}</text>')
    for agents in TEAMS:
        line = [(x(row["at"]), y(row["ms"])) for row in rows if row["agents"] == agents]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[agents]}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6" fill="{COLOURS[agents]}"/>' for a, b in line]
    return parts


def main() -> None:
    parser = arguments(__doc__, repeats=3)
    parser.add_argument("--count", type=int, default=400, help="instances per point and repeat, at most")
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time per point and repeat, about")
    parser.add_argument("--draw", type=Path, metavar="RESULT", help="draw this result and measure nothing")
    given = parser.parse_args()
    if given.draw:
        PICTURE.write_text(draw(json.loads(given.draw.read_text())["points"]))
        return
    pin()
    taken: dict[Point, list[tuple[int, float, int]]] = {point: [] for point in points()}
    for repeat in range(given.repeats):
        for point, runs in taken.items():
            runs.append(measure(point, repeat, given.count, given.seconds))
    rows = [
        {
            **asdict(point),
            "ms": 1000 * sum(seconds for _, seconds, _ in runs) / sum(made for made, _, _ in runs),
            "ms_of_each_repeat": [1000 * seconds / made for made, seconds, _ in runs],
            "instances": sum(made for made, _, _ in runs),
            "undecided": sum(left for _, _, left in runs),
        }
        for point, runs in taken.items()
    ]
    PICTURE.write_text(draw(rows))
    print(f"{len(rows)} points, {sum(row['instances'] for row in rows):,} instances, undecided "
          f"{sum(row['undecided'] for row in rows)}; {PICTURE}")  # fmt: skip
    write("curve", given.out, {"points": rows})


if __name__ == "__main__":
    main()
