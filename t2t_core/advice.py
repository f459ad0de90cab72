"""The command to type to install something more. It depends on how this copy of the suite was installed."""

from __future__ import annotations

import shlex
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def checkout() -> Path | None:
    """The root of the source checkout that this copy runs from; None if it was installed as a wheel."""
    return _ROOT if (_ROOT / "setup.cfg").is_file() and (_ROOT / "setup.py").is_file() else None


def extra(*names: str) -> str:
    """The command that installs optional dependencies, by the names of setup.cfg's extras."""
    root, listed = checkout(), f"[{','.join(names)}]"
    return f"pip install {shlex.quote(f't2t-core{listed}')}" if root is None else f"pip install -e {_quoted(root, listed)}"


def native_core() -> str:
    """The command that adds the native core to an installation without one."""
    root = checkout()
    if root is not None:
        return f"install a C++20 compiler, then: pip install -e {_quoted(root)}"
    return (
        "pip install --force-reinstall --no-deps --no-cache-dir t2t-core brings it where there is a wheel for this platform; "
        "elsewhere it needs a C++20 compiler first"
    )


def _quoted(root: Path, extras: str = "") -> str:
    """The checkout as pip takes it: a dot in its root, its full path anywhere else."""
    folder = "." if root == Path.cwd() else str(root)
    return f"'{folder}{extras}'" if extras and "'" not in folder else shlex.quote(folder + extras)
