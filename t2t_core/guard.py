"""The guard around every plugin: whatever a stranger's code does, it is named, and the process stays fit to go on.

Each call of each plugin comes through `run`; `t2t_core.guarded` puts an object's methods behind it. An exception (SystemExit
too) becomes a `PluginFault` with the plugin's name; what it prints becomes a note, so that standard output stays ours; the
working directory is put back. Code that may take hours (a trainer) cannot be cut off after a while, but whoever is silent for
long is named, and Ctrl-C ends it. What must answer in time runs `within` a limit. With T2T_PLUGIN_TRACEBACK=1 exceptions pass
as they are, for whoever writes a plugin.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from t2t_core.errors import T2TError
from t2t_core.text import one_line

_HERE = __file__.removesuffix(".py")  # also that of `guarded`
NEXT = "what was finished is kept: once the plugin is mended the same command goes on"
PATIENCE = 60.0  # seconds of silence after which a plugin is named; each time twice as long
_LINES = 20  # printed by one call that are repeated as notes
_here = threading.local()  # the plugin whose code this thread runs, if any
_notes: list[Callable[[str], None]] = []  # where notes go, innermost last


class PluginFault(T2TError):
    """A plugin failed, or broke its contract."""


class TimedOut(PluginFault):
    """A plugin did not answer in the time it had."""


class Plugin(NamedTuple):
    """Whom to name: "context module mine", and the distribution it came with."""

    kind: str
    name: str
    distribution: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def fault(self, what: str, error: BaseException | None = None) -> PluginFault:
        import traceback  # costs a fiftieth of what `t2t --help` does

        trace = traceback.extract_tb(error.__traceback__) if error else []
        frames = [f for f in trace if not f.filename.startswith(_HERE)]
        where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else str(self)
        cause = f"a fault of the plugin, which {self.distribution or 'nobody'} brought"
        return PluginFault(f"the {self} {what}", where=where, cause=cause, next=NEXT)


class _Call:
    """One call under way; `heard` is when it began or last gave a sign of life, `named_after` the silence it was named for."""

    __slots__ = ("heard", "method", "named_after", "plugin", "thread")

    def __init__(self, plugin: Plugin, method: str) -> None:
        self.plugin, self.method, self.thread = plugin, method, threading.get_ident()
        self.heard, self.named_after = time.monotonic(), 0.0


_calls: dict[_Call, None] = {}  # in the order in which they began


def load(plugin: Plugin, target: Callable[[], Any]) -> Any:
    """What a plugin registered, imported by `target`."""
    return run(plugin, "its import", target)


def run(plugin: Plugin, method: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """One call: some twenty of them go into an answer of a bench, so that microseconds count."""
    before, place, stream = getattr(_here, "plugin", None), _working_directory(), sys.stdout
    router: Any = stream if type(stream) is _Router else _Router.over(stream)
    call = _Call(plugin, method)
    sys.stdout, _calls[call], _here.plugin = router, None, plugin
    try:
        return function(*arguments, **named)
    except T2TError as error:
        error.where = error.where or str(plugin)
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - also SystemExit: a stranger's code may raise anything
        if function in _STEPS and isinstance(error, StopIteration):
            raise
        raise failed(plugin, method, error) from error
    finally:
        _here.plugin = before
        del _calls[call]
        if router.lines or router.begun:
            router.settle(plugin)
        if router is not stream and sys.stdout is router and not _calls:
            sys.stdout = stream  # a call that hangs in a thread of its own keeps the router where it is
        if _working_directory() != place and place and not isinstance(threading.current_thread(), _Abandoned):
            os.chdir(place)
            note(f"{plugin} changed the working directory in {method}; it was put back")


def throw_into(iterator: Iterator[Any], error: BaseException) -> Any:
    """The iterator's next item, with an exception raised where it waits; the exception itself where it takes none."""
    if not isinstance(iterator, Generator):
        raise error
    return iterator.throw(error)


