"""Read a zip file from outside one member at a time, in bounded memory, without ever unpacking it to disk."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from t2t_core.errors import T2TError
from t2t_core.store.paths import SafePath

MOST_MEMBERS = 1_000_000  # our choice


def members(file: BinaryIO, path: Path | SafePath, belongs: Callable[[str], bool], most: int) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the members that `belongs` accepts, in the order of their names.

    Args:
        file: the archive, open; `path` names it in errors.
        most: the most bytes that all of them may have together, unpacked.

    Raises:
        T2TError: it is not an archive, is damaged, is packed in a way that Python does not know, or unpacks to more.
    """
    left = most
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(names) > MOST_MEMBERS:
                raise T2TError(f"the archive has more than {MOST_MEMBERS} members", where=str(path))
            selected = sorted(filter(belongs, names))
            said = sum(archive.getinfo(name).file_size for name in set(selected))
            if said > most:  # the declared size may be less than what arrives, so count that too
                raise T2TError(f"the archive unpacks to more than {most} bytes", where=str(path))
            for name in selected:
                with archive.open(name) as member:
                    data = member.read(left + 1)
                left -= len(data)
                if left < 0:
                    raise T2TError(f"the archive unpacks to more than {most} bytes", where=f"{path}, {ascii(name)[:120]}")
                yield name, data
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise T2TError("the archive cannot be read", where=str(path), cause=str(error)[:200]) from None
