"""Many requests at once: a fixed number of workers in an event loop of their own thread, answers handed over as they come.

The thread of the caller only waits on a queue. So Ctrl-C takes effect at once, the generator can be closed at any time, and
it does not matter whether the caller has an event loop itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import refuse_unpriced
from t2t_core.records import Response, Task
from t2t_plugins.policies.endpoint.budget import Budget
from t2t_plugins.policies.endpoint.reply import Judged

_JOIN_SECONDS = 10.0
_AHEAD_SECONDS = 0.02  # for which the first question is asked alone
_GATHER_SECONDS = 0.002  # for which an answer waits for others: handing some over costs a change of threads, however many


@dataclass(frozen=True)
class Patience:
    """How requests are repeated. (Our choice throughout.)

    concurrency: requests under way at once, over all addresses. attempts: requests per question. backoff: seconds before the
    second, doubled each time, with jitter. max_wait: the longest wait in seconds, also where the server asks for more. Of several
    addresses, one that fails is left out for as long. give_up: so many questions failed in a row end the evaluation (0: never).
    Questions that are at fault themselves (too long, say) do not count once another one has been answered.
    """

    concurrency: int = 8
    attempts: int = 6
    backoff: float = 1.0
    max_wait: float = 120.0
    give_up: int = 20

    def pause(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after the attempt-th request (from 1); `asked` is what the server wants."""
        own = self.backoff * 2.0 ** min(attempt - 1, 64) * random.uniform(0.5, 1.0)
        wait = max(own, asked + random.uniform(0, self.backoff)) if asked is not None else own
        return min(self.max_wait, wait)


