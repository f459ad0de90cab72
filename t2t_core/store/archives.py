"""A stranger's zip, read one member at a time in bounded memory, and never unpacked to the disk."""

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
    """The names and contents of the members that are wanted, in the order of their names.

    Args:
        file: the archive, open; `path` names it in errors.
        most: bytes of all of them together, unpacked.

    Raises:
        T2TError: it is no archive, it is damaged, packed in a way that Python does not know, or unpacks to more.
    """
    left = most
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(names) > MOST_MEMBERS:
                raise T2TError(f"the archive has more than {MOST_MEMBERS} members", where=str(path))
            selected = sorted(filter(belongs, names))
            said = sum(archive.getinfo(name).file_size for name in set(selected))
            if said > most:  # what it says may be less than what comes, so that is counted too
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
