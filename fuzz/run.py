"""Fuzz the readers of untrusted text, each for a fixed time. If there is a finding, the exit status is 1 and the corpus keeps it.

    pip install 'atheris>=3.0,<4'
    python -m fuzz.run --seconds 60                      # every target, a minute each
    python -m fuzz.run --seconds 600 --target answer     # one of them, longer
    python -m fuzz.run --seconds 60 --keep               # the latest small inputs join the corpus

tests/fuzz/test_corpus.py tries the inputs again without the fuzzer.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / room) for room in ("", "envs", "plugins", "baselines", "leaderboard", "jobs")]
CORPUS = ROOT / "fuzz" / "corpus"
NAMES = ("answer", "instance", "configuration", "run", "lines", "manifest", "thoughts", "designer", "endpoint", "spec",
         "board", "move", "secret", "completion", "study", "job", "calls")  # fmt: skip
MAX_LENGTH = 4096  # bytes of one input; `linear` tries longer ones
LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]  # seconds and MiB per input
KEPT, LATEST = 400, 8  # the most bytes of an input that joins the corpus, and the most inputs per run
ROOMS = ["t2t_core", "t2t_envs", "t2t_plugins", "t2t_leaderboard", "t2t_jobs"]


def fuzz(name: str, arguments: list[str]) -> None:
    """Fuzz one target in this process; libFuzzer ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=ROOMS):
        from fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()


def run(name: str, seconds: int, keep: bool) -> bool:
    """Fuzz one target in a process of its own. Returns whether nothing was found."""
    own = CORPUS / name
    own.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        options = [f"-max_total_time={seconds}", f"-max_len={MAX_LENGTH}", *LIMITS]
        command = [sys.executable, "-m", "fuzz.run", "--one", name, *options, f"-artifact_prefix={fresh}/crash-", fresh, str(own)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
        tried = re.search(r"number_of_executed_units: *(\d+)", done.stderr)
        crashes = [path for path in Path(fresh).glob("crash-*") if path.is_file()]
        for path in crashes:
            (own / path.name[:18]).write_bytes(path.read_bytes())
        if keep:
            join(Path(fresh), own)
    good = done.returncode == 0 and not crashes
    outcome = "nothing found" if good else "FOUND SOMETHING"
    print(f"{name}: {tried[1] if tried else '?'} inputs in {seconds} s, {outcome}", flush=True)
    if not good:
        print(done.stderr[-4000:], flush=True)
    return good


def join(fresh: Path, own: Path) -> None:
    """Add the latest small inputs to the corpus: those found last reach the code that is hardest to reach."""
    small = [path for path in fresh.iterdir() if path.stat().st_size <= KEPT and not path.name.startswith("crash-")]
    for path in sorted(small, key=lambda path: path.stat().st_mtime)[-LATEST:]:
        (own / path.name[:12]).write_bytes(path.read_bytes())


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        fuzz(sys.argv[2], sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--target", choices=NAMES, action="append", help="only this one (repeatable)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once")
    parser.add_argument("--keep", action="store_true", help="new inputs join the corpus")
    given = parser.parse_args()
    with ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(lambda name: run(name, given.seconds, given.keep), given.target or NAMES))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
