"""A testbed that has nothing to do with grids: add two numbers. It shows that the core does not depend on an environment.

The answer `SUM` is valid if it is a number and optimal if it is the right one. Its cost is how far off it is.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from dataclasses import asdict, dataclass, replace

from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Testbed
from t2t_core.records import InstanceSet, Metric, Option, Place, Response, Verdict
from t2t_core.seeding import Stream
from t2t_core.store import jsonlines


@dataclass(frozen=True)
class Sum:
    id: str
    a: int
    b: int
    label: int | None

    def to_dict(self):
        return asdict(self)


def _digits(text):
    if text not in ("one", "two"):
        raise T2TError(f"--digits is one or two, not {text!r}")
    return text


class Addition(Testbed):
    name = "addition"
    title = "Adding two numbers"
    guideline = "Small numbers are easier."
    prompt_formats = ("plain", "words")
    checks = ("number", "near")
    group, groups = "parity", ("even", "odd")
    rubric = {"near": 1.0}
    metrics = (
        Metric("valid", "valid", "rate", lambda v, r: float(v.valid), "%"),
        Metric("optimal", "optimal", "rate", lambda v, r: None if v.optimal is None else float(v.optimal), "%"),
        Metric("gap", "mean gap", "mean", lambda v, r: v.gap, "", False),
        Metric("tokens", "tokens", "mean", lambda v, r: r.completion_tokens, "", False),
    )

    def options(self):
        return (Option("digits", "one, two", "one", _digits),)

    def set_names(self, options):
        return (f"{options['digits']}_digit",)

    def load_set(self, name):
        return self._set(name, "evaluation", 0)

    def twin(self, name, seed):
        return self._set(name, "twin", seed + 1)

    def _set(self, name, kind, seed):
        stream = Stream.of(seed, "sums")
        top = 10 if name.startswith("one") else 100
        pairs = [(stream.below(top), stream.below(top)) for _ in range(40)]
        instances = [Sum(f"{name}_{i:04d}", a, b, a + b) for i, (a, b) in enumerate(pairs)]
        data = b"".join(jsonlines.canonical(i.to_dict()) for i in instances)
        return InstanceSet(name, kind, hashlib.sha256(data).hexdigest(), instances, ("a set of sums",))

    def read_instance(self, data):
        try:
            return Sum(str(data["id"]), int(data["a"]), int(data["b"]), data.get("label"))
        except (KeyError, TypeError, ValueError) as error:
            raise T2TError(f"not a sum: {error}") from None

    def unlabelled(self, instance):
        return replace(instance, label=None)

    def place(self, instance):
        table = "two digits" if instance.id.startswith("two") else "one digit"
        parity = "odd" if (instance.a + instance.b) % 2 else "even"
        return Place(table, parity, "", parity)

    def identity(self, instance):
        return repr(sorted((instance.a, instance.b))).encode()

    def prompt(self, instance, format):
        return f"{instance.a} + {instance.b} = " if format == "plain" else f"Add {instance.a} to {instance.b}."

    def reward_terms(self, instance, verdict):
        return {"near": float(verdict.valid)}

    def verify(self, instance, text, format=""):
        match = re.fullmatch(r"\s*(-?[0-9]{1,9})\s*", text)
        if not match:
            return Verdict({"number": False, "near": False}, False, False, None)
        off = abs(int(match[1]) - instance.a - instance.b)
        checks = {"number": True, "near": off < 10}
        if off >= 10:
            return Verdict(checks, False, False, None)
        known = instance.label is not None
        return Verdict(checks, True, off == 0 if known else None, off, {"distance": off}, off if known else None)


def t2t(*arguments):
    """`t2t ...` in this process, an error of its own raised; the result has its output and exit status."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


class Adder:
    """Adds. `off` is added to each sum, `slow` seconds pass before each answer, `every` makes each n-th one an error, and the
    `die`-th one ends it all."""

    def __init__(self, argument="", settings=None, *, batch_size=None):
        settings = settings or {}
        self.off, self.slow = int(settings.get("off", 0)), float(settings.get("slow", 0))
        self.every, self.die = int(settings.get("every", 0)), int(settings.get("die", 0))
        self.caveat = {"caveat": settings["caveat"]} if "caveat" in settings else {}
        self.batch_size = batch_size
        self.asked = []

    def describe(self):
        return {**self.caveat, "name": "adder", "deterministic": True, "batch_size": self.batch_size, "off": self.off}

    def respond(self, tasks, sampling):
        for position, task in enumerate(tasks):
            self.asked.append((task.instance_id, task.sample))
            time.sleep(self.slow)
            if len(self.asked) == self.die:
                raise T2TError("the key is no longer valid")
            if self.every and len(self.asked) % self.every == 0:
                yield position, Response("", error="HTTP 500", finish_reason="error")
            else:
                text = str(task.instance.a + task.instance.b + self.off)
                yield position, Response(text, completion_tokens=len(text), prompt_tokens=5, cost_usd=0.001)


def without_own_script(page):
    """A page without the one script that is the suite's own, word for word."""
    from t2t_core.report import frame

    return page.replace(f"<script>{frame.sheet('page.js')}</script>", "")


def register():
    """Add the testbed and its policy to this process's registries."""
    from t2t_core.plugins import installed

    if "addition" not in installed().testbeds:
        installed().testbeds.add("addition", lambda argument, settings: Addition(), "sums")
        installed().policies.add("adder", Adder, "adds")


if __name__ == "__main__":  # `python addition.py bench ...` is `t2t bench ...` with the testbed above
    from t2t_core.cli import main

    register()
    main(sys.argv[1:])
