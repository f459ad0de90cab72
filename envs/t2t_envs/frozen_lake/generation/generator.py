"""Instances from a configuration: exactly the requested number and share of wait instances in every size, and in every stratum.

The distribution (our choice): within a stratum (size, hole count) the instances of each kind (wait, wait-free) are a uniform
sample without replacement of all instances of that kind, up to relabelling agents; see `sampling`. With
`repeats="forbid"` a canonical form (up to the 8 grid symmetries too) is taken once, when its first variant is drawn. If
sampling finds nothing new in a small stratum, the stratum is listed completely and the rest is drawn from the list. The
instances of a size are then shuffled, so that no kind and no hole count comes first.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from typing import Any

from t2t_core import seeding
from t2t_core.errors import T2TError
from t2t_core.hostile import shown

from .. import solver
from ..instance import OBJECTIVES, Instance, _integer
from .configuration import Configuration, cell_counts, hole_count
from .forms import TABLE_AGENTS, available, capacity, count_forms, counted_at_once
from .progress import DEFAULT_MAX_WORK, Tell, Watcher, too_slow
from .projection import project
from .reference_sampler import variant
from .request import Request, check_choice
from .sampling import draw_stratum, from_form, list_forms
from .strata import Draws, Quota, Stratum

LABELS = ("own", "both")


@dataclass(frozen=True)
class SizeReport:
    """One hole count of one size of a generated list: instances, how many of them require a wait and how many are repeats;
    candidates drawn, and those left out because a node limit ended the search."""

    size: int
    holes: int
    count: int
    wait: int
    repeats: int
    drawn: int
    undecided: int


@dataclass(frozen=True)
class Report:
    """How a request was filled, in total and per size and hole count. `undecided` candidates were left out, which favours easy
    instances."""

    sizes: tuple[SizeReport, ...]

    @property
    def drawn(self) -> int:
        """All candidates drawn."""
        return sum(s.drawn for s in self.sizes)

    @property
    def undecided(self) -> int:
        """All candidates left out because a node limit ended the search."""
        return sum(s.undecided for s in self.sizes)

    @property
    def repeats(self) -> int:
        """How many of the instances are repeats."""
        return sum(s.repeats for s in self.sizes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "drawn": self.drawn,
            "undecided": self.undecided,
            "repeats": self.repeats,
            "sizes": [asdict(size) for size in self.sizes],
        }


class Instances(list[Instance]):
    """Generated instances in id order, and the report on how they were made. `positions` are their places in the whole order,
    of which a shard holds only a part."""

    def __init__(self, instances: Iterable[Instance], report: Report, positions: Sequence[int]) -> None:
        super().__init__(instances)
        self.report, self.positions = report, positions


def generate(
    configuration: Configuration,
    count: int,
    num_agents: int = 2,
    seed: int = 0,
    objective: str = "makespan",
    exclude: Collection[bytes] = (),
    repeats: str = "allow",
    labels: str = "own",
    *,
    shard: tuple[int, int] = (1, 1),
    threads: int = 1,
    max_nodes: int = solver.DEFAULT_MAX_NODES,
    max_work: int = DEFAULT_MAX_WORK,
    progress: Tell | None = None,
) -> Instances:
    """Draw `count` labelled instances; the same arguments give the same instances on every machine.

    Args:
        configuration: ratios per size. Hole count = floor(ratio * N^2 + 1/2), capped at what the size can hold; counts per
            size by largest remainder; wait instances of a size = floor(wait ratio * count + 1/2). Over the joint cells of a
            size both are split by largest remainder too (`configuration.cell_counts`).
        num_agents, objective, exclude, repeats: see `Request`.
        seed: any integer >= 0.
        labels: "own" stores the optimum of the objective; "both" also that of the other one.
        shard: (i, n) draws only the i-th of n parts. Sorted by `positions`, the n parts together give the whole. A part has
            whole strata (size and hole count), because whether an instance is new depends on all earlier draws in its stratum.
        threads: worker threads; the result does not depend on it.
        max_nodes: the solver's limit per search; candidates it leaves undecided are left out and counted.
        max_work: the limit of the whole order, in steps of about ten nanoseconds. The order is given up when it reaches the
            limit, or earlier, once its progress shows that it would hardly be filled within the limit.
        progress: called about ten times a second with a `Progress`; what it raises ends the work.

    Returns:
        A list of Instance, by size and then id (`2agents_3x3_0236`), with a `.report`.

    Raises:
        T2TError: an invalid argument; a request that cannot be filled, with the reason and the nearest feasible request; or
            one that takes more than `max_work`, with the rate so far.
    """
    request = Request(count, num_agents, objective, frozenset(_iterable(exclude)), repeats)
    if not isinstance(configuration, Configuration):
        raise T2TError(f"configuration must be a Configuration, not {shown(configuration)}", next="Configuration.from_dict")
    check_choice("labels", labels, LABELS)
    seed = _integer(seed, "seed", 0, 2**128, "generate")
    threads = _integer(threads, "threads", 1, 1024, "generate")
    max_nodes = _integer(max_nodes, "max_nodes", 1, 2**62, "generate")
    number, parts = (_integer(value, "shard", 1, 100_000, "generate") for value in shard)
    strata = list(strata_of(configuration, request))
    drawn_here = sum(wait_free + wait for _, wait_free, wait in strata[number - 1 :: parts])
    watcher = Watcher(drawn_here, _integer(max_work, "max_work", 1, 2**62, "generate"), progress)
    jobs = [StratumJob(*stratum, request, labels == "both", seed, threads, max_nodes, watcher) for stratum in strata]
    try:
        for job in jobs:
            job.check()
        done = {job.stratum: job.run() for job in jobs[number - 1 :: parts]}
    except CannotFill as error:
        raise _refusal(error, configuration, request) from None
    report = Report(tuple(report for _, report in done.values()))
    slots = [x for size in dict.fromkeys(job.stratum.size for job in jobs) for x in _in_order(size, jobs, done)]
    positions = [position for position, instance in enumerate(slots) if instance is not None]
    return Instances((instance for instance in slots if instance is not None), report, positions)


def strata_of(configuration: Configuration, request: Request) -> Iterator[tuple[Stratum, int, int]]:
    """The strata of a request that get instances, each with how many of these do not, and do, require a wait. Joint cells
    with the same hole count form one stratum."""
    for size, count in configuration.counts(request.count).items():
        if count == 0:
            continue
        most, cells = capacity(size, request.num_agents), configuration[size].drawn()
        by_holes: dict[int, tuple[int, int]] = {}
        for cell, (instances, waits) in zip(cells, cell_counts(cells, count), strict=True):
            holes = min(hole_count(cell.hole_ratio, size), most)
            before = by_holes.get(holes, (0, 0))
            by_holes[holes] = before[0] + instances - waits, before[1] + waits
        for holes, (wait_free, wait) in sorted(by_holes.items()):
            if wait_free + wait:
                yield Stratum(size, holes, request.num_agents, request.objective), wait_free, wait


class CannotFill(Exception):
    """A stratum cannot give the requested instances; the text says why."""

    def __init__(self, stratum: Stratum, reason: str) -> None:
        super().__init__(reason)
        self.stratum = stratum


@dataclass
class StratumJob:
    """Fills one stratum of a request: `check` refuses a stratum known to be impossible, and `run` draws."""

    stratum: Stratum
    wait_free: int
    wait: int
    request: Request
    both: bool
    seed: int
    threads: int
    max_nodes: int
    watcher: Watcher

    def check(self) -> None:
        """Raise CannotFill at once if the stratum is known to be impossible."""
        if self.stratum.holes < 0:
            raise CannotFill(self.stratum, f"{self.stratum.num_agents} agents do not fit or cannot move on it")
        if self.wait and self.stratum.num_agents == 1:
            raise CannotFill(self.stratum, "one agent never has to wait: nobody is in its way")
        if not (self.stratum.enumerable and counted_at_once(self.stratum) and count_forms(self.stratum).exact):
            return
        there = available(self.stratum, self.request.exclude)
        for wait, need, have in ((False, self.wait_free, there.wait_free), (True, self.wait, there.wait)):
            if need > have and (have == 0 or self.request.repeats == "forbid"):
                raise CannotFill(self.stratum, f"it has {have} {_kind(wait)} forms that are not excluded; {need} are asked for")

    def run(self) -> tuple[list[Instance], SizeReport]:
        """Draw the instances, in no order. Raises CannotFill if the stratum has too few, T2TError if it takes too much work."""
        stratum, forbid = self.stratum, self.request.repeats == "forbid"
        quota = Quota(self.wait_free, self.wait, None, self.both, forbid, True, self.request.exclude)
        draws = self._draw(quota)
        instances = draws.instances
        waits = sum(bool(x.requires_wait) for x in instances)
        repeats = 0
        for wait, missing in ((False, self.wait_free - (len(instances) - waits)), (True, self.wait - waits)):
            if missing:
                rest, again = self._from_the_list(wait, missing, instances, draws)
                instances += rest
                repeats += again
        seeding.Stream(self._key("order")).shuffle(instances)
        self.watcher.filled(stratum.size, stratum.holes, len(instances), draws.drawn, draws.undecided, draws.work)
        report = SizeReport(stratum.size, stratum.holes, len(instances), self.wait, repeats, draws.drawn, draws.undecided)
        return instances, report

    def _draw(self, quota: Quota) -> Draws:
        """Draw as many as sampling finds. Raises T2TError if that takes too much work."""
        stratum, begun = self.stratum, time.monotonic()
        draws = draw_stratum(
            stratum,
            self._key("generate"),
            quota,
            max_nodes=self.max_nodes,
            threads=self.threads,
            max_work=self.watcher.left,
            progress=self.watcher.of_stratum(stratum.size, stratum.holes),
        )
        if draws.hopeless:
            waits = sum(bool(x.requires_wait) for x in draws.instances)
            kept, ordered = {True: waits, False: len(draws.instances) - waits}, {True: quota.wait, False: quota.wait_free}
            error = too_slow(kept, ordered, draws.drawn, draws.undecided, time.monotonic() - begun)
            error.where = f"{stratum}, {stratum.objective}"
            raise error
        return draws

    def _key(self, purpose: str) -> int:
        of = self.stratum
        return seeding.key(self.seed, purpose, OBJECTIVES.index(of.objective), of.num_agents, of.size, of.holes)

    def _from_the_list(self, wait: bool, missing: int, instances: list[Instance], draws: Draws) -> tuple[list[Instance], int]:
        """Draw `missing` more instances of a kind from the complete list of the stratum; also returns how many are repeats."""
        if not self.stratum.enumerable:
            raise CannotFill(
                self.stratum, f"{missing} {_kind(wait)} instances are missing after {draws.drawn} random candidates, the budget"
            )
        forms = [f for f in list_forms(self.stratum, wait, self.max_nodes).listed if f not in self.request.exclude]
        stream = seeding.Stream(self._key("list"))
        if self.request.repeats == "forbid":
            taken = {x.canonical() for x in instances}
            left = [from_form(form, self.stratum.objective) for form in forms if form not in taken]
            stream.shuffle(left)
            if len(left) < missing:
                raise CannotFill(self.stratum, f"it has {len(forms)} {_kind(wait)} forms, {missing - len(left)} too few")
            return self._labelled(left[:missing], wait), 0
        all_variants = [x for form in forms for x in variants(from_form(form, self.stratum.objective))]
        if not all_variants:
            raise CannotFill(self.stratum, f"it has no {_kind(wait)} instance that is not excluded")
        stream.shuffle(all_variants)
        taken_variants = {variant(x) for x in instances}
        new = [x for x in all_variants if variant(x) not in taken_variants][:missing]
        again = list(islice(cycle(all_variants), missing - len(new)))
        return self._labelled(new + again, wait), len(again)

    def _labelled(self, instances: list[Instance], wait: bool) -> list[Instance]:
        for objective in OBJECTIVES if self.both else (self.stratum.objective,):
            labels = solver.solve_many(instances, objective, self.max_nodes, threads=self.threads)
            for instance, label in zip(instances, labels, strict=True):
                instance.__dict__[f"optimal_{objective}"] = label.cost
        return [replace(x, requires_wait=wait) for x in instances]


def _in_order(
    size: int, jobs: Sequence[StratumJob], done: Mapping[Stratum, tuple[list[Instance], SizeReport]]
) -> list[Instance | None]:
    """The instances of a size with their ids, hole counts in no order; None if another shard has one."""
    strata: list[Sequence[Instance | None]] = []
    for job in jobs:
        if job.stratum.size == size:
            strata.append(done[job.stratum][0] if job.stratum in done else [None] * (job.wait_free + job.wait))
    instances = [instance for stratum in strata for instance in stratum]
    request, seed = jobs[0].request, jobs[0].seed
    if len(strata) > 1:
        key = seeding.key(seed, "order of cells", OBJECTIVES.index(request.objective), request.num_agents, size)
        seeding.Stream(key).shuffle(instances)
    prefix = f"{request.num_agents}agents_{size}x{size}_"
    for number, instance in enumerate(instances):
        if instance is not None:
            instance.__dict__["id"] = f"{prefix}{number:04d}"  # ours alone until it is returned
    return instances


def variants(instance: Instance) -> list[Instance]:
    """The different instances, up to relabelling agents, that the 8 grid symmetries turn this one into."""
    n, m = instance.size, instance.size - 1

    def turned(cells: Iterable[tuple[int, int]], turn: int) -> list[tuple[int, int]]:
        moved = [(c, r) if turn & 1 else (r, c) for r, c in cells]
        moved = [(m - r, c) if turn & 2 else (r, c) for r, c in moved]
        return [(r, m - c) if turn & 4 else (r, c) for r, c in moved]

    images: dict[object, Instance] = {}
    for turn in range(8):
        pairs = sorted(zip(turned(instance.starts, turn), turned(instance.goals, turn), strict=True))
        holes = turned(instance.holes, turn)
        image = Instance(n, holes, [s for s, _ in pairs], [g for _, g in pairs], instance.objective)
        images.setdefault((image.holes, image.starts, image.goals), image)
    return sorted(images.values(), key=lambda x: (x.holes, x.starts, x.goals))


def _iterable(value: Any) -> Iterable[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise T2TError(f"exclude must be a set of canonical forms, not {shown(value)}", next="{x.canonical() for x in instances}")
    return value


def _kind(wait: bool) -> str:
    return "wait" if wait else "wait-free"


def _refusal(error: CannotFill, configuration: Configuration, request: Request) -> T2TError:
    hints = []
    if request.num_agents in TABLE_AGENTS:
        changes = project(configuration.to_dict(), configuration, request).changes
        hints = [f"{change.knob} = {change.used:.6g} ({change.reason})" for change in changes if change.used is not None]
    of = error.stratum
    return T2TError(
        f"{of} cannot be filled: {error}",
        where=f"size {of.size}, objective {of.objective}, repeats {request.repeats}, {len(request.exclude)} forms excluded",
        cause="small grids, and few or many holes with few agents, have few different instances of a kind",
        next="the nearest feasible request: " + ("; ".join(hints) or "a larger size, fewer agents or instances, or another seed"),
    )
