"""The policy: what a bench asks of an endpoint, and what of it goes on record."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from t2t_core.errors import BudgetSpent, T2TError
from t2t_core.records import Response, Sampling, Task
from t2t_core.settings import Reader, integer, number, one_of, read_settings
from t2t_core.store import folders, jsonlines
from t2t_plugins.policies.endpoint.access import account_headers, check_proxy, check_urls, find_key, find_proxy
from t2t_plugins.policies.endpoint.addresses import Address, Addresses
from t2t_plugins.policies.endpoint.client import ChatClient, HttpReply, Unreachable
from t2t_plugins.policies.endpoint.exchange import Exchange, Patience
from t2t_plugins.policies.endpoint.kinds import PASSING, STOP
from t2t_plugins.policies.endpoint.providers import PROVIDERS, THINKING, TRANSPORT
from t2t_plugins.policies.endpoint.reply import Judged, Prices, fault, judge

_KEYS = ("api_key", "apikey", "key", "token", "api_token", "secret", "password", "authorization")
_OURS = ("model", "messages", "tools", "stream", "n")  # of the request body; extra_body must not change them
_TEMPLATE = 32  # tokens at most that a server puts around a message


def _body(text: str) -> dict[str, Any]:
    try:
        value = jsonlines.loads(text)
    except jsonlines.Unreadable as error:
        raise ValueError(f"it must be a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("it must be a JSON object")
    taken = [name for name in _OURS if name in value]
    if taken:
        raise ValueError(f"{taken[0]} is not for it to set")
    return value


_OMITTABLE = ("temperature", "max_tokens", "top_p", "top_k", "min_p")
# What a request says by settings of their own: in extra_body it would be another than the row records and the budget counts on.
_SAID = {name: name for name in _OMITTABLE} | {"max_completion_tokens": "max_tokens"}
_PRICE = number(0, 1e6)
_PATIENCE: dict[str, Reader] = {
    "concurrency": integer(1, 1000),
    "attempts": integer(1, 100),
    "backoff": number(0, 3600),
    "max_wait": number(0, 86_400),
    "give_up": integer(0, 10**9),
}
_READERS: dict[str, Reader] = {
    **_PATIENCE,
    "base_url": check_urls,
    "proxy": check_proxy,
    "api_key_env": str,
    "timeout": number(0.01, 86_400),
    "max_bytes": integer(1_000, 1 << 30),
    **dict.fromkeys(_OMITTABLE, one_of(["none"])),
    "limit_field": one_of(["max_tokens", "max_completion_tokens"]),
    "thinking_switch": one_of([*THINKING, "none"]),
    "reasoning_effort": one_of(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    "price_in": _PRICE,
    "price_out": _PRICE,
    "prices": str,
    "extra_body": _body,
}


class Endpoint:
    """One model behind one address, or behind several that serve the same.

    Args:
        provider: a name of the table in `providers`.
        argument: the model, as the service names it.
        settings: all optional, see below.

    The settings:

    - base_url: another address (for `endpoint`: needed), or several with commas between, which share the questions. A provider's
      own key is never sent to another address: name the variable with api_key_env, or set T2T_API_KEY.
    - api_key_env: the environment variable that holds the key. Keys are read from the environment only.
    - proxy: the address of a proxy (http, https, socks5, socks5h, socks4), or `none`; otherwise HTTPS_PROXY, HTTP_PROXY,
      ALL_PROXY and NO_PROXY say. This machine itself is reached directly unless proxy= is given.
    - concurrency (8), attempts (6), backoff (1 s), max_wait (120 s), give_up (20): see `exchange.Patience`.
    - timeout (600 s) for one request as a whole, max_bytes (8 MiB) of one reply.
    - temperature=none, max_tokens=none, top_p=none, top_k=none, min_p=none: do not send it (reasoning models refuse a
      temperature). top_p, top_k and min_p are sent only where they leave something out; vLLM, SGLang, llama.cpp and OpenRouter
      know the last two, OpenAI does not.
    - limit_field: what the service calls the most response tokens.
    - thinking_switch: how it switches thinking on and off (`template`, `effort`, `reasoning`, `type`, `budget`; `none`: it has
      no switch, and asking for one is an error); sent only where thinking is asked for.
    - reasoning_effort: sent as it is.
    - price_in, price_out: USD per million tokens; prices: a JSON file {"MODEL or PROVIDER:MODEL": {"in": .., "out": ..}}.
      Without them the cost the service reports, if any, is recorded.
    - extra_body: a JSON object merged into the request; put it last, it may hold commas. It sets temperature, top_p, top_k, min_p
      or a limit on tokens only where the setting is `none`.

    Raises:
        T2TError: no model, no key, a setting that is not usable.

    docs/endpoints.md has the table of what a reply is, and what follows.
    """

    def __init__(self, provider: str, argument: str, settings: Mapping[str, str]) -> None:
        self._provider = PROVIDERS[provider]
        where = f"policy {provider}"
        for name in settings:
            if name.lower() in _KEYS:
                raise T2TError(
                    f"keys are not accepted as a setting ({name}=...)",
                    where=where,
                    cause="command lines end in shell histories, process lists and run folders",
                    next=f"export {self._provider.key_variable}=..., or name another variable with api_key_env=NAME",
                )
        self._settings = values = read_settings(settings, where, _READERS)
        self._model = argument.strip()
        if not self._model:
            raise T2TError(f"which model of {self._provider.title}?", where=where, next=f"write {provider}:MODEL")
        own = self._provider.base_url
        urls = values.get("base_url") or (own,)
        if not any(urls):
            raise T2TError(
                "an endpoint needs its address", where=where, next=f"write {provider}:MODEL,base_url=http://HOST:PORT/v1"
            )
        _refuse_said_twice(values, where)
        self._key = find_key(self._provider, values.get("api_key_env"), any(url != own for url in urls))
        self._proxies = {url: find_proxy(values.get("proxy"), url) for url in urls}
        self._budget: float | None = None
        self._patience = Patience(**{name: values[name] for name in _PATIENCE if name in values})
        self._addresses = Addresses(urls, self._patience)
        self._prices = self._read_prices()

    def _read_prices(self) -> Prices:
        prices = Prices()
        if "prices" in self._settings:
            prices = _prices_of(Path(self._settings["prices"]), f"{self._provider.name}:{self._model}", self._model)
        return Prices(self._settings.get("price_in", prices.input), self._settings.get("price_out", prices.output))

    @property
    def open_at_once(self) -> int:
        """So many conversations keep every request that may be under way busy."""
        return self._patience.concurrency

    def spend_at_most(self, usd: float) -> None:
        """What the answers of the next `respond` may cost together."""
        self._budget = usd

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        if not tasks:
            return
        body = self._request(sampling)

        async def ask(clients: Mapping[str, ChatClient], task: Task) -> Judged:
            request = json.dumps({"model": self._model, **conversation(task), **body}).encode()
            return await self._addresses.put(lambda address: self._put(clients[address.url], address, request))

        where, most = f"{self._model} at {self._addresses}", partial(self._most, sampling)
        try:
            yield from Exchange(tasks, self._connected, ask, self._patience, where, self._budget, most).answers()
        except BudgetSpent:
            raise
        except T2TError as end:
            end.cause = "; ".join([end.cause, *self.notes()])
            raise

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Mapping[str, ChatClient]]:
        """A client for each address."""
        timeout, max_bytes = self._settings.get("timeout", 600.0), self._settings.get("max_bytes", 8 << 20)
        async with AsyncExitStack() as stack:
            clients = {}
            for url, proxy in self._proxies.items():
                client = ChatClient(url, self._key, timeout, max_bytes, proxy, account_headers(url))
                clients[url] = await stack.enter_async_context(client)
            yield clients

    async def _put(self, client: ChatClient, address: Address, request: bytes) -> Judged:
        try:
            reply = await client.post(request)
        except Unreachable as error:
            return fault(STOP if error.lasting else PASSING, error.what, error.remedy, billed_unknown=error.sent)
        return _with_v1(judge(reply, self._prices, self._key.redact), reply, address.url)

    def notes(self) -> Sequence[str]:
        """A line on each of several addresses, about what was asked since the last call."""
        return self._addresses.report()

    def _most(self, sampling: Sampling, task: Task) -> float | None:
        """The most that a question can cost, where prices are known and the answer is limited: a token is at least a byte."""
        if "max_tokens" in self._settings:
            return None
        asked = len(json.dumps(conversation(task), ensure_ascii=False).encode("utf-8", "replace"))
        return self._prices.cost(asked + _TEMPLATE * (1 + len(task.messages)), sampling.max_tokens)

    def _request(self, sampling: Sampling) -> dict[str, Any]:
        """The request body without model and message."""
        settings = self._settings
        body: dict[str, Any] = {}
        if "temperature" not in settings:
            body["temperature"] = sampling.temperature
        narrowed = {"top_p": sampling.top_p != 1, "top_k": sampling.top_k > 0, "min_p": sampling.min_p > 0}
        body |= {name: getattr(sampling, name) for name, does in narrowed.items() if does and name not in settings}
        if "max_tokens" not in settings:
            body[settings.get("limit_field", self._provider.limit)] = sampling.max_tokens
        if sampling.thinking is not None:
            body.update(self._thinking(sampling))
        if "reasoning_effort" in settings:
            body["reasoning_effort"] = settings["reasoning_effort"]
        body.update(settings.get("extra_body", {}))
        return body

    def _thinking(self, sampling: Sampling) -> dict[str, Any]:
        switch = self._settings.get("thinking_switch", self._provider.thinking)
        if switch == "none":
            raise T2TError(
                f"{self._model} has no switch for thinking",
                where=f"policy {self._provider.name}",
                next="leave thinking out, or give thinking_switch= the way this server knows",
            )
        return THINKING[switch](bool(sampling.thinking), sampling.max_tokens)

    def describe(self) -> Mapping[str, Any]:
        kept = (*_OMITTABLE, "limit_field", "thinking_switch", "reasoning_effort", "extra_body")
        how = {name: self._settings[name] for name in TRANSPORT if name in self._settings}
        how["base_url"], prices = ",".join(self._addresses.urls), self._prices
        return {
            "deterministic": False,
            "batch_size": None,
            "concurrency": self._patience.concurrency,
            "policy": self._provider.name,
            "model": self._model,
            **{name: self._settings[name] for name in kept if name in self._settings},
            "transport": {**how, "price_in": prices.input, "price_out": prices.output},
        }

    def __repr__(self) -> str:
        return f"Endpoint({self._provider.name}:{self._model} at {self._addresses})"


def _with_v1(judged: Judged, reply: HttpReply, url: str) -> Judged:
    """The fault of an address without its `/v1`, which most servers answer with 404, 405, or a page for people."""
    page = reply.status == 200 and "html" in reply.headers.get("content-type", "")
    if judged.kind.fault and not judged.remedy and (reply.status in (404, 405) or page) and "/v1" not in url:
        return replace(judged, remedy=f"base_url={url}/v1")
    return judged


def _refuse_said_twice(values: Mapping[str, Any], where: str) -> None:
    for name in values.get("extra_body", {}):
        setting = _SAID.get(name)
        if setting and setting not in values:
            raise T2TError(
                f"extra_body sets {name}, which the row's own {setting} says",
                where=where,
                cause="the board would show one and the server get the other",
                next=f"write {setting}= in its place, or {setting}=none beside it",
            )


def conversation(task: Task) -> dict[str, Any]:
    """The part of the request body that differs from question to question."""
    body: dict[str, Any] = {"messages": [message.to_dict() for message in task.messages]}
    if task.tools:
        body["tools"] = [tool.to_dict() for tool in task.tools]
    return body


def _prices_of(path: Path, *names: str) -> Prices:
    """The prices of the first of `names` that the file knows. Raises T2TError if it knows none."""
    table = folders.read_json(path)
    row = next((table[name] for name in names if name in table), None)
    example = '"MODEL": {"in": 1.25, "out": 10}, in USD per million tokens'
    if row is None:
        raise T2TError(f"the file has no price for {' or '.join(names)}", where=str(path), next=f"add {example}")
    if not isinstance(row, Mapping):
        raise T2TError("a row of prices is an object", where=str(path), next=f"write {example}")
    try:
        values = read_settings({s: str(row.get(s)) for s in ("in", "out")}, str(path), {"in": _PRICE, "out": _PRICE})
    except T2TError as error:
        raise T2TError("a price is missing or no number", where=str(path), cause=error.what, next=f"write {example}") from None
    return Prices(values["in"], values["out"])
