"""A trainer: a checkpoint, instances and a reward in, a new checkpoint out. It tries ways to pay and remembers the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2t_core.conversation import judge
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.records import Message, TrainingResult
from t2t_core.reward import reward
from t2t_core.seeding import Stream
from t2t_core.settings import no_argument, read_settings
from t2t_core.store import folders
from t2t_plugin_template.policy import MEMORY, Memory, pay, read_memory, remembered

EVERY = 10  # instances between two reports of progress


class Remember:
    """Settings, under [training] of a run: `tries`, the number of ways to pay that it tries per instance."""

    facts = {"algorithm": "tries ways to pay each amount and remembers the one with the highest reward"}
    defaults = {"tries": 8}

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        no_argument(argument, "trainer remember")
        read_settings(settings, "trainer remember", {})

    def check(self, order: TrainingOrder) -> None:
        """Raise T2TError for whatever `train` would refuse, before a run starts."""
        _tries(order.settings)

    def train(self, job: TrainingJob) -> TrainingResult:
        tries, stream = _tries(job.settings), Stream(job.seed)
        memory: Memory = read_memory(job.checkpoint) if job.checkpoint else {}
        total = 0.0
        for number, instance in enumerate(job.instances, 1):
            coins, amount = instance.coins, instance.amount
            ways = [pay(coins, amount, memory), *(_try(coins, amount, stream) for _ in range(tries))]
            verdicts = [judge(job.testbed, instance, (Message("assistant", str(way)),)) for way in ways]
            worth = [reward(job.testbed, instance, verdict, job.reward) for verdict in verdicts]
            best = max(range(len(ways)), key=worth.__getitem__)
            if worth[best] > worth[0]:
                memory.setdefault(remembered(coins), {})[str(amount)] = ways[best]
            total += worth[0]
            if job.progress and number % EVERY == 0:
                job.progress({"update": number, "updates": len(job.instances), "reward": total / number})
        job.folder.mkdir(parents=True, exist_ok=True)
        folders.write_json(job.folder / MEMORY, memory)
        count = len(job.instances)
        return TrainingResult(job.folder, {"reward": total / max(1, count)}, samples=count * (tries + 1), updates=count)


def _tries(settings: Mapping[str, Any]) -> int:
    for name in settings:
        if name not in Remember.defaults:
            raise T2TError(f"there is no setting {ascii(name)[:60]}", where="trainer remember, [training]", cause="known: tries")
    tries = settings.get("tries", Remember.defaults["tries"])
    if type(tries) is not int or not 1 <= tries <= 1000:
        raise T2TError(f"tries must be a whole number in 1..1000, not {ascii(tries)[:60]}", where="trainer remember, [training]")
    return tries


def _try(coins: Sequence[int], amount: int, stream: Stream) -> list[int]:
    """Take random coins until none fits."""
    way = []
    while fitting := [coin for coin in coins if coin <= amount]:
        way.append(stream.choice(fitting))
        amount -= way[-1]
    return way
