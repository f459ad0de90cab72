"""A plugin's object behind the guard. `Registry.make` returns what a factory made as a `Guarded`, so that every call of every
plugin, including its factory, goes through `guard.run`, and what it returns is checked against its contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from t2t_core import guard
from t2t_core.contract import METHODS, missing, wrong
from t2t_core.records import Metric, Option


class Lacking(guard.PluginFault, AttributeError):
    """A plugin lacks something its kind must have; to `getattr` with a default and `hasattr` it looks like a missing
    attribute."""


class Guarded:
    """A plugin's object behind the guard: attributes unchanged; methods, and a testbed's metrics and options, go through it."""

    def __init__(self, plugin: guard.Plugin, inside: Any) -> None:
        own = {"_plugin": plugin, "_inside": inside, "_wrapped": {}}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        try:
            value = getattr(self._inside, name)
        except AttributeError:
            if name in METHODS[self._plugin.kind]:
                raise Lacking(f"the {self._plugin} has no {name}()", where=str(self._plugin), next=guard.NEXT) from None
            raise
        except Exception as error:
            raise guard.failed(self._plugin, name, error) from error
        seen, wrapped = self._wrapped.get(name, (None, None))  # bound methods are created on each access, and compare equal
        if seen is None or seen != value:
            if callable(value) and not isinstance(value, type):
                wrapped = partial(_checked, self._plugin, name, f"{name}()", value)
                wrapped.__wrapped__ = value  # type: ignore[attr-defined]  # its signature is the plugin's
            else:
                wrapped = _with_guarded_parts(self._plugin, value)
            self._wrapped[name] = (value, wrapped)
        return wrapped

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inside, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that isinstance sees the plugin's own class
        return type(self._inside)

    def __repr__(self) -> str:
        return f"<{self._plugin}>"


def _with_guarded_parts(plugin: guard.Plugin, value: Any) -> Any:
    """Wrap the plugin's function inside each metric and option."""

    def guarded(item: Any) -> Any:
        if isinstance(item, Metric):
            return replace(item, value=partial(guard.run, plugin, f"its metric {item.name}", item.value))
        return replace(item, parse=partial(guard.run, plugin, f"its option {item.name}", item.parse))

    if isinstance(value, list | tuple) and value and all(isinstance(item, Metric | Option) for item in value):
        return [guarded(item) for item in value]
    return value


def make(plugin: guard.Plugin, target: Callable[[], Any], argument: str, settings: Any) -> Any:
    """Load a factory by `target`, call it, and put the result behind the guard.

    Raises:
        T2TError: the factory says what the user has to fix.
        PluginFault: it failed, or made something that lacks what its kind must have.
    """
    factory = guard.load(plugin, target)
    made = guard.run(plugin, "its factory", factory, argument, settings)
    lacks = missing(plugin.kind, made)
    if lacks:
        raise plugin.fault(f"is of no use: its factory made {_name(made)}, {lacks}")
    return made if isinstance(made, str | Guarded) or plugin.kind not in METHODS else Guarded(plugin, made)


def _checked(plugin: guard.Plugin, method: str, called: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a method; a generator is guarded until it ends."""
    value = guard.run(plugin, called, function, *arguments, **named)
    try:
        complaint = wrong(plugin.kind, method, value)
    except Exception as error:
        raise guard.failed(plugin, called, error) from error
    if complaint:
        raise plugin.fault(f"returned {_name(value)} from {called}, {complaint}")
    if plugin.kind == "policy" and hasattr(value, "__next__"):
        return _steps(plugin, called, value)
    return _with_guarded_parts(plugin, value) if isinstance(value, list | tuple) else value


def _steps(plugin: guard.Plugin, called: str, iterator: Iterator[Any]) -> Iterator[Any]:
    step: Callable[..., Any] = next
    thrown: tuple[BaseException, ...] = ()
    try:
        while True:
            try:
                item = guard.run(plugin, called, step, iterator, *thrown)
            except StopIteration:
                return
            step, thrown = next, ()
            try:
                yield item
            except KeyboardInterrupt as stop:  # a policy may hand over what has arrived by then
                step, thrown = guard.throw_into, (stop,)
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            guard.run(plugin, called, close)


def _name(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
