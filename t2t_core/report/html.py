"""A report as one self-contained page: no script, no request to anywhere, a content security policy, every text escaped.

The templates are jinja2's, with autoescape on; what they print is first made visible, control characters spelt out, so that no
text of a stranger does anything but stand there.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import TYPE_CHECKING, Any

from t2t_core.report import document as model
from t2t_core.report import svg
from t2t_core.report.figures import Figure
from t2t_core.text import flowing, visible

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT = 20_000  # characters of a folded text
_MAX_WORDS = 1000  # of any other


def render(document: model.Document) -> str:
    """The page of a document."""
    style, policy = _style()
    page = _environment().get_template("page.html")
    return page.render(document=document, style=style, policy=policy)


@functools.cache
def _style() -> tuple[str, str]:
    """The style sheet, and the policy that admits it and nothing else."""
    style = svg.sheet("page.css") + svg.sheet("chart.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return style, f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def harmless(value: Any) -> Any:
        return visible(value, _MAX_WORDS) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=PackageLoader("t2t_core.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["drawn"] = lambda chart: Markup(chart.svg())  # its texts are escaped where they are drawn
    environment.filters["long"] = _long
    environment.filters["heat"] = _heat
    environment.filters["flowing"] = flowing
    environment.tests.update({kind.__name__.lower(): _is(kind) for kind in _KINDS})
    return environment


_KINDS = (model.Paragraph, model.Items, model.Table, model.Charts, model.Folded, model.Divider, Figure, model.Words)


def _is(kind: type) -> Any:
    return lambda value: isinstance(value, kind)


def _heat(value: float | None) -> int:
    """The step of a percentage in the scale of colours; 0 has none."""
    return 0 if value is None else min(10, max(0, round(value / 10)))


def _long(text: str) -> Any:
    """A text of many lines, cut where it is endless."""
    from markupsafe import Markup, escape

    shown = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + f"\n... {len(text) - MAX_TEXT} more characters"
    return Markup("\n").join(escape(visible(line, MAX_TEXT)) for line in shown.expandtabs(4).split("\n"))