_STEPS = (next, throw_into)  # whose StopIteration is no fault


def failed(plugin: Plugin, method: str, error: BaseException) -> BaseException:
    """The exception of a plugin as its fault, or as it is for whoever writes the plugin."""
    if os.environ.get("T2T_PLUGIN_TRACEBACK"):
        return error
    try:
        text = one_line(error, 300)
    except Exception:  # noqa: BLE001 - even that is the stranger's code
        text = "(its text cannot be read)"
    return plugin.fault(f"failed in {method}: {type(error).__name__}: {text}".rstrip(": "), error)


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


# --- what plugins say


class _Router:
    """Standard output while plugins run: a plugin's lines become notes, everybody else's pass."""

    latest: ClassVar[_Router | None] = None

    def __init__(self, stream: Any) -> None:
        self.stream, self.lines, self.begun = stream, 0, ""

    @classmethod
    def over(cls, stream: Any) -> _Router:
        if cls.latest is None or cls.latest.stream is not stream:
            cls.latest = cls(stream)
        return cls.latest

    def write(self, text: str) -> int:
        plugin = getattr(_here, "plugin", None)
        if plugin is None:
            self.stream.write(text)
            return len(text)
        *lines, self.begun = (self.begun + text).split("\n")
        for line in lines:
            self._say(plugin, line)
        return len(text)

    def settle(self, plugin: Plugin) -> None:
        """A call is over, and so is the line it began."""
        begun, self.begun = self.begun, ""
        self._say(plugin, begun)
        self.lines = 0

    def _say(self, plugin: Plugin, line: str) -> None:
        self.lines += bool(line.strip())
        if line.strip() and self.lines <= _LINES:
            note(f"{plugin} printed: {one_line(line, 300)}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def ours() -> Iterator[None]:
    """Inside a plugin's call, for what it calls back: what is printed in this block is not the plugin's."""
    before, _here.plugin = getattr(_here, "plugin", None), None
    try:
        yield
    finally:
        _here.plugin = before


def note(text: str) -> None:
    """Tell whoever watches; without anybody, standard error."""
    with ours():
        if _notes:
            _notes[-1](text)
        else:
            sys.stderr.write(f"note: {''.join(c if c.isprintable() else '?' for c in text)}\n")


def alive() -> None:
    """The plugin under way gave a sign of life."""
    for call in list(_calls):
        call.heard, call.named_after = time.monotonic(), 0.0


# --- those that do not answer


@contextmanager
def watching(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, notes go to `tell`, and a plugin that is silent for PATIENCE seconds is named there."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(min(1.0, PATIENCE / 4)):
            for call in list(_calls)[-1:]:
                silent = time.monotonic() - call.heard
                if silent > max(PATIENCE, 2 * call.named_after):
                    call.named_after = silent
                    note(f"{call.plugin} has been silent in {call.method} for {silent:.0f} s (Ctrl-C stops it)")

    _notes.append(tell)
    watcher = threading.Thread(target=watch, name="plugin watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        _notes.remove(tell)


class _Abandoned(threading.Thread):
    """A thread that nobody waits for any more: where this process works by now is no business of its plugin's call."""


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """What `function` returns or raises, if it does in so many seconds; the thread that runs it dies with the process.

    Raises:
        TimedOut: it did not, and names the plugin that was at work.
    """
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((function(), None))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be handled
            outcome.append((None, error))

    thread = threading.Thread(target=work, name="plugin within a limit", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        thread.__class__ = _Abandoned
        at_work = [call for call in list(_calls) if call.thread == thread.ident]
        who, method = (at_work[-1].plugin, at_work[-1].method) if at_work else (Plugin("plugin", "at work"), "its code")
        raise TimedOut(f"the {who} did not answer within {seconds:g} s", where=f"{who}, {method}", cause="it hangs, or is slow")
    value, error = outcome[0]
    if error is not None:
        raise error
    return value
