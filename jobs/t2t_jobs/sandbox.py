"""The process that runs a job's code: `python -I -S sandbox.py CODE MEMORY SECONDS`. It uses only the standard library.

Before it loads the code, it gives up whatever it could do harm with. If it is root, it becomes a user that owns nothing. It then
enters new namespaces: no network, no process but its own, and an in-memory root folder of a few MiB that holds nothing but the
code. The kernel limits its processes, memory and time. The modules that the code may import are loaded beforehand, since
afterwards there is no file to load them from.

Requests come as lines of JSON on standard input, `{"call": name, "arguments": [...]}`. Each is answered on standard output by
`{"value": ...}` or `{"error": text}`. What the code prints is discarded.
"""

import base64  # noqa: F401
import bisect  # noqa: F401
import collections  # noqa: F401
import ctypes
import dataclasses  # noqa: F401
import functools  # noqa: F401
import heapq  # noqa: F401
import importlib.util
import itertools  # noqa: F401
import json
import math  # noqa: F401
import os
import random  # noqa: F401
import re  # noqa: F401
import resource
import statistics  # noqa: F401
import string  # noqa: F401
import sys
from typing import Any, TextIO

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
NO_NEW_PRIVILEGES, DEATH_SIGNAL = 38, 1
USER = 60_001  # a user id that nothing else uses (our choice)
DISK = b"size=4m,mode=0700"
PROCESSES = 1  # only itself: it may not start another


def confine(code: str, memory: int, seconds: int, closed: int) -> str:
    """Give up all privileges. Returns the code's path in the new root folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(code, "rb") as source:
        text = source.read()
    os.closerange(closed, 1 << 16)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    user, group = os.geteuid(), os.getegid()
    _must(libc.prctl(4, 1, 0, 0, 0), "prctl")  # PR_SET_DUMPABLE, needed to write its own uid_map
    _must(libc.unshare(NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC), "unshare")
    for name, map_ in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as kernel:
            kernel.write(map_)
    _must(libc.mount(b"none", b"/", None, PRIVATE, None), "mount")
    _must(libc.mount(b"none", b"/tmp", b"tmpfs", 2 | 4, DISK), "mount")  # without suid and devices
    os.chroot("/tmp")
    os.chdir("/")
    with open("/code.py", "wb") as copy:
        copy.write(text)
    child = os.fork()  # the first process of the new PID namespace: when it ends, so does everything in there
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _must(libc.prctl(DEATH_SIGNAL, 9, 0, 0, 0), "prctl")
    _must(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    _drop(libc)
    for kind, most in (
        (resource.RLIMIT_NPROC, PROCESSES),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    return "/code.py"


def _drop(libc: Any) -> None:
    """Drop all capabilities in the new namespace for good: a process that may mount and unshare could set up another one."""
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _must(libc.capset(header, data), "capset")


def _must(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def serve(path: str, requests: TextIO, replies: TextIO) -> None:
    """Load the code, and answer requests until they end."""
    spec = importlib.util.spec_from_file_location("job_code", path)
    try:
        if spec is None or spec.loader is None:
            raise ImportError(path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        failed = ""
    except BaseException as error:  # noqa: BLE001 - a stranger's code may raise anything
        failed = f"{type(error).__name__}: {error}"[:500]
    for line in requests:
        request = json.loads(line)
        try:
            if failed:
                raise RuntimeError(failed)
            reply = {"value": getattr(module, request["call"])(*request["arguments"])}
            text = json.dumps(reply, allow_nan=False)
        except BaseException as error:  # noqa: BLE001
            text = json.dumps({"error": f"{type(error).__name__}: {error}"[:500]})
        replies.write(text + "\n")
        replies.flush()


def main() -> None:
    requests, replies = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    code, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    try:
        path = confine(code, memory, seconds, max(requests.fileno(), replies.fileno()) + 1)
    except OSError as error:
        replies.write(json.dumps({"refused": str(error)}) + "\n")
        replies.flush()
        os._exit(3)
    replies.write(json.dumps({"ready": True}) + "\n")
    replies.flush()
    serve(path, requests, replies)
    os._exit(0)


if __name__ == "__main__":
    main()
