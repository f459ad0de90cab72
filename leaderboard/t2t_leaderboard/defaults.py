"""Which policies `t2t bench` measures when none is named: those that ship with the suite, by testbed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from t2t_core.errors import T2TError

_SOLVERS = {"mapf-frozenlake": ("cbs", "prioritized", "pibt", "independent", "random")}
_TOYS = {"mapf-frozenlake": ("tiny:designed", "tiny:control", "tiny", "tiny:2agents")}
_TOYS_NEED = ("torch", "transformers")


def policies(testbed: str) -> Sequence[str]:
    """The policies of a testbed's board; the toy models among them only where what runs them is installed."""
    if testbed not in _SOLVERS:
        raise T2TError(f"which policies? {testbed} has no default ones", next="--policy SPEC; t2t plugins lists them")
    runnable = all(find_spec(name) for name in _TOYS_NEED)
    return (*_SOLVERS[testbed], *(_TOYS.get(testbed, ()) if runnable else ()))


def missing(testbed: str, measured: Iterable[str]) -> str | None:
    """What a board of the default policies says where the toy models' rows are missing."""
    found, toys = set(measured), _TOYS.get(testbed, ())
    if not toys or found & set(toys) or not found >= set(_SOLVERS[testbed]):
        return None
    return f"the toy policy's rows ({', '.join(toys)}) need torch: pip install -e '.[train]', then the same command adds them"
