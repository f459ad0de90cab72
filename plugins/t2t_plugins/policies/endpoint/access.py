"""How a service is reached: its key, its address and the proxy, each taken only from where the user put it."""

from __future__ import annotations

import os
import re
from urllib.parse import SplitResult, unquote, urlsplit

from t2t_core.errors import NotReady, T2TError
from t2t_core.redaction import Redactor, remember
from t2t_plugins.policies.endpoint.providers import OWN_KEY, PROVIDERS, Provider

# Variables besides keys and proxies whose values are sent, as headers, to OpenAI alone.
ACCOUNT = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h", "socks4", "socks4a")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_MIN_SECRET = 8  # characters; anything shorter is a placeholder such as EMPTY and may occur in honest text


class Secret:
    """A key that no repr, message, pickle or record ever shows."""

    __slots__ = ("_redactor", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._redactor = Redactor({text: "key"} if len(text) >= _MIN_SECRET else {})

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled")

    def reveal(self) -> str:
        """The key itself, for the request's header and nothing else."""
        return self._text

    def redact(self, text: str) -> str:
        """`text` without the key: a server may echo it in an answer or an error."""
        return self._redactor.redact(text)


def find_key(provider: Provider, variable: str | None, elsewhere: bool) -> Secret:
    """The key from the environment.

    Args:
        provider: whose.
        variable: the variable the user names with api_key_env, None for the provider's own.
        elsewhere: the user gave another address; a provider's key is never sent there unless named.
    """
    if variable is not None and not _VARIABLE.fullmatch(variable):
        raise T2TError(
            "api_key_env takes the name of an environment variable, in capitals",  # its value may be a key: it is not shown
            where=f"policy {provider.name}",
            next="export MY_KEY=... and write api_key_env=MY_KEY",
        )
    name = variable or (OWN_KEY if elsewhere else provider.key_variable)
    text = os.environ.get(name, "").strip()
    if not text and (variable or (provider.key_needed and not elsewhere)):
        raise NotReady(
            f"the environment variable {name} is not set",
            where=f"policy {provider.name}",
            cause=f"{provider.title} wants a key, and keys are read from the environment only",
            next=f"export {name}=...",
        )
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise T2TError(
            f"the key in {name} holds a character that no key has", cause="a quote, space or line break was copied too"
        )
    remember(name, text)
    return Secret(text or "EMPTY")  # servers without keys take any


def account_headers(url: str) -> dict[str, str]:
    """An organisation's and a project's name, for OpenAI's own address alone: the accounts are there."""
    if url != PROVIDERS["openai"].base_url:
        return {}
    return {header: os.environ[name] for name, header in ACCOUNT.items() if os.environ.get(name)}


def _parts(text: str) -> SplitResult:
    """An address taken apart. Raises ValueError if it is not one: a connection would find that out late, question by
    question."""
    if not text.isprintable() or " " in text:
        raise ValueError("it holds a blank or something that is no letter")
    url = urlsplit(text)
    labels = (url.hostname or "-").rstrip(".").split(".")
    if url.port == 0 or not all(0 < len(label) < 64 for label in labels):  # a port above 65535 is a ValueError already
        raise ValueError("it names no host and port")
    return url


def check_url(text: str) -> str:
    """A base address for `base_url`; ValueError says why another is none."""
    url = _parts(text.strip())
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("it must begin with http:// or https:// and name a host")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("it must hold no user, password, query or fragment; keys come from the environment")
    return text.strip().rstrip("/").removesuffix("/chat/completions")


def check_urls(text: str) -> tuple[str, ...]:
    """One base address for `base_url`, or several with commas between; ValueError says why another text is none."""
    urls = [check_url(part) for part in text.split(",")]
    repeated = next((url for url in urls if urls.count(url) > 1), None)
    if repeated:
        raise ValueError(f"it names {repeated} twice")
    return tuple(urls)


def check_proxy(text: str) -> str:
    """An address for `proxy`, or `none`; ValueError says why another is none."""
    if text == "none":
        return text
    url = _parts(text.strip())
    if url.scheme not in _PROXY_SCHEMES or not url.hostname:
        raise ValueError(f"it must be none, or begin with one of {', '.join(_PROXY_SCHEMES)} and :// and name a host")
    if url.username or url.password:
        raise ValueError("it must hold no user and password; HTTPS_PROXY or ALL_PROXY may")
    return text.strip()


def find_proxy(given: str | None, base_url: str) -> str | None:
    """The proxy for an address: the one given, or else that of the environment, from the variables that curl reads too. This
    machine itself is reached directly: a proxy would look for the server on its own."""
    import urllib.request  # costs more than all else here, and `t2t --help` has no use for it

    if given is not None:
        return None if given == "none" else given
    url = urlsplit(base_url)
    host = url.hostname or ""
    proxies = urllib.request.getproxies_environment()
    local = host == "localhost" or host == "::1" or host.startswith("127.")
    if local or urllib.request.proxy_bypass(url.netloc):
        return None
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_proxy(proxy):
        raise T2TError(
            "the environment names a proxy of an unknown kind, or where none can be",  # it may hold a password: it is not shown
            where=f"{url.scheme.upper()}_PROXY or ALL_PROXY",
            next="proxy=none for a direct connection",
        )
    _remember_password(proxy)
    return proxy


def _remember_password(proxy: str) -> None:
    """So that it is nowhere shown either where a proxy's error repeats what it was sent, which is base64 of name and password."""
    user, password = (unquote(part or "") for part in (urlsplit(proxy).username, urlsplit(proxy).password))
    if password:
        remember("the proxy's password", password)
        remember("the proxy's password", f"{user}:{password}")


def _is_proxy(address: str) -> bool:
    try:
        url = _parts(address)
    except ValueError:
        return False
    return url.scheme in _PROXY_SCHEMES and bool(url.hostname)
