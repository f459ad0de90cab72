"""What decides in tic-tac-toe: fixed configurations of the opponent, and the habits of training, each alone.

    python studies/tictactoe.py run FOLDER [--seeds 11-15] [--arms NAME ...]   a file an arm and seed; continues where it stopped
    python studies/tictactoe.py table FOLDER                                 FOLDER/table.md from the files
    python studies/tictactoe.py talk FOLDER                                  FOLDER/talk.md from warm-up.json and road/

Every arm starts from the warm-up `tiny:tictactoe` and plays 15,360 games by the trainer `grpo`. What an arm was given is in its
file, beside how each game of the evaluation sets ended, so every figure can be computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_core.evaluation.answers import ANSWERS
from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.scoring import scored
from t2t_core.evaluation.stats import seeded_difference, t_interval
from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_core.records import Sampling
from t2t_core.seeding import key
from t2t_core.store import folders, paths
from t2t_core.store.paths import SafePath
from t2t_envs.tictactoe import Configuration, Instance

TESTBED = installed().testbeds.make("tictactoe")
BASE = "warm-up"
UPDATES, PROMPTS, GROUP = 60, 32, 8
TRAINING: Mapping[str, Any] = {"prompts": PROMPTS, "group": GROUP, "max_tokens": 2, "learning_rate": 1e-3, "temperature": 1.0}
RESULTS = {"win": "w", "draw": "d", "loss": "l"}
# What the table shows, of which set: the share of the games that ended so.
COMPARED = 3  # the first of them have enough games for an interval
COLUMNS = (("random", "w"), ("optimal", "d"), ("optimal", "l"), ("second", "d"), ("first", "d"))


@dataclass(frozen=True)
class Stage:
    """Some updates on games of one kind.

    Args:
        low, high: between which the opponent's p is spread evenly.
        updates: of 256 games; as many games where an update is smaller.
        request: options of the generator. training: what differs from TRAINING.
    """

    low: float
    high: float
    updates: int = UPDATES
    request: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


HALF = UPDATES // 2
ARMS: Mapping[str, Sequence[Stage]] = {
    "p 0.2-0.7": [Stage(0.2, 0.7)],
    "p 1": [Stage(1.0, 1.0)],
    "p 0": [Stage(0.0, 0.0)],
    "two stages": [Stage(0.2, 0.7, HALF), Stage(0.0, 0.25, HALF)],
    "p 0.7-1": [Stage(0.7, 1.0)],
    "p 0-0.25": [Stage(0.0, 0.25)],
    "p 0-1": [Stage(0.0, 1.0)],
    "p 0, first of equal moves": [Stage(0.0, 0.0, request={"opponent": "first"})],
    "p 0.2-0.7, batches of 64": [Stage(0.2, 0.7, training={"prompts": 8})],
    "two stages, the second at 1.25": [Stage(0.2, 0.7, HALF), Stage(0.0, 0.25, HALF, training={"temperature": 1.25})],
    "p 0.2-0.7, not seeded": [Stage(0.2, 0.7, request={"seeded": False})],
    "p 0.2-0.7, not stratified": [Stage(0.2, 0.7, request={"stratified": False}, training={"stratify": False})],
}
# A habit of training, and the arm that differs from it in nothing else.
LESSONS: Mapping[str, str] = {
    "p 0, first of equal moves": "p 0",
    "p 0.2-0.7, batches of 64": "p 0.2-0.7",
    "two stages, the second at 1.25": "two stages",
    "two stages": "p 0.2-0.7",
    "p 0.2-0.7, not seeded": "p 0.2-0.7",
    "p 0.2-0.7, not stratified": "p 0.2-0.7",
}


def measured_sets() -> dict[str, Sequence[Instance]]:
    """The frozen sets, and the first-move player. It and the second optimal player draw nothing, nor does a greedy policy, so one
    game for each who moves first says all."""
    games = {name: TESTBED.load_set(name).instances for name in ("random", "optimal")}
    games["second"] = TESTBED.load_set("second").instances[:2]
    games["first"] = [Instance(mover=mover, opponent="first", id=f"first_{mover}") for mover in ("policy", "opponent")]
    return games


def measure(checkpoint: Path) -> dict[str, str]:
    """How each game of every set ended, greedily: a letter a game, in the set's order."""
    policy = installed().policies.make(f"tiny:{checkpoint}")
    endings = {}
    for name, instances in measured_sets().items():
        evaluation = Evaluation(TESTBED, instances, sampling=Sampling(max_tokens=2), prompt_format="compact")
        with tempfile.TemporaryDirectory() as work:
            evaluate(evaluation, policy, Path(work))
            figures = [answer.verdict.figures for answer in scored(evaluation, SafePath.of(Path(work)) / ANSWERS)]
        endings[name] = "".join(RESULTS[next(result for result in RESULTS if game[result])] for game in figures)
    return endings


