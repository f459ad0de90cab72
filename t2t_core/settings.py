"""Reads the settings of a spec (`name:argument,key=value,...`): text in, typed values out, unknown ones refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from t2t_core.errors import T2TError
from t2t_core.registry import Spec

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_KEYS = {"api_key", "apikey", "key", "token", "access_token", "secret", "password", "authorization"}
Reader = Callable[[str], Any]


def read_settings(settings: Mapping[str, str], where: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The value of each setting given, by its reader; settings not given are absent.

    Args:
        settings: as the factory of a policy, designer, ... gets them.
        where: whose settings they are, for the error, e.g. "policy endpoint".
        readers: setting name -> reader, a function from text that raises ValueError with a reason.

    Raises:
        T2TError: a setting nobody reads (with the nearest name), or a value its reader refuses.
    """
    values: dict[str, Any] = {}
    for name, text in settings.items():
        if name not in readers:
            near = difflib.get_close_matches(name, readers, n=1)
            known = ", ".join(readers) or "none"
            raise T2TError(
                f"there is no setting {ascii(name)[:80]}",
                where=where,
                cause=f"did you mean {near[0]}?" if near else f"known settings: {known}",
            )
        try:
            values[name] = readers[name](text)
        except ValueError as error:
            raise T2TError(f"the setting {name} cannot be {ascii(text)[:80]}: {error}", where=where) from None
    return values


def integer(low: int, high: int) -> Reader:
    """A reader of whole numbers in low..high."""

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text.strip()):
            raise ValueError("it must be a whole number")
        value = int(text)
        if not low <= value <= high:
            raise ValueError(f"it must lie in {low}..{high}")
        return value

    return read


def number(low: float, high: float) -> Reader:
    """A reader of finite numbers in low..high."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("it must be a number") from None
        if not low <= value <= high:  # NaN fails this too
            raise ValueError(f"it must lie in {low:g}..{high:g}")
        return value

    return read


def one_of(choices: Sequence[str]) -> Reader:
    """A reader of one of the given words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        return text

    return read


def no_argument(argument: str, where: str) -> None:
    """Refuse an argument where a name takes none."""
    if argument:
        raise T2TError(f"{where} takes no argument, not {ascii(argument)[:80]}", next="settings are written key=value")


def refuse_keys(spec: Spec) -> Spec:
    """Keys come from the environment: what is typed ends in the shell's history, the process list and the run folder."""
    for name, value in spec.settings.items():
        if name.lower() in _KEYS or _holds_key(value):
            raise T2TError(
                f"the setting {name!r} of policy {spec.name} holds a key",
                cause="what is typed would stand in the shell's history and in the run folder",
                next="put the key into the environment variable that the policy reads (t2t plugins, docs: policies)",
            )
    return spec


def _holds_key(value: str) -> bool:
    """Is it an address with a name and password, or with a key among its parameters?"""
    if "://" not in value:
        return False
    try:
        parts = urlsplit(value)
    except ValueError:  # "http://[" is no address, as whoever reads the setting will say
        return False
    return "@" in parts.netloc or bool(re.search(r"(^|&)[^=&]*(key|token|secret)[^=&]*=", parts.query, re.I))
