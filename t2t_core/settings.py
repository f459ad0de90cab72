"""Read the settings of a spec (`name:argument,key=value,...`): text in, typed values out, unknown names refused."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar
from urllib.parse import urlsplit

from t2t_core.errors import T2TError
from t2t_core.redaction import Redactor

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NAMES = {"key", "token", "passwd", "passphrase", "passcode", "bearer", "cookie", "credential", "auth", "apitoken"}
_NAMES |= {"pwd", "jwt", "personalaccesstoken"}
_LEAST = 4  # how many characters of a value count as a key on the strength of its name alone
_ENDINGS: tuple[str, ...] = ("subscriptionkey", "refreshtoken", "idtoken", "hftoken", "sessiontoken", "bearertoken", "userkey")
_ENDINGS += ("apikey", "secret", "password", "accesstoken", "authtoken", "secretkey", "accesskey", "authorization", "privatekey")
# A name and a value within a text: a broken piece of JSON, a header, a setting that was meant to be one.
_ASSIGNED = re.compile(
    r"(api[ _-]?key|(access|auth|api)[ _-]?token|authorization|password|(client|api)[ _-]?secret|(secret|private)[ _-]?key)s?"
    r"""["'\\]*\s*[:=]\s*[\["'\\]*[^\s"',}\]]{4}""",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"(^|&)[^=&]*(key|token|secret|password|signature)[^=&]*=", re.IGNORECASE)
# Keys in the form that services issue them, to recognise keys that are not in this environment.
_SHAPE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|rk|xai|nvapi)-(?=[\w-]*\d)[A-Za-z0-9_-]{20,}|(?:gsk|hf|r8|gh[pousr])_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{20,}"
    r"|(?:github_pat|tgp_v1)_[A-Za-z0-9_]{20,}"
    r"|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.|(?:Bearer|Basic)\s+[A-Za-z0-9+/=._-]{12,})"
)
_NEXT = "put the key into the environment variable that the policy reads (t2t plugins, docs: policies)"
Reader = Callable[[str], Any]
T = TypeVar("T")


def read_settings(settings: Mapping[str, str], where: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The value of each given setting, converted by its reader; settings not given are absent.

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


@dataclass(frozen=True)
class Range:
    """The range of a number: `low`..`high`, without `low` if `above`, without `high` if `below`."""

    low: float = 0
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        low = value > self.low if self.above else value >= self.low
        high = value < self.high if self.below or self.high == math.inf else value <= self.high
        return low and high

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.above else f"at least {self.low:g}"
        high = "" if self.high == math.inf else f" and {'below' if self.below else 'at most'} {self.high:g}"
        return low + high


AT_LEAST_ONE, POSITIVE, THREADS = Range(1), Range(0, above=True), Range(1, 1024)
TEMPERATURES = Range(0, 10)


def check_settings(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """A dataclass of settings from a configuration's values or a spec's texts.

    Its class attribute CHOICES has the words that a setting may be, RANGES the numbers (from 0 up, where it has none).

    Raises:
        T2TError: an unknown setting (with the nearest name), a value of another type, out of range, or no choice.
    """
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    values = {}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            cause = f"did you mean {near[0]}?" if near else "known: " + ", ".join(known)
            raise T2TError(f"there is no setting {ascii(name)[:60]}", where=where, cause=cause)
        if known[name].default is MISSING:
            values[name] = _table(name, value, where)
            continue
        values[name] = _as(known[name].default, name, value, where)
        range_ = getattr(kind, "RANGES", {}).get(name, Range())
        if isinstance(values[name], int | float) and values[name] not in range_:
            raise T2TError(f"{name} must be {range_}, not {ascii(value)[:60]}", where=where)
    for name, choices in getattr(kind, "CHOICES", {}).items():
        if values.get(name, choices[0]) not in choices:
            raise T2TError(f"{name} must be one of {', '.join(choices)}, not {ascii(values[name])[:60]}", where=where)
    return kind(**values)


def _as(default: Any, name: str, value: Any, where: str) -> Any:
    """`value` in the type of `default`, text converted."""
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if kind is int:
            return value if isinstance(value, int) and not isinstance(value, bool) else int(str(value))
        if kind is float:
            return float(value) if not isinstance(value, bool) else float("nan")  # which lies in no range
        return str(value)
    except (KeyError, ValueError, TypeError):
        raise T2TError(f"{name} must be {_KINDS[kind]}, not {ascii(value)[:60]}", where=where) from None


def _table(name: str, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise T2TError(f"{name} must be a table, not {ascii(value)[:60]}", where=where, next=f"write it as [training.{name}]")
    return dict(value)


_KINDS: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def flat(data: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Nested tables as dotted keys, in order."""
    rows: list[tuple[str, Any]] = []
    for key, value in data.items():
        rows += flat(value, f"{before}{key}.") if isinstance(value, Mapping) else [(before + key, value)]
    return rows


