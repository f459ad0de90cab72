"""Conversations in a model's chat template.

A template is a program that comes with a checkpoint, and loops in loops of it need not end. So it runs in a process of its own
with limits on time and memory, forked from this one: loading what renders it again would take seconds.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import select
import signal
import struct
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.records import Message, Task, Tool
from t2t_core.store import folders
from t2t_core.text import one_line

SECONDS = 60  # for one batch of conversations; a template takes some fifty microseconds for each
BATCH = 256  # conversations that are sent at once
MEMORY = 2 << 30  # bytes that a template may take on top of what the process has
LONGEST = 64 << 20  # bytes of a batch's prompts
_NEXT = "use a checkpoint with another chat_template"

Conversation = tuple[Sequence[Message], Sequence[Tool]]


def chat_prompt(tokenizer: Any, messages: Sequence[Message], thinking: bool | None = None, tools: Sequence[Tool] = ()) -> str:
    """One conversation as in `chat_prompts`."""
    return chat_prompts(tokenizer, [(messages, tools)], thinking)[0]


def task_prompts(tokenizer: Any, tasks: Sequence[Task], thinking: bool | None = None) -> list[str]:
    """The tasks' conversations as in `chat_prompts`."""
    return chat_prompts(tokenizer, [(task.messages, task.tools) for task in tasks], thinking)


def chat_prompts(tokenizer: Any, conversations: Sequence[Conversation], thinking: bool | None = None) -> list[str]:
    """Each conversation in the model's chat template, up to where the model speaks; where the model has none, what was said
    line by line, one message as it stands.

    Raises:
        T2TError: the template fails, or does not come to an end.
    """
    if not tokenizer.chat_template:
        return ["\n".join(message.content for message in messages) for messages, _ in conversations]
    switch: dict[str, Any] = {} if thinking is None else {"enable_thinking": thinking}
    renderer = _renderer(tokenizer)
    prompts = []
    for first in range(0, len(conversations), BATCH):
        batch = [
            ([message.to_dict() for message in messages], {"tools": [tool.to_dict() for tool in tools]} if tools else {})
            for messages, tools in conversations[first : first + BATCH]
        ]
        prompts += renderer.render([(said, {**switch, **offered}) for said, offered in batch])
    return prompts


def _renderer(tokenizer: Any) -> Renderer:
    """The tokenizer's renderer, begun anew where its template was changed."""
    made: Renderer | None = getattr(tokenizer, "_t2t_renderer", None)
    if made is None or made.template != str(tokenizer.chat_template):
        made = tokenizer._t2t_renderer = Renderer(tokenizer)
    return made


class Renderer:
    """The process that renders one tokenizer's template. It begins with the first batch, and anew after a fork or a copy."""

    def __init__(self, tokenizer: Any) -> None:
        self.template = str(tokenizer.chat_template)
        self._apply = functools.partial(tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True)
        self._where = f"the chat template of {one_line(getattr(tokenizer, 'name_or_path', ''), 100) or 'the model'}"
        self._process: _Process | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_process": None}

    def render(self, batch: Sequence[tuple[Any, Any]]) -> list[str]:
        if self._process is None or self._process.owner != os.getpid():
            self._process = _Process(self._work)
        try:
            prompts, fault = self._process.ask(json.dumps(batch).encode(), SECONDS)
        except (OSError, EOFError, TimeoutError) as error:
            self._process.end()
            self._process = None
            late = isinstance(error, TimeoutError)
            raise T2TError(
                f"it did not come to an end within {SECONDS} s" if late else "it ended the process that ran it",
                where=self._where,
                cause="loops in loops, or text without end" if late else "it took more memory or time than it may",
                next=_NEXT,
            ) from None
        if fault:
            raise T2TError(f"it fails: {one_line(fault, 300)}", where=self._where, next=_NEXT)
        return list(prompts)

    def _work(self, request: bytes) -> tuple[list[str], str]:
        prompts, length = [], 0
        for said, switch in json.loads(request):
            try:
                prompts.append(str(self._apply(said, **switch)))
            except Exception as error:  # noqa: BLE001 - the template's own errors, and whatever it drives jinja into
                return [], f"{type(error).__name__}: {error}"
            length += len(prompts[-1])
            if length > LONGEST:
                return [], f"its prompts are longer than {LONGEST} characters"
        return prompts, ""


class _Process:
    """A fork of this process that answers requests until its pipe is closed."""

    def __init__(self, work: Callable[[bytes], Any]) -> None:
        self.owner = os.getpid()
        there, self._requests = os.pipe()
        self._replies, back = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads beside: the child calls nothing that they may hold
            self._child = os.fork()
        if self._child == 0:
            _serve(work, there, back)
        os.close(there)
        os.close(back)

    def ask(self, request: bytes, seconds: float) -> Any:
        _write(self._requests, request)
        return json.loads(_read(self._replies, time.monotonic() + seconds))

    def end(self) -> None:
        if self.owner != os.getpid():
            return
        for descriptor in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        with contextlib.suppress(OSError):
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)

    def __del__(self) -> None:
        self.end()


def _serve(work: Callable[[bytes], Any], requests: int, replies: int) -> None:
    """The child's whole life. It holds nothing of its parent's (locks, sockets), ends with it, and is ended where it takes more
    than it may."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        edges = sorted((2, requests, replies))
        for below, above in zip(edges, [*edges[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
            os.closerange(below + 1, above)
        with contextlib.suppress(T2TError, OSError, ValueError):  # where the system does not say, time alone is limited
            taken = int(folders.read_text(Path("/proc/self/statm")).split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, resource.RLIM_INFINITY))
        while True:
            request = _read(requests)
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(used.ru_utime + used.ru_stime) + SECONDS + 1
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)  # of whoever bounds the whole of us: nobody may raise it
            resource.setrlimit(resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
            _write(replies, json.dumps(work(request)).encode())
    except BaseException:  # noqa: BLE001 - the pipe is closed, or no memory is left
        os._exit(0)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(struct.pack("!Q", len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read(descriptor: int, until: float | None = None) -> bytes:
    (length,) = struct.unpack("!Q", _exactly(descriptor, 8, until))
    return _exactly(descriptor, length, until)


def _exactly(descriptor: int, length: int, until: float | None) -> bytes:
    data = bytearray()
    while len(data) < length:
        if until is not None and not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
            raise TimeoutError
        piece = os.read(descriptor, min(length - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
