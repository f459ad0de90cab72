"""What the harness costs: `evaluate` over a local chat endpoint, compared with clients without a harness.

    python benchmarks/harness.py                 # 5 x each side; about five minutes
    python benchmarks/harness.py --soak 100000   # and memory over that many answers

The server is a process on the other core. Two things are measured, with the sides taking turns:

full: the server answers after 50 or 500 ms, to 64 or 256 requests at once. `load generator` is aiohttp, which sends the same body
over and over and drops the replies. `harness` is everything that `t2t bench` does with an answer: prompts, the endpoint policy,
append-only log, export with verdicts. The goals are shares of the load generator's rate.
overhead: the server answers at once. `client alone` draws the answers from the endpoint policy and drops them. The overhead is
harness - client alone, per answer. `instant` is the machinery over a policy that costs nothing.
Each run writes one JSON file to benchmarks/results/.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measuring import arguments, pin, spread, text, write

from t2t_core.evaluation.evaluate import evaluate
from t2t_core.evaluation.questions import Evaluation
from t2t_core.evaluation.turns import Tasks
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Response, Sampling, Task

FULL = ((0.05, 64, 0.9), (0.05, 256, 0.4), (0.5, 64, 0.95), (0.5, 256, 0.95))  # latency in s, requests at once, goal
ROUNDS = {0.05: 50, 0.5: 16}  # answers for each concurrent request
TEXT = "<answer>\nAgent 0: (0,0) -> (0,1)\nAgent 1: (1,0) -> (1,1)\nAgent 2: (2,0) -> (2,1)\n</answer>"


class Instant:
    """A policy that answers without any work."""

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        for position, _ in enumerate(tasks):
            yield position, Response(TEXT, prompt_tokens=200, completion_tokens=40)

    def describe(self) -> dict[str, Any]:
        return {"deterministic": True, "batch_size": None}


class _Answering(asyncio.Protocol):
    """A minimal HTTP/1.1 server: keeps connections open and gives every POST the same answer, after the seconds in its path."""

    reply = b""

    def connection_made(self, transport: Any) -> None:
        self._transport, self._waiting = transport, b""

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"content-length: *([0-9]+)", self._waiting[:end], re.IGNORECASE)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._waiting) < whole:
                return
            delay = re.match(rb"POST /([0-9.]+)/", self._waiting)
            self._waiting = self._waiting[whole:]
            asyncio.get_running_loop().call_later(float(delay[1]) if delay else 0, self._transport.write, self.reply)


async def _serve(pipe: Any) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}
    usage = {"prompt_tokens": 200, "completion_tokens": 40, "total_tokens": 240}
    reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    body = json.dumps(reply).encode()
    _Answering.reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, backlog=1024)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _server(pipe: Any) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    asyncio.run(_serve(pipe))


async def load(url: str, prompt: str, count: int, at_once: int) -> None:
    """Send `count` requests through aiohttp as its manual shows, `at_once` concurrently."""
    import aiohttp

    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "temperature": 0.0, "max_tokens": 4096}
    numbers = iter(range(count))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            for _ in numbers:
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    await response.json()

        await asyncio.gather(*(work() for _ in range(at_once)))


def instances(testbed: AnyTestbed, count: int) -> list[Any]:
    """`count` distinct questions; their content does not matter here."""
    return [
        testbed.read_instance(
            {
                "id": f"3agents_5x5_{i:06d}",
                "size": 5,
                "holes": [[4, 4]],
                "starts": [[0, 0], [1, 0], [2, 0]],
                "goals": [[0, 1], [1, 1], [2, 1]],
                "optimal_makespan": 1,
                "optimal_sum_of_costs": 3,
            }
        )
        for i in range(count)
    ]


def bare(policy: Any, evaluation: Evaluation, folder: Path) -> None:
    """Side A: the client alone."""
    for _ in policy.respond(Tasks(evaluation, range(len(evaluation))), evaluation.sampling):
        pass


def harness(policy: Any, evaluation: Evaluation, folder: Path) -> None:
    """Side B: everything the bench does with an answer."""
    outcome = evaluate(evaluation, policy, folder)
    if outcome.progress.errors:
        raise SystemExit(f"{outcome.progress.errors} answers were errors")


def per_answer(side: Callable[..., None], policy: Any, evaluation: Evaluation) -> float:
    """Milliseconds of wall time per answer."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        side(policy, evaluation, Path(folder))
        return 1000 * (time.perf_counter() - begin) / len(evaluation)


