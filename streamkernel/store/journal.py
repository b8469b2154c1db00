"""The journal of an unfinished output: one line for each finished chunk, appended once its file is on the disk.

Every call that writes rows has its own log (``FOLDER/G-40960.log``), so that two processes never append to one file
at a time. A line is ``KEY DIGEST``; any other line (such as one torn by a power failure) is ignored.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from streamkernel.atomic import refuse_other_names

__all__ = ["Journal"]

_ENTRY = re.compile(rb"([A-Za-z]\w*/c(?:/\d+)+) ([0-9a-f]{32})")


class Journal:
    """The logs in one folder; picklable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, log: str, key: str, digest: str) -> None:
        """Append that chunk `key` is finished and its values have this digest; the line is on the disk on return."""
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
        """Every digest noted for each chunk; a lost chunk that was written again has more than one."""
        noted: dict[str, set[str]] = {}
        for log in sorted(self.folder.glob("*.log")):
            # A line without a final line feed was being written when its writer died.
            for line in log.read_bytes().split(b"\n")[:-1]:
                found = _ENTRY.fullmatch(line)
                if found:
                    noted.setdefault(found[1].decode(), set()).add(found[2].decode())
        return noted
