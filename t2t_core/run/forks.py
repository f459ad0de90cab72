"""Forks: another designer continues from a round of a finished run, so that the arms differ in nothing else.

`RUN@ROUND` takes over the rounds 0..ROUND of RUN, their training and validation included, but not the design after ROUND.
Only what comes later may differ: designer, context, the number of rounds, and the bench at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from t2t_core import transport
from t2t_core.errors import T2TError
from t2t_core.run.experiment import Experiment
from t2t_core.run.round_files import DESIGN_FILES, RoundFiles, open_run
from t2t_core.store import folders
from t2t_core.store.paths import SafePath

MAY_DIFFER = ("designer", "context", "rounds", "design_seconds", "evaluation", "replica")


@dataclass(frozen=True)
class Fork:
    """`source` is the run forked from, `index` its last shared round, `label` how the new run's manifest names them."""

    source: SafePath
    index: int
    label: str

    @classmethod
    def parse(cls, text: str) -> Fork:
        """Read RUN@ROUND, as --fork takes it. Raises T2TError for anything else."""
        match = re.fullmatch(r"(.+)@(\d{1,5})", text)
        if not match:
            raise T2TError(f"--fork takes RUN@ROUND, not {ascii(text)[:80]}", next="for example --fork runs/first@0")
        return cls(SafePath(Path(match[1])), int(match[2]), text)

    def check(self, experiment: Experiment) -> None:
        """Raise T2TError if the fork would differ from its source in anything but what follows the shared round."""
        _, theirs = open_run(self.source)
        kept = {k: v for k, v in transport.asked(theirs.to_dict()).items() if k not in MAY_DIFFER}
        settings = {k: v for k, v in transport.asked(experiment.to_dict()).items() if k not in MAY_DIFFER}
        folders.same_settings(kept, settings, self.source / folders.MANIFEST, "experiment to fork from")
        if not RoundFiles(self.source, self.index).breakdown.exists():
            raise T2TError(
                f"round {self.index} is not finished there",
                where=str(self.source),
                next="finish that run first: repeat the command that started it",
            )
        if experiment.rounds <= self.index:
            raise T2TError(f"nothing comes after round {self.index} in a run of {experiment.rounds} rounds", where="--rounds")

    def take_over(self, folder: SafePath) -> None:
        """Put the shared rounds into `folder`, each whole or not at all; rounds already there stay. Files are hard links if the
        file system allows it, since a finished round is never written to again."""
        for index in range(self.index + 1):
            target = RoundFiles(folder, index).folder
            if target.exists():
                continue
            left_out = DESIGN_FILES if index == self.index else ()
            with folders.building(target) as fresh:
                folders.take_over(RoundFiles(self.source, index).folder, fresh, left_out)