def assignment(text: str, where: str) -> tuple[str, Any]:
    """`key=value` as a pair, the value as TOML reads it, or the text itself where TOML cannot (`mode=easy` needs no quotes)."""
    import tomllib  # not needed for `t2t --help`

    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise T2TError(f"{where} wants key=value, not {ascii(text)[:80]}")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return key.strip(), value


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
    """Refuse an argument for a name that takes none."""
    if argument:
        raise T2TError(f"{where} takes no argument, not {ascii(argument)[:80]}", next="settings are written key=value")


def refuse_secrets(value: Any, where: str) -> None:
    """Raise T2TError if a setting holds a key, however deeply nested: recognised by its name, as an address with a password, as
    JSON in a text, as the value of an environment variable, or by its shape. The error names the setting and never shows the
    value.

    Args:
        value: a setting, or a table of them.
        where: whose settings they are, for the error.
    """
    redactor = Redactor()
    for keys, names, item in _items(value, ()):
        reason = _reason(names, item, redactor)
        if reason:
            shown = redactor.redact(".".join(map(str, keys)))[:80]
            raise T2TError(
                f"the setting {shown!a} holds a key" if shown else "a setting holds a key",
                where=where,
                cause=f"{reason}; what is typed would stand in the shell's history and in the run folder",
                next=_NEXT,
            )


def _items(value: Any, keys: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...], Any]]:
    """Every value that is no table or list, with the keys that lead to it and the names it stands under; names are values too."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield keys, (), str(name)
            yield from _items(item, (*keys, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _items(item, keys)
    else:
        yield keys, keys, value
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                return
            yield from _items(inner, keys)


def _reason(names: tuple[Any, ...], value: Any, redactor: Redactor) -> str | None:
    if value is None or value == "" or isinstance(value, bool):
        return None
    words = [_word(name) for name in names]
    meant = words[-1:] + [word for word in words if word not in ("key", "token")]
    if len(str(value)) >= _LEAST and any(_is_a_keys_name(word) for word in meant):
        return "it is called like one"
    if not isinstance(value, str):
        return None
    known = redactor.found_in(value)
    if known:
        return f"it is the value of {known}"
    if _SHAPE.search(value):
        return "it has the shape of one"
    if _ASSIGNED.search(value):
        return "one is named and written in it"
    return "it is an address with one in it" if _is_address_with_key(value) else None


def _word(name: Any) -> str:
    """A name in small letters alone, in the singular (`tokens` and `keys` of their own are counted and listed, and stay)."""
    word = re.sub(r"[^a-z]", "", str(name).lower())
    singular = word.removesuffix("s")
    return singular if singular in _NAMES - {"key", "token"} or singular.endswith(_ENDINGS) else word


def _is_a_keys_name(word: str) -> bool:
    return word in _NAMES or word.endswith(_ENDINGS)


def _is_address_with_key(value: str) -> bool:
    for word in re.split(r"\s+|,(?=[A-Za-z][A-Za-z0-9+.-]*://)", value) if "://" in value else ():
        try:
            parts = urlsplit(word)
        except ValueError:  # "http://[" is no address, as whoever reads the setting will say
            continue
        if "@" in parts.netloc or _PARAMETER.search(parts.query):
            return True
    return False
