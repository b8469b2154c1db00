"""One input: it ends in time, in bounded memory, in success or one of our errors, and writes where it may."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.damage import snapshot

from streamkernel.errors import StreamKernelError

__all__ = ["Outcomes", "Yard"]

SECONDS = 5
MEMORY = 500 * 2**20
# Beyond this an input does not take the machine's memory with it.
_ADDRESSES = 4 * 2**30

Outcomes = Counter[str]


class Hang(BaseException):
    """No `Exception`, so that nobody takes it for a failure of the input."""


class Yard:
    """A folder with a neighbour that nobody may touch, around the place where inputs are laid."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.outcomes = folder, Outcomes()
        (folder / "neighbour").mkdir(parents=True)
        (folder / "neighbour" / "secret").write_bytes(b'{"secret": 1}')

    @property
    def count(self) -> int:
        """Inputs so far."""
        return self.outcomes.total()

    def place_of(self, name: str) -> Path:
        """The same path, with what is there."""
        return self.folder / name

    def place(self, name: str) -> Path:
        """A path in the yard where nothing is."""
        path = self.folder / name
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)
        return path

    def run(self, action: Callable[[], Any], *, may_write: Path | None = None) -> StreamKernelError | None:
        """Do it; None if it succeeded, the error if that is one of ours, with a message of one line."""
        before = snapshot(self.folder)
        error: StreamKernelError | None = None
        with _limited():
            try:
                action()
            except StreamKernelError as caught:
                error = caught
        after = snapshot(self.folder)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        mine = () if may_write is None else (may_write, *may_write.parents)
        outside = [
            name for name in changed if Path(name) not in mine and (not mine or mine[0] not in Path(name).parents)
        ]
        assert not outside, outside
        self.outcomes["success" if error is None else type(error).__name__] += 1
        if error is not None:
            assert type(error) is not StreamKernelError
            assert str(error).strip()
            assert "\n" not in str(error), str(error)
        return error


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hang(f"more than {SECONDS} s")

    if sys.platform == "linux":
        # Makes the highest mark of resident memory start from here.
        Path("/proc/self/clear_refs").write_text("5")
    base = _peak()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_addresses() + _ADDRESSES, hard))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert _peak() - base < MEMORY, f"{_peak() - base} bytes more"


def _status(name: str) -> int:
    return 1024 * int(re.search(rf"{name}:\s*(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


def _peak() -> int:
    return _status("VmHWM")


def _addresses() -> int:
    return _status("VmSize")
