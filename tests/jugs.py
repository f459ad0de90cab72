"""A testbed written from docs/testbed.md alone: measure out water with jugs that have no marks. Its knobs are litres, jugs and
steps, its groups are neither numbers nor in alphabetical order, and it has its own symmetries (the jugs' names and the unit)."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import permutations
from math import gcd

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Testbed
from t2t_core.plugins import installed
from t2t_core.projection import Settling, read_values
from t2t_core.records import Cell, Fault, InstanceSet, Knob, Metric, Option, Place, Projection, Response, Verdict
from t2t_core.seeding import Stream
from t2t_core.settings import integer, no_argument, read_settings
from t2t_core.shares import apportion
from t2t_core.store import jsonlines

SOURCES = ("spring", "barrel", "tank")
"""spring: jugs begin empty; fill, empty and pour. barrel: the largest jug begins full; empty and pour. tank: that, pour only."""
LARGEST = 13
Step = tuple[str, ...]


@dataclass(frozen=True)
class Measuring:
    """Have `wanted` litres in one of the jugs, which hold `jugs` litres. `fewest`: steps that it takes, None: not stored."""

    id: str
    source: str
    jugs: tuple[int, ...]
    wanted: int
    fewest: int | None = None

    def to_dict(self) :
        return {**asdict(self), "jugs": list(self.jugs)}

    @classmethod
    def from_dict(cls, data: object):
        try:
            jugs, fewest = tuple(data["jugs"]), data.get("fewest")
            numbers = [*jugs, data["wanted"], *([] if fewest is None else [fewest])]
            right = all(type(n) is int and n > 0 for n in numbers) and 2 <= len(set(jugs)) == len(jugs) <= 3
            if right and max(jugs) <= LARGEST and data["source"] in SOURCES and isinstance(data["id"], str):
                return cls(data["id"], data["source"], jugs, data["wanted"], fewest)
        except (TypeError, KeyError, AttributeError):
            pass
        raise T2TError("this is no measuring", cause=f"it needs an id, a source of {', '.join(SOURCES)}, jugs and wanted")

    def without_label(self):
        return replace(self, fewest=None)


def start(source: str, jugs: Sequence[int]):
    return tuple(jug if source != "spring" and jug == max(jugs) else 0 for jug in jugs)


def do(source: str, jugs: Sequence[int], water: Sequence[int], step: Step):
    """The water after a step (("fill", "A"), ("empty", "B"), ("pour", "A", "B")), None where the source doesn't allow it."""
    places = [ord(name) - ord("A") for name in step[1:]]
    if any(not 0 <= place < len(jugs) for place in places):
        return None
    after = list(water)
    match step[0], places:
        case "fill", [jug] if source == "spring":
            after[jug] = jugs[jug]
        case "empty", [jug] if source != "tank":
            after[jug] = 0
        case "pour", [out, into] if out != into:
            litres = min(water[out], jugs[into] - water[into])
            after[out] -= litres
            after[into] += litres
        case _:
            return None
    return tuple(after)


@cache
def ways(source: str, jugs: tuple[int, ...], deep: int = 99):
    """The shortest way to every number of litres that can be had in some jug within `deep` steps."""
    names = "ABC"[: len(jugs)]
    steps = [(verb, name) for verb in ("fill", "empty") for name in names] + [("pour", *two) for two in permutations(names, 2)]
    seen = {start(source, jugs): ()}
    shortest: dict[int, tuple[Step, ...]] = {}
    queue = deque(seen)
    while queue:
        water = queue.popleft()
        for litres in water:
            shortest.setdefault(litres, seen[water])
        if len(seen[water]) < deep:
            for step in steps:
                after = do(source, jugs, water, step)
                if after is not None and after not in seen:
                    seen[after] = (*seen[water], step)
                    queue.append(after)
    return shortest


def written(way: Sequence[Step]):
    return "Steps: " + ", ".join(" ".join(step) for step in way)


def identity(measuring: Measuring):
    """The same whatever the jugs are called and in whatever unit they are measured: 3 and 5 for 4 is 6 and 10 for 8."""
    unit = gcd(*measuring.jugs, measuring.wanted)
    return f"{measuring.source} {sorted(jug // unit for jug in measuring.jugs)} {measuring.wanted // unit}".encode()


KNOBS = (
    Knob("part", "how much of the round comes from this source", 0, 1, "share"),
    Knob("litres", "the most that the largest jug holds", 6, LARGEST, "level", "whole", "l", harder=1, step=2),
    Knob("jugs", "how many jugs there are", 2, 3, "level", "whole", "jugs", harder=-1, step=1),
    Knob("steps", "the most steps that the shortest way takes", 2, 9, "level", "whole", "steps", harder=1, step=1),
)
COUNTS = {2: "two jugs", 3: "three jugs"}
_STEP = r"(?:(?:fill|empty) [A-C]|pour [A-C] [A-C])"
_ANSWER = re.compile(rf"Steps: ({_STEP}(?:, {_STEP}){{0,99}})")
_SETS = {"cellar": ("validation", 12), "spring": ("evaluation", 8), "barrel": ("evaluation", 8), "tank": ("evaluation", 8)}


