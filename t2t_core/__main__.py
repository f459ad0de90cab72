"""Where the command `t2t` begins, and `python -m t2t_core`: Ctrl-C is answered from the first import on."""

from __future__ import annotations

import sys
from typing import Any

_SOON = 0.05  # seconds: by then the finalizer has ended


def main() -> None:
    """Run the command line; Ctrl-C before it can answer itself ends with status 130 too."""
    try:
        sys.unraisablehook = _raise_again
        from t2t_core.cli import main as run

        run()
    except KeyboardInterrupt:  # while the command line was imported, or ended
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def _raise_again(lost: Any) -> None:
    """Interrupt the command once more. Python drops a Ctrl-C that arrives while an object is being finalized, and says so; the
    command would go on as if nobody had pressed it."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import signal
    from contextlib import suppress
    from threading import Timer, main_thread

    again = Timer(_SOON, signal.pthread_kill, (main_thread().ident, signal.SIGINT))  # it wakes the thread, too
    again.daemon = True
    with suppress(RuntimeError):  # no thread begins any more where the interpreter ends
        again.start()


if __name__ == "__main__":
    main()
