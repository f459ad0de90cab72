"""Costs and hard budgets: `costs.jsonl`, append-only, with a line for each call of an agent, each job and each episode.

Once money is spent it is too late to refuse, so budgets are enforced beforehand: `reserve` sets aside the most that something may
cost, and refuses if that exceeds a budget; `charge` then replaces the reservation with the actual cost. Each id is reserved and
charged once, however often the calls are repeated after a kill. A reservation without a charge keeps counting in full, since
nobody knows what it really cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from t2t_core.errors import BudgetSpent, T2TError
from t2t_core.store import jsonlines, locks, schema
from t2t_core.store.paths import SafePath
from t2t_core.store.schema import Count

FILE = "costs.jsonl"
Amount = Annotated[float, Meta(ge=0)]
Kind = Literal["call", "job", "episode"]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What something cost, or may cost at most."""

    tokens_in: Count = 0
    tokens_out: Count = 0
    usd: Amount = 0.0
    cpu_seconds: Amount = 0.0
    gpu_seconds: Amount = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """A budget; None means no limit. `tokens` counts both directions."""

    tokens: Count | None = None
    usd: Amount | None = None
    cpu_seconds: Amount | None = None
    gpu_seconds: Amount | None = None

    def passed(self, cost: Cost) -> str | None:
        """The first limit that this cost exceeds, in words; None if it exceeds none."""
        taken = {"tokens": cost.tokens_in + cost.tokens_out, "usd": cost.usd}
        taken |= {"cpu_seconds": cost.cpu_seconds, "gpu_seconds": cost.gpu_seconds}
        for name, amount in taken.items():
            limit = getattr(self, name)
            if limit is not None and amount > limit:
                return f"{amount:g} {name} of {limit:g}"
        return None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line: what `id` cost if `settled`, else what it may cost at most."""

    id: str
    kind: Kind
    episode: str
    job: str | None
    settled: bool
    cost: Cost


class Ledger:
    """The costs in one file. Several processes may use it: each line is written under the file's lock.

    Args:
        path: the file, or the folder that holds `costs.jsonl`.
        per_episode, overall: the budgets.
    """

    def __init__(self, path: Path | SafePath, per_episode: Limits | None = None, overall: Limits | None = None) -> None:
        given = SafePath.absolute(path)
        self.path = given if given.name.endswith(".jsonl") else given / FILE
        self._per_episode, self._overall = per_episode or Limits(), overall or Limits()

    def reserve(self, id: str, kind: Kind, episode: str, at_most: Cost, job: str | None = None) -> None:
        """Set aside what something may cost at most. If that exceeds a budget, raises BudgetSpent and writes nothing."""
        with _Writing(self.path) as writing:
            if id in writing.entries:
                return
            for limits, total, what in (
                (self._per_episode, self._total(writing.entries.values(), episode), f"episode {episode}"),
                (self._overall, self._total(writing.entries.values()), "everything"),
            ):
                passed = limits.passed(total + at_most)
                if passed:
                    raise BudgetSpent(f"the budget of {what} does not cover {id}: it would come to {passed}")
            writing.append(Entry(id=id, kind=kind, episode=episode, job=job, settled=False, cost=at_most))

    def charge(self, id: str, kind: Kind, episode: str, cost: Cost, job: str | None = None) -> bool:
        """Record what something cost, in place of its reservation. Returns False if it was charged before, and raises T2TError if
        that was for another cost."""
        with _Writing(self.path) as writing:
            earlier = writing.entries.get(id)
            if earlier is not None and earlier.settled:
                if earlier.cost != cost:
                    raise T2TError(f"{id} was charged another cost before", where=str(self.path), cause="two things share one id")
                return False
            writing.append(Entry(id=id, kind=kind, episode=episode, job=job, settled=True, cost=cost))
            return True

    def entries(self) -> dict[str, Entry]:
        """The entries by id; a charge replaces its reservation."""
        return _read(self.path)[0]

    def total(self, episode: str | None = None, kind: Kind | None = None) -> Cost:
        """The total cost of everything, or of one episode or kind; open reservations count in full."""
        return self._total((e for e in self.entries().values() if kind in (None, e.kind)), episode)

    def left(self, episode: str) -> str | None:
        """The limit that is exceeded, so that nothing more may begin in this episode; None if there is none."""
        entries = list(self.entries().values())
        return self._per_episode.passed(self._total(entries, episode)) or self._overall.passed(self._total(entries))

    @staticmethod
    def _total(entries: Iterable[Entry], episode: str | None = None) -> Cost:
        return sum((e.cost for e in entries if episode in (None, e.episode)), Cost())

    def reconcile(self, logs: Mapping[str, Cost]) -> list[str]:
        """Where the ledger differs from the logs, in words. Empty if every id in the logs was charged exactly what it cost, and
        no other id has an entry."""
        entries, faults = self.entries(), []
        for id, cost in logs.items():
            entry = entries.get(id)
            if entry is None or not entry.settled:
                faults.append(f"{id} took {_words(cost)}, but was {'only reserved' if entry else 'never charged'}")
            elif entry.cost != cost:
                faults.append(f"{id} took {_words(cost)}, but was charged {_words(entry.cost)}")
        unknown = [entry for id, entry in entries.items() if id not in logs]
        faults += [f"{entry.id} was {'charged' if entry.settled else 'reserved'}, but no log has it" for entry in unknown]
        return faults


def _words(cost: Cost) -> str:
    named = [f"{getattr(cost, f.name):g} {f.name}" for f in fields(cost) if getattr(cost, f.name)]
    return ", ".join(named) or "nothing"


def _read(path: SafePath) -> tuple[dict[str, Entry], list[jsonlines.Torn]]:
    torn: list[jsonlines.Torn] = []
    entries: dict[str, Entry] = {}
    if path.exists():
        for line in jsonlines.read(path, torn):
            entry = schema.check(line.value, Entry, f"{path}, line {line.number}")
            entries[entry.id] = entry
    return entries, torn


class _Writing:
    """The file, opened under its lock to append lines."""

    def __init__(self, path: SafePath) -> None:
        self._path = path

    def __enter__(self) -> _Writing:
        self._lock = locks.waiting(self._path.parent / f".{self._path.name}.lock")
        self._lock.__enter__()
        try:
            self.entries, torn = _read(self._path)
            self._appender = jsonlines.Appender(self._path, torn[0] if torn else None)
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def append(self, entry: Entry) -> None:
        plain: dict[str, Any] = schema.plain(entry)
        self._appender.append(plain)

    def __exit__(self, *_: object) -> None:
        try:
            self._appender.close()
        finally:
            self._lock.__exit__(None, None, None)
