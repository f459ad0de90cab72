"""A Chromium for the tests that look at pages."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any


@functools.cache
def chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def opened(browser: Any, path: Path, **context: Any) -> Any:
    """The page, in a context of its own; `page.told` has what the console said."""
    page = browser.new_context(**context).new_page()
    page.told = []
    page.on("console", lambda message: page.told.append(message.text))
    page.on("pageerror", lambda error: page.told.append(str(error)))
    page.goto(f"file://{path}")
    return page


def axe_faults(browser: Any, path: Path, axe: Any, width: int, scheme: str) -> list[tuple[str, str]]:
    """What axe-core finds on the page with everything unfolded: (rule, the first element)."""
    page = opened(browser, path, viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    violations = axe.Axe().run(page).response["violations"]
    sideways = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.context.close()
    faults = [(violation["id"], violation["nodes"][0]["html"][:200]) for violation in violations]
    return [*faults, *([("the page scrolls sideways", "")] if sideways else [])]
