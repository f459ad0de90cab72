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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, cast

from t2t_core.errors import T2TError
from t2t_core.records import Response, Task
from t2t_plugins.policies.reply import Failure

_JOIN_SECONDS = 10.0


@dataclass(frozen=True)
class Patience:
    """How requests are repeated. (Our choice throughout.)

    concurrency: requests under way at once. attempts: requests per question. backoff: seconds before the second, doubled
    each time, with jitter. max_wait: the longest wait in seconds, also where the server asks for more. give_up: so many
    questions failed in a row end the evaluation (0: never).
    """

    concurrency: int = 8
    attempts: int = 6
    backoff: float = 1.0
    max_wait: float = 120.0
    give_up: int = 20

    def pause(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after the attempt-th request (from 1); `asked` is what the server wants."""
        own = self.backoff * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)
        wait = max(own, asked + random.uniform(0, self.backoff)) if asked is not None else own
        return min(self.max_wait, wait)


class Exchange:
    """One batch. `connect` makes the client, `ask` puts one question to it and raises Failure where no answer comes."""

    def __init__(
        self,
        tasks: Sequence[Task],
        connect: Callable[[], AbstractAsyncContextManager[Any]],
        ask: Callable[[Any, Task], Awaitable[Response]],
        patience: Patience,
        where: str,
    ) -> None:
        self._tasks, self._connect, self._ask_once, self._patience, self._where = tasks, connect, ask, patience, where
        self._results: queue.SimpleQueue[tuple[int, Response] | None] = queue.SimpleQueue()
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._answered, self._failed_in_a_row = 0, 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def answers(self) -> Iterator[tuple[int, Response]]:
        """(position, response) as they come. Ctrl-C while it waits still hands over what has arrived."""
        thread = threading.Thread(target=self._run, name="t2t-endpoint", daemon=True)
        thread.start()
        try:
            while (item := self._results.get()) is not None:
                yield item
                self._in_loop(self._slots.release)
            if self._error:
                raise self._error
        except KeyboardInterrupt:
            self._stop(thread)
            with contextlib.suppress(queue.Empty):
                while item := self._results.get_nowait():
                    yield item
            raise
        finally:
            self._stop(thread)

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
            self._results.put(None)

    async def _main(self) -> None:
        workers = min(self._patience.concurrency, len(self._tasks))
        self._main_task = cast("asyncio.Task[None]", asyncio.current_task())
        # Answers not yet taken count too: a slow reader slows the requests down, and Ctrl-C loses few.
        self._slots = asyncio.Semaphore(2 * workers)
        self._loop = asyncio.get_running_loop()
        self._started.set()
        positions = iter(range(len(self._tasks)))
        async with self._connect() as client, asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(client, positions))

    async def _work(self, client: Any, positions: Iterator[int]) -> None:
        for position in positions:
            await self._slots.acquire()
            response = await self._ask(client, self._tasks[position])
            self._results.put((position, response))
            if response.error and self._patience.give_up and self._failed_in_a_row >= self._patience.give_up:
                raise self._stopped(f"{self._failed_in_a_row} questions in a row failed", response.error)

    async def _ask(self, client: Any, task: Task) -> Response:
        """The answer, or the last failure as a response with `error`."""
        begin = time.monotonic()
        for attempt in range(1, self._patience.attempts + 1):
            try:
                response = await self._ask_once(client, task)
            except Failure as failure:
                if failure.kind == "stop" or (failure.kind == "doubtful" and not self._answered):
                    raise self._stopped("the server refuses every request", failure.what) from None
                what = failure.what + (f" (request {attempt} of {self._patience.attempts})" if attempt > 1 else "")
                if failure.kind != "retry":
                    break
                if attempt < self._patience.attempts:
                    await asyncio.sleep(self._patience.pause(attempt, failure.wait))
            else:
                self._answered, self._failed_in_a_row = self._answered + 1, 0
                return replace(response, seconds=time.monotonic() - begin)
        self._failed_in_a_row += 1
        return Response("", finish_reason="error", error=what, seconds=time.monotonic() - begin)

    def _stopped(self, what: str, cause: str) -> T2TError:
        return T2TError(
            what,
            where=self._where,
            cause=cause,
            next="mend it and give the same command again: it asks only for what is missing",
        )
