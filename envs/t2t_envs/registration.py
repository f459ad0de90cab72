"""Registers the environments with Gymnasium and PettingZoo once both this package and the library are imported.

Importing Gymnasium costs more than everything else behind `t2t --help`, so importing this package does not import it. If
Gymnasium is already imported, the environments are registered at once; otherwise right after its import.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

LAKE, GAME = f"{__package__}.frozen_lake.gym", f"{__package__}.tictactoe.gym"


def _with_gymnasium() -> None:
    from gymnasium.envs.registration import register

    # Gymnasium's passive checker looks at what an environment returns, not at what its user does, and takes as long as making
    # and resetting it. Our tests run the checker instead; gym.make(..., disable_env_checker=False) switches it on.
    def add(name: str, entry_point: str, vector: str | None = None) -> None:
        register(name, entry_point=entry_point, vector_entry_point=vector, disable_env_checker=True)

    add("MAPFFrozenLake-v0", f"{LAKE}.gym_env:MAPFFrozenLakeEnv", f"{LAKE}.vector_env:MAPFFrozenLakeVectorEnv")
    add("MAPFFrozenLakeText-v0", f"{LAKE}.text_env:MAPFFrozenLakeTextEnv")
    add("T2TTicTacToe-v0", f"{GAME}.gym_env:TicTacToeEnv")
    add("TicTacToeText-v0", f"{GAME}.text_env:TicTacToeTextEnv")


def _with_pettingzoo() -> None:
    from pettingzoo import register

    register("parallel", "MAPFFrozenLake-v0", entry_point=f"{LAKE}.pettingzoo_env:parallel_env")
    register("aec", "MAPFFrozenLake-v0", entry_point=f"{LAKE}.pettingzoo_env:env")
    register("aec", "TicTacToe-v0", entry_point=f"{GAME}.pettingzoo_env:env")


_REGISTER = {"gymnasium": _with_gymnasium, "pettingzoo": _with_pettingzoo}


class _ThenRegister(Loader):
    """Loads a module with its own loader, then registers."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _REGISTER[module.__name__]()


class _AfterImport(MetaPathFinder):
    """Finds what the other finders find, but gives the two libraries a loader that registers once they are fully loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _REGISTER:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _ThenRegister(spec.loader)
                return spec
        return None


def register_environments() -> None:
    """Register now with each library that is already imported, and with the others as soon as they are."""
    missing = [name for name in _REGISTER if name not in sys.modules]
    if missing:
        sys.meta_path.insert(0, _AfterImport())
    for name, register in _REGISTER.items():
        if name not in missing:
            register()
