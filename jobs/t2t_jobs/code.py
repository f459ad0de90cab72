"""Code that a job brings, if the user allowed the file by name: `reward.py` and `environment.py`.

    reward.py        def reward(terms, verdict, instance) -> float      another term of the training's reward, "code", weight 1
    environment.py   def generate(count, seed) -> [instance, ...]       the instances of a round, as the world's JSON

Both change only what training sees; neither can influence an evaluation. The code runs in a separate process
(`t2t_jobs.sandbox`), as another user if possible, in namespaces without network, with an empty root folder and limits on memory,
processes and time. If the system offers no such namespaces, the code is refused.
"""

from __future__ import annotations

import math
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.run.sets import protected
from t2t_core.store import jsonlines
from t2t_core.store.paths import SafePath

REWARD, ENVIRONMENT = "reward.py", "environment.py"
TERM = "code"  # the reward term's name
MEMORY = 512 << 20  # bytes
SECONDS = 20  # CPU seconds for the whole process
PATIENCE = 10.0  # seconds for one answer
START = 60.0  # seconds to start, since the machine may be busy
GRACE = 5.0  # seconds to end by itself
LONGEST = 8 << 20  # bytes of one answer
BOUND = 10.0  # largest absolute value of a reward
MAX_SEED = 1 << 51  # the code may count on from its seed, and JSON's numbers stay exact below 2^53
NAME = "with-code"


class CodeFault(T2TError):
    """A job's code failed, or exceeded a limit."""


class Refused(T2TError):
    """This system has no sandbox for a stranger's code."""


class Confined:
    """One code file in its own process.

    Raises:
        Refused: there are no namespaces to run it in.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        script = Path(__file__).with_name("sandbox.py")
        command = [sys.executable, "-I", "-S", str(script), str(path), str(MEMORY), str(SECONDS)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, start_new_session=True
        )
        self._rest = b""
        ready = self._read("its start", START)
        if "ready" not in ready:
            self.close()
            raise Refused(
                f"{self.name} may not run: this system offers no namespaces for it",
                where=self.name,
                cause=str(ready.get("refused", ready))[:300],
                next="run workers where unprivileged user namespaces are allowed, or leave the code out",
            )

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of the code, and return what it returns. Raises CodeFault if it fails or exceeds a limit."""
        process = self._process
        try:
            if process.stdin is None:
                raise OSError
            process.stdin.write(jsonlines.dumps({"call": function, "arguments": list(arguments)}).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise self._died(function) from None
        reply = self._read(function, PATIENCE)
        if "error" in reply:
            raise CodeFault(f"{function} failed: {str(reply['error'])[:300]}", where=self.name, cause="a fault of the job's code")
        return reply.get("value")

    def _read(self, function: str, patience: float) -> dict[str, Any]:
        until, stream = time.monotonic() + patience, self._process.stdout
        if stream is None:
            raise self._died(function)
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or len(self._rest) > LONGEST:
                self.close()
                why = "its answer is too long" if left > 0 else f"it took more than {patience:g} seconds"
                raise CodeFault(f"{function} was ended: {why}", where=self.name)
            if select.select([stream], [], [], left)[0]:
                piece = stream.raw.read(1 << 16) if hasattr(stream, "raw") else b""
                if not piece:
                    raise self._died(function)
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            reply = jsonlines.loads(line)
        except jsonlines.Unreadable as error:
            raise CodeFault(f"{function} answered no JSON: {error}", where=self.name) from None
        return reply if isinstance(reply, dict) else {}

    def _died(self, function: str) -> CodeFault:
        self.close()
        cause = f"it may take {SECONDS} CPU seconds and {MEMORY >> 20} MiB, and start no process"
        return CodeFault(f"the process of {self.name} died in {function}", where=self.name, cause=cause)

    def end(self) -> None:
        """Let the process end by itself, so that its CPU time counts as the job's; kill it if it does not."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.close()

    def close(self) -> None:
        """Kill the process and close its pipes."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class WithCode:
    """The world that a job's training sees: the family's world with the code's reward term and instances."""

    def __init__(self, inside: AnyTestbed, codes: Mapping[str, Confined], kept: Sequence[Any] = ()) -> None:
        self._inside, self._codes, self._kept = inside, codes, kept
        self.rubric: Mapping[str, float] = {**inside.rubric, **({TERM: 1.0} if REWARD in codes else {})}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)

    def reward_terms(self, instance: Any, verdict: Any) -> Mapping[str, float]:
        """The world's own terms, and the term `code` that the job's code computes from them and the verdict."""
        terms = dict(self._inside.reward_terms(instance, verdict))
        code = self._codes.get(REWARD)
        if code is None:
            return terms
        facts = {
            "valid": verdict.valid, "optimal": verdict.optimal, "cost": verdict.cost, "gap": verdict.gap,
            "checks": dict(verdict.checks), "figures": dict(verdict.figures),
        }  # fmt: skip
        value = code.call("reward", terms, facts, instance.to_dict())
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or abs(value) > BOUND:
            what = f"reward returned {ascii(value)[:60]}, which is no number in {-BOUND:g}..{BOUND:g}"
            raise CodeFault(what, where=REWARD, cause="a fault of the job's code")
        return {**terms, TERM: float(value)}

    def generate(self, configuration: Any, request: Any, seed: int) -> Sequence[Any]:
        """The world's instances, or those that the job's code makes. Raises CodeFault if an evaluation asks one of the latter."""
        code = self._codes.get(ENVIRONMENT)
        if code is None:
            return self._inside.generate(configuration, request, seed)
        count = request.count
        made = code.call("generate", count, seed % MAX_SEED)
        if not isinstance(made, list) or len(made) != count or not all(isinstance(entry, dict) for entry in made):
            what = f"generate is to return a list of {count} instances"
            raise CodeFault(what, where=ENVIRONMENT, cause="a fault of the job's code")
        instances = [self._inside.read_instance(entry) for entry in made]
        kept = protected(self._inside, self._kept)
        shared = sum(self._inside.identity(instance) in kept for instance in instances)
        if shared:
            what = f"{shared} of {count} instances that the code makes are asked in an evaluation"
            raise CodeFault(what, where=ENVIRONMENT, cause="nothing that measures may be trained on")
        return instances


@contextmanager
def registered(world: str, folder: SafePath, names: Sequence[str], kept: Sequence[Any]) -> Iterator[str]:
    """Register the world with the folder's code as a testbed of this process, for as long as the block runs. Yields its name."""
    inside = installed().testbeds.make(world)
    codes = {name: Confined((folder / name).checked_path()) for name in names}
    installed().testbeds.entries.pop(NAME, None)
    installed().testbeds.add(NAME, lambda argument, settings: WithCode(inside, codes, kept), "a job's own")
    try:
        yield NAME
    finally:
        for code in codes.values():
            code.end()
