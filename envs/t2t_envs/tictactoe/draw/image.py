"""A board as pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from ..instance import POLICY
from .svg import BOARD, GRID, O_INK, X_INK

_CELL, _SCALE = 64, 4  # pixels; drawn larger and shrunk, so that lines are smooth


def board_image(board: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A board of nine characters as a (192, 192, 3) uint8 image."""
    side, cell = 3 * _CELL * _SCALE, _CELL * _SCALE
    picture = Image.new("RGB", (side, side), BOARD)
    draw = ImageDraw.Draw(picture)
    for i in (1, 2):
        draw.line((i * cell, 0, i * cell, side), fill=GRID, width=cell // 16)
        draw.line((0, i * cell, side, i * cell), fill=GRID, width=cell // 16)
    for number, mark in enumerate(board):
        row, column = divmod(number, 3)
        x, y, r = (column + 0.5) * cell, (row + 0.5) * cell, cell * 0.28
        if mark == POLICY:
            draw.line((x - r, y - r, x + r, y + r), fill=X_INK, width=cell // 8)
            draw.line((x - r, y + r, x + r, y - r), fill=X_INK, width=cell // 8)
        elif mark != ".":
            draw.ellipse((x - r, y - r, x + r, y + r), outline=O_INK, width=cell // 8)
    return np.asarray(picture.resize((3 * _CELL, 3 * _CELL), Image.Resampling.LANCZOS), np.uint8).copy()
