"""A testbed: pay an amount with as few coins as possible. It declares everything that the suite needs to know about the task."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Testbed
from t2t_core.projection import Settling, read_values
from t2t_core.records import (
    Fault,
    InstanceSet,
    Knob,
    Message,
    Metric,
    Option,
    Place,
    Projection,
    Tool,
    ToolCall,
    Verdict,
)
from t2t_core.seeding import Stream
from t2t_core.shares import apportion
from t2t_core.store import jsonlines
from t2t_plugin_template.coins import HIGHEST, SYSTEMS, Payment, fewest_coins

KNOBS = (
    Knob("share", "share of the payments in this coin system", 0, 1, "share", "percent"),
    Knob("amount", "the highest amount asked for", 50, HIGHEST, "level", "whole", "cents", harder=1, step=20),
    Knob("kinds", "how many kinds of coins there are", 3, 5, "level", "whole", "kinds"),
)
_ANSWER = re.compile(r"\[\s*(\d{1,4}(?:\s*,\s*\d{1,4})*)\s*\]")
TOTAL = Tool(
    "total",
    "What some coins come to, in cents.",
    {"type": "object", "properties": {"coins": {"type": "array", "items": {"type": "integer"}}}, "required": ["coins"]},
)
_MOST_COINS = 1000  # the most that the tool adds up
_TRIES = 1000  # draws of one instance before the generator says that nothing is left
_SETS = {"validation": ("validation", 40), "usual": ("evaluation", 60), "strange": ("evaluation", 60)}


@dataclass(frozen=True)
class Request:
    """What the generator is asked for; `exclude` holds the identities that it must not draw."""

    count: int
    exclude: frozenset[bytes] = frozenset()


@dataclass(frozen=True)
class Coins:
    """A configuration: coin system -> knob -> number."""

    values: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, dict[str, float]]:
        return {system: dict(knobs) for system, knobs in self.values.items()}


class Change(Testbed[Payment, Coins, Request]):
    # --- words
    name = "change"
    title = "Paying with few coins"
    guideline = "Train where about half of the answers are valid; strange coins defeat the habit of taking the largest first."
    group = "coin system"
    sameness = "up to the order in which the coins are named"

    # --- what is measured
    checks = ("readable", "coins", "amount")
    metrics = (
        Metric("valid", "the amount is paid", "rate", lambda verdict, response: float(verdict.valid), "%"),
        Metric("optimal", "with the fewest coins", "rate", lambda v, r: None if v.optimal is None else float(v.optimal), "%"),
        Metric("spare", "coins more than needed", "mean", lambda verdict, response: verdict.gap, "coins", False),
    )

    # --- what is asked, and what an answer earns
    prompt_formats = ("plain",)
    turns = 4  # the tool may be used three times before the answer
    tools = (TOTAL,)
    rubric = {"paid": 0.5, "fewest": 0.5}

    # --- what a designer sets
    groups = tuple(SYSTEMS)
    groups_rise = True
    remedies = {"amount": {"amount": -1}}

    # --- what it brings
    preset = "change"
    baselines = ("coins",)

    def options(self) -> Sequence[Option]:
        return (Option("systems", "Which coin systems to measure.", ",".join(SYSTEMS), _systems),)

    # --- configuration of the generator

    def knobs(self, request: Request) -> Sequence[Knob]:
        return KNOBS

    def request(self, count: int, *, exclude: frozenset[bytes] | None = None) -> Request:
        return Request(count, _protected() if exclude is None else exclude)

    def read_configuration(self, data: Any) -> Coins:
        return Coins(read_values(data, SYSTEMS, KNOBS, self.group))

    def random_configuration(self, request: Request, seed: int) -> Coins:
        stream = Stream.of(seed, "configuration")
        share = stream.uniform()
        return Coins(
            {
                system: {"share": part, "amount": 50 + stream.below(HIGHEST - 49), "kinds": 3 + stream.below(3)}
                for system, part in zip(SYSTEMS, (share, 1 - share), strict=True)
            }
        )

    def project(self, proposal: Mapping[str, Any] | None, previous: Coins, request: Request) -> Projection[Coins]:
        settling = Settling(previous.values, KNOBS, self.group)
        settling.settle(proposal)  # bounds and shares; this task's own rules follow:
        for system, knobs in settling.values.items():
            for name in ("amount", "kinds"):
                settling.put(system, name, knobs[name], round(knobs[name]), "a whole number")
        return Projection(Coins(settling.values), settling.changes)

    # --- instances

    def generate(self, configuration: Coins, request: Request, seed: int) -> Sequence[Payment]:
        counts = apportion([knobs["share"] for knobs in configuration.values.values()], request.count)
        made: list[Payment] = []
        for (system, knobs), count in zip(configuration.values.items(), counts, strict=True):
            stream = Stream.of(seed, system)
            for _ in range(count):
                made.append(_drawn(f"p{len(made):05d}", system, knobs, stream, request.exclude))
        return made

    def read_instance(self, data: Mapping[str, Any]) -> Payment:
        return Payment.from_dict(data)

    def unlabelled(self, instance: Payment) -> Payment:
        return instance.without_label()

    def identity(self, instance: Payment) -> bytes:
        return identity(instance)

    def place(self, instance: Payment) -> Place:
        kinds = f"{len(instance.coins)} kinds"
        return Place(instance.system, kinds, f"{instance.system}, {kinds}", instance.system)

    def set_names(self, options: Mapping[str, Any]) -> Sequence[str]:
        return tuple(options.get("systems", SYSTEMS))

    def load_set(self, name: str) -> InstanceSet:
        return _set(name, 0)

    def protected_sets(self) -> Sequence[str]:
        return tuple(_SETS)

    def twin(self, name: str, seed: int) -> InstanceSet:
        return _set(name, seed + 1)

    # --- question, answer, worth

    def prompt(self, instance: Payment, format: str) -> str:
        coins = " and ".join(filter(None, [", ".join(map(str, instance.coins[:-1])), str(instance.coins[-1])]))
        return (
            f"There are coins of {coins} cents, as many of each as you like. Pay exactly {instance.amount} cents with as few"
            f" coins as you can. End with the coins in brackets, for example [{instance.coins[0]}, {instance.coins[0]}]."
        )

    def reply(self, instance: Payment, messages: Sequence[Message], format: str) -> Sequence[Message]:
        """The tool's results. A message that calls no tool is the answer and gets no reply."""
        return [Message("tool", _result(call), tool_call_id=call.id) for call in messages[-1].tool_calls]

    def verify(self, instance: Payment, answer: Sequence[Message], format: str = "") -> Verdict:
        """The coins in the last brackets of the policy's last message: known ones (check `coins`) that sum to the amount."""
        matches = _ANSWER.findall(next((said.content for said in reversed(answer) if said.role == "assistant"), ""))
        paid = [int(coin) for coin in matches[-1].split(",")] if matches else []
        strange = [coin for coin in paid if coin not in instance.coins]
        checks = {"readable": bool(matches), "coins": bool(matches) and not strange, "amount": sum(paid) == instance.amount}
        faults = {}
        if strange:
            faults["coins"] = Fault(f"there is no coin of {strange[0]} cents", where={"coin": paid.index(strange[0]) + 1})
        if matches and not checks["amount"]:
            faults["amount"] = Fault(f"they are {sum(paid)} cents, not {instance.amount}", where={"cents": sum(paid)})
        if not all(checks.values()):
            return Verdict(checks, False, False, None, faults=faults)
        gap = None if instance.fewest is None else len(paid) - instance.fewest
        return Verdict(checks, True, None if gap is None else gap == 0, len(paid), {"coins": len(paid)}, gap)

    def reward_terms(self, instance: Payment, verdict: Verdict) -> Mapping[str, float]:
        return {"paid": float(verdict.valid), "fewest": float(verdict.optimal is True)}


