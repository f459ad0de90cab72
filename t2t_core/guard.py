"""The guard around every plugin: whatever somebody else's code does, the guard names the plugin and keeps the process fit to
continue.

Each call of each plugin goes through `run`; `t2t_core.guarded` wraps an object's methods in it. An exception (SystemExit too)
becomes a `PluginFault` with the plugin's name. What the plugin prints becomes a note, so that standard output stays ours. The
working directory is restored. Code that may take hours (a trainer) cannot be cut off after a fixed time, but a plugin that is
silent for long is named, and Ctrl-C ends it. Calls that must answer in time run `within` a limit. With T2T_PLUGIN_TRACEBACK=1
exceptions pass through unchanged, for plugin authors.
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

_HERE = __file__.removesuffix(".py")  # also used by `guarded`
NEXT = "finished work is kept: once the plugin is fixed, the same command continues"
PATIENCE = 60.0  # seconds of silence after which a plugin is named; doubles each time
_LINES = 20  # how many lines that one call prints are repeated as notes
_here = threading.local()  # the plugin whose code this thread runs, if any
_notes: list[Callable[[str], None]] = []  # where notes go, innermost last


class PluginFault(T2TError):
    """A plugin failed, or broke its contract."""


class TimedOut(PluginFault):
    """A plugin did not answer within its time limit."""


class Plugin(NamedTuple):
    """How to name it: "context module mine", and the distribution it came with."""

    kind: str
    name: str
    distribution: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def fault(self, what: str, error: BaseException | None = None) -> PluginFault:
        """The error that names this plugin: `what` it did, and where in its code the exception came from."""
        import traceback  # costs a fiftieth of what `t2t --help` takes

        trace = traceback.extract_tb(error.__traceback__) if error else []
        frames = [f for f in trace if not f.filename.startswith(_HERE)]
        where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else str(self)
        cause = f"a fault of the plugin, which {self.distribution or 'nobody'} brought"
        return PluginFault(f"the {self} {what}", where=where, cause=cause, next=NEXT)


class _Call:
    """One call in progress. `heard` is when it began or last gave a sign of life, `named_after` the silence after which it was
    last named."""

    __slots__ = ("heard", "method", "named_after", "plugin", "thread")

    def __init__(self, plugin: Plugin, method: str) -> None:
        self.plugin, self.method, self.thread = plugin, method, threading.get_ident()
        self.heard, self.named_after = time.monotonic(), 0.0


_calls: dict[_Call, None] = {}  # in the order they began


def load(plugin: Plugin, target: Callable[[], Any]) -> Any:
    """What a plugin registered, imported by `target`."""
    return run(plugin, "its import", target)


def run(plugin: Plugin, method: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """One call. An answer of a bench takes some twenty of them, so microseconds count."""
    before, folder, stream = getattr(_here, "plugin", None), _working_directory(), sys.stdout
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
            sys.stdout = stream  # if a call hangs in a thread of its own, the router stays where it is
        if _working_directory() != folder and folder and not isinstance(threading.current_thread(), _Abandoned):
            os.chdir(folder)
            note(f"{plugin} changed the working directory in {method}; it was put back")


def throw_into(iterator: Iterator[Any], error: BaseException) -> Any:
    """The iterator's next item, with an exception raised at the point where it waits; the exception itself if it accepts
    none."""
    if not isinstance(iterator, Generator):
        raise error
    return iterator.throw(error)


_STEPS = (next, throw_into)  # a generator's StopIteration is no fault


def failed(plugin: Plugin, method: str, error: BaseException) -> BaseException:
    """The plugin's exception as a fault, or unchanged for plugin authors."""
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
    except OSError:  # the directory was removed
        return None


# --- what plugins say


class _Router:
    """Standard output while plugins run: a plugin's lines become notes, all other output passes through."""

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
    """Inside a plugin's call, for code that it calls back: what this block prints is not the plugin's."""
    before, _here.plugin = getattr(_here, "plugin", None), None
    try:
        yield
    finally:
        _here.plugin = before


def note(text: str) -> None:
    """Send the line to whoever listens; to standard error if nobody does."""
    with ours():
        if _notes:
            _notes[-1](text)
        else:
            sys.stderr.write(f"note: {''.join(c if c.isprintable() else '?' for c in text)}\n")


def alive() -> None:
    """The running plugin gave a sign of life."""
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
    """A thread that nobody waits for any more: where the process works by now no longer concerns its plugin's call."""


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """What `function` returns or raises, if it finishes within so many seconds. The thread that runs it dies with the process.

    Raises:
        TimedOut: it did not finish; names the plugin that was running.
    """
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((function(), None))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be handled
            outcome.append((None, error))

    thread = threading.Thread(target=work, name="plugin within a limit", daemon=True)
    thread.start()
    thread.join(min(seconds, threading.TIMEOUT_MAX))
    if not outcome:
        thread.__class__ = _Abandoned
        at_work = [call for call in list(_calls) if call.thread == thread.ident]
        who, method = (at_work[-1].plugin, at_work[-1].method) if at_work else (Plugin("plugin", "at work"), "its code")
        raise TimedOut(f"the {who} did not answer within {seconds:g} s", where=f"{who}, {method}", cause="it hangs, or is slow")
    value, error = outcome[0]
    if error is not None:
        raise error
    return value