def run(arm: str, seed: int, work: Path) -> dict[str, Any]:
    """Train one arm, and measure it after each of its stages."""
    checkpoint, stages, begun = installed().policies.make("tiny:tictactoe").checkpoint, [], time.process_time()
    for number, stage in enumerate(ARMS[arm]):
        request = TESTBED.request(stage.updates * PROMPTS, **stage.request)
        configuration = Configuration.uniform(stage.low, stage.high)
        instances = TESTBED.generate(configuration, request, key(seed, "games", number) >> 1)
        updates: list[Mapping[str, Any]] = []
        settings = {**TRAINING, **stage.training, "save_every": 10_000}
        job = TrainingJob(
            checkpoint, instances, TESTBED, settings, work / f"stage_{number}", key(seed, "train", number) >> 1, number,
            progress=updates.append,
        )  # fmt: skip
        checkpoint = installed().trainers.make("grpo").train(job).checkpoint
        spent = time.process_time() - begun
        kept = [{k: round(v, 4) for k, v in line.items() if k in ("reward", "zero_variance", "entropy")} for line in updates]
        facts = {"configuration": configuration.to_dict(), "request": dict(stage.request), "training": settings}
        stages.append({**facts, "cpu_seconds": round(spent, 1), "updates": kept, "endings": measure(checkpoint)})
        begun = time.process_time()
    return {"arm": arm, "seed": seed, "stages": stages}


def path_of(folder: Path, arm: str, seed: int) -> Path:
    return folder / f"seed_{seed}" / f"{arm.replace(', ', '_').replace(' ', '_')}.json"


def run_all(folder: Path, seeds: Sequence[int], arms: Sequence[str]) -> None:
    """Seed by seed, whatever is not there yet."""
    base = folder / "warm-up.json"
    if not base.exists():
        endings = measure(installed().policies.make("tiny:tictactoe").checkpoint)
        folders.write_json(base, {"arm": BASE, "stages": [{"endings": endings}]})
    for seed in seeds:
        for arm in arms:
            path = path_of(folder, arm, seed)
            if path.exists():
                continue
            with tempfile.TemporaryDirectory() as work:
                result = run(arm, seed, Path(work))
            os.makedirs(path.parent, exist_ok=True)
            folders.write_atomic(path, json.dumps(result) + "\n")
            shares = {f"{name} {end}": round(100 * share(result["stages"][-1], name, end)) for name, end in COLUMNS}
            print(seed, arm, [stage["cpu_seconds"] for stage in result["stages"]], shares, flush=True)


# --- the table


