"""One request to an OpenAI-compatible server, with a deadline and a limit on what it may send back.

Stands on the `openai` package (imported on first use) without its retries and without its reading of replies: it trusts
their shape and their size, we do not.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from t2t_plugins.policies.providers import Secret
from t2t_plugins.policies.reply import Failure, printable, status_failure

_ERROR_BYTES = 64 << 10  # of the body of an error; the rest is not read
_NETWORK = ("httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2", "anyio", "zlib", "brotli", "openai")
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")  # the package sends them to whatever address it is given


class ChatClient:
    """An asynchronous client of one address; use it as a context manager inside the event loop.

    Args:
        base_url: the server's address, before `/chat/completions`.
        secret: the key.
        timeout: seconds for one request from its first byte to its reply's last.
        max_bytes: the longest reply that is read.
        account_headers: whether OPENAI_ORG_ID and OPENAI_PROJECT_ID may be sent (to OpenAI alone).
    """

    def __init__(self, base_url: str, secret: Secret, timeout: float, max_bytes: int, account_headers: bool) -> None:
        self._base_url, self._secret, self._timeout, self._max_bytes = base_url, secret, timeout, max_bytes
        self._account_headers = account_headers
        self._client: Any = None

    async def __aenter__(self) -> ChatClient:
        import openai

        http = openai.DefaultAsyncHttpxClient(
            timeout=self._timeout,
            follow_redirects=False,  # a POST is not redirected, and a key does not follow
            event_hooks={"request": [self._prepare], "response": [self._refuse_errors]},
        )
        self._client = openai.AsyncOpenAI(
            api_key=self._secret.reveal(), base_url=self._base_url, max_retries=0, timeout=self._timeout, http_client=http
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def _prepare(self, request: Any) -> None:
        if not self._account_headers:
            for name in _ACCOUNT_HEADERS:
                request.headers.pop(name, None)

    async def _refuse_errors(self, response: Any) -> None:
        """Turn every status but 2xx into a Failure, before the package reads a body of any length. The key is taken out
        here: the package logs what a hook raises."""
        if not 200 <= response.status_code < 300:
            data, _ = await _read(response.aiter_bytes(), _ERROR_BYTES)
            failure = status_failure(response.status_code, data, _retry_after(response.headers))
            raise Failure(self._secret.redact(failure.what), failure.kind, failure.wait)

    async def complete(self, model: str, prompt: str, body: Mapping[str, Any]) -> bytes:
        """The body of the reply to one user message. Raises Failure, which never holds the key."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._post(model, prompt, body)
        except TimeoutError:
            raise Failure(f"no complete answer within {self._timeout:g} s") from None
        except Failure:
            raise
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, Failure):  # raised by our hook; some versions of the package wrap it
                raise cause from None
            if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _NETWORK:
                raise
            reason = cause or error
            text = f"the connection failed: {type(reason).__name__}: {reason}"
            raise Failure(self._secret.redact(printable(text))) from None

    async def _post(self, model: str, prompt: str, body: Mapping[str, Any]) -> bytes:
        messages = [{"role": "user", "content": prompt}]
        create = self._client.chat.completions.with_streaming_response.create
        async with create(model=model, messages=messages, extra_body=dict(body)) as response:
            data, whole = await _read(response.iter_bytes(), self._max_bytes)
        if not whole:
            raise Failure(f"the reply is longer than {self._max_bytes} bytes", "request")
        return data


async def _read(chunks: AsyncIterator[bytes], limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes, and whether that was all."""
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > limit:
            return bytes(data[:limit]), False
    return bytes(data), True


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `Retry-After` (seconds or a date) or `retry-after-ms`; None where it is absent or nonsense."""
    try:
        if "retry-after-ms" in headers:
            wait = float(headers["retry-after-ms"]) / 1000
        else:
            text = headers.get("retry-after", "")
            date = email.utils.parsedate_to_datetime(text) if ":" in text else None
            wait = date.timestamp() - time.time() if date else float(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, wait) if wait == wait else None  # NaN is nonsense too
