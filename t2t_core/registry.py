"""Names of one kind (policies, designers, ...) and the distributions that registered them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.text import flowing, one_line

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SETTING = re.compile(r"([a-z][a-z0-9_]*)=(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
# After a comma, this looks like a setting: a misspelt name is then refused, and its value is not taken as part of the one
# before.
_MEANT = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)\s*=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Spec:
    """`name:argument,key=value,...` taken apart. Commas before the first setting belong to the argument."""

    name: str
    argument: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Spec:
        """The name, argument and settings in a text. Every text has some reading, so nothing is raised: whether the name and the
        settings are known is for the registry and the factory to say."""
        name, _, rest = text.strip().partition(":")
        pieces: dict[str, list[str]] = {"": []}  # of the argument, then of each setting
        current, quoted = "", False
        for number, piece in enumerate(rest.split(",") if rest else []):
            match = None if quoted else (_MEANT if number else _SETTING).fullmatch(piece.strip())
            if match:
                current, piece = match[1], match[2]
                pieces[current] = []
            pieces[current].append(piece)
            if current and pieces[current][0].startswith(("{", "[")):  # JSON: within its texts `, name=` begins no setting
                quoted ^= _ESCAPED.sub("", piece).count('"') % 2 == 1
        argument = ",".join(pieces.pop(""))
        return cls(name, argument, {name: ",".join(values) for name, values in pieces.items()})

    def __str__(self) -> str:
        """The text that parses to this spec."""
        pieces = [self.argument] * bool(self.argument) + [f"{name}={text}" for name, text in self.settings.items()]
        return f"{self.name}:{','.join(pieces)}" if pieces else self.name


@dataclass(frozen=True)
class Entry:
    """One registered name. `target` is a callable or "module:attribute"."""

    name: str
    target: Callable[..., Any] | str
    summary: str
    distribution: str
    plugin: str
    needs: Sequence[str] = ()

    def lacking(self) -> list[str]:
        """The modules it needs that are not installed."""
        return [module for module in self.needs if not find_spec(module)]

    def load(self) -> Any:
        """The target itself, imported if need be. Raises T2TError if that fails."""
        if not isinstance(self.target, str):
            return self.target
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            missing = isinstance(error, ModuleNotFoundError) and error.name != module
            raise T2TError(
                f"{self.name!r} could not be loaded: {one_line(str(error))}",
                where=f"{self.target} of {self.distribution}",
                cause="an optional dependency is missing" if missing else "the plugin names something that does not exist",
                next=(
                    f"{advice.extra('train')} for local models and trainers; t2t plugins lists what is loaded"
                    if missing
                    else f"fix the plugin; python -c 'import {module}' shows where its import fails, if it does"
                ),
            ) from error


class Registry:
    """The names of one kind. While a plugin's hook runs, `plugin` and `distribution` say whose hook it is."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.entries: dict[str, Entry] = {}
        self.refused: list[str] = []
        self.plugin = self.distribution = "?"

    def add(self, name: str, target: Callable[..., Any] | str, summary: str = "", needs: Sequence[str] = ()) -> None:
        """Register `name`; `needs` lists the optional modules it cannot run without. A name that is taken is refused, and the
        refusal names both distributions."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.refused.append(f"{self.kind} {ascii(name)[:80]} of {self.distribution}: not a usable name")
        elif not (callable(target) or (isinstance(target, str) and target.count(":") == 1)):
            self.refused.append(f"{self.kind} {name} of {self.distribution}: the target is neither callable nor module:attribute")
        elif name in self.entries:
            self.refused.append(
                f"{self.kind} {name} of {self.distribution}: the name is taken by {self.entries[name].distribution}"
            )
        else:
            self.entries[name] = Entry(name, target, flowing(str(summary), 200), self.distribution, self.plugin, tuple(needs))

    def __iter__(self) -> Iterator[Entry]:
        return iter(sorted(self.entries.values(), key=lambda e: e.name))

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    @property
    def default(self) -> str:
        """The name that stands where none is given: the first that was registered; "" if there is none."""
        return next(iter(self.entries), "")

    def find(self, name: str) -> Entry:
        """The entry of that name; T2TError with the nearest names if there is none."""
        if name in self.entries:
            return self.entries[name]
        shown = ascii(name)[:80]
        begun, comma, settings = name.partition(",")
        if comma and begun in self.entries:
            raise T2TError(
                f"there is no {self.kind} called {shown}",
                cause=f"settings follow a colon: {begun} is a {self.kind}",
                next=f"write {one_line(f'{begun}:{settings}')}",
            )
        near = difflib.get_close_matches(name, self.entries, n=3, cutoff=0.5)
        raise T2TError(
            f"there is no {self.kind} called {shown}",
            cause=f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(self.entries)) or 'none'}",
            next="t2t plugins lists every name and what was refused",
        )

    def make(self, spec: str | Spec, **extra: str) -> Any:
        """Build what `name:argument,key=value` names, behind the guard; `extra` settings give way to those in the spec.

        Raises:
            T2TError: there is no such name, a setting holds a key, or what it names refuses its argument or settings.
            PluginFault: its import or its factory failed, or what it made lacks what this kind must have.
        """
        from t2t_core import guard, guarded  # half of what `t2t --help` imports, which makes nothing
        from t2t_core.settings import refuse_secrets

        spec = Spec.parse(spec) if isinstance(spec, str) else spec
        refuse_secrets({"name": spec.name, "argument": spec.argument, **extra, **spec.settings}, self.kind)
        entry = self.find(spec.name)
        plugin = guard.Plugin(self.kind, entry.name, entry.distribution)
        return guarded.make(plugin, entry.load, spec.argument, {**extra, **spec.settings})
