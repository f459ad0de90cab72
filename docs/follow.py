"""Follows a tutorial from an empty folder: every file is written, every command run, every shown output compared.

    python docs/follow.py docs/tutorials/designer.md            # says what differs
    python docs/follow.py docs/tutorials/designer.md --write    # puts the real output into the page

In a page, a block of Python or TOML that begins with `# NAME` is a file. A `bash` block is run by bash in the reader's
folder, and a `text` block right behind it is what it prints to standard output. `pip install -e .` of the page's own
plugin only makes it known inside that folder, so that the environment stays as it was.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\S+\.\w+)\n")
PIP = """#!{python}
import pathlib, sys, tomllib
if sys.argv[1:] != ["install", "-q", "-e", "."]:
    sys.exit("a tutorial installs its own plugin alone")
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
folder = pathlib.Path("{plugins}") / (project["name"].replace("-", "_") + "-" + project["version"] + ".dist-info")
folder.mkdir()
(folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: " + project["name"] + "\\nVersion: " + project["version"] + "\\n")
points = [name + " = " + target for name, target in project["entry-points"]["t2t"].items()]
(folder / "entry_points.txt").write_text("[t2t]\\n" + "\\n".join(points) + "\\n")
"""


def follow(page: str, folder: Path) -> tuple[str, list[str]]:
    """The page with the output that its commands really have, and what went wrong on the way.

    Args:
        page: its text.
        folder: an empty one, in which the reader works.
    """
    environment, problems, pieces, end = _environment(folder), [], [], 0
    blocks = list(BLOCK.finditer(page))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        kind, body = block[1], block[2]
        name = FILE.match(body)
        if kind in ("python", "toml") and name:
            (folder / "work" / name[1]).write_text(body)
        elif kind == "bash":
            done = subprocess.run(
                ["bash", "-eo", "pipefail"], input=body, cwd=folder / "work", env=environment, capture_output=True, text=True
            )
            if done.returncode:
                problems.append(f"{body}ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
            if after and after[1] == "text" and not page[block.end() : after.start()].strip():
                said = "".join(line.rstrip() + "\n" for line in done.stdout.strip("\n").splitlines())
                if said != after[2]:
                    problems.append(f"{body}prints\n{said}and the page shows\n{after[2]}")
                pieces += [page[end : after.start(2)], said]
                end = after.end(2)
    return "".join([*pieces, page[end:]]), problems


def _environment(folder: Path) -> dict[str, str]:
    """As of a reader with an 80-column terminal, whose `pip` is the stand-in."""
    (folder / "work").mkdir()
    (folder / "bin").mkdir()
    pip = folder / "bin" / "pip"
    pip.write_text(PIP.format(python=sys.executable, plugins=folder / "work"))
    pip.chmod(0o755)
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    added = {"PATH": path, "PYTHONPATH": str(folder / "work"), "COLUMNS": "100", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    return {**os.environ, **added}


def main() -> None:
    write = "--write" in sys.argv
    for path in map(Path, (word for word in sys.argv[1:] if word != "--write")):
        with tempfile.TemporaryDirectory() as folder:
            page, problems = follow(path.read_text(), Path(folder))
        if write:
            path.write_text(page)
        print(f"{path}: {len(problems)} differences")
        print("\n".join(problems))


if __name__ == "__main__":
    main()
