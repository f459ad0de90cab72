"""Tic-tac-toe as a testbed: the plug between this environment and the suite."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.hookspecs import Testbed
from t2t_core.records import Cell, InstanceSet, Knob, Message, Metric, Option, Place, Projection, Response, Verdict
from t2t_core.seeding import key

from . import sets
from .game import TURNS, replay
from .generation.configuration import BANDS, GROUP, KNOBS, NAMES, Configuration, band_of
from .generation.generator import generate
from .generation.projection import project, random_configuration
from .generation.request import Request
from .instance import MAX_SEED, Instance
from .parser import FORMATS, READER
from .prompt import MEMORYLESS, make_prompt, make_reply
from .reward import RANGE, RUBRIC, reward_terms
from .verifier import CHECKS, verify

GUIDELINE = """\
- A game teaches when the policy's rollouts of it end differently. Opponents against whom every rollout ends alike teach nothing.
- Weak opponents (p near 1) teach to attack: they leave wins open. Strong ones (p near 0) teach to defend: against perfect play \
from the empty board nothing is ever won, and a policy that meets nothing else learns to defend only.
- The policy is evaluated against random moves and against optimal play, so neither attack nor defence may be forgotten.
- Forks are punished by strong opponents only; missed wins cost nothing where the opponent leaves none.
- Moving second is harder than moving first. Starts in mid-game show positions that the policy's own play would never reach.
- Move a few knobs by moderate steps, and look at the next validation before moving them further."""
_NUMBER = r"(?:0?\.[0-9]{1,4}|[01](?:\.[0-9]{1,4})?)"
_BAND = re.compile(
    r"(?:(?:opponent )?(?:band|group|range|p)[ :=]{0,3}){0,2}"
    rf"[\[(]?\s?({_NUMBER})\s?(?:-|–|—|,|;|to|\.\.)\s?({_NUMBER})\s?[\])]?",
    re.IGNORECASE | re.ASCII,
)
_OPPONENTS_HELP = "evaluate against these opponents, e.g. random,optimal,second"


def _figure(name: str, title: str, higher_is_better: bool = True) -> Metric:
    def value(verdict: Verdict, response: Response) -> float:
        return verdict.figures[name]

    return Metric(name, title, "rate", value, "%", higher_is_better)


def _valid(verdict: Verdict, response: Response) -> float:
    return float(verdict.valid)


def _optimal(verdict: Verdict, response: Response) -> float:
    return float(bool(verdict.optimal))


def _in_form(verdict: Verdict, response: Response) -> float:
    return float(verdict.checks["format"])


def _turns(verdict: Verdict, response: Response) -> float:
    return verdict.figures["turns"]


def _tokens(verdict: Verdict, response: Response) -> float | None:
    return response.completion_tokens


def parse_opponents(text: str) -> tuple[str, ...]:
    """`random,optimal` -> ("random", "optimal"), in that order, each once. Raises T2TError for anything else."""
    pieces = [piece.strip() for piece in text.split(",")]
    unknown = [piece for piece in pieces if piece not in sets.EVALUATION]
    if unknown:
        raise T2TError(
            f"there is no set against the opponent {ascii(unknown[0])[:60]}",
            cause="there are " + ", ".join(sets.EVALUATION),
            next="--opponents " + ",".join(sets.EVALUATION),
        )
    return tuple(dict.fromkeys(pieces))


class TicTacToe(Testbed[Instance, Configuration, Request]):
    """Tic-tac-toe in turns of text. The module of each part gives its rules and sources."""

    name = "tictactoe"
    title = "tic-tac-toe against an opponent of chosen strength"
    guideline = GUIDELINE
    group = GROUP
    groups = NAMES
    groups_rise = True
    sameness = "up to the board's symmetries"
    metrics: Sequence[Metric] = (
        _figure("win", "won"),
        _figure("draw", "drawn"),
        _figure("loss", "lost", higher_is_better=False),
        Metric("valid", "valid", "rate", _valid, "%"),
        Metric("optimal", "optimal", "rate", _optimal, "%"),
        Metric("format", "format", "rate", _in_form, "%"),
        _figure("invalid", "with an invalid move", higher_is_better=False),
        Metric("turns", "turns", "mean", _turns, "", higher_is_better=False),
        Metric("response_tokens", "response tokens", "mean", _tokens, "tokens", higher_is_better=False),
    )
    checks = CHECKS
    reader = READER
    prompt_formats = FORMATS
    memoryless = MEMORYLESS
    turns = TURNS
    rubric = RUBRIC
    reward_range = RANGE
    remedies: Mapping[str, Mapping[str, int]] = {
        "no_missed_win": {"p_low": 1, "p_high": 1},
        "no_missed_block": {"p_low": -1, "p_high": -1},
        "no_fork": {"p_low": -1, "p_high": -1},
    }
    preset = "tictactoe"
    commands: Mapping[str, str] = {"show": "t2t_envs.cli.show_game:show"}
    baselines = ("minimax", "random", "first-free", "tiny:tictactoe")

    def options(self) -> Sequence[Option]:
        return (Option("opponents", _OPPONENTS_HELP, ",".join(sets.EVALUATION), parse_opponents),)

    # --- configuration of the generator

    def knobs(self, request: Request) -> Sequence[Knob]:
        return KNOBS

    def group_of(self, text: str) -> str | None:
        """The band that a designer means by a key: "0.25-0.5", "[0.25, 0.5)", "p 0.25 to 0.50", "band .25–.5"; None for anything
        else, including a range that is not a band."""
        match = _BAND.fullmatch(text.strip())
        if match is None:
            return None
        ends = (float(match[1]), float(match[2]))
        return next((band.name for band in BANDS if (band.low, band.high) == ends), None)

    def cells(self, request: Request) -> Sequence[Cell]:
        """Band x who moves first x where the game starts (our choice)."""
        return [
            Cell(_cell(band.name, first, mid_game), band.name,
                 {"p_low": band.low, "p_high": band.high, "first": float(first), "mid_game": float(mid_game)})
            for band in BANDS
            for first in (True, False)
            for mid_game in (False, True)
        ]  # fmt: skip

    def cell_of(self, cell: str) -> str | None:
        band = cell.partition(" ")[0]
        known = band in NAMES and cell in [_cell(band, first, mid) for first in (True, False) for mid in (False, True)]
        return cell if known else None

    def request(self, count: int, **options: Any) -> Request:
        """A request for `count` training games. Options: `opponent`, `seeded`, `stratified` (see `Request`) and `exclude`
        (identities; default: those of the protected sets)."""
        known = ("exclude", "opponent", "seeded", "stratified")
        unknown = [name for name in options if name not in known]
        if unknown:
            raise T2TError(f"unknown generation option {ascii(unknown[0])[:60]}", cause="known: " + ", ".join(known))
        exclude = options.pop("exclude", None)
        return Request(count, sets.identities() if exclude is None else frozenset(exclude), **options)

    def read_configuration(self, data: Mapping[str, Any]) -> Configuration:
        return Configuration.from_dict(data)

    def random_configuration(self, request: Request, seed: int) -> Configuration:
        return random_configuration(seed)

    def project(self, proposal: Mapping[str, Any] | None, previous: Configuration, request: Request) -> Projection[Configuration]:
        return project(proposal, previous)

    # --- instances

    def generate(self, configuration: Configuration, request: Request, seed: int) -> Sequence[Instance]:
        return generate(configuration, request, seed)

    def read_instance(self, data: Mapping[str, Any]) -> Instance:
        return Instance.from_dict(data)

    def unlabelled(self, instance: Instance) -> Instance:
        """The game itself, because a game stores no solution: best play is computed when needed."""
        return instance

    def rollout(self, instance: Instance, number: int) -> Instance:
        """The game itself; if it is not `seeded`, with chance of its own."""
        if instance.seeded:
            return instance
        return replace(instance, seed=key(instance.seed, "rollout", number) & MAX_SEED)

    def identity(self, instance: Instance) -> bytes:
        return instance.identity()

    def place(self, instance: Instance) -> Place:
        """Tables are by opponent. Opponents of the evaluation sets have one column for each mover, others one for each band."""
        band = band_of(instance.p).name
        cell = _cell(band, instance.mover == "policy", not instance.starts_empty)
        table = _TABLES.get((instance.p, instance.opponent))
        if table is None:
            rule = "" if instance.opponent == "mixed" else f", {instance.opponent}"
            return Place(f"against mixed play{rule}", f"p {band}", cell, band)
        return Place(table, "moving first" if instance.mover == "policy" else "moving second", cell, band)

    def set_names(self, options: Mapping[str, Any]) -> Sequence[str]:
        """The frozen sets against these opponents."""
        return tuple(options.get("opponents", sets.EVALUATION))

    def load_set(self, name: str) -> InstanceSet:
        return sets.load_set(name)

    def protected_sets(self) -> Sequence[str]:
        return sets.NAMES

    def twin(self, name: str, seed: int) -> InstanceSet:
        return sets.twin(name, seed)

    def shared(self, instances: Sequence[Instance], others: Sequence[Instance]) -> Mapping[str, int]:
        """How many training games start, up to symmetry, from the same position with the same mover as some measured game. Every
        game from the empty board does, but the chance in it differs."""
        starts = {other.identity()[:5] for other in others}
        return {"starting positions": sum(instance.identity()[:5] in starts for instance in instances)}

    def reported(self, set_name: str, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        from .reported import reported_rows

        return reported_rows(set_name)

    # --- question, answer, worth

    def prompt(self, instance: Instance, format: str) -> str:
        return make_prompt(instance, format)

    def reply(self, instance: Instance, messages: Sequence[Message], format: str) -> Sequence[Message]:
        game = replay(instance, messages, format)
        return () if game.result is not None else (Message("user", make_reply(game, format)),)

    def verify(self, instance: Instance, answer: Any, format: str = "") -> Verdict:
        return verify(instance, answer, format)

    def picture(self, instance: Instance, answer: Any, format: str = "") -> str:
        from .draw.svg import render_svg

        return render_svg(instance, replay(instance, answer, format or FORMATS[0]), animate=True)

    def reward_terms(self, instance: Instance, verdict: Verdict) -> Mapping[str, float]:
        return reward_terms(verdict)


_TABLES = {
    (1.0, "mixed"): "against random moves",
    (0.0, "mixed"): "against optimal play",
    (0.0, "second"): "against the second optimal player",
}


def _cell(band: str, first: bool, mid_game: bool) -> str:
    return f"{band} {'first' if first else 'second'} {'mid-game' if mid_game else 'start'}"


def make(argument: str = "", settings: Mapping[str, str] | None = None) -> TicTacToe:
    """The testbed; it takes neither argument nor settings."""
    if argument or settings:
        raise T2TError("the testbed tictactoe takes no argument and no settings", next="--testbed tictactoe")
    return TicTacToe()
