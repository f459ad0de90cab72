"""Targets for the worlds: maps of lakes and their scenarios, messages and instances of tic-tac-toe."""

from __future__ import annotations

import contextlib
import json

from fuzz.common import linear, scratch, text_of, values_of
from t2t_core.errors import T2TError
from t2t_core.store import jsonlines
from t2t_envs.frozen_lake.maps import parse_desc, read_map, read_scenario
from t2t_envs.tictactoe.instance import Instance
from t2t_envs.tictactoe.parser import format_move, read_move

_MAP = b"type octile\nheight 3\nwidth 3\nmap\n..@\n.T.\n...\n"
_SCENARIO = b"version 1\n0\tm.map\t3\t3\t0\t0\t1\t2\t3\n0\tm.map\t3\t3\t0\t1\t2\t2\t3\n"


def board(data: bytes) -> None:
    """A map in rows of text, and MovingAI's files: the map and the scenario on it."""
    text, file, scenario = text_of(data), scratch() / "m.map", scratch() / "m.scen"
    for desc in (text, text.splitlines(), f"a.{text}\n..A"):
        with contextlib.suppress(T2TError):
            layout = parse_desc(desc)
            assert len(layout.starts) == len(layout.goals) and layout.grid.sum() == len(set(layout.holes))
            again = layout.instance()
            assert again.size == layout.size
    middle = len(_MAP) * (data[0] if data else 0) // 256
    for written in (data, _MAP[:middle] + data[1:] + _MAP[middle:]):
        file.write_bytes(written)
        with contextlib.suppress(T2TError):
            read_map(file)
    file.write_bytes(_MAP)
    middle = len(_SCENARIO) * (data[0] if data else 0) // 256
    for written in (data, b"version 1\n" + data, _SCENARIO[:middle] + data[1:] + _SCENARIO[middle:]):
        scenario.write_bytes(written)
        for agents in (1, 2):
            with contextlib.suppress(T2TError):
                assert all(len(lake.starts) == agents for lake in read_scenario(scenario, agents))
    linear(parse_desc, text)


def move(data: bytes) -> None:
    """A message of tic-tac-toe, and an instance as JSON."""
    text = text_of(data)
    for format in ("think", "compact"):
        reply = read_move(text, format)
        assert reply.cell is None or 0 <= reply.cell <= 999
        assert not reply.form or reply.cell in range(9), "what has the form says a move"
        drafted = read_move(f"<think><move>4</move></think>{text}", format).cell
        assert drafted == read_move(f"<think></think>{text}", format).cell, "a draft in thoughts counts for nothing"
        if reply.cell in range(9):
            assert read_move(format_move(reply.cell, format), format).cell == reply.cell
    base = {"id": "x", "board": "....X....", "mover": "opponent", "p": 0.5, "opponent": "mixed", "seed": 1, "seeded": True}
    for value in values_of(data, base):
        with contextlib.suppress(T2TError):
            made = Instance.from_dict(value)
            assert Instance.from_dict(jsonlines.loads(jsonlines.dumps(made.to_dict()))) == made
            json.dumps(made.to_dict(), allow_nan=False)
    linear(read_move, text)
