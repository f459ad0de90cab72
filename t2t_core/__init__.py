"""Contracts and machinery of the suite. Knows no environment and imports no torch."""

from t2t_core._version import __version__
from t2t_core.errors import T2TError

__all__ = ["T2TError", "__version__"]
