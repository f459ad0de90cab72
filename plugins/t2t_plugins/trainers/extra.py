"""The trainers need the extra `train`; without it a run says so in a sentence, before it has begun."""

from __future__ import annotations

from importlib import import_module

from t2t_core.errors import T2TError


def require(where: str, *modules: str) -> None:
    """T2TError where one of the modules cannot be imported."""
    for name in modules:
        try:
            import_module(name)
        except ImportError as error:
            raise T2TError(
                "this trainer needs the training extra",
                where=where,
                cause=str(error)[:300],
                next="pip install 't2t-core[train]', in a checkout pip install -e '.[train]'; --trainer none trains nothing",
            ) from None
