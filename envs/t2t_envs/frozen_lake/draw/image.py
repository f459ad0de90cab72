"""Draws pixels with pillow: one frame as an array, or an animated GIF."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from t2t_core.errors import T2TError

from ..instance import Cell, Instance
from .scene import ALARM, GRID, HOLE, ICE, MUTED, PALETTE, Scene, text_on

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

SMOOTH = 3  # draw this many times larger, then scale down, because pillow's shapes have hard edges
MIN_CELL, MAX_CELL = 8, 256
MAX_PIXELS = 4096  # per side

Paths = Sequence[Sequence[Cell]] | Mapping[int, Sequence[Cell]]


def render_rgb(instance: Instance, paths: Paths | None = None, step: int | None = None, cell: int = 48) -> np.ndarray:
    """One moment (`step` None: the start) as an array (height, width, 3) of uint8; a cell is `cell` pixels wide, 8..256."""
    import numpy as np

    return np.asarray(_Painter(Scene.of(instance, paths), cell).frame(step or 0))


def render_gif(instance: Instance, paths: Paths | None = None, cell: int = 48, milliseconds: int = 600) -> bytes:
    """An animated GIF that loops for ever: every step lasts `milliseconds`, the last one three times as long."""
    if not 20 <= milliseconds <= 60_000:
        raise T2TError("a GIF's frames take 20..60000 milliseconds")
    scene = Scene.of(instance, paths)
    painter = _Painter(scene, cell)
    from PIL import Image

    frames = [painter.frame(step).quantize(128, dither=Image.Dither.NONE) for step in range(scene.steps + 1)]
    times = [milliseconds] * scene.steps + [3 * milliseconds]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)
    return file.getvalue()


class _Painter:
    """Paints the frames of one scene over a background that is painted once."""

    def __init__(self, scene: Scene, cell: int) -> None:
        rim = 0.55
        if not MIN_CELL <= cell <= MAX_CELL or (scene.instance.size + 2 * rim) * cell > MAX_PIXELS:
            raise T2TError(
                f"a cell of {cell} pixels", cause=f"cells are {MIN_CELL}..{MAX_CELL}, a side at most {MAX_PIXELS} pixels"
            )
        self.scene, self.unit = scene, cell * SMOOTH
        self.rim = round(rim * self.unit)
        self.side = scene.instance.size * self.unit + 2 * self.rim
        self.final = self.side // SMOOTH
        self.background = self._background()

    def frame(self, step: int) -> Image.Image:
        from PIL import Image, ImageDraw

        image = self.background.copy()
        draw = ImageDraw.Draw(image)
        scene, unit = self.scene, self.unit
        wrong = scene.faulty_at(step)
        for agent in range(scene.instance.num_agents):
            trail = [self._centre(scene.near(scene.at(agent, t))) for t in range(step + 1)] if agent in scene.paths else []
            if len(trail) > 1:
                draw.line(trail, fill=PALETTE[agent], width=max(1, unit // 14), joint="curve")
        for agent in range(scene.instance.num_agents):
            x, y = self._centre(scene.spot(agent, step))
            radius = round(0.28 * unit)
            if agent in wrong:
                self._disc(draw, x, y, radius + max(2, unit // 8), ALARM)
            self._disc(draw, x, y, radius + max(2, unit // 32), "#ffffff")
            self._disc(draw, x, y, radius, PALETTE[agent])
            self._text(draw, x, y, str(agent), 0.34, text_on(PALETTE[agent]))
        return image.resize((self.final, self.final), Image.Resampling.LANCZOS)

    def _background(self) -> Image.Image:
        from PIL import Image, ImageDraw

        image = Image.new("RGB", (self.side, self.side), "#ffffff")
        draw = ImageDraw.Draw(image)
        n, unit, rim = self.scene.instance.size, self.unit, self.rim
        draw.rounded_rectangle((rim, rim, rim + n * unit, rim + n * unit), unit // 8, fill=ICE)
        for i in range(1, n):
            at, width = rim + i * unit, max(1, unit // 24)
            draw.line((at, rim, at, rim + n * unit), fill=GRID, width=width)
            draw.line((rim, at, rim + n * unit, at), fill=GRID, width=width)
        for i in range(n):
            at = rim + i * unit + unit // 2
            self._text(draw, at, rim // 2, str(i), 0.24, MUTED)
            self._text(draw, rim // 2, at, str(i), 0.24, MUTED)
        for hole in self.scene.instance.holes:
            self._box(draw, hole, 0.1, fill=HOLE)
        for agent, goal in enumerate(self.scene.instance.goals):
            colour = PALETTE[agent]
            self._box(draw, goal, 0.08, fill=_mix(colour, ICE, 0.18), outline=colour, width=max(1, unit // 18))
            x, y = self._centre(goal)
            half, wide = round(0.42 * unit), round((0.27 if agent < 10 else 0.36) * unit)  # leaves the flag visible
            low = y - half + round(0.27 * unit)
            draw.rounded_rectangle((x + half - wide, y - half, x + half, low), unit // 12, fill=colour)
            self._text(draw, x + half - wide // 2, y - half + round(0.135 * unit), str(agent), 0.23, text_on(colour))
        return image

    def _centre(self, cell: tuple[float, float]) -> tuple[int, int]:
        return round(self.rim + (cell[1] + 0.5) * self.unit), round(self.rim + (cell[0] + 0.5) * self.unit)

    def _box(self, draw: Any, cell: Cell, margin: float, **style: Any) -> None:
        x, y = self._centre(cell)
        half = round((0.5 - margin) * self.unit)
        draw.rounded_rectangle((x - half, y - half, x + half, y + half), self.unit // 6, **style)

    def _disc(self, draw: Any, x: int, y: int, radius: int, colour: str) -> None:
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)

    def _text(self, draw: Any, x: int, y: int, text: str, height: float, colour: str) -> None:
        draw.text((x, y), text, font=_font(max(6, round(height * self.unit))), fill=colour, anchor="mm")


@lru_cache(maxsize=16)
def _font(height: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(height)


def _mix(colour: str, ground: str, share: float) -> str:
    parts = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in parts)