def full(root: str, testbed: AnyTestbed, repeats: int) -> list[dict[str, Any]]:
    """Answers per second of both sides at each latency and concurrency."""
    rows = []
    for seconds, at_once, goal in FULL:
        count = at_once * ROUNDS[seconds]
        evaluation = Evaluation(testbed, instances(testbed, count))
        url = f"{root}/{seconds}/v1"
        policy = installed().policies.make(f"endpoint:m,base_url={url},concurrency={at_once}")
        sides: dict[str, list[float]] = {"load generator": [], "harness": []}
        for _ in range(repeats):
            begin = time.perf_counter()
            asyncio.run(load(url, evaluation.task(0).prompt, count, at_once))
            sides["load generator"].append(count / (time.perf_counter() - begin))
            sides["harness"].append(1000 / per_answer(harness, policy, evaluation))
        shares = [ours / theirs for theirs, ours in zip(*sides.values(), strict=True)]
        facts = {"latency_s": seconds, "at_once": at_once, "answers": count, "goal": goal, "share": spread(shares)}
        rows.append({**facts, "answers_per_s": {name: spread(values) for name, values in sides.items()}})
        print(f"{1000 * seconds:>4.0f} ms, {at_once:>3} at once: {text(spread(sides['harness']))} of "
              f"{text(spread(sides['load generator']))} answers/s, share {text(spread(shares), 2)}, goal {goal}")  # fmt: skip
    return rows


def soak(policy: Any, testbed: AnyTestbed, count: int) -> dict[str, Any]:
    """Resident memory after every tenth of `count` answers."""
    evaluation = Evaluation(testbed, instances(testbed, 1000), max(1, count // 1000))
    marks: list[int] = []

    def progress(p: Any) -> None:
        if p.asked % (len(evaluation) // 10) == 0:
            marks.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024)

    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        evaluate(evaluation, policy, Path(folder), progress=progress)
        seconds = time.perf_counter() - begin
    return {"answers": len(evaluation), "seconds": round(seconds, 1), "resident_kib_at_each_tenth": marks}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--soak", type=int, default=0)
    given = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_server, args=(theirs,), daemon=True)
    server.start()  # before the pin, so that it gets the other core
    root = f"http://127.0.0.1:{ours.recv()}"
    pin()
    testbed = installed().testbeds.make("mapf-frozenlake")
    rows = full(root, testbed, given.repeats)
    policy = installed().policies.make(f"endpoint:m,base_url={root}/v1,concurrency=64")
    evaluation = Evaluation(testbed, instances(testbed, given.answers))
    sides: dict[str, list[float]] = {"client alone": [], "harness": [], "instant": []}
    for _ in range(given.repeats):
        sides["client alone"].append(per_answer(bare, policy, evaluation))
        sides["harness"].append(per_answer(harness, policy, evaluation))
        sides["instant"].append(per_answer(harness, Instant(), evaluation))
    pairs = list(zip(sides["client alone"], sides["harness"], strict=True))
    result: dict[str, Any] = {
        "full": rows,
        "goal_ms": 1.0,
        "answers": given.answers,
        "overhead_ms": spread([b - a for a, b in pairs]),
        "harness_over_client": spread([b / a for a, b in pairs]),
        "sides_ms": {name: spread(values) for name, values in sides.items()},
    }
    if given.soak:
        result["soak"] = soak(policy, testbed, given.soak)
    server.terminate()
    for name, values in result["sides_ms"].items():
        print(f"{name:>13}: {text(values, 3)} ms per answer")
    print(f"{'overhead':>13}: {text(result['overhead_ms'], 3)} ms per answer, goal 1.0; harness over client alone "
          f"{text(result['harness_over_client'], 2)}")  # fmt: skip
    if given.soak:
        print(f"{'soak':>13}: {result['soak']}")
    write("harness", given.out, result)


if __name__ == "__main__":
    main()
