"""One request to an OpenAI-compatible server, with a deadline and a limit on what it may send back.

Stands on aiohttp (imported on first use), the fastest of the well-kept clients that were tried beside each other; what a harness
over it costs is measured by benchmarks/harness.py. Nothing is left to its defaults that a server or the environment could turn
against the caller: redirects are not followed, cookies not kept, no netrc, proxy or key is taken from the environment unless
`providers` names it, and bodies are bounded after they are unpacked.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from t2t_core import __version__, advice
from t2t_core.errors import T2TError
from t2t_core.store import paths
from t2t_core.text import one_line
from t2t_plugins.policies.endpoint.access import Secret

_ERROR_BYTES = 64 << 10  # of the body of an error; the rest is not read
_LONGEST_KEY = 4096  # bytes; where a body is cut, so much of its end goes, lest half a key be left that nobody knows for one
_CONNECT_SECONDS = 30.0  # until a connection stands; a host that drops packets would use up the whole deadline
_NETWORK = ("aiohttp", "aiohttp_socks", "python_socks", "zlib")  # whose exceptions are faults of the connection


class Unreachable(Exception):
    """No whole reply came. `what` says why, `lasting` whether every further request would end alike, `remedy` what to do about
    that, and `sent` whether the server may have got the request (and may bill it)."""

    def __init__(self, what: str, *, lasting: bool = False, remedy: str = "", sent: bool = True) -> None:
        super().__init__(what)
        self.what, self.lasting, self.remedy, self.sent = what, lasting, remedy, sent


@dataclass(frozen=True)
class HttpReply:
    """What a server sent: the status, the headers (names in small letters) and the unpacked body. `cut`: the body was longer
    than allowed."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


class ChatClient:
    """An asynchronous client of one address; use it as a context manager inside the event loop.

    Args:
        base_url: the server's address, before `/chat/completions`.
        secret: the key.
        timeout: seconds for one request from its first byte to its reply's last.
        max_bytes: the longest reply that is read.
        proxy: the address of a proxy, None for a direct connection.
        headers: more of them, e.g. an organisation's name.
    """

    def __init__(
        self,
        base_url: str,
        secret: Secret,
        timeout: float,
        max_bytes: int,
        proxy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = f"{base_url}/chat/completions"
        self._secret, self._timeout, self._max_bytes, self._proxy = secret, timeout, max_bytes, proxy
        self._headers = headers or {}
        self._session: Any = None

    async def __aenter__(self) -> ChatClient:
        import aiohttp

        through_socks = self._proxy is not None and urlsplit(self._proxy).scheme.startswith("socks")
        context = _tls() if self._url.startswith("https:") else True
        self._session = aiohttp.ClientSession(
            connector=_socks_connector(self._proxy, context) if through_socks else aiohttp.TCPConnector(limit=0, ssl=context),
            proxy=None if through_socks else self._proxy,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(_CONNECT_SECONDS, self._timeout)),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            headers={
                "User-Agent": f"t2t-core/{__version__}",
                "Accept": "application/json",
                "Accept-Encoding": "gzip, deflate",
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self._secret.reveal()}",
                **self._headers,
            },
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def post(self, body: bytes) -> HttpReply:
        """The reply to one request, whatever its status. Raises Unreachable, which never holds the key."""
        try:
            async with asyncio.timeout(self._timeout):
                async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                    fine = 200 <= response.status < 300
                    data, whole = await _read(response.content, self._max_bytes if fine else _ERROR_BYTES)
                    if not (fine or whole):
                        data = data[:-_LONGEST_KEY]
                    headers = {name.lower(): value for name, value in response.headers.items()}
                    return HttpReply(response.status, headers, data, fine and not whole)
        except TimeoutError as error:
            connecting = type(error).__name__ in ("ConnectionTimeoutError", "ProxyTimeoutError")
            what = "no connection" if connecting else f"no complete answer within {self._timeout:g} s"
            raise Unreachable(what, sent=not connecting) from None
        except Exception as error:
            if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _NETWORK:
                raise
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> Unreachable:
        import aiohttp

        if isinstance(error, aiohttp.ClientHttpProxyError):  # its text would show the proxy's address, password included
            return Unreachable(f"the proxy refuses: HTTP {error.status}", lasting=400 <= error.status < 500, sent=False)
        what = one_line(self._secret.redact(f"the connection failed: {type(error).__name__}: {error}"))
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
            remedy = "SSL_CERT_FILE=FILE, with the certificate of the server's authority in it"
            return Unreachable(what, lasting=True, remedy=remedy, sent=False)
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            return Unreachable(what, lasting=True, remedy="http:// instead of https:// in base_url", sent=False)
        return Unreachable(what, sent=not isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL))


async def _read(content: Any, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes, and whether that was all."""
    data = bytearray()
    async for chunk in content.iter_any():
        data += chunk
        if len(data) > limit:
            return bytes(data[:limit]), False
    return bytes(data), True


def _tls() -> ssl.SSLContext:
    """Certificates of the system (or of SSL_CERT_FILE and SSL_CERT_DIR) and of certifi, for systems that have none.
    `ssl.create_default_context` would also write every session's keys to the file that SSLKEYLOGFILE names."""
    import certifi

    if named := os.environ.get("SSL_CERT_FILE"):  # OpenSSL would wait for a pipe, and say nothing where there is no file
        try:
            paths.open_plain(Path(named)).close()
        except OSError as error:
            cause = error.strerror or str(error)
            raise T2TError("SSL_CERT_FILE names no file that can be read", where=named, cause=cause) from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks names and certificates
    context.load_default_certs()
    context.load_verify_locations(certifi.where())
    return context


def _socks_connector(proxy: str | None, context: Any) -> Any:
    try:
        from aiohttp_socks import ProxyConnector
    except ImportError:
        raise T2TError(
            "a SOCKS proxy needs a package that is not installed",
            where=f"proxy {urlsplit(str(proxy)).scheme}://{urlsplit(str(proxy)).hostname}",
            next=f"{advice.extra('socks')}, or proxy=none for a direct connection",
        ) from None
    # socks5h leaves the name to the proxy, as curl has it; for the connector it is a setting of its own
    scheme, _, rest = str(proxy).partition("://")
    return ProxyConnector.from_url(f"{scheme.rstrip('ah')}://{rest}", rdns=scheme in ("socks5h", "socks4a"), limit=0, ssl=context)
