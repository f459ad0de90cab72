"""A chat endpoint on the loopback that misbehaves as told, for tests.

with FakeServer(lambda prompt, nth: "429" if nth == 0 else "an answer") as server:
    ... requests to server.url; server.requests holds what came in
"""

from __future__ import annotations

import functools
import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# What the script may return instead of a text to answer with.
STATUSES = {"400", "401", "402", "403", "404", "408", "413", "422", "429", "500", "502", "503", "504", "529"}
BODIES: dict[str, bytes] = {
    "empty": b"",
    "junk": b'{"choices": [{"mess',
    "html": b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    "array": b"[1, 2, 3]",
    "null": b"null",
    "no_choices": b'{"id": "x", "object": "chat.completion", "choices": []}',
    "bomb": b'{"choices": ' + b"[" * 200_000,
    "digits": b'{"choices": [], "usage": ' + b"9" * 100_000 + b"}",
    "error_200": b'{"error": {"code": 502, "message": "the service behind me failed"}}',
    "quota_200": b'{"error": {"code": 402, "message": "no credit"}}',
}


def completion(text: Any, finish: str = "stop", message: dict[str, Any] | None = None, **usage: Any) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, **usage}
    message = {"role": "assistant", "content": text, **(message or {})}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"id": "x", "object": "chat.completion", "model": "fake", "choices": [choice], "usage": usage}).encode()


BODIES |= {
    "refusal": completion(None, message={"refusal": "I cannot help with that."}),
    "filtered": completion("", "content_filter"),
    "cut": completion("<answer>\nAgent 0: (0,0)", "length"),
    "no_content": completion(None),
    "only_reasoning": completion(None, message={"reasoning_content": "hm, hm"}),
    "broke_off": completion("Agent 0: (0,0)", "error"),
}
Script = Callable[[str, int], str | bytes | tuple[int, dict[str, str], bytes]]


@functools.cache
def _gzip_bomb() -> bytes:
    return gzip.compress(b" " * (16 << 20))


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # connections that may wait on a busy machine


@dataclass
class FakeServer:
    """script(prompt, nth) says how the nth request (from 0) for a prompt is answered: a status of STATUSES, a name of BODIES,
    `drop`, `drop_mid`, `never`, `drip`, `huge`, `gzip_bomb`, `redirect`, the body of a 200 as bytes, (status, headers, body),
    or any other text, which is the answer."""

    script: Script
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> FakeServer:
        self.closing = threading.Event()
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.running = self.most_running = 0
        fake = self

        class Handler(_Handler):
            server_of = fake

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def note(self, request: dict[str, Any]) -> int:
        """Record a request; how many there were for its prompt before."""
        with self._lock:
            self.requests.append(request)
            prompt = request["prompt"]
            self._seen[prompt] += 1
            return self._seen[prompt] - 1

    def count(self, by: int) -> None:
        with self._lock:
            self.running += by
            self.most_running = max(self.most_running, self.running)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: FakeServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        fake = self.server_of
        headers = {name.lower(): value for name, value in self.headers.items()}
        nth = fake.note({"path": self.path, "headers": headers, "body": body, "prompt": prompt})
        fake.count(1)
        try:
            self._act(fake.script(prompt, nth))
        except OSError:
            self.close_connection = True  # the client went away
        finally:
            fake.count(-1)

    def _act(self, told: str | bytes | tuple[int, dict[str, str], bytes]) -> None:
        if isinstance(told, tuple):
            self._send(told[0], told[2], told[1])
        elif isinstance(told, bytes):
            self._send(200, told)
        elif told in STATUSES:
            self._send(int(told), json.dumps({"error": {"message": f"status {told} as told", "code": told}}).encode())
        elif told in BODIES:
            self._send(200, BODIES[told])
        elif hasattr(self, f"_{told}"):
            getattr(self, f"_{told}")()
        else:
            self._send(200, completion(told))

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drop(self) -> None:
        self.close_connection = True

    def _drop_mid(self) -> None:
        self._send(200, completion("half")[:40], {"Content-Length": "400"})
        self.close_connection = True

    def _never(self) -> None:
        self.server_of.closing.wait()

    def _drip(self) -> None:
        self._send(200, b"{", {"Content-Length": "100000"})
        while not self.server_of.closing.wait(0.02):
            self.wfile.write(b" ")

    def _huge(self) -> None:
        self._send(200, b"", {"Content-Length": str(1 << 40)})
        for _ in range(10_000):
            self.wfile.write(b" " * 65536)

    def _gzip_bomb(self) -> None:
        self._send(200, _gzip_bomb(), {"Content-Encoding": "gzip"})

    def _redirect(self) -> None:
        self._send(302, b"", {"Location": "http://127.0.0.1:9/v1/chat/completions"})

    def log_message(self, *_: object) -> None:
        pass