@dataclass(frozen=True)
class Request:
    count: int
    exclude: frozenset[bytes] = frozenset()


@dataclass(frozen=True)
class Sources:
    values: dict

    def to_dict(self):
        return {source: dict(knobs) for source, knobs in self.values.items()}


class Decanting(Testbed[Measuring, Sources, Request]):
    name = "decanting"
    title = "Measuring water with jugs"
    guideline = "Ways of four steps or more teach planning; three jugs leave more ways to go."
    group = "source of water"
    sameness = "up to the names of the jugs and the unit"

    checks = ("readable", "allowed", "measured")
    metrics = (
        Metric("valid", "measured", "rate", lambda v, r: float(v.valid), "%"),
        Metric("optimal", "in the fewest steps", "rate", lambda v, r: None if v.optimal is None else float(v.optimal), "%"),
        Metric("detour", "steps more than needed", "mean", lambda v, r: v.gap, "steps", False),
        Metric("spilled", "water emptied out", "mean", lambda v, r: v.figures.get("spilled"), "l", False),
    )

    prompt_formats = ("plain", "terse")
    rubric = {"measured": 3.0, "short": 1.0, "spilled": -0.05}
    reward_range = (-1.0, 4.0)

    groups = SOURCES
    remedies = {"measured": {"steps": -1}, "allowed": {"litres": -1}}

    baselines = ("decanter", "decanter:,depth=9")

    def options(self):
        return (Option("sources", "Which sources of water to measure.", ",".join(SOURCES), _sources),)

    def knobs(self, request: Request):
        return KNOBS

    def cells(self, request: Request):
        return tuple(
            Cell(_cell(source, jugs, litres), source, {"litres": litres, "jugs": jugs, "steps": 9})
            for source in SOURCES
            for jugs in COUNTS
            for litres in (8, LARGEST)
        )

    def request(self, count: int, *, exclude: frozenset[bytes] | None = None):
        return Request(count, _protected() if exclude is None else exclude)

    def read_configuration(self, data: object):
        return Sources(read_values(data, SOURCES, KNOBS, self.group))

    def random_configuration(self, request: Request, seed: int):
        stream = Stream.of(seed, "configuration")
        parts = [0.1 + stream.uniform() for _ in SOURCES]
        return Sources(
            {
                source: {
                    "part": part / sum(parts),
                    "litres": 6 + stream.below(LARGEST - 5),
                    "jugs": 2 + stream.below(2),
                    "steps": 2 + stream.below(8),
                }
                for source, part in zip(SOURCES, parts, strict=True)
            }
        )

    def project(self, proposal, previous: Sources, request: Request):
        settling = Settling(previous.values, KNOBS, self.group)
        settling.settle(proposal)
        for source, knobs in settling.values.items():
            for knob in KNOBS[1:]:
                settling.put(source, knob.name, knobs[knob.name], round(knobs[knob.name]), "a whole number")
        return Projection(Sources(settling.values), settling.changes)

    def generate(self, configuration: Sources, request: Request, seed: int):
        made: list[Measuring] = []
        counts = apportion([knobs["part"] for knobs in configuration.values.values()], request.count)
        for (source, knobs), count in zip(configuration.values.items(), counts, strict=True):
            stream = Stream.of(seed, source)
            for _ in range(count):
                made.append(_drawn(f"m{len(made):05d}", source, knobs, stream, request.exclude))
        return made

    def read_instance(self, data):
        return Measuring.from_dict(data)

    def unlabelled(self, instance: Measuring):
        return instance.without_label()

    def identity(self, instance: Measuring):
        return identity(instance)

    def place(self, instance: Measuring):
        cell = _cell(instance.source, len(instance.jugs), max(instance.jugs))
        return Place(instance.source, COUNTS[len(instance.jugs)], cell, instance.source)

    def set_names(self, options):
        return tuple(options.get("sources", SOURCES))

    def load_set(self, name: str):
        return _set(name, 0)

    def protected_sets(self):
        return tuple(_SETS)

    def twin(self, name: str, seed: int):
        return _set(name, seed + 1)

    def prompt(self, instance: Measuring, format: str):
        jugs = ", ".join(f"{name} holds {jug} l" for name, jug in zip("ABC", instance.jugs, strict=False))
        if format == "terse":
            return f"{instance.source}; {jugs}; wanted: {instance.wanted} l. Steps:"
        may = {"spring": "fill X, empty X, pour X Y", "barrel": "empty X, pour X Y", "tank": "pour X Y"}[instance.source]
        begin = "All are empty." if instance.source == "spring" else "The largest is full, the others are empty."
        return (
            f"Jugs without marks: {jugs}. {begin} Pouring goes on until one is empty or the other full. Have exactly"
            f" {instance.wanted} l in one of them, in as few steps as you can. Steps are: {may}."
            " End with a line such as: Steps: pour A B, pour B A"
        )

    def verify(self, instance: Measuring, answer: str, format: str = ""):
        lines = _ANSWER.findall(answer)
        way = [tuple(step.split(" ")) for step in lines[-1].split(", ")] if lines else []
        water, spilled, faults = start(instance.source, instance.jugs), 0, {}
        for number, step in enumerate(way, 1):
            after = do(instance.source, instance.jugs, water, step)
            if after is None:
                faults["allowed"] = Fault(f"step {number}, {' '.join(step)}, is not possible", "step", {"step": number})
                break
            spilled += sum(water) - sum(after) if step[0] == "empty" else 0
            water = after
        measured = bool(way) and "allowed" not in faults and instance.wanted in water
        checks = {"readable": bool(way), "allowed": bool(way) and "allowed" not in faults, "measured": measured}
        if way and not measured and "allowed" not in faults:
            end = " ".join(map(str, water))
            faults["measured"] = Fault(f"the jugs end with {end} l, none with {instance.wanted}", where={"litres": list(water)})
        figures = {"spilled": float(spilled)} if way else {}
        if not measured:
            return Verdict(checks, False, False, None, faults=faults, figures=figures)
        gap = None if instance.fewest is None else len(way) - instance.fewest
        gaps = {} if gap is None else {"steps": gap}
        optimal = None if gap is None else gap == 0
        return Verdict(checks, True, optimal, len(way), {"steps": len(way)}, gap, gaps=gaps, figures=figures)

    def reward_terms(self, instance: Measuring, verdict: Verdict):
        spilled = min(20.0, verdict.figures.get("spilled", 0.0))
        return {"measured": float(verdict.valid), "short": float(verdict.optimal is True), "spilled": spilled}


