"""A report as one self-contained page, on the frame that all pages share.

A page whose tables can be sorted, or that has filters, carries one small script of the suite's own; without it everything is
there to read. Pictures of answers stand as images, in which nothing runs.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from t2t_core.report import document as model
from t2t_core.report import frame
from t2t_core.report.figures import Figure
from t2t_core.text import flowing, visible

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT = 20_000  # characters of a folded text


def render(document: model.Document) -> str:
    """The page of a document."""
    blocks = list(document.blocks)
    interactive = bool(document.filters) or any(isinstance(block, model.Table) and block.sortable for block in blocks)
    pictures = any(isinstance(block, model.Example) and block.picture for block in blocks)
    style = frame.sheet("page.css") + frame.sheet("chart.css")
    script = frame.sheet("page.js") if interactive else ""
    return frame.render(_environment().get_template("page.html"), document.title, style, script, pictures, document=document)


@functools.cache
def _environment() -> Environment:
    from markupsafe import Markup

    environment = frame.environment()
    environment.filters["drawn"] = lambda chart: Markup(chart.svg())  # its texts are escaped where they are drawn
    environment.filters["long"] = _long
    environment.filters["image"] = _image
    environment.filters["facets"] = _facets
    environment.filters["heat"] = _heat
    environment.filters["flowing"] = flowing
    environment.tests["wide"] = lambda chart: getattr(chart, "wide", False)
    environment.tests.update({kind.__name__.lower(): _is(kind) for kind in _KINDS})
    return environment


_BLOCKS = (model.Paragraph, model.Items, model.Table, model.Charts, model.Folded, model.Example, model.Links, model.Beside)
_KINDS = (*_BLOCKS, model.Divider, Figure, model.Words)


def _is(kind: type) -> Any:
    return lambda value: isinstance(value, kind)


def _image(picture: str) -> Any:
    """A picture as an address that holds it, for an attribute; browsers draw what stands there and run nothing in it."""
    from markupsafe import Markup

    address = "data:image/svg+xml," + picture.replace("%", "%25").replace("#", "%23").replace("\n", " ")
    if "'" not in address:
        address = address.replace('"', "'")  # the same to XML, and shorter here
    return Markup(address.replace("&", "&amp;").replace('"', "&#34;").replace("<", "&lt;").replace(">", "&gt;"))


def _facets(facets: model.Facets) -> Any:
    """The facets as attributes."""
    from markupsafe import Markup, escape

    return Markup("").join(Markup(' data-{}="{}"').format(Markup(name), escape(visible(v))) for name, v in facets.items())


def _heat(value: float | None) -> int:
    """The step of a percentage in the scale of colours; 0 has none."""
    return 0 if value is None else min(10, max(0, round(value / 10)))


def _long(text: str) -> Any:
    """A text of many lines, cut where it is endless."""
    from markupsafe import Markup, escape

    shown = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + f"\n... {len(text) - MAX_TEXT} more characters"
    return Markup("\n").join(escape(visible(line, MAX_TEXT)) for line in shown.expandtabs(4).split("\n"))
