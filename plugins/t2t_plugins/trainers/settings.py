"""Checks of language-model trainers' settings, besides those of `t2t_core.settings.check_settings`."""

from __future__ import annotations

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.settings import AT_LEAST_ONE, POSITIVE, TEMPERATURES, Range, check_settings

__all__ = ["AT_LEAST_ONE", "POSITIVE", "TEMPERATURES", "Range", "check_formats", "check_settings", "check_start"]


def check_formats(order: TrainingOrder, where: str, **formats: str) -> None:
    """Raise T2TError if the testbed does not have one of these prompt formats ("" means the default)."""
    for setting, name in formats.items():
        if name and name not in order.testbed.prompt_formats:
            known = ", ".join(order.testbed.prompt_formats)
            raise T2TError(f"there is no prompt format {ascii(name)[:60]}", where=f"{where}, {setting}", cause=f"known: {known}")


def check_start(order: TrainingOrder, where: str) -> None:
    """Raise T2TError if there is nothing to train."""
    if order.checkpoint is None:
        raise T2TError(
            f"{where} has nothing to train", cause="the run's policy has no checkpoint", next="set checkpoint = FOLDER_OR_ID"
        )
