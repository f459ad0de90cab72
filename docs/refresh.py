"""Writes the README's board from a real run of its first command; `--check` fails when the board is stale.

    python docs/refresh.py [--check]

Solvers must come out digit for digit. A neural policy's greedy answers may differ in a few instances between two kinds of
processors, whose sums round differently: rows with a caveat ("toy policy") may be off by half a point.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOLERANCE = 0.5  # percentage points
README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- board:", "<!-- /board -->"


def measure(folder: Path) -> dict:
    """The leaderboard that `t2t bench` writes, with every default."""
    command = [sys.executable, "-c", "from t2t_core.cli import main; main()", "bench", "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads((folder / "leaderboard.json").read_text())


def _cell(figure: dict) -> str:
    text = f"{figure['value']:.2f}"
    if figure.get("low") is not None:
        text += f" [{figure['low']:.1f}–{figure['high']:.1f}]"
    if "mean_of_cells" in figure:
        text += f" (mean of its cells {figure['mean_of_cells']:.2f})"
    return text


def as_markdown(board: dict) -> str:
    """One row a policy, valid and optimal rate in percent for each agent count."""
    tables = board["tables"]
    names: dict[str, str] = {}
    for table in tables:
        for row in table["rows"]:
            names.setdefault(row.get("label", row["policy"]), row["kind"])
    lines = ["| policy | | " + " | ".join(f"{t['title']}: valid | optimal" for t in tables) + " |"]
    lines.append("|---|---|" + "---:|---:|" * len(tables))
    for name, kind in names.items():
        rows = [next((r for r in t["rows"] if r.get("label", r["policy"]) == name), None) for t in tables]
        cells = [_cell(r["total"][m]) if r else "–" for r in rows for m in ("valid", "optimal")]
        lines.append(f"| {name} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def same(old: str, new: str) -> bool:
    """Whether two boards agree: exactly, or nearly where a row carries a caveat in parentheses."""
    before, after = old.strip().split("\n"), new.strip().split("\n")
    return len(before) == len(after) and all(map(_same_row, before, after))


def _same_row(old: str, new: str) -> bool:
    number = r"\d+\.\d+"
    if old == new or "(toy policy)" not in new:
        return old == new
    alike = re.sub(number, "", old) == re.sub(number, "", new)
    pairs = zip(re.findall(number, old), re.findall(number, new), strict=False)
    return alike and all(abs(float(a) - float(b)) <= TOLERANCE for a, b in pairs)


def main() -> None:
    before, rest = README.read_text().split(BEGIN, 1)
    note, rest = rest.split("-->", 1)
    old, after = rest.split(END, 1)
    with tempfile.TemporaryDirectory() as folder:
        new = "\n" + as_markdown(measure(Path(folder) / "bench")) + "\n"
    if "--check" in sys.argv:
        if not same(old, new):
            sys.exit("README.md: the board is stale; python docs/refresh.py writes it anew")
        return
    README.write_text(before + BEGIN + note + "-->" + new + END + after)


if __name__ == "__main__":
    main()
