"""Processes that belong together: each with its log, all ended together, none left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Patience", "Process", "Processes", "StartError", "end_with_parent", "wait_until"]

_PATIENCE = 5.0  # seconds between SIGTERM and SIGKILL
_LOOK = 2.0  # seconds from one look to the next, at most; in what is longer this process stood still
_PR_SET_PDEATHSIG = 1


class StartError(Exception):
    """A process did not come up; the message ends with what its log says."""


@dataclass(frozen=True)
class Process:
    """One that was started: its number and when it was made, without which a number may be somebody else's by now."""

    name: str
    pid: int
    created: float
    log: str

    @classmethod
    def of(cls, started: subprocess.Popen[bytes], name: str, log: str) -> Process:
        try:
            return cls(name, started.pid, psutil.Process(started.pid).create_time(), log)
        except psutil.NoSuchProcess:
            return cls(name, started.pid, 0.0, log)

    @property
    def alive(self) -> bool:
        with contextlib.suppress(psutil.Error):
            found = psutil.Process(self.pid)
            return found.create_time() == self.created and found.status() != psutil.STATUS_ZOMBIE
        return False

    def family(self) -> list[psutil.Process]:
        """Itself and what it started, also where it has ended: those of its session stay in its process group."""
        found: dict[int, psutil.Process] = {}
        if self.alive:
            leader = psutil.Process(self.pid)
            found = {one.pid: one for one in (leader, *leader.children(recursive=True))}
        for one in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getpgid(one.pid) == self.pid and one.create_time() >= self.created:
                    found.setdefault(one.pid, one)
        return [one for one in found.values() if one.pid != os.getpid()]


@dataclass
class Processes:
    """Starts processes and ends them.

    Parameters
    ----------
    folder : of the logs.
    lasting : whether they go on when this process has ended.
    """

    folder: Path
    lasting: bool = False
    running: list[Process] = field(default_factory=list)
    _children: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)

    def start(self, name: str, command: list[str], environment: Mapping[str, str]) -> Process:
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            started = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A Ctrl-C is for the one who started us: we end them, in order.
                start_new_session=True,
                preexec_fn=None if self.lasting else end_with_parent,
            )
        self._children.append(started)
        process = Process.of(started, name, str(log))
        self.running.append(process)
        return process

    def stop(self) -> None:
        """End all, the last first: SIGTERM, some patience, SIGKILL."""
        family: dict[int, psutil.Process] = {}
        for process in reversed(self.running):
            family |= {one.pid: one for one in process.family()}
            if process.alive:
                os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        while any(process.alive for process in self.running) and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in self.running:
            family |= {one.pid: one for one in process.family()}
        for one in family.values():
            with contextlib.suppress(psutil.Error):
                one.kill()
        for child in self._children:
            child.wait()
        psutil.wait_procs(list(family.values()), timeout=_PATIENCE)
        self.running.clear()
        self._children.clear()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def stopped_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.stop()
            raise


def end_with_parent() -> None:
    """For `preexec_fn`."""
    # kill -9 of the parent leaves nobody to clean up; Linux then tells the children.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Patience:
    """So many seconds of waiting; those in which this process was stopped do not count: others were stopped with it."""

    def __init__(self, seconds: float) -> None:
        self._left, self._looked = seconds, time.monotonic()

    def is_over(self) -> bool:
        """To be asked again and again: a long time between two looks counts as a short one."""
        now = time.monotonic()
        self._left -= min(now - self._looked, _LOOK)
        self._looked = now
        return self._left < 0


def wait_until(what: str, process: Process, ready: Callable[[], Any], seconds: float) -> Any:
    """The first true value of `ready`, or why it does not come."""
    patience = Patience(seconds)
    while True:
        found = ready()
        if found:
            return found
        if not process.alive:
            raise StartError(f"{what} ended while it was starting; {_last_words(process)}")
        if patience.is_over():
            raise StartError(f"{what} was not ready in {seconds:.0f} s; {_last_words(process)}")
        time.sleep(0.05)


def _last_words(process: Process) -> str:
    lines = Path(process.log).read_text(errors="replace").splitlines()[-15:]
    return "\n  ".join([f"{process.log} ends with:", *lines])
