"""Check whether a change made anything slower: two checkouts take turns at the same work.

    git worktree add /tmp/before COMMIT && python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -e /tmp/before
    python benchmarks/commits.py /tmp/before --python /tmp/venv/bin/python

Each side needs an interpreter of its own, because the plugins that a command loads are those that are installed. Each piece of
work runs in a fresh interpreter on one pinned core, `--repeats` times for each side in turn, after one round that warms the
disk cache. Processor time is compared, because a busy machine disturbs it less than wall time. The ratio is that of the least
times, and the median of each turn's ratios is shown beside it. Each run writes one JSON file to benchmarks/results/.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import ROOT, arguments, pin, write

MAIN = "import sys; from t2t_core.cli import main; main(sys.argv[1:])"
SOLVERS = ("cbs", "prioritized", "pibt", "independent", "random")
RUN = """testbed = "mapf-frozenlake"
policy = "prioritized"
trainer = "none"
designer = "rule"
context = "V6"
rounds = 3
[generation]
samples = 500
agents = 3
[validation]
set = "validation_2agents"
[evaluation]
agents = "3"
limit = 20
"""
STEPS = """
import gymnasium as gym, t2t_envs
env = gym.make("MAPFFrozenLake-v0", size=5, num_agents=3, hole_ratio=0.2)
env.action_space.seed(0)
env.reset(seed=0)
for _ in range(20000):
    _, _, terminated, truncated, _ = env.step(env.action_space.sample())
    if terminated or truncated:
        env.reset()
"""
VECTOR = """
import gymnasium as gym, t2t_envs
envs = gym.make_vec("MAPFFrozenLake-v0", num_envs=256, vectorization_mode="vector_entry_point", size=5, num_agents=3)
envs.reset(seed=0)
envs.action_space.seed(0)
for _ in range(400):
    envs.step(envs.action_space.sample())
"""


def works(folder: Path) -> dict[str, list[str]]:
    """The pieces of work, by name: the arguments of a Python interpreter."""
    (folder / "run.toml").write_text(RUN)
    policies = [word for name in SOLVERS for word in ("--policy", name)]
    out, lakes = ["--out", str(folder / "out")], ["-c", MAIN, "generate", "--configuration", "uniform"]
    return {
        "t2t --help": ["-c", MAIN, "--help"],
        "import t2t_core": ["-c", "import t2t_core"],
        "import t2t_envs": ["-c", "import t2t_envs"],
        "t2t bench, solver policies": ["-c", MAIN, "bench", *policies, "--agents", "3,4", "--limit", "40", *out],
        "t2t run on the lake": ["-c", MAIN, "run", "--config", str(folder / "run.toml"), *out],
        "t2t generate, 3 agents": [*lakes, "--count", "10000", "--agents", "3", *out],
        "environment, 20,000 steps": ["-c", STEPS],
        "vector environment, 256 x 400": ["-c", VECTOR],
    }


def taken(checkout: Path, python: str, work: list[str], folder: Path) -> float:
    """The processor seconds that a fresh interpreter takes on that checkout."""
    out = folder / "out"
    shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    rooms = [str(checkout / room) for room in ("", "envs", "plugins", "baselines", "leaderboard", "jobs", "integrations")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(rooms), "T2T_REQUIRE_NATIVE": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, not at each start
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, *work], env=environment, cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{checkout}: {' '.join(work)[:200]} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = arguments(__doc__, repeats=7)
    parser.add_argument("before", type=Path, help="the checkout to compare with")
    parser.add_argument("--python", default=sys.executable, help="the interpreter in which that checkout is installed")
    given = parser.parse_args()
    pin()
    sides = {"before": (given.before.resolve(), given.python), "now": (ROOT, sys.executable)}
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, work in works(Path(folder)).items():
            times: dict[str, list[float]] = {side: [] for side in sides}
            for turn in range(given.repeats + 1):
                for side, (checkout, python) in sides.items():
                    seconds = taken(checkout, python, work, Path(folder))
                    if turn:
                        times[side].append(seconds)
            least = min(times["now"]) / min(times["before"])
            turns = [now / before for before, now in zip(times["before"], times["now"], strict=True)]
            results[name] = {"seconds": times, "ratio_of_least": least, "median_ratio": statistics.median(turns)}
            seconds = f"{min(times['before']):.3f} s before, {min(times['now']):.3f} s now"
            print(f"{name:32} {least:.3f} of the least, {statistics.median(turns):.3f} in the median turn; {seconds}", flush=True)
    asked = ["git", "-C", str(given.before), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    write("commits", given.out, {"before": commit, "works": results})


if __name__ == "__main__":
    main()
