"""Check what the trainers of step policies are asked for."""

from __future__ import annotations

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder

_WORLD = "mapf-frozenlake"


def check_order(order: TrainingOrder, file: str, where: str) -> None:
    """Raise T2TError if a round could not be trained, because the world or the checkpoint's trainer is another.

    Args:
        order: what a run asks for.
        file: the file in every checkpoint of the trainer that describes the architecture.
        where: the trainer, for the error.
    """
    if order.testbed.name != _WORLD:
        raise T2TError(
            f"this trainer plays {_WORLD} step by step, and knows no such environment of {order.testbed.name}",
            where=where,
            next="name a trainer of language models: trl-grpo, grpo, trl-sft",
        )
    if order.checkpoint is not None and not (order.checkpoint / file).is_file():
        raise T2TError(
            "this trainer cannot continue from the checkpoint",
            where=f"{where}, checkpoint {order.checkpoint}",
            cause=f"there is no {file} in it: another trainer left it",
            next='set checkpoint = "" to begin from nothing',
        )
