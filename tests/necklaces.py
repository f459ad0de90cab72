"""A testbed written from docs/testbed.md alone: knobs that are no ratios, groups that are no numbers (and in no order), a
symmetry of its own. Name the smallest of all turns of a necklace of coloured beads."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Testbed
from t2t_core.projection import Settling
from t2t_core.records import Fault, InstanceSet, Knob, Metric, Place, Projection, Response, Verdict
from t2t_core.seeding import Stream
from t2t_core.store import jsonlines

COLOURS = {"black and white": "bw", "traffic lights": "agr", "the rainbow": "bgioryv"}
KNOBS = (
    Knob("part", "part of the round's necklaces", 0, 1, "share", "percent"),
    Knob("beads", "how many beads a necklace has", 6, 30, "level", "whole", "beads", harder=1, step=3),
    Knob("odds", "how much likelier the first colour is than any other", 0.5, 8, "level", "number", "to 1", harder=-1),
)


@dataclass(frozen=True)
class Necklace:
    id: str
    colours: str
    beads: str

    def to_dict(self):
        return asdict(self)


@dataclass(frozen=True)
class Request:
    count: int
    exclude: frozenset


@dataclass(frozen=True)
class Workshop:
    values: dict

    def to_dict(self):
        return {colours: dict(knobs) for colours, knobs in self.values.items()}


def least(beads):
    """The first in the alphabet of all turns."""
    return min(beads[n:] + beads[:n] for n in range(len(beads)))


class Necklaces(Testbed[Necklace, Workshop, Request]):
    name = "necklaces"
    title = "Turning necklaces"
    guideline = "Long necklaces with few odd beads have many turns that begin alike."
    group, groups = "set of colours", tuple(COLOURS)
    sameness = "up to turning the necklace"
    metrics = (Metric("valid", "the smallest turn", "rate", lambda verdict, response: float(verdict.valid), "%"),)
    checks = ("same beads", "smallest")
    prompt_formats = ("plain",)
    rubric = {"smallest": 2.0, "same beads": 1.0}
    reward_range = (0.0, 3.0)

    def knobs(self, request):
        return KNOBS

    def request(self, count, exclude=None):
        return Request(count, frozenset(map(self.identity, self.load_set("shop").instances)) if exclude is None else exclude)

    def read_configuration(self, data):
        try:
            values = {colours: {knob.name: data[colours][knob.name] for knob in KNOBS} for colours in COLOURS}
            inside = all(k.low <= knobs[k.name] <= k.high for knobs in values.values() for k in KNOBS)
        except (TypeError, KeyError, IndexError):
            inside = False
        if not inside or any(isinstance(value, bool) for knobs in values.values() for value in knobs.values()):
            raise T2TError("this is no workshop")
        return Workshop(values)

    def random_configuration(self, request, seed):
        stream = Stream.of(seed, "workshop")
        parts = [stream.uniform() + 0.01 for _ in COLOURS]
        return Workshop(
            {
                c: {"part": part / sum(parts), "beads": 6 + stream.below(25), "odds": 0.5 + 7.5 * stream.uniform()}
                for c, part in zip(COLOURS, parts, strict=True)
            }
        )

    def project(self, proposal, previous, request):
        settling = Settling(previous.values, KNOBS, self.group)
        settling.settle(proposal)
        for colours, knobs in settling.values.items():
            settling.put(colours, "beads", knobs["beads"], round(knobs["beads"]), "a whole number of beads")
        return Projection(Workshop(settling.values), settling.changes)

    def generate(self, configuration, request, seed):
        made, parts = [], [knobs["part"] for knobs in configuration.values.values()]
        until = [round(request.count * sum(parts[: n + 1])) for n in range(len(parts))]
        for (colours, knobs), end in zip(configuration.values.items(), until, strict=True):
            stream = Stream.of(seed, colours)
            while len(made) < end:
                necklace = Necklace(f"n{len(made):04d}", colours, _beads(colours, knobs, stream))
                if self.identity(necklace) not in request.exclude:
                    made.append(necklace)
        return made

    def read_instance(self, data):
        try:
            necklace = Necklace(data["id"], data["colours"], data["beads"])
            if isinstance(necklace.id, str) and necklace.beads and set(necklace.beads) <= set(COLOURS[necklace.colours]):
                return necklace
        except (TypeError, KeyError, IndexError):
            pass
        raise T2TError("this is no necklace")

    def unlabelled(self, instance):
        return instance  # there is no label: the smallest turn is computed

    def identity(self, instance):
        return least(instance.beads).encode()

    def place(self, instance):
        long = "long" if len(instance.beads) > 15 else "short"
        return Place("necklaces", long, f"{instance.colours}, {long}", instance.colours)

    def set_names(self, options):
        return ("shop",)

    def protected_sets(self):
        return ("shop",)

    def load_set(self, name, seed=0):
        if name != "shop":
            raise T2TError(f"there is no set {ascii(name)[:60]}")
        stream = Stream.of(seed, "shop")
        made = [
            Necklace(f"s{n:03d}", colours, _beads(colours, {"beads": 6 + n, "odds": 2}, stream))
            for n in range(20)
            for colours in [list(COLOURS)[n % 3]]
        ]
        data = b"".join(jsonlines.canonical(necklace.to_dict()) for necklace in made)
        return InstanceSet(name, "twin" if seed else "evaluation", hashlib.sha256(data).hexdigest(), made)

    def twin(self, name, seed):
        return self.load_set(name, seed + 1)

    def prompt(self, instance, format):
        return f"Turn the necklace {instance.beads} so that it comes first in the alphabet. Answer with nothing else."

    def verify(self, instance, answer, format=""):
        said = answer.strip()
        checks = {"same beads": sorted(said) == sorted(instance.beads), "smallest": said == least(instance.beads)}
        faults = {} if checks["smallest"] else {"smallest": Fault("another turn comes first", where={"first bead": said[:1]})}
        return Verdict(checks, checks["smallest"], checks["smallest"], 0 if checks["smallest"] else None, faults=faults)

    def reward_terms(self, instance, verdict):
        return {name: float(holds) for name, holds in verdict.checks.items()}


def _beads(colours, knobs, stream):
    others = len(COLOURS[colours]) - 1
    first = knobs["odds"] / (knobs["odds"] + others)
    return "".join(
        COLOURS[colours][0] if stream.uniform() < first else COLOURS[colours][1 + stream.below(others)]
        for _ in range(round(knobs["beads"]))
    )


class Turns:
    """Turns a necklace to begin with its smallest bead, `turns:first` the first of them, `turns:` the best of the first two."""

    def __init__(self, argument="", settings=None):
        self.most = 1 if argument == "first" else 2

    def describe(self):
        return {"deterministic": True, "batch_size": None}

    def respond(self, tasks, sampling):
        for position, task in enumerate(tasks):
            beads = task.instance.beads
            starts = [n for n, bead in enumerate(beads) if bead == min(beads)][: self.most]
            yield position, Response(min(beads[n:] + beads[:n] for n in starts))


def register():
    """Add the testbed and its policy to this process's registries."""
    from t2t_core.plugins import installed

    if "necklaces" not in installed().testbeds:
        installed().testbeds.add("necklaces", lambda argument, settings: Necklaces(), "turning necklaces")
        installed().policies.add("turns", Turns, "turns necklaces")
