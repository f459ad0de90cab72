"""Makes the untrained bases of the families over lakes, from their seed: `python -m t2t_jobs.families.make_bases DIR`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from t2t_core.hookspecs import TrainingJob
from t2t_core.plugins import installed
from t2t_core.store import folders


@dataclass(frozen=True)
class Recipe:
    """A network of that width after so many agent steps with two agents on 3x3 and 4x4."""

    hidden: int
    steps: int


RECIPES = {"narrow": Recipe(64, 1), "wide": Recipe(128, 20_000)}
SEED = 17


def make(name: str, folder: Path) -> None:
    """Make one base in the folder."""
    recipe, testbed = RECIPES[name], installed().testbeds.make("mapf-frozenlake")
    request = testbed.request(256, agents=2, repeats="allow")
    knobs = {
        size: {"data_ratio": 0.5 if size in ("3", "4") else 0.0, "hole_ratio": 0.1, "wait_ratio": 0.5} for size in testbed.groups
    }
    instances = testbed.generate(testbed.read_configuration(knobs), request, SEED)
    settings = {"steps": recipe.steps, "hidden": recipe.hidden, "lakes": 64, "threads": 1}
    folders.make_folder(folder)
    installed().trainers.make("ppo").train(TrainingJob(None, instances, testbed, settings, folder, SEED))


if __name__ == "__main__":
    for base in RECIPES:
        make(base, Path(sys.argv[1]) / base)
