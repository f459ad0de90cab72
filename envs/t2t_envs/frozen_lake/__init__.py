"""MAPF-FrozenLake: multi-agent path finding on frozen lakes (see docs, "The task").

A public name is loaded when it is first used, so importing the package costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_core.records import Verdict

    from .draw.render import render_ansi, render_gif, render_html, render_rgb, render_svg
    from .generation.configuration import Configuration
    from .generation.generator import generate
    from .instance import Instance
    from .jsonl import read_instances, write_instances
    from .parser import format_answer, parse_answer
    from .prompt import make_prompt
    from .reward import AdaptiveWeights, accuracy_reward, length_reward, total_reward
    from .solver import SearchLimitError, Solution, UnsolvableError, requires_wait, solve, solve_many
    from .verifier import CHECKS, verify, verify_paths

_HOME = {
    "Instance": "instance",
    "Configuration": "generation.configuration",
    "generate": "generation.generator",
    "Solution": "solver",
    "solve": "solver",
    "solve_many": "solver",
    "requires_wait": "solver",
    "UnsolvableError": "solver",
    "SearchLimitError": "solver",
    "CHECKS": "verifier",
    "Verdict": "verifier",
    "verify": "verifier",
    "verify_paths": "verifier",
    "format_answer": "parser",
    "parse_answer": "parser",
    "make_prompt": "prompt",
    "AdaptiveWeights": "reward",
    "accuracy_reward": "reward",
    "length_reward": "reward",
    "total_reward": "reward",
    "read_instances": "jsonl",
    "write_instances": "jsonl",
    "render_ansi": "draw.render",
    "render_gif": "draw.render",
    "render_html": "draw.render",
    "render_rgb": "draw.render",
    "render_svg": "draw.render",
}

__all__ = [
    "CHECKS",
    "AdaptiveWeights",
    "Configuration",
    "Instance",
    "SearchLimitError",
    "Solution",
    "UnsolvableError",
    "Verdict",
    "accuracy_reward",
    "format_answer",
    "generate",
    "length_reward",
    "make_prompt",
    "parse_answer",
    "read_instances",
    "render_ansi",
    "render_gif",
    "render_html",
    "render_rgb",
    "render_svg",
    "requires_wait",
    "solve",
    "solve_many",
    "total_reward",
    "verify",
    "verify_paths",
    "write_instances",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
