"""What the harness costs: `evaluate` over an endpoint that answers at once, beside the same client without a harness.

    python benchmarks/harness.py                 # 5 x 2,000 answers on each side, 64 requests at once
    python benchmarks/harness.py --soak 100000   # and memory over so many answers

A local server in a process of its own answers every chat completion with the same text. Side A draws the answers from the
endpoint policy and drops them; side B is `t2t bench`'s machinery over the same policy: prompts, append-only log, export with
verdicts. The sides alternate; overhead is B - A per answer. `instant` is the machinery over a policy that costs nothing.
One JSON per run goes to benchmarks/results/.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measuring import arguments, pin, spread, text, write

from t2t_core.evaluation.evaluate import Evaluation, Tasks, evaluate
from t2t_core.plugins import installed
from t2t_core.records import Response, Sampling, Task

TEXT = "<answer>\nAgent 0: (0,0) -> (0,1)\nAgent 1: (1,0) -> (1,1)\nAgent 2: (2,0) -> (2,1)\n</answer>"


class Instant:
    """Answers without any work."""

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        for position, _ in enumerate(tasks):
            yield position, Response(TEXT, prompt_tokens=200, completion_tokens=40)

    def describe(self) -> dict[str, Any]:
        return {"deterministic": True, "batch_size": None}


async def _serve(pipe: Any) -> None:
    """The smallest HTTP/1.1 server that keeps connections open and answers every POST alike."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}
    usage = {"prompt_tokens": 200, "completion_tokens": 40, "total_tokens": 240}
    reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    body = json.dumps(reply).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: *([0-9]+)", request, re.IGNORECASE)
                await reader.readexactly(int(length[1]) if length else 0)
                writer.write(head + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _server(pipe: Any) -> None:
    asyncio.run(_serve(pipe))


def instances(testbed: Any, count: int) -> list[Any]:
    """So many distinct questions; what is in them does not matter here."""
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


def soak(policy: Any, testbed: Any, count: int) -> dict[str, Any]:
    """Resident memory while so many answers come through, at every tenth of the way."""
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
    server.start()  # before the pin: it has the other core
    address = f"http://127.0.0.1:{ours.recv()}/v1"
    pin()
    testbed = installed().testbeds.make("mapf-frozenlake")
    policy = installed().policies.make(f"endpoint:m,base_url={address},concurrency=64")
    evaluation = Evaluation(testbed, instances(testbed, given.answers))
    sides: dict[str, list[float]] = {"client alone": [], "harness": [], "instant": []}
    for _ in range(given.repeats):
        sides["client alone"].append(per_answer(bare, policy, evaluation))
        sides["harness"].append(per_answer(harness, policy, evaluation))
        sides["instant"].append(per_answer(harness, Instant(), evaluation))
    pairs = list(zip(sides["client alone"], sides["harness"], strict=True))
    result: dict[str, Any] = {
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
