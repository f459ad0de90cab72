"""What every page of the suite has in common: one file that loads nothing, under a policy that admits the page's own style
sheet and script by their hash.

The templates are jinja2's, with autoescape on; what they print is first made visible, control characters spelt out, so that no
text of a stranger does anything but stand there. A package's own templates lie in its folder `templates`, and extend
`frame.html`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

from t2t_core.text import plain_lines, visible

if TYPE_CHECKING:
    from jinja2 import Environment, Template

HOME = "t2t_core.report"
_MAX_WORDS = 1000  # characters of a text, unless a filter says otherwise


@functools.cache
def sheet(name: str, package: str = HOME) -> str:
    """A style sheet or a script that comes with a package."""
    return resources.files(package).joinpath(f"templates/{name}").read_text("utf-8")


def environment(package: str = HOME) -> Environment:
    """The templates of a package, before those of the suite. For the caller to keep: making one costs more than a page."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loaders = [PackageLoader(name) for name in dict.fromkeys((package, HOME))]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {}  # keys as they come
    made.filters["lines"] = _lines
    return made


def render(template: Template, title: str, style: str, script: str = "", pictures: bool = False, **values: Any) -> str:
    """A page from a template that extends `frame.html`; `pictures`: it holds images, which stand in it as data."""
    policy = _policy(style, script, pictures)
    return template.render(title=title, style=style, script=script, policy=policy, **values)


def _policy(style: str, script: str, pictures: bool) -> str:
    """The policy that admits the page's own style sheet, its script and its images if any, and nothing else."""
    parts = ["default-src 'none'", f"style-src {_digest(style)}"]
    parts += [f"script-src {_digest(script)}"] if script else []
    parts += ["img-src data:"] if pictures else []
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


@functools.lru_cache(maxsize=8)
def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _harmless(value: Any) -> Any:
    from markupsafe import Markup

    return visible(value, _MAX_WORDS) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Any:
    """A whole text with its line breaks and tabs."""
    from markupsafe import Markup

    return Markup(escape(plain_lines(text)))
