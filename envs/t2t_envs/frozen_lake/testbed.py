"""MAPF-FrozenLake as a testbed: connects this environment to the suite."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Testbed
from t2t_core.records import Cell, InstanceSet, Knob, Metric, Option, Place, Projection, Response, Scored, Verdict

from . import sets
from .breakdown import breakdown, cell_name
from .generation.configuration import GROUP, KNOBS, MAX_HOLE_RATIO, SIZES, Configuration
from .generation.generator import generate
from .generation.overlap import shared
from .generation.projection import project, random_configuration
from .generation.request import Request
from .instance import Instance
from .observed import OBSERVED
from .parser import READER, parse_answer
from .prompt import FORMATS, make_prompt
from .reported import reported_arms, reported_rows
from .reward import FLOOR, UNKNOWN, reward
from .verifier import CHECKS, verify

GUIDELINE = """\
- An instance teaches when the policy sometimes solves it. Sizes that are always solved, or never, give little signal per sample.
- Keep every size in the mixture: the evaluation weighs all of them alike, and what is not trained is forgotten.
- Holes narrow the ways, so that paths grow longer and meet more often. Raise a size's hole ratio when its instances have \
become easy; lower it when most answers enter holes or make illegal moves.
- Instances that require a wait teach timing. They matter most where answers fail by conflicts; where paths alone still \
fail, they come too early.
- A large map is not hard by itself: agents on it rarely meet. Interaction is made by holes and by the wait ratio.
- The policy is evaluated with more agents than it is trained with, so coordination is worth more than long paths.
- Move a few knobs by moderate steps, and look at the next validation before moving them further."""

AGENTS = (3, 4, 5)
LEVELS = (0.05, 0.15, 0.25, 0.35, 0.45)  # the middles of the fifths of the hole ratio's range
_CELL = re.compile(r"(\d+)x\1 holes=(\d+)( wait| no-wait|)")
_AGENTS_HELP = "evaluate with so many agents, e.g. 3,4,5 (2: the validation set)"
_NEXT = "--agents 3,4,5"
_SIZE = re.compile(
    r"(?:(?:(?:map|grid|lake|board)[ _-]?)?(?:size|n)[ _:=-]{0,3}|(?:map|grid|lake|board)[ _:-]{0,2})?(?P<rows>[1-9][0-9]?)"
    r"(?:[ -]?(?:x|×|\*|by)[ -]?(?P<columns>[1-9][0-9]?))?(?:[ _-]?(?:maps?|grids?|lakes?|boards?))?",
    re.IGNORECASE | re.ASCII,
)


def _rate(name: str, title: str, value: Any) -> Metric:
    return Metric(name, title, "rate", value, "%")


def _valid(verdict: Verdict, response: Response) -> float:
    return float(verdict.valid)


def _optimal(verdict: Verdict, response: Response) -> float | None:
    return None if verdict.optimal is None else float(verdict.optimal)


def _makespan_gap(verdict: Verdict, response: Response) -> float | None:
    return verdict.gaps.get("makespan")


def _trajectory_length(verdict: Verdict, response: Response) -> float | None:
    return verdict.costs.get("sum_of_costs")


def _tokens(verdict: Verdict, response: Response) -> float | None:
    return response.completion_tokens


def parse_agents(text: str) -> tuple[int, ...]:
    """`3,4,5` -> (3, 4, 5), in that order, each once. T2TError for anything else."""
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(piece.isascii() and piece.isdecimal() and len(piece) <= 2 for piece in pieces):
        raise T2TError(f"--agents takes numbers separated by commas, not {ascii(text)[:60]}", next=_NEXT)
    return tuple(dict.fromkeys(int(piece) for piece in pieces))


def _sets_with(agents: int) -> list[str]:
    return [name for name in sets.NAMES if name in (f"{agents}agents", f"validation_{agents}agents")]


def _ended(path: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """A path up to the step from which it stays on its last cell."""
    end = len(path)
    while end > 1 and path[end - 2] == path[end - 1]:
        end -= 1
    return tuple(path[:end])


@functools.cache
def _protected(agents: int) -> frozenset[bytes]:
    """The canonical forms that training must not contain."""
    return frozenset(instance.canonical() for name in _sets_with(agents) for instance in sets.load_set(name).instances)


class MAPFFrozenLake(Testbed[Instance, Configuration, Request]):
    """Multi-agent path finding on frozen lakes: see the module of each part for its rules and sources."""

    name = "mapf-frozenlake"
    title = "multi-agent path finding on frozen lakes (MAPF-FrozenLake)"
    group = GROUP
    groups = tuple(str(size) for size in SIZES)
    groups_rise = True
    sameness = "up to the grid's symmetries and the agents' labels"
    checks = CHECKS
    reader = READER
    metrics: Sequence[Metric] = (
        _rate("valid", "valid", _valid),
        _rate("optimal", "optimal", _optimal),
        Metric("makespan_gap", "makespan gap", "mean", _makespan_gap, "steps", higher_is_better=False),
        Metric("trajectory_length", "total trajectory length", "mean", _trajectory_length, "steps", higher_is_better=False),
        Metric("response_tokens", "response tokens", "mean", _tokens, "tokens", higher_is_better=False),
    )
    guideline = GUIDELINE
    rubric: Mapping[str, float] = {"accuracy": 1.0}
    length_term = True
    remedies: Mapping[str, Mapping[str, int]] = {
        "conflict_free": {"wait_ratio": 1},
        "hole_free": {"hole_ratio": -1},
        "legal_move": {"hole_ratio": -1},
    }
    joint_cells = True
    preset = "tiny"
    baselines = ("cbs", "prioritized", "pibt", "independent", "random", "tiny:designed", "tiny:control", "tiny", "tiny:2agents")
    commands: Mapping[str, str] = {name: f"t2t_envs.cli.{name}:{name}" for name in ("generate", "show", "solve")}
    file_formats: Mapping[str, str] = {
        "movingai": "t2t_envs.frozen_lake.movingai:FILES",
        "yaml": "t2t_envs.frozen_lake.yaml_files:FILES",
    }
    observed = OBSERVED
    constants: Mapping[str, Any] = {
        "accuracy_of_valid": f"1.0 at gap 0, linear to {FLOOR} at gap 2 x optimum",
        "accuracy_without_optimum": UNKNOWN,
    }

    def __init__(self) -> None:
        self.prompt_formats: Sequence[str] = tuple(FORMATS)

    def options(self) -> Sequence[Option]:
        return (Option("agents", _AGENTS_HELP, "3,4,5", parse_agents),)

    # --- configuration of the generator

    def knobs(self, request: Request) -> Sequence[Knob]:
        """Set for each map size 3..10."""
        return KNOBS

    def group_of(self, text: str) -> str | None:
        """The map size that a designer means by a key: "3", "3x3", "3 × 3", "size 3", "3x3 maps" -> "3". Sizes that no
        configuration has are named too ("11x11" -> "11"), so that Project drops them by name; None for anything else."""
        match = _SIZE.fullmatch(text.strip())
        return None if match is None or match["columns"] not in (None, match["rows"]) else match["rows"]

    def cells(self, request: Request) -> Sequence[Cell]:
        """Map size x a fifth of the hole ratio's range (named by its middle) x whether a wait is required (our choice)."""
        return [
            Cell(f"{size}x{size} holes {middle:.0%} {'wait' if wait else 'no wait'}", str(size),
                 {"hole_ratio": middle, "wait_ratio": float(wait)})
            for size in SIZES
            for middle in LEVELS
            for wait in (False, True)
        ]  # fmt: skip

    def cell_of(self, cell: str) -> str | None:
        match = _CELL.fullmatch(cell)
        if match is None:
            return None
        size, holes = int(match[1]), int(match[2])
        level = min(len(LEVELS) - 1, int(holes / size**2 / MAX_HOLE_RATIO * len(LEVELS) + 1e-9))
        return f"{size}x{size} holes {LEVELS[level]:.0%} {'wait' if match[3] == ' wait' else 'no wait'}"

    def request(self, count: int, **options: Any) -> Request:
        """`count` training instances. Options: `agents` (default 2), `objective`, `repeats`, `exclude` (canonical forms;
        default: those of the protected sets with as many agents)."""
        known = {"agents": "num_agents", "objective": "objective", "exclude": "exclude", "repeats": "repeats"}
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise T2TError(f"unknown generation option {ascii(unknown[0])[:60]}", next="use one of " + ", ".join(known))
        request = Request(count, **{known[name]: value for name, value in options.items()})
        if "exclude" in options:
            return request
        return replace(request, exclude=_protected(request.num_agents))

    def read_configuration(self, data: Mapping[str, Any]) -> Configuration:
        return Configuration.from_dict(data)

    def random_configuration(self, request: Request, seed: int) -> Configuration:
        return random_configuration(request, seed)

    def project(self, proposal: Mapping[str, Any] | None, previous: Configuration, request: Request) -> Projection[Configuration]:
        return project(proposal, previous, request)

    # --- instances

    def generate(self, configuration: Configuration, request: Request, seed: int) -> Sequence[Instance]:
        return generate(
            configuration,
            request.count,
            request.num_agents,
            seed,
            request.objective,
            request.exclude,
            request.repeats,
            threads=min(os.cpu_count() or 1, 16),
        )

    def read_instance(self, data: Mapping[str, Any]) -> Instance:
        return Instance.from_dict(data)

    def unlabelled(self, instance: Instance) -> Instance:
        return instance.unlabelled()

    def place(self, instance: Instance) -> Place:
        column = f"{instance.size}x{instance.size}"
        return Place(f"{instance.num_agents} agents", column, cell_name(instance), str(instance.size))

    def identity(self, instance: Instance) -> bytes:
        return instance.canonical()

    def set_names(self, options: Mapping[str, Any]) -> Sequence[str]:
        """The frozen sets of these numbers of agents (2: the validation set). Raises T2TError if one has none."""
        names: list[str] = []
        for agents in options.get("agents", AGENTS):
            matching = _sets_with(agents)
            if not matching:
                known = "there are " + ", ".join(sets.NAMES)
                raise T2TError(f"there is no frozen set with {agents} agents", cause=known, next=_NEXT)
            names += matching
        return names

    def load_set(self, name: str) -> InstanceSet:
        return sets.load_set(name)

    def protected_sets(self) -> Sequence[str]:
        return sets.NAMES

    def shared(self, instances: Sequence[Instance], others: Sequence[Instance]) -> Mapping[str, int]:
        return shared(instances, others)

    def twin(self, name: str, seed: int) -> InstanceSet:
        return sets.twin(name, seed)

    # --- question, answer, reward

    def prompt(self, instance: Instance, format: str) -> str:
        return make_prompt(instance, format)

    def verify(self, instance: Instance, answer: str, format: str = "") -> Verdict:
        return verify(instance, answer)

    def plan(self, instance: Instance, answer: str) -> Hashable | None:
        """The paths by agent, without waits at their ends, since agents stay where their paths end anyway."""
        paths = parse_answer(answer)
        return None if paths is None else frozenset((str(label), _ended(path)) for label, path in paths.items())

    def picture(self, instance: Instance, answer: str, format: str = "") -> str:
        from .draw.moving import render_moving

        paths = {agent: path for agent, path in (parse_answer(answer) or {}).items() if isinstance(agent, int)}
        return render_moving(instance, paths)

    def reward_terms(self, instance: Instance, verdict: Verdict) -> Mapping[str, float]:
        return {"accuracy": reward(instance, verdict)}

    def reported(self, set_name: str, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return reported_rows(set_name, columns)

    def reported_arms(self, set_name: str) -> Sequence[Mapping[str, Any]]:
        return reported_arms(set_name)

    def breakdown(self, scored: Sequence[Scored]) -> Mapping[str, Any]:
        return breakdown(scored)


def make(argument: str = "", settings: Mapping[str, str] | None = None) -> MAPFFrozenLake:
    """The testbed; it takes neither argument nor settings."""
    if argument or settings:
        raise T2TError("the testbed mapf-frozenlake takes no argument and no settings", next="--testbed mapf-frozenlake")
    return MAPFFrozenLake()
