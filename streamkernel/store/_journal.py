"""The journal of an unfinished output: a note for each finished chunk, made once the chunk is written.

In a folder a note is a line ``KEY DIGEST``. Every call that writes rows has its own log (``FOLDER/G-40960.log``), so
that two processes never append to one file at a time; any other line, such as one torn by a power failure, is ignored.
At a URL a note is an empty object with the key ``KEY/DIGEST``.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Protocol

from streamkernel.atomic import refuse_other_names
from streamkernel.blobs import Blobs

_ENTRY = re.compile(rb"([A-Za-z]\w*/c(?:/\d+)+) ([0-9a-f]{32})")


class Journal(Protocol):
    """A journal; picklable."""

    def note(self, log: str, key: str, digest: str) -> None:
        """Note in `log` that chunk `key` is finished and its values have this digest; the note lasts on return."""

    def entries(self) -> dict[str, set[str]]:
        """Every digest noted for each chunk; a lost chunk that was written again has more than one."""


class LogJournal:
    """The logs in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, log: str, key: str, digest: str) -> None:
        # A line feed first: the line before it may be torn.
        line = f"\n{key} {digest}\n".encode()
        file, flags = self.folder / f"{log}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        refuse_other_names(descriptor, file)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.folder))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def entries(self) -> dict[str, set[str]]:
        noted: dict[str, set[str]] = {}
        for log in sorted(self.folder.glob("*.log")):
            # A line without a final line feed was being written when its writer died.
            for line in log.read_bytes().split(b"\n")[:-1]:
                found = _ENTRY.fullmatch(line)
                if found:
                    noted.setdefault(found[1].decode(), set()).add(found[2].decode())
        return noted


class ObjectJournal:
    """Empty objects below a prefix."""

    def __init__(self, blobs: Blobs, prefix: str) -> None:
        self.blobs, self.prefix = blobs, prefix

    def note(self, log: str, key: str, digest: str) -> None:
        self.blobs.write(f"{self.prefix}{key}/{digest}", b"")

    def entries(self) -> dict[str, set[str]]:
        noted: dict[str, set[str]] = {}
        for note in self.blobs.keys(self.prefix):
            key, _, digest = note.removeprefix(self.prefix).rpartition("/")
            noted.setdefault(key, set()).add(digest)
        return noted
