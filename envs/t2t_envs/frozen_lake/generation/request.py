"""What a caller asks of the generator besides the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_core.errors import T2TError
from t2t_core.hostile import shown

from ..instance import MAX_AGENTS, OBJECTIVES, _integer

REPEATS = ("allow", "forbid")
MAX_COUNT = 10_000_000


@dataclass(frozen=True)
class Request:
    """What a caller asks of the generator besides the configuration.
    Args:
        count: number of instances.
        num_agents: 1..16.
        objective: "makespan" or "sum_of_costs"; `requires_wait` refers to it.
        exclude: canonical forms (`Instance.canonical()`) that are never drawn.
        repeats: "allow" draws instances distinct up to relabelling agents, and repeats some only if a small size has no more;
            "forbid" draws one per canonical form.
    """

    count: int
    num_agents: int = 2
    objective: str = "makespan"
    exclude: frozenset[bytes] = frozenset()
    repeats: str = "allow"

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "count", _integer(self.count, "count", 1, MAX_COUNT, "request"))
        put(self, "num_agents", _integer(self.num_agents, "num_agents", 1, MAX_AGENTS, "request"))
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("repeats", self.repeats, REPEATS)
        exclude = self.exclude
        if isinstance(exclude, (str, bytes)) or not all(isinstance(form, bytes) for form in exclude):
            raise T2TError("exclude must hold canonical forms, as bytes", next="{x.canonical() for x in instances}")
        put(self, "exclude", frozenset(exclude))


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """T2TError unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise T2TError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}", where=name)
