"""The testbeds on which the whole loop is tested, and what each needs for it: the two of the suite, the plugin template's
`change`, and `decanting`, which was written from the documentation alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jugs
from t2t_core.plugins import installed

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "examples" / "t2t-plugin-template" / "src"


@dataclass(frozen=True)
class World:
    """A testbed and everything that the commands are asked for on it; small, so that all of them take seconds."""

    testbed: str
    policies: Sequence[str]
    """Two, whose answers differ."""
    options: Sequence[str]
    """Of the testbed, for `bench`, `run` and `sweep`."""
    set_name: str
    run: Mapping[str, Any]
    """A run's settings."""
    configurations: Mapping[str, Mapping[str, Any]]
    """Two that differ, by name."""
    answer: str = ""
    """Some answer, for `show`."""
    solves: bool = False
    generate: Sequence[str] = ()
    words: Sequence[str] = field(default_factory=tuple)
    """What must stand in its reports: its own word for a group, a knob with its unit."""


def _lake(hole: float) -> dict[str, Any]:
    sizes = [str(size) for size in range(3, 11)]
    return {size: {"data_ratio": 0.125, "hole_ratio": hole, "wait_ratio": 0.5} for size in sizes}


def _change(share: float) -> dict[str, Any]:
    return {
        "usual": {"share": share, "amount": 80, "kinds": 4},
        "strange": {"share": 1 - share, "amount": 120, "kinds": 3},
    }


LAKE = World(
    testbed="mapf-frozenlake",
    policies=("prioritized", "independent"),
    options=("--agents", "3"),
    set_name="3agents",
    run={
        "testbed": "mapf-frozenlake", "policy": "independent", "designer": "rule", "context": "F,G,H", "rounds": 2,
        "generation": {"samples": 16, "agents": 2}, "validation": {"set": "validation_2agents", "limit": 1},
        "evaluation": {"limit": 1},
    },
    configurations={"open": _lake(0.05), "narrow": _lake(0.3)},
    answer="<answer>\nAgent 0: (0,0)\n</answer>",
    solves=True,
    generate=("--agents", "2"),
    words=("map size", "hole ratio"),
)  # fmt: skip
CHANGE = World(
    testbed="change",
    policies=("coins", "random-coins"),
    options=("--systems", "strange"),
    set_name="strange",
    run={
        "testbed": "change", "policy": "coins:{checkpoint}", "trainer": "remember", "designer": "focus", "context": "F,W,H",
        "rounds": 2, "generation": {"samples": 12}, "training": {"tries": 4},
        "validation": {"set": "validation", "limit": 1}, "evaluation": {"limit": 1},
    },
    configurations={"even": _change(0.5), "strange": _change(0.1)},
    answer="I pay [4, 4]",
    words=("coin system", "cents", "kinds"),
)  # fmt: skip
DECANTING = World(
    testbed="decanting",
    policies=("decanter:depth=9", "decanter"),
    options=("--sources", "tank,spring"),
    set_name="cellar",
    run={
        "testbed": "decanting", "policy": "decanter", "designer": "rule", "context": "F,G,H", "rounds": 2,
        "generation": {"samples": 15}, "validation": {"set": "cellar", "limit": 1}, "evaluation": {"limit": 2},
    },
    configurations={
        name: {source: {"part": 1 / 3, "litres": 9, "jugs": 2, "steps": steps} for source in jugs.SOURCES}
        for name, steps in (("short", 3), ("long", 7))
    },
    answer="Steps: pour A B",
    words=("source of water", "9 l", "jugs", "steps"),
)  # fmt: skip
TICTACTOE = World(
    testbed="tictactoe",
    policies=("minimax", "first-free"),
    options=("--opponents", "random"),
    set_name="random",
    run={
        "testbed": "tictactoe", "policy": "minimax:p=0.5", "designer": "rule", "context": "F,G,H", "rounds": 2,
        "generation": {"samples": 16}, "validation": {"set": "validation", "limit": 1}, "evaluation": {"limit": 1},
    },
    configurations={
        name: {
            band: {"share": 0.25, "p_low": float(low), "p_high": float(high), "first": first, "mid_game": 0.5}
            for band in ("0.75-1", "0.5-0.75", "0.25-0.5", "0-0.25")
            for low, high in [band.split("-")]
        }
        for name, first in (("first", 1.0), ("second", 0.0))
    },
    answer="no move",
    words=("opponent band", "p low"),
)  # fmt: skip
WORLDS = {world.testbed: world for world in (LAKE, TICTACTOE, CHANGE, DECANTING)}


class RandomCoins:
    """Pays with coins of one kind, which is seldom right."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {"deterministic": True, "batch_size": None}

    def respond(self, tasks: Any, sampling: Any) -> Any:
        from t2t_core.records import Response

        for position, task in enumerate(tasks):
            coin = max(task.instance.coins)
            yield position, Response(f"[{', '.join([str(coin)] * max(1, task.instance.amount // coin))}]")


def register() -> None:
    """The testbeds that are not installed, with all that the plugin template brings, in this process."""
    plugins = installed()
    jugs.register()
    if "change" in plugins.testbeds:
        return
    if str(TEMPLATE) not in sys.path:
        sys.path.insert(0, str(TEMPLATE))
    from t2t_plugin_template import plugin

    for kind in ("testbeds", "policies", "designers", "contexts", "trainers", "presets"):
        getattr(plugin, f"register_{kind}")(getattr(plugins, kind))
    plugins.policies.add("random-coins", RandomCoins, "one kind of coins")


def write(world: World, folder: Path) -> Path:
    """The world's files, for a command line: `run.toml` and a JSON file per configuration; returns the former."""
    for name, configuration in world.configurations.items():
        (folder / f"{name}.json").write_text(json.dumps(configuration))
    lines = [f"{key} = {json.dumps(value)}" for key, value in world.run.items() if not isinstance(value, dict)]
    for table, values in world.run.items():
        if isinstance(values, dict):
            lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    path = folder / "run.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
