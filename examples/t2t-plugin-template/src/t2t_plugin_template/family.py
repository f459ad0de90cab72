"""A task family for job agents: what to teach, within which bounds, and how it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2t_core.plugins import installed
from t2t_core.settings import no_argument, read_settings
from t2t_jobs.family import Budget, Family


def draw_briefly(argument: str, settings: Mapping[str, str]) -> Family:
    """Another family's task with an eighth of its training. You make a family of your own world the same way, field by field."""
    no_argument(argument, "family draw-briefly")
    read_settings(settings, "family draw-briefly", {})
    family: Family = installed().families.make("draw-optimal")
    budget = Budget(cpu_seconds=10, conversations=family.budget.conversations // 8, submissions=2)
    return replace(family, name="draw-briefly", title="hold the draw, from few games", budget=budget, best={})