class Exchange:
    """One batch, which may grow: an answer that is taken may bring further tasks, the next turns of conversations.

    `connect` makes the client, `ask` puts one question to it; `most` is what a question can cost (USD, None if no
    price is known), and `budget` what all of them may.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        connect: Callable[[], AbstractAsyncContextManager[Any]],
        ask: Callable[[Any, Task], Awaitable[Judged]],
        patience: Patience,
        where: str,
        budget: float | None = None,
        most: Callable[[Task], float | None] = lambda task: None,
    ) -> None:
        self._tasks, self._connect, self._ask_once, self._patience, self._where = tasks, connect, ask, patience, where
        self._most, self._usd = most, budget
        self._ready: list[tuple[int, Response]] = []
        self._results: queue.SimpleQueue[list[tuple[int, Response]] | None] = queue.SimpleQueue()
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._answered, self._failed_in_a_row = 0, 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def answers(self) -> Iterator[tuple[int, Response]]:
        """(position, response) as they come. Ctrl-C while it waits still hands over what has arrived."""
        thread = threading.Thread(target=self._run, name="t2t-endpoint", daemon=True)
        thread.start()
        arrived: deque[tuple[int, Response]] = deque()
        try:
            while (batch := self._results.get()) is not None:
                arrived.extend(batch)
                while arrived:
                    yield arrived.popleft()
                self._in_loop(partial(self._release, len(batch)))
            if self._error:
                raise self._error
        except KeyboardInterrupt:
            self._stop(thread)
            with contextlib.suppress(queue.Empty):
                while True:
                    arrived.extend(self._results.get_nowait() or ())
            while arrived:
                yield arrived.popleft()
            raise
        finally:
            self._stop(thread)

    def _deliver(self, position: int, response: Response) -> None:
        """Hand an answer to the caller's thread, with those that come at about the same time."""
        if not self._ready:
            asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._hand_over)
        self._ready.append((position, response))

    def _hand_over(self) -> None:
        if self._ready:
            self._results.put(self._ready)
            self._ready = []

    def _release(self, count: int) -> None:
        """So many answers have been taken, and what follows from them has been added to the tasks."""
        self._untaken -= count
        for _ in range(count):
            self._slots.release()
        self._taken.set()
        self._taken.clear()

    def _in_loop(self, call: Callable[[], object]) -> None:
        if self._loop:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(call)

    def _stop(self, thread: threading.Thread) -> None:
        self._started.wait(_JOIN_SECONDS)
        if thread.is_alive():
            self._in_loop(self._main_task.cancel)
            thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass  # stopped by the caller
        except BaseExceptionGroup as group:
            self._error = group.exceptions[0]
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread, which raises it
            self._error = error
        finally:
            self._started.set()
            self._hand_over()
            self._results.put(None)

    async def _main(self) -> None:
        workers = self._patience.concurrency
        self._given = self._untaken = 0
        self._taken = asyncio.Event()
        self._main_task = cast("asyncio.Task[None]", asyncio.current_task())
        # Answers not yet taken count too: a slow reader slows the requests down, and Ctrl-C loses few.
        self._slots = asyncio.Semaphore(2 * workers)
        self._heard = asyncio.Event()
        self._budget = Budget(self._usd)
        self._loop = asyncio.get_running_loop()
        self._started.set()
        async with self._connect() as client, asyncio.TaskGroup() as group:
            first = group.create_task(self._work(client))
            with contextlib.suppress(TimeoutError):  # what is wrong for all of them is heard of once, not `concurrency` times
                await asyncio.wait_for(self._heard.wait(), _AHEAD_SECONDS)
            for _ in range(0 if first.done() else workers - 1):
                group.create_task(self._work(client))

    async def _next(self) -> int | None:
        """The next task's position; None if there are no more, and none can come of an answer that is still on its way."""
        while self._given >= len(self._tasks):
            if not self._untaken:
                return None
            await self._taken.wait()
        self._given += 1
        self._untaken += 1
        return self._given - 1

    async def _work(self, client: Any) -> None:
        while (position := await self._next()) is not None:
            await self._slots.acquire()
            response = await self._ask(client, position)
            self._deliver(position, response)
            if self._usd is not None:
                self._refuse_unpriced(response)
            if response.error and self._patience.give_up and self._failed_in_a_row >= self._patience.give_up:
                raise self._stopped(f"{self._failed_in_a_row} questions in a row failed", response.error)

    def _refuse_unpriced(self, response: Response) -> None:
        try:
            refuse_unpriced(response)
        except T2TError:
            self._budget.close()  # before the next one is asked
            raise

    async def _ask(self, client: Any, position: int) -> Response:
        """The answer, or the last failure as a response with `error`; with the replies before it that may have cost something."""
        begin = time.monotonic()
        task, earlier = self._tasks[position], list[Response]()
        try:
            for attempt in range(1, self._patience.attempts + 1):
                judged = await self._paid(client, task)
                self._heard.set()
                kind = judged.kind
                if not kind.fault:
                    self._answered, self._failed_in_a_row = self._answered + 1, 0
                    break
                if kind.all == "yes" or (kind.all != "no" and not self._answered):
                    raise self._stopped("the server refuses every request", str(judged.response.error), judged.remedy)
                if not kind.again or attempt == self._patience.attempts:
                    self._failed_in_a_row += kind.again or not self._answered
                    break
                if _billed(judged.response):
                    earlier.append(self._worded(judged, attempt))
                if not judged.elsewhere:
                    await asyncio.sleep(self._patience.pause(attempt, judged.wait))
        except BaseException:
            if earlier:  # what was paid for is on record, whatever ends the evaluation
                self._deliver(position, replace(earlier[-1], earlier=tuple(earlier[:-1])))
            raise
        response = self._worded(judged, attempt) if kind.fault else judged.response
        return replace(response, seconds=time.monotonic() - begin, earlier=tuple(earlier))

    def _worded(self, judged: Judged, attempt: int) -> Response:
        """The response of a fault, which says what to do about it and how often it came."""
        said = f"{judged.response.error}; try {judged.remedy}" if judged.remedy else str(judged.response.error)
        said += f" (request {attempt} of {self._patience.attempts})" if attempt > 1 else ""
        return replace(judged.response, error=said)

    async def _paid(self, client: Any, task: Task) -> Judged:
        """One request, once the budget has room for it."""
        reserve = await self._budget.take(self._most(task) if self._usd is not None else None)
        try:
            judged = await self._ask_once(client, task)
        except BaseException:
            self._budget.settle(reserve, None, True)
            raise
        self._budget.settle(reserve, judged.response.cost_usd, judged.billed_unknown)
        return judged

    def _stopped(self, what: str, cause: str, remedy: str = "") -> T2TError:
        again = "give the same command again: it asks only for what is missing"
        return T2TError(what, where=self._where, cause=cause, next=f"{f'write {remedy}' if remedy else 'mend it'} and {again}")


def _billed(response: Response) -> bool:
    return response.completion_tokens is not None or response.cost_usd is not None
