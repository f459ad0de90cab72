"""The addresses of one model: which of them gets the next request, and which is left out for a while.

A server that dies or refuses must not take the evaluation with it while others serve the same model. So each address has a record
of its own: one that fails is left out for as long as `Patience` says, twice as long each time it fails again, and is then tried
with one request before it gets its share back. Where none is up there is nothing to choose: questions then wait and are asked
again just as with a single address. (Our choice throughout.)
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from t2t_core.text import one_line
from t2t_plugins.policies.endpoint.exchange import Patience
from t2t_plugins.policies.endpoint.kinds import PASSING
from t2t_plugins.policies.endpoint.reply import Judged

_SHOWN = 160  # characters of the last fault


@dataclass
class Figures:
    """What came of the requests to one address: `seconds` is the time of its answers, `left_out` how often it was left out."""

    requests: int = 0
    answers: int = 0
    seconds: float = 0.0
    left_out: int = 0
    last_fault: str = ""


class Address:
    """One address and its health. `failures` in a row; 0 if its last reply was one."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.figures = Figures()
        self.under_way = 0
        self.failures = 0
        self.refuses = False  # every request, as far as its last reply tells
        self._failed_at = self._back_at = float("-inf")
        self._on_trial = False

    def is_up(self, now: float) -> bool:
        """Whether it may get a request; after a failure one at a time, until one is answered."""
        return not self.failures or (now >= self._back_at and not self._on_trial)

    async def put(self, ask: Callable[[Address], Awaitable[Judged]], patience: Patience) -> Judged:
        """One request to this address; what comes of it is kept in mind."""
        begin, on_trial = time.monotonic(), bool(self.failures)
        self._on_trial |= on_trial
        self.under_way += 1
        self.figures.requests += 1
        try:
            judged = await ask(self)
        finally:
            self.under_way -= 1
            if on_trial:
                self._on_trial = False
        if _is_the_servers(judged):
            self._failed(judged, begin, patience)
        else:
            self.failures, self.refuses = 0, False
        if not judged.kind.fault:
            self.figures.answers += 1
            self.figures.seconds += time.monotonic() - begin
        return judged

    def _failed(self, judged: Judged, begin: float, patience: Patience) -> None:
        self.refuses = judged.kind.all != "no"
        self.figures.last_fault = str(judged.response.error)
        if begin < self._failed_at:  # of requests that were under way together, the first tells it all
            return
        self.failures += 1
        self.figures.left_out += 1
        self._failed_at = time.monotonic()
        self._back_at = self._failed_at + patience.pause(self.failures, judged.wait)


class Addresses:
    """All addresses of one model. Their health outlasts a batch of questions; connections do not."""

    def __init__(self, urls: Sequence[str], patience: Patience) -> None:
        self._all = [Address(url) for url in urls]
        self._patience = patience

    def __str__(self) -> str:
        return ", ".join(address.url for address in self._all)

    @property
    def urls(self) -> list[str]:
        """All addresses, up or down."""
        return [address.url for address in self._all]

    async def put(self, ask: Callable[[Address], Awaitable[Judged]]) -> Judged:
        """One request, put to an address that is up. A fault that cost nothing (no connection, an error in place of a reply)
        moves it to the next one at once; `elsewhere` of what is returned says whether another address is up now."""
        tried: list[Address] = []
        while True:
            address = self._next(tried)
            judged = await address.put(ask, self._patience)
            if not _is_the_servers(judged):
                return judged
            tried.append(address)
            elsewhere = self._up(tried)
            if judged.billed_unknown or judged.response.completion_tokens is not None or not elsewhere:
                return self._passing(replace(judged, elsewhere=bool(elsewhere)))

    def _up(self, tried: Sequence[Address]) -> list[Address]:
        now = time.monotonic()
        return [address for address in self._all if address not in tried and address.is_up(now)]

    def _next(self, tried: Sequence[Address]) -> Address:
        """Where the next request goes: an address that is due for its trial, or else the one with the fewest under way."""
        if len(self._all) == 1:
            return self._all[0]
        up = self._up(tried)
        due = [address for address in up if address.failures]
        return min(due or up or self._all, key=lambda a: (a.failures, a.under_way, a.figures.requests))

    def _passing(self, judged: Judged) -> Judged:
        """The fault, as one that may pass unless every address refuses: one that does so alone must not end the evaluation."""
        if judged.kind.again or all(address.refuses for address in self._all):
            return judged
        return replace(judged, kind=PASSING, response=replace(judged.response, lasting=False))

    def report(self) -> list[str]:
        """A line on each address since the last report; none if there is only one."""
        lines = [_line(address.url, address.figures) for address in self._all] if len(self._all) > 1 else []
        for address in self._all:
            address.figures = Figures()
        return lines


def _is_the_servers(judged: Judged) -> bool:
    """Whether a fault lies with the address rather than with the question."""
    return judged.kind.fault and (judged.kind.again or judged.kind.all != "no")


def _line(url: str, figures: Figures) -> str:
    said = f"{url}: {figures.requests:,} requests, {figures.answers:,} answers"
    if figures.answers:
        said += f", {figures.seconds / figures.answers:.3g} s each"
    if figures.left_out:
        times = "once" if figures.left_out == 1 else f"{figures.left_out} times"
        said += f"; left out {times}, the last time for: {one_line(figures.last_fault)[:_SHOWN]}"
    return said
