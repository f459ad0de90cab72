"""Check that a tag is this tree's version and that CHANGELOG.md has an entry for it: python .ci/version.py v0.1.0"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(tag: str) -> str | None:
    """Say what is wrong with the tag; None if nothing is."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "t2t_core/_version.py").read_text())[1]
    if tag != f"v{version}":
        return f"the tag is {tag}, t2t_core/_version.py says {version}"
    title = re.search(rf"^## {re.escape(version)} \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    if title is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", title[1]):
        return f"CHANGELOG.md has no title '## {version} (YYYY-MM-DD)'"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
