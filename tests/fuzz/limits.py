"""One input: it ends in time, in bounded memory, in success or one of our errors, and writes where it may."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.damage import snapshot
from fuzz.writes import written_outside

from streamkernel.errors import StreamKernelError

__all__ = ["Outcomes", "Yard", "refused"]

# Of the processor, and by the clock: of a machine that others share the second says little.
SECONDS, PATIENCE = 5, 40
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

    def run(
        self, action: Callable[[], Any], *, may_write: Path | Sequence[Path] = (), counted: bool = True
    ) -> StreamKernelError | None:
        """Do it; None if it succeeded, the error if that is one of ours, with a message of one line.

        It counts as an input, unless it looks at what another one made. What differs in the end is below `may_write`;
        until then it may write anywhere in the yard, and nowhere else.
        """
        before = snapshot(self.folder)
        error: StreamKernelError | None = None
        with _limited(), written_outside(self.folder) as strays:
            try:
                action()
            except StreamKernelError as caught:
                error = caught
        assert not strays, strays
        after = snapshot(self.folder)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        mine = [may_write] if isinstance(may_write, Path) else list(may_write)
        # Who makes something changes the time of the folder around it.
        around = {parent for path in mine for parent in path.parents}
        outside = [
            name for name in changed if Path(name) not in around and not {Path(name), *Path(name).parents} & set(mine)
        ]
        assert not outside, outside
        if counted:
            self.outcomes["success" if error is None else str(getattr(error, "outcome", type(error).__name__))] += 1
        if error is not None:
            assert type(error) is not StreamKernelError
            assert str(error).strip()
            assert "\n" not in str(error), str(error)
        return error


def refused(yard: Yard, action: Callable[[], Any], kind: type[StreamKernelError], words: str) -> None:
    error = yard.run(action)
    assert isinstance(error, kind), error
    assert words in str(error)


@contextmanager
def _limited() -> Iterator[None]:
    ticks: list[int] = []

    def stop(number: int, _: Any) -> None:
        # A process that is stopped for a while hears of one second of it.
        if number == signal.SIGALRM and len(ticks) < PATIENCE:
            ticks.append(number)
            return
        raise Hang(f"more than {SECONDS} s of work, or {PATIENCE} s")

    if sys.platform == "linux":
        # Makes the highest mark of resident memory start from here.
        Path("/proc/self/clear_refs").write_text("5")
    base = _peak()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    old = [(number, signal.signal(number, stop)) for number in (signal.SIGALRM, signal.SIGPROF)]
    began = time.monotonic()
    # That of pytest's own limit runs on below.
    outer, _ = signal.setitimer(signal.ITIMER_REAL, 1, 1)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_addresses() + _ADDRESSES, hard))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in old:
            signal.signal(number, handler)
        if outer:
            gone = min(time.monotonic() - began, len(ticks) + 1)
            signal.setitimer(signal.ITIMER_REAL, max(0.01, outer - gone))
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert _peak() - base < MEMORY, f"{_peak() - base} bytes more"


def _status(name: str) -> int:
    return 1024 * int(re.search(rf"{name}:\s*(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


def _peak() -> int:
    return _status("VmHWM")


def _addresses() -> int:
    return _status("VmSize")
