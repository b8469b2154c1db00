"""A chunk vanishes, or a bit of it flips, between two sweeps: an error that names it, wherever it lies."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from runs import At, fit

from streamkernel.errors import CorruptChunkError, MissingChunkError


def damage(file: Path, how: str, at: float) -> None:
    if how == "deleted":
        file.unlink()
        return
    # Size and time stay what they were, as of a bit that flips on the disk.
    before = file.stat()
    content = bytearray(file.read_bytes())
    content[int(at * len(content))] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.slow
@pytest.mark.fault("chunks")
def test_the_error_names_it(store: str, figure: Any) -> None:
    files = sorted(path for path in Path(store).rglob("c/**/*") if path.is_file())
    assert len(files) == 40
    drawn = random.Random(3)
    named, positions = 0, 50
    for number in range(positions):
        file, how, at = files[drawn.randrange(len(files))], ("deleted", "flipped")[number % 2], drawn.random()
        content, before = file.read_bytes(), file.stat()
        try:
            with pytest.raises(CorruptChunkError if how == "flipped" else MissingChunkError) as caught:
                fit(store, progress=At(1 + number % 3, lambda file=file, how=how, at=at: damage(file, how, at), 0))  # type: ignore[misc]
        finally:
            file.write_bytes(content)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        named += str(file.relative_to(store)) in str(caught.value)
    assert named == positions
    figure(f"{named} of {positions} positions")