def read(path: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(folders.read_text(path, paths.MAX_STREAM))
    return stored


def share(stage: Mapping[str, Any], name: str, ending: str) -> float:
    """The share of a set's games that ended so."""
    return float(stage["endings"][name].count(ending) / len(stage["endings"][name]))


def rows(folder: Path) -> Iterator[tuple[str, dict[int, Mapping[str, Any]]]]:
    """Every arm, and by seed the stage that was measured; what two stages share after the first is a row too."""
    yield BASE, {0: read(folder / "warm-up.json")["stages"][0]}
    seeds = sorted(int(path.name[5:]) for path in folder.glob("seed_*"))
    for arm, stages in ARMS.items():
        files = {seed: read(path) for seed in seeds if (path := path_of(folder, arm, seed)).exists()}
        for number in range(len(stages)):
            after = f"{arm}, after the first" if number + 1 < len(stages) else arm
            if files:
                yield after, {seed: file["stages"][number] for seed, file in files.items()}


def table(folder: Path) -> str:
    """Means with 95 % t intervals over seeds; paired differences over seeds and games, from the warm-up and, of the habits of
    training, from the arm that differs in nothing else."""
    arms = dict(rows(folder))
    head = ["arm", "seeds", *(f"{name} {_ENDS[end]}" for name, end in COLUMNS), "CPU seconds"]
    lines, compared, lessons = [], [], []
    base = arms[BASE][0]
    for arm, stages in arms.items():
        cells = [_interval([share(stage, name, end) for stage in stages.values()]) for name, end in COLUMNS]
        seconds = [stage["cpu_seconds"] for stage in stages.values() if "cpu_seconds" in stage]
        lines.append([arm, str(len(stages)), *cells, f"{sum(seconds) / len(seconds):.0f}" if seconds else "-"])
        if arm != BASE:
            pairs = [(stage, base) for stage in stages.values()]
            compared.append([f"{arm} - {BASE}", *(_difference(pairs, name, end) for name, end in COLUMNS[:COMPARED])])
    for arm, control in LESSONS.items():
        both = [seed for seed in arms.get(arm, {}) if seed in arms.get(control, {})]
        if both:
            pairs = [(arms[arm][seed], arms[control][seed]) for seed in both]
            lessons.append(
                [f"{arm} - {control}", str(len(both)), *(_difference(pairs, *column) for column in COLUMNS[:COMPARED])]
            )
    note = "Percent of 400 games each against random moves and optimal play, and of 2 against the players that draw nothing; "
    note += "greedy; 95 % t interval over seeds. CPU seconds are those of the stage's training, its games included."
    other = "Percentage points; 95 % interval over seeds and games, each comparison for itself."
    measured = head[2 : 2 + COMPARED]
    tables = [_markdown(head, lines), note, _markdown(["difference", *measured], compared)]
    if lessons:
        tables.append(_markdown(["difference", "seeds", *measured], lessons))
    return "\n\n".join([*tables, other]) + "\n"


# --- the talk's table, from runs of the product

STAGES = (  # its stage, ours, and which of the reported rows it is
    ("before the warm-up", "LFM2-2.6B"),
    ("after the warm-up", "LFM2-2.6B, SFT"),
    ("after the first stage, p 0.2-0.7", "LFM2-2.6B, RL p 0.2-0.7"),
    ("after the second stage, p 0-0.25 at 1.25", "LFM2-2.6B, second RL p 0-0.25"),
)
FIRST = "/p_0.2-0.7"  # how the runs of the first stage are called, which are arms of a sweep
SHOWN = (("random", "win"), ("optimal", "draw"), ("second", "draw"))


def talk(folder: Path) -> str:
    """The talk's figures after each stage, and ours: means with 95 % t intervals over seeds."""
    warm_up, outcomes = read(folder / "warm-up.json")["stages"][0], read(folder / "road" / "outcomes.json")
    first = [_shares(outcome) for run, outcome in outcomes.items() if run.endswith(FIRST)]
    second = [_shares(outcome) for run, outcome in outcomes.items() if not run.endswith(FIRST)]
    ours = [[], [{name: share(warm_up, name, metric[0]) for name, metric in SHOWN}], first, second]
    head = ["", *(f"talk: {name}, {_ENDS[metric[0]]}" for name, metric in SHOWN[:2])]
    head += ["our seeds", *(f"ours: {name}, {_ENDS[metric[0]]}" for name, metric in SHOWN)]
    rows = []
    for (stage, reported), runs in zip(STAGES, ours, strict=True):
        theirs = [f"{_reported(reported, name, metric):.0f}" for name, metric in SHOWN[:2]]
        measured = [_interval([run[name] for run in runs]) if runs else "-" for name, _ in SHOWN]
        rows.append([stage, *theirs, str(len(runs)) if len(runs) > 1 else "-", *measured])
    note = "Percent of games. The talk: LFM2-2.6B, 100 games each. Ours: `tiny:tictactoe`, 400 games each, greedy; "
    note += "95 % t interval over seeds."
    return "\n\n".join([_markdown(head, rows), note]) + "\n"


def _shares(outcome: Mapping[str, Any]) -> dict[str, float]:
    """Of one run: the share of each set's games that ended as SHOWN says."""
    columns = {name: "".join(outcome[name][metric].values()) for name, metric in SHOWN}
    return {name: digits.count("1") / len(digits) for name, digits in columns.items()}


def _reported(policy: str, name: str, metric: str) -> float:
    row = next(row for row in TESTBED.reported(name, ()) if row["policy"] == policy)
    return float(row["total"][metric]["value"])


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows))


_ENDS = {"w": "won", "d": "drawn", "l": "lost"}


def _interval(values: Sequence[float]) -> str:
    """A mean share over seeds; its interval is cut to what a share can be."""
    estimate = t_interval(values)
    text = f"{100 * estimate.value:.1f}"
    return text if len(values) < 2 else f"{text} [{100 * max(0, estimate.low):.1f}, {100 * min(1, estimate.high):.1f}]"


def _difference(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], name: str, ending: str) -> str:
    """Over the seeds' pairs of stages. The strata are who moves first; the sets hold games of both in turns."""
    deltas = []
    for ours, theirs in pairs:
        changes = [
            float(a == ending) - float(b == ending) for a, b in zip(ours["endings"][name], theirs["endings"][name], strict=True)
        ]
        deltas.append([changes[0::2], changes[1::2]])
    made = seeded_difference(deltas)
    text = f"{100 * made.value:+.1f}"
    return text if len(pairs) < 2 else f"{text} [{100 * made.low:+.1f}, {100 * made.high:+.1f}]"


def _seeds(text: str) -> list[int]:
    low, _, high = text.partition("-")
    return list(range(int(low), int(high or low) + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("run", "table", "talk"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=_seeds, default=list(range(11, 16)), help="11-15 or 13 (default 11-15)")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), metavar="ARM")
    options = parser.parse_args()
    if options.command == "run":
        run_all(options.folder, options.seeds, options.arms)
    else:
        make = {"table": table, "talk": talk}[options.command]
        folders.write_atomic(options.folder / f"{options.command}.md", make(options.folder))


if __name__ == "__main__":
    main()
