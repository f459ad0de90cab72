"""What is written to disk and read back: safe paths, locks, JSON Lines, run folders. It stands on POSIX."""

from importlib.util import find_spec

if find_spec("fcntl") is None:
    raise ImportError(
        "t2t-core keeps its files with the locks and directory descriptors of Linux and macOS. On Windows use WSL; "
        "without it, only those parts work from Python that keep no files."
    )