def _result(call: ToolCall) -> str:
    """What the tool says. A policy may write anything as arguments, and is told what was wrong with them."""
    if call.name != TOTAL.name:
        return f"there is no tool of that name; there is {TOTAL.name}"
    try:
        coins = json.loads(call.arguments)["coins"]
        if len(coins) <= _MOST_COINS and all(type(coin) is int and 0 < coin <= HIGHEST for coin in coins):
            return str(sum(coins))
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return f'coins must be a list of at most {_MOST_COINS} whole numbers of cents: {{"coins": [4, 4]}}'


def identity(payment: Payment) -> bytes:
    """Equal for two payments if they differ only in the order of their coins (names and labels apart)."""
    return f"{payment.amount}: {sorted(payment.coins)}".encode()


def _systems(text: str) -> list[str]:
    names = text.split(",")
    if not all(name in SYSTEMS for name in names) or len(set(names)) != len(names):
        raise T2TError(f"--systems wants some of {','.join(SYSTEMS)}, not {ascii(text)[:60]}")
    return names


def _drawn(name: str, system: str, knobs: Mapping[str, float], stream: Stream, exclude: frozenset[bytes]) -> Payment:
    """One payment under these knobs: coins, then one of the amounts that they can pay."""
    for _ in range(_TRIES):
        kinds = list(SYSTEMS[system])
        stream.shuffle(kinds)
        coins = [1, *kinds][: round(knobs["kinds"])] if system == "usual" else kinds[: round(knobs["kinds"])]
        stream.shuffle(coins)
        best = fewest_coins(coins, round(knobs["amount"]))
        amount = stream.choice([n for n, way in enumerate(best) if n and way])
        payment = Payment(name, system, tuple(coins), amount, len(best[amount] or ()))
        if identity(payment) not in exclude:
            return payment
    raise T2TError("there is nothing left to draw", where=f"coin system {system}", cause="too many payments are excluded")


@cache
def _set(name: str, seed: int) -> InstanceSet:
    """A set by its name, from the highest amounts down to the lowest; seed 0 gives the frozen set."""
    if name not in _SETS:
        raise T2TError(f"there is no set called {ascii(name)[:60]}", cause=f"the sets are {', '.join(_SETS)}")
    kind, count = _SETS[name]
    systems = [name] if name in SYSTEMS else list(SYSTEMS)
    stream = Stream.of(seed, "set", name)
    made = [
        _drawn(f"{name}_{n:03d}", systems[n % len(systems)], {"amount": HIGHEST, "kinds": 3 + n // 2 % 3}, stream, frozenset())
        for n in range(count)
    ]
    data = b"".join(jsonlines.canonical(payment.to_dict()) for payment in made)
    return InstanceSet(name, "twin" if seed else kind, hashlib.sha256(data).hexdigest(), made)


@cache
def _protected() -> frozenset[bytes]:
    return frozenset(identity(payment) for name in _SETS for payment in _set(name, 0).instances)


def make(argument: str, settings: Mapping[str, str]) -> Change:
    return Change()
