"""A testbed played in turns: find a number from "higher" and "lower", with a tool that tells whether it is even."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from dataclasses import asdict, dataclass

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Testbed
from t2t_core.projection import read_values
from t2t_core.records import Fault, InstanceSet, Knob, Message, Metric, Place, Projection, Response, Tool, ToolCall, Verdict
from t2t_core.seeding import Stream
from t2t_core.store import jsonlines

TOPS = {"near": 8, "far": 64}
KEPT = (0, 3, 5, 6)  # the numbers of the sets, of each span


@dataclass(frozen=True)
class Secret:
    id: str
    span: str
    number: int

    def to_dict(self):
        return asdict(self)


@dataclass(frozen=True)
class Spans:
    near: float

    def to_dict(self):
        return {"near": {"share": self.near, "reach": 8.0}, "far": {"share": 1 - self.near, "reach": 64.0}}


@dataclass(frozen=True)
class Request:
    count: int
    exclude: frozenset = frozenset()


def number_in(message):
    match = re.fullmatch(r"\s*([0-9]{1,4})\s*", message.content)
    return int(match[1]) if match else None


class Guessing(Testbed[Secret, Spans, Request]):
    name = "guessing"
    title = "Guessing a number"
    guideline = "Near numbers are easier."
    group, groups, groups_rise = "span", ("near", "far"), True
    prompt_formats = ("plain", "last")
    memoryless = ("last",)
    turns = 6
    tools = (Tool("even", "Whether the number is even.", {"type": "object", "properties": {}}),)
    checks = ("numbers", "guessed")
    rubric = {"guessed": 1.0, "turns": -0.01}
    reward_range = (-0.06, 1.0)
    metrics = (
        Metric("valid", "guessed", "rate", lambda v, r: float(v.valid), "%"),
        Metric("cost", "turns taken", "mean", lambda v, r: v.cost, "turns", False),
        Metric("tokens", "tokens", "mean", lambda v, r: r.completion_tokens, "", False),
    )

    def knobs(self, request):
        share = Knob("share", "share of the games", 0, 1, "share", "percent")
        return (share, Knob("reach", "the highest number", 1, 64, form="whole"))

    def request(self, count, **options):
        return Request(count, **options)

    def read_configuration(self, data):
        return Spans(read_values(data, self.groups, self.knobs(None), self.group)["near"]["share"])

    def random_configuration(self, request, seed):
        return Spans(Stream.of(seed, "spans").uniform())

    def project(self, proposal, previous, request):
        near = proposal.get("near") if isinstance(proposal, dict) else None
        share = near.get("share") if isinstance(near, dict) else None
        usable = isinstance(share, float) and 0 <= share <= 1
        return Projection(Spans(share) if usable else previous)

    def generate(self, configuration, request, seed):
        near = round(configuration.near * request.count)
        stream = Stream.of(seed, "secrets")
        spans = ["near"] * near + ["far"] * (request.count - near)
        numbers = {span: self._numbers(span, request) for span in TOPS}
        return [Secret(f"g{i:04d}", span, numbers[span][stream.below(len(numbers[span]))]) for i, span in enumerate(spans)]

    def _numbers(self, span, request):
        """Those that may be drawn."""
        kept = request.exclude or {f"{span} {number}".encode() for number in KEPT}
        return [number for number in range(TOPS[span]) if f"{span} {number}".encode() not in kept]

    def read_instance(self, data):
        try:
            return Secret(str(data["id"]), {"near": "near", "far": "far"}[data["span"]], int(data["number"]))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            raise T2TError("not a secret number") from None

    def unlabelled(self, instance):
        return instance  # the number is the game's state, which the environment needs; policies here do not look at it

    def identity(self, instance):
        return f"{instance.span} {instance.number}".encode()

    def place(self, instance):
        return Place("guessing", instance.span, instance.span, instance.span)

    def set_names(self, options):
        return ("numbers",)

    def protected_sets(self):
        return ("numbers",)

    def load_set(self, name, seed=0):
        if name != "numbers":
            raise T2TError("no such set")
        made = [Secret(f"n{i:03d}", span, KEPT[(i // 2 + seed) % len(KEPT)]) for i, span in enumerate(["near", "far"] * 10)]
        data = b"".join(jsonlines.canonical(i.to_dict()) for i in made)
        return InstanceSet(name, "twin" if seed else "evaluation", hashlib.sha256(data).hexdigest(), made)

    def twin(self, name, seed):
        return self.load_set(name, seed + 1)

    def prompt(self, instance, format):
        return f"Guess a number below {TOPS[instance.span]}."

    def reply(self, instance, messages, format):
        last = messages[-1]
        if last.tool_calls:
            return [Message("tool", json.dumps(instance.number % 2 == 0), (), call.id) for call in last.tool_calls]
        guess = number_in(last)
        if guess == instance.number:
            return []
        if guess is None:
            return [Message("user", "that is no number")]
        return [Message("user", f"{guess} is too {'low' if guess < instance.number else 'high'}")]

    def verify(self, instance, answer, format=""):
        said = [message for message in answer if message.role == "assistant"]
        sensible = all(message.tool_calls or number_in(message) is not None for message in said)
        guessed = bool(said) and number_in(said[-1]) == instance.number
        valid = sensible and guessed
        faults = {} if guessed else {"guessed": Fault("not guessed", where={"turn": len(said)})}
        checks = {"numbers": sensible, "guessed": guessed}
        return Verdict(checks, valid, valid or None, len(said) if valid else None, faults=faults)

    def reward_terms(self, instance, verdict):
        return {"guessed": float(verdict.valid), "turns": float(verdict.cost or self.turns)}


class Bisector:
    """Bisects. Asks the tool first where `tool`; `every` makes each n-th answer an error; `size` is its batch size; `live`
    makes it look at its tasks again after each answer and keep `live` of them under way."""

    def __init__(self, argument="", settings=None):
        settings = settings or {}
        self.every, self.slow = int(settings.get("every", 0)), float(settings.get("slow", 0))
        self.size, self.live = int(settings.get("size", 0)) or None, int(settings.get("live", 0))
        self.tool = settings.get("tool") == "yes"
        self.asked, self.calls, self.most_open = [], 0, 0
        if self.live:
            self.open_at_once = self.live

    def describe(self):
        return {"name": "bisector", "deterministic": True, "batch_size": self.size}

    def respond(self, tasks, sampling):
        self.calls += 1
        if not self.live:
            for position in range(len(tasks)):  # looks at their number once
                yield position, self._answer(tasks[position])
            return
        under_way, given = [], 0
        while True:
            while given < len(tasks) and len(under_way) < self.live:
                under_way.append((given, tasks[given]))
                given += 1
            self.most_open = max(self.most_open, len(under_way))
            if not under_way:
                return
            position, task = under_way.pop(len(under_way) // 2)
            yield position, self._answer(task)

    def _answer(self, task):
        self.asked.append((task.instance_id, task.sample, task.turn))
        time.sleep(self.slow)
        if self.every and len(self.asked) % self.every == 0:
            return Response("", error="HTTP 500", finish_reason="error")
        facts = {"prompt_tokens": sum(len(m.content) for m in task.messages), "completion_tokens": 2, "cost_usd": 0.001}
        if self.tool and task.turn == 0:
            return Response("", tool_calls=(ToolCall("c0", "even", "{}"),), **facts)
        low, high = 0, TOPS[task.instance.span] - 1
        for message in task.messages:
            if match := re.fullmatch(r"(\d+) is too (low|high)", message.content):
                low, high = (int(match[1]) + 1, high) if match[2] == "low" else (low, int(match[1]) - 1)
        return Response(str((low + high) // 2), **facts)


def solve(instance):
    return str(instance.number)


def register():
    """Add the testbed and its policy to this process's registries."""
    from t2t_core.plugins import installed

    if "guessing" not in installed().testbeds:
        installed().testbeds.add("guessing", lambda argument, settings: Guessing(), "guessing a number in turns")
        installed().policies.add("bisector", Bisector, "bisects")


if __name__ == "__main__":  # `python guessing.py bench ...` is `t2t bench ...` with the testbed above
    from t2t_core.cli import main

    register()
    main(sys.argv[1:])