def _cell(source: str, jugs: int, litres: float):
    return f"{source}, {COUNTS[jugs]}, {'small' if litres <= 8 else 'large'}"


def _sources(text: str):
    names = text.split(",")
    if not all(name in SOURCES for name in names) or len(set(names)) != len(names):
        raise T2TError(f"--sources wants some of {','.join(SOURCES)}, not {ascii(text)[:60]}")
    return names


def _drawn(name: str, source: str, knobs, stream: Stream, exclude: frozenset[bytes]):
    for _ in range(1000):
        litres = list(range(1, round(knobs["litres"]) + 1))
        stream.shuffle(litres)
        jugs = tuple(litres[: round(knobs["jugs"])])
        if max(jugs) < 4:
            continue
        reachable = [n for n, way in sorted(ways(source, tuple(sorted(jugs))).items()) if n and 1 <= len(way) <= knobs["steps"]]
        if reachable:
            litre = stream.choice(reachable)
            measuring = Measuring(name, source, jugs, litre, len(ways(source, tuple(sorted(jugs)))[litre]))
            if identity(measuring) not in exclude:
                return measuring
    raise T2TError("there is nothing left to draw", where=f"source {source}", cause="too much is excluded")


@cache
def _set(name: str, seed: int):
    if name not in _SETS:
        raise T2TError(f"there is no set called {ascii(name)[:60]}", cause=f"the sets are {', '.join(_SETS)}")
    kind, count = _SETS[name]
    sources = [name] if name in SOURCES else list(SOURCES)
    stream = Stream.of(seed, "set", name)
    made = []
    for n in range(count):
        knobs = {"litres": LARGEST, "jugs": 2 + n // len(sources) % 2, "steps": 9}
        made.append(_drawn(f"{name}_{n:03d}", sources[n % len(sources)], knobs, stream, frozenset()))
    data = b"".join(jsonlines.canonical(instance.to_dict()) for instance in made)
    return InstanceSet(name, "twin" if seed else kind, hashlib.sha256(data).hexdigest(), made)


@cache
def _protected():
    return frozenset(identity(instance) for name in _SETS for instance in _set(name, 0).instances)


class Decanter:
    def __init__(self, argument: str, settings):
        no_argument(argument, "policy decanter")
        self.depth = read_settings(settings, "policy decanter", {"depth": integer(1, 20)}).get("depth", 2)

    def respond(self, tasks, sampling):
        for position, task in enumerate(tasks):
            known = ways(task.instance.source, task.instance.jugs, self.depth)
            way = known.get(task.instance.wanted) or (("pour", "A", "B"),)
            yield position, Response(text=written(way))

    def describe(self):
        return {"deterministic": True, "batch_size": None, "depth": self.depth}


def register():
    if "decanting" not in installed().testbeds:
        installed().testbeds.add("decanting", lambda argument, settings: Decanting(), "measuring water with jugs")
        installed().policies.add("decanter", Decanter, "looks some steps ahead (depth=2)")
