"""The run's policy, one checkpoint at a time. A language model's engine holds the GPU while it lives, so it must be closed, and
have released its memory, before another engine, a training or a designer's own engine takes over."""

from __future__ import annotations

from pathlib import Path

from t2t_core.closing import close
from t2t_core.hookspecs import Policy
from t2t_core.run.experiment import Experiment


class Engines:
    """Makes the policies of a run (and of its control, which differ only in their checkpoints) and keeps the last one, which
    serves everything asked of its checkpoint: a round's validation and design, all sets of the bench."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._checkpoint: Path | None = None
        self._policy: Policy | None = None

    def policy(self, checkpoint: Path | None) -> Policy:
        """The run's policy with that checkpoint."""
        if self._policy is None or self._checkpoint != checkpoint:
            self.close()
            self._checkpoint, self._policy = checkpoint, self._experiment.make_policy(checkpoint)
        return self._policy

    def has(self, checkpoint: Path | None) -> bool:
        """Whether the policy with that checkpoint is the one loaded."""
        return self._policy is not None and self._checkpoint == checkpoint

    def close(self) -> None:
        """Close the policy, so that nothing of it holds this machine's memory."""
        before, self._policy = self._policy, None
        close(before)

    def __enter__(self) -> Engines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
