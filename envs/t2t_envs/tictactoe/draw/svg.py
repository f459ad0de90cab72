"""A game as one SVG picture: its boards in order, new stones on a light background, faults in red. It needs no library."""

from __future__ import annotations

from ..game import Game, begin
from ..instance import POLICY, Instance
from .frames import Frame, frames, result_text

X_INK, O_INK, BOARD, GRID, NEW, INK, MUTED, ALARM = (
    "#0077aa", "#dd6600", "#e8f1f7", "#ffffff", "#fff3c4", "#1c2733", "#5b6b7a", "#d31820",
)  # fmt: skip
_CELL = 46.0  # user units
_GAP, _HEAD, _FOOT = 34.0, 16.0, 50.0  # between boards, above a board, below it for two lines of text
_ACROSS = 5
_SIDE = 3 * _CELL
_SECONDS = 1.2  # per board, in the animation


def render_svg(instance: Instance, game: Game | None = None, animate: bool = False) -> str:
    """One <svg> element: the start, then one board for each of the policy's turns, with the opponent's answer. A missed cell is
    framed in red, and the line that ended the game is struck through. With `animate`, the boards take turns in one place (SMIL,
    which browsers and README pages play)."""
    shown = frames(instance, game or begin(instance))
    across = 1 if animate else _ACROSS
    columns, rows = min(across, len(shown)), 1 if animate else -(-len(shown) // across)
    width, height = _GAP + columns * (_SIDE + _GAP), _HEAD + rows * (_SIDE + _FOOT)
    boards = ""
    for i, frame in enumerate(shown):
        row, column = (0, 0) if animate else divmod(i, across)
        shift = f"translate({_GAP + column * (_SIDE + _GAP):g} {_HEAD + row * (_SIDE + _FOOT):g})"
        boards += f'<g transform="{shift}">{_board(frame)}{_turn(i, len(shown)) if animate else ""}</g>'
    about = "; ".join(f"{frame.caption}{f' ({frame.fault})' if frame.fault else ''}" for frame in shown)
    title = f"tic-tac-toe {instance.id}".strip() + (f": {result_text(game)}" if game else "")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" font-family="system-ui, sans-serif"><title>{title}</title><desc>{about}</desc>'
        f'<rect width="{width:g}" height="{height:g}" rx="14" fill="#ffffff"/>{boards}</svg>'
    )


def _turn(index: int, count: int) -> str:
    """Show a board only during its turn."""
    ends = [(index > 0) * index / count, (index + 1) / count]
    values = ["0"] * (index > 0) + ["1"] + ["0"] * (index + 1 < count)
    times = ["0"] + [f"{end:.5g}" for end in ends if 0 < end < 1]
    return (
        f'<animate attributeName="opacity" calcMode="discrete" values="{";".join(values)}" keyTimes="{";".join(times)}" '
        f'dur="{count * _SECONDS:g}s" repeatCount="indefinite"/>'
    )


def _board(frame: Frame) -> str:
    parts = [f'<rect width="{_SIDE:g}" height="{_SIDE:g}" rx="8" fill="{BOARD}"/>']
    for cell in frame.new:
        row, column = divmod(cell, 3)
        parts.append(
            f'<rect x="{column * _CELL + 2:g}" y="{row * _CELL + 2:g}" width="{_CELL - 4:g}" height="{_CELL - 4:g}" rx="6" '
            f'fill="{NEW}"/>'
        )
    lines = "".join(f"M{i * _CELL:g} 0v{_SIDE:g}M0 {i * _CELL:g}h{_SIDE:g}" for i in (1, 2))
    parts.append(f'<path d="{lines}" stroke="{GRID}" stroke-width="3" fill="none"/>')
    parts += [_mark(cell, mark) for cell, mark in enumerate(frame.board)]
    if frame.missed is not None:
        row, column = divmod(frame.missed, 3)
        parts.append(
            f'<rect x="{column * _CELL + 3:g}" y="{row * _CELL + 3:g}" width="{_CELL - 6:g}" height="{_CELL - 6:g}" rx="6" '
            f'fill="none" stroke="{ALARM}" stroke-width="3" stroke-dasharray="5 4"/>'
        )
    if frame.line:
        (x, y), (u, v) = _centre(frame.line[0]), _centre(frame.line[-1])
        parts.append(f'<path d="M{x:g} {y:g}L{u:g} {v:g}" stroke="{INK}" stroke-width="4" stroke-linecap="round" opacity="0.7"/>')
    middle = f'x="{_SIDE / 2:g}" text-anchor="middle"'
    parts.append(f'<text {middle} y="{_SIDE + 17:g}" font-size="12" fill="{INK}">{frame.caption}</text>')
    if frame.fault:
        parts.append(f'<text {middle} y="{_SIDE + 33:g}" font-size="12" font-weight="700" fill="{ALARM}">{frame.fault}</text>')
    return "".join(parts)


def _centre(cell: int) -> tuple[float, float]:
    row, column = divmod(cell, 3)
    return (column + 0.5) * _CELL, (row + 0.5) * _CELL


def _mark(cell: int, mark: str) -> str:
    x, y = _centre(cell)
    if mark == ".":
        return f'<text x="{x:g}" y="{y + 4:g}" font-size="12" text-anchor="middle" fill="{MUTED}" opacity="0.7">{cell}</text>'
    if mark == POLICY:
        r = 12
        path = f"M{x - r:g} {y - r:g}l{2 * r} {2 * r}M{x + r:g} {y - r:g}l{-2 * r} {2 * r}"
        return f'<path d="{path}" stroke="{X_INK}" stroke-width="6" stroke-linecap="round"/>'
    return f'<circle cx="{x:g}" cy="{y:g}" r="13" stroke="{O_INK}" stroke-width="6" fill="none"/>'
