"""Pictures: they show what is there, survive hostile paths, load no other file and run only their own script."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pytest

from t2t_core.errors import T2TError
from t2t_envs.frozen_lake import (
    Instance,
    format_answer,
    render_ansi,
    render_gif,
    render_html,
    render_rgb,
    render_svg,
    verify,
    verify_paths,
)
from t2t_envs.frozen_lake.draw.scene import ALARM, ICE, MAX_STEPS, PALETTE, luminance, text_on

LAKE = Instance(size=3, holes=[(0, 1)], starts=[(2, 0), (1, 0)], goals=[(1, 2), (2, 2)], id="2agents_3x3_0001")
PATHS = [[(2, 0), (2, 1), (2, 2), (1, 2)], [(1, 0), (1, 1), (2, 1), (2, 2)]]
CRASH = [[(2, 0), (1, 0)], [(1, 0), (2, 0)]]
HOSTILE = [[(2, 0), (10**6, -5), (-(10**6), 2)], [(1, 0)] * 5000]


def test_terminal_board_and_table() -> None:
    text = render_ansi(LAKE, PATHS)
    assert text.splitlines()[:4] == [
        "      0    1    2",
        "  0   .    #    .",
        "  1   1    .    g0",
        "  2   0    .    g1",
    ]
    assert "   3  (1,2)    (2,2)" in text
    assert "\x1b" not in text
    assert render_ansi(LAKE, PATHS, step=3).splitlines()[2:] == ["  1   .    .    0", "  2   .    .    1"]
    colored = render_ansi(LAKE, PATHS, color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored).split() == text.split()


def test_conflicts_are_marked_everywhere() -> None:
    text = render_ansi(LAKE, CRASH)
    assert "(1,0)*" in text
    assert "step 1: edge conflict of agents 0 and 1 at (1,0)" in text
    assert "conflict at step 1" in render_svg(LAKE, CRASH)
    assert '"faulty": [[], [0, 1]], "said": ["", ": conflict"]' in render_html(LAKE, CRASH)
    assert "no path for agent 1" in render_ansi(LAKE, {0: [(2, 0)]})


@pytest.mark.parametrize("paths", [None, PATHS, CRASH, HOSTILE, {1: PATHS[1]}, {}])
@pytest.mark.parametrize("animate", [True, False])
def test_svg_is_wellformed_and_small(paths: list[list[tuple[int, int]]] | None, animate: bool) -> None:
    svg = render_svg(LAKE, paths, animate=animate)
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert len(svg) < 100_000
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "g", "rect", "path", "circle", "text", "polygon", "animate", "animateTransform"}
    assert ("animateTransform" in tags) == bool(animate and paths)
    assert "nan" not in svg
    assert "href" not in svg


def test_endless_paths_are_cut_with_a_note() -> None:
    text = render_ansi(LAKE, HOSTILE)
    assert f"{4999 - MAX_STEPS} more steps are not shown" in text
    assert len(text.splitlines()) < MAX_STEPS + 40


def test_images() -> None:
    frame = render_rgb(LAKE, PATHS, step=1, cell=32)
    assert (frame.shape, str(frame.dtype)) == ((131, 131, 3), "uint8")
    assert (frame != render_rgb(LAKE, PATHS, step=2, cell=32)).any()
    assert render_rgb(LAKE, HOSTILE, step=2, cell=8).shape == (32, 32, 3)
    from PIL import Image

    with Image.open(io.BytesIO(render_gif(LAKE, PATHS, cell=16))) as image:
        assert (image.format, getattr(image, "n_frames", 1)) == ("GIF", 4)
    for cell in (1, 1000):
        with pytest.raises(T2TError, match="pixels"):
            render_rgb(LAKE, cell=cell)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.inside: str | None = None
        self.texts: dict[str, list[str]] = {"script": [], "style": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.inside = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside in self.texts:
            self.texts[self.inside or ""][-1] += data


def test_html_runs_its_own_script_and_nothing_else() -> None:
    page = _Page()
    text = render_html(LAKE, PATHS, verify_paths(LAKE, PATHS), title="</title><script>alert(1)</script>")
    page.feed(text)
    names = {name for _, name, _ in page.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("href", "src", "style", "srcset")]
    policy = next(value for tag, name, value in page.attributes if (tag, name) == ("meta", "content") and "default-src" in value)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    data, script = page.texts["script"]
    (style,) = page.texts["style"]
    for kind, source in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert [len(step) for step in json.loads(data)["places"]] == [2, 2, 2, 2]
    assert "alert(1)</script>" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_html_shows_the_verdict_escaped() -> None:
    text = format_answer(PATHS).replace("</answer>", "Agent 7: (0,0)\n</answer>")
    page = render_html(LAKE, HOSTILE, verify(LAKE, text))
    assert "3 paths for 2 agents; no such agent: 7" in page
    assert "&#10007;" in page
    assert "no optimum stored; makespan 3, sum of costs 6" in render_html(LAKE, PATHS, verify_paths(LAKE, PATHS))


def test_pictures_are_deterministic() -> None:
    for draw in (render_ansi, render_svg, render_html, render_gif):
        assert draw(LAKE, PATHS) == draw(LAKE, PATHS)


def test_a_fall_is_marked_as_a_conflict_is() -> None:
    falls = [[(1, 1), (0, 1)], [(1, 0), (1, 0)]]
    assert "*0" in render_ansi(LAKE, falls, 1) and "*0" not in render_ansi(LAKE, falls, 0)
    assert "(0,1)*" in render_ansi(LAKE, falls) and "step 1: agent 0 falls into the hole at (0,1)" in render_ansi(LAKE, falls)
    assert "agent 0 falls at step 1" in render_svg(LAKE, falls) and "falls" not in render_svg(LAKE, PATHS)
    assert ALARM in render_svg(LAKE, falls, animate=True) and ALARM not in render_svg(LAKE, PATHS, animate=True)
    assert '"faulty": [[], [0]], "said": ["", ": fall"]' in render_html(LAKE, falls)
    alarm = np.array([int(ALARM[i : i + 2], 16) for i in (1, 3, 5)])
    reds = [(np.abs(render_rgb(LAKE, paths, 1).astype(int) - alarm).sum(-1) < 30).sum() for paths in (falls, PATHS, CRASH)]
    assert reds[0] > 50 and reds[1] == 0 and reds[2] > reds[0]


def test_a_goals_number_stays_inside_its_cell() -> None:
    """What is drawn for a goal differs from its neighbours' cells nowhere outside the cell, with one digit or two."""
    starts, goals = [(r, 0) for r in range(12)], [(r, 6) for r in range(12)]
    crowd, unit = Instance(12, [], starts, goals), 48
    empty = Instance(12, [], starts, [(r, 0) for r in range(12)])
    changed = (render_rgb(crowd, cell=unit) != render_rgb(empty, cell=unit)).any(-1)
    columns = np.flatnonzero(changed[:, 3 * unit :].any(0)) + 3 * unit
    rim = round(0.55 * unit)
    assert rim + 6 * unit <= columns.min() and columns.max() < rim + 7 * unit


