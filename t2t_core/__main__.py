"""Where the command `t2t` begins, and `python -m t2t_core`: Ctrl-C is answered from the first import on."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C before it can answer itself ends with status 130 too."""
    try:
        from t2t_core.cli import main as run

        run()
    except KeyboardInterrupt:  # while the command line was imported, or ended
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
