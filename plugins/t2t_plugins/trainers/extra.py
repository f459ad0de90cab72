"""The trainers need the extra `train`. If it is missing, a run says so in one sentence before it begins."""

from __future__ import annotations

from importlib import import_module

from t2t_core import advice
from t2t_core.errors import NotReady

_WHAT = "this trainer needs the training extra"


def require(where: str, *modules: str, what: str = _WHAT, next: str | None = None) -> None:
    """Raise NotReady if one of the modules cannot be imported."""
    for name in modules:
        try:
            import_module(name)
        except ImportError as error:
            mend = next or f"{advice.extra('train')}; --trainer none trains nothing"
            raise NotReady(what, where=where, cause=str(error)[:300], next=mend) from None