def protanopia(colour: str) -> tuple[float, ...]:
    return deficient(colour, ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)))


def deuteranopia(colour: str) -> tuple[float, ...]:
    return deficient(colour, ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)))


def deficient(colour: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, ...]:
    """The colour as it is seen (Machado, Oliveira, Fernandes 2009, severity 1), as linear light and back, 0..255."""
    linear = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in linear]
    seen = [min(1.0, max(0.0, sum(m * p for m, p in zip(row, linear, strict=True)))) for row in matrix]
    return tuple(255 * (12.92 * p if p <= 0.0031308 else 1.055 * p ** (1 / 2.4) - 0.055) for p in seen)


@pytest.mark.parametrize("sight", [protanopia, deuteranopia])
def test_agents_are_told_apart_by_those_who_see_red_and_green_alike(sight: Callable[[str], tuple[float, ...]]) -> None:
    seen = [sight(colour) for colour in PALETTE]
    assert min(math.dist(rgb, other) for rgb, other in combinations(seen, 2)) > 20
    assert min(math.dist(rgb, sight(ICE)) for rgb in seen) > 40


def test_agents_are_told_apart_by_colour_and_number() -> None:
    def distance(first: str, other: str) -> float:
        return math.dist(*([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (first, other)))

    assert len(PALETTE) == 16
    assert min(distance(a, b) for a, b in combinations((*PALETTE, ICE), 2)) > 50
    for colour in PALETTE:
        light, dark = sorted((luminance(colour), luminance(text_on(colour))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, f"the number on {colour} is hard to read"
    sixteen = [(r, c) for r in range(4) for c in range(4)]
    full = render_svg(Instance(size=4, holes=[], starts=sixteen, goals=sixteen[::-1]))
    assert all(f"<title>agent {agent}</title>" in full for agent in range(16))
