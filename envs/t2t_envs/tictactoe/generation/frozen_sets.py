"""Make the frozen sets, bit for bit, and fresh twins of them.

    python -m t2t_envs.tictactoe.generation.frozen_sets DIR

Evaluation sets v1: 200 seeds from the empty board, each once with the policy and once with the opponent moving first, against
three opponents: random moves only (`random`), optimal play (`optimal`), and an optimal player with other habits (`second`).
Validation: 200 games, 50 in each band with p spread over the whole band, half of them with the policy moving first, a quarter
from mid-game. No game (position, mover, seed) is in two sets.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from t2t_core.records import InstanceSet
from t2t_core.seeding import Stream, key
from t2t_core.store import frozen, jsonlines

from ..instance import EMPTY, MOVERS, Instance
from .configuration import P_STEP, Configuration
from .generator import generate
from .request import Request

VERSION = 1
SEEDS = 200
VALIDATION = Configuration.uniform(0.0, 1.0, first=0.5, mid_game=0.25)
_DRAWS_NOTHING = (
    "this opponent draws nothing: against a policy that draws nothing either all games of one mover are the same game, and the "
    "interval does not say how others would end"
)


@dataclass(frozen=True)
class Plan:
    """One evaluation set: SEEDS games for each mover against one opponent."""

    name: str
    p: float
    opponent: str
    notes: tuple[str, ...] = ()


PLANS = (Plan("random", 1.0, "mixed"), Plan("optimal", 0.0, "mixed"), Plan("second", 0.0, "second", (_DRAWS_NOTHING,)))
NAMES = (*(plan.name for plan in PLANS), "validation")


def make_set(name: str, stream_key: int, prefix: str = "", exclude: frozenset[bytes] = frozenset()) -> list[Instance]:
    """The games of a set in order, drawn from this key, without those in `exclude`."""
    if name == "validation":
        games = generate(VALIDATION, Request(SEEDS, exclude), stream_key)
        return [replace(game, id=f"{prefix}validation_{game.id}", p=_mixed(game.p)) for game in games]
    plan = next(plan for plan in PLANS if plan.name == name)
    stream, made = Stream(stream_key), list[Instance]()
    while len(made) < 2 * SEEDS:
        seed, number = stream.next() >> 11, len(made) // 2
        pair = [
            Instance(EMPTY, mover, plan.p, plan.opponent, seed, id=f"{prefix}{name}_{number:04d}_{turn}")
            for mover, turn in zip(MOVERS, ("first", "second"), strict=True)
        ]
        if not exclude & {game.identity() for game in pair}:
            made += pair
    return made


def _mixed(p: float) -> float:
    """Keep p away from 0 and 1: optimal and random play are opponents of the evaluation sets, with columns of their own."""
    return min(max(p, P_STEP), 1 - P_STEP)


def make_twin(frozen: InstanceSet, seed: int, exclude: frozenset[bytes]) -> InstanceSet:
    """A fresh set from the same distribution, without the games in `exclude`."""
    games = make_set(frozen.name, key(seed, "twin", frozen.name), f"twin{seed}_", exclude)
    note = f"twin {seed} of {frozen.name}: fresh seeds; none of its games is in a frozen set"
    digest = hashlib.sha256(as_lines(games).encode()).hexdigest()
    return InstanceSet(f"{frozen.name}_twin{seed}", "twin", digest, tuple(games), (*frozen.notes, note))


def as_lines(games: Sequence[Instance]) -> str:
    """The games as JSON Lines."""
    return "".join(jsonlines.dumps(game.to_dict()) + "\n" for game in games)


def make_files() -> Iterator[tuple[str, str]]:
    """Name and text of every file of the frozen sets, `SHA256SUMS` last."""
    made_by = "python -m t2t_envs.tictactoe.generation.frozen_sets DIR"
    manifest: dict[str, Any] = {"version": VERSION, "made_by": made_by, "sets": {}}
    files: dict[str, str] = {}
    for name in NAMES:
        games, file = make_set(name, key(VERSION, "frozen sets", name)), f"{name}_v{VERSION}.jsonl"
        files[file] = as_lines(games)
        manifest["sets"][name] = {"file": file, "kind": "evaluation", "instances": len(games), "notes": []}
        yield file, files[file]
    for plan in PLANS:
        facts = {"seeds": SEEDS, "p": plan.p, "opponent": plan.opponent, "notes": list(plan.notes)}
        manifest["sets"][plan.name] |= facts
    manifest["sets"]["validation"] |= {"kind": "validation", "configuration": VALIDATION.to_dict()}
    yield from frozen.closing_files(files, manifest)


def write_files(folder: Path) -> list[str]:
    """Write all files of the frozen sets to a folder, and return their names."""
    return frozen.write(folder, make_files())


if __name__ == "__main__":
    for file_name in write_files(Path(sys.argv[1])):
        print(file_name)
