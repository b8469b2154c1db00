"""A lease: who drives a run, agreed on by machines that share nothing but a place for byte strings.

The holder makes a new record every third of its time to live; whoever wants the lease takes it when it was released, or
when it has watched one record of its holder for longer than that without seeing the next: by its own clock, since
the clocks of two machines need not agree. A holder that was stopped for so long finds the next number taken, and knows
that it has lost: nothing more of what it does may be published.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Any

from streamkernel.blobs.blobs import Blobs
from streamkernel.blobs.records import Record, RecordLog
from streamkernel.errors import RunLockedError, StoreError

__all__ = ["Lease", "this_process"]

Clock = Callable[[], float]

# A holder that lives makes a record every third of its time to live.
_RENEWALS, _WATCHED = 0.4, 6.0


def this_process() -> dict[str, Any]:
    """Host and process number, for people."""
    return {"host": socket.gethostname(), "process": os.getpid()}


class Lease:
    """A lease that this object holds until `release`, or until it could not be renewed in time.

    Parameters
    ----------
    log, record, holder, ttl : the log it is kept in, the latest record of it, who holds it, seconds to live.
    keep_alive : renew it from a thread of its own.

    See Also
    --------
    acquire : the way to get one.
    """

    def __init__(
        self, log: RecordLog, record: Record, holder: str, ttl: float, *, clock: Clock, keep_alive: bool
    ) -> None:
        self.log, self.holder, self.ttl = log, holder, ttl
        self._record, self._clock = record, clock
        self._renewed = clock()
        self._lost = False
        self._stop = threading.Event()
        self._guard = threading.Lock()
        if keep_alive:
            threading.Thread(target=_renew_until_gone, args=(weakref.ref(self), self._stop, ttl), daemon=True).start()

    @classmethod
    def acquire(
        cls,
        blobs: Blobs,
        name: str = "lease",
        *,
        ttl: float = 15.0,
        wait: float = 0.0,
        while_silent: bool = False,
        silent: float = 0.0,
        about: dict[str, Any] | None = None,
        keep_alive: bool = True,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Lease | None:
        """Take the lease; None if another holds it, and goes on holding it for `wait` seconds.

        Parameters
        ----------
        blobs, name : where its records are.
        ttl : seconds after which a holder that gives no sign of life has lost it.
        wait : how long to watch another holder. With at least its time to live, one that has died is found out.
        while_silent : give up as soon as the other one gives a sign of life.
        silent : seconds for which, by the clock of the place, its holder has given no sign of life already. It is
            watched all the same for as long as one that lives would take to give the next, up to six seconds.
        about : what else to say of the holder; its host and process number are always said.
        keep_alive : renew it from a thread, until it is released or collected.
        """
        log = RecordLog(blobs, name)
        holder = uuid.uuid4().hex
        value = {"holder": holder, "ttl": ttl, "released": False, **this_process(), **(about or {})}
        began = clock()
        seen, since = log.latest(), began
        if seen is not None:
            lived = _ttl(seen)
            since -= max(0.0, min(silent, lived - min(_RENEWALS * lived, _WATCHED)))
        while True:
            if seen is None or seen.value.get("released") or clock() - since > _ttl(seen):
                asked = clock()
                record = log.append(value, after=seen)
                if record is not None:
                    lease = cls(log, record, holder, ttl, clock=clock, keep_alive=keep_alive)
                    # It lives from before the record was made, not from when we heard that it was.
                    lease._renewed = asked
                    return lease
            elif clock() - began >= wait:
                return None
            else:
                sleep(min(0.25, ttl / 10))
            latest = log.latest()
            if latest is None or seen is None or latest.number != seen.number:
                if while_silent and latest is not None and not latest.value.get("released"):
                    return None
                seen, since = latest, clock()

    @property
    def held(self) -> bool:
        """Whether nobody else can have taken it yet."""
        return not self._lost and not self._stop.is_set() and self._clock() - self._renewed <= self.ttl

    def check(self) -> None:
        """Raise `RunLockedError` unless it is still held: before anything is published."""
        if not self.held:
            raise RunLockedError(
                f"the lease in {self.log.blobs.location} was lost to another driver; this one wrote nothing more"
            )

    def renew(self) -> bool:
        """Make it live `ttl` seconds more; False if it has been lost."""
        with self._guard:
            if self._stop.is_set() or self._lost:
                return False
            asked = self._clock()
            record = self.log.append(self._record.value, after=self._record)
            if record is None:
                self._lost = True
                return False
            self._record, self._renewed = record, asked
            return True

    def release(self) -> None:
        """Let go, so that the next one need not wait; a second call does nothing."""
        with self._guard:
            if self._stop.is_set():
                return
            self._stop.set()
            if not self._lost:
                self.log.append({**self._record.value, "released": True}, after=self._record)

    def forsake(self) -> None:
        """Stop renewing it, without a word to the place it is kept in: it lapses."""
        self._stop.set()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def __del__(self) -> None:
        self._stop.set()


def _ttl(record: Record) -> float:
    ttl = record.value.get("ttl")
    return float(ttl) if isinstance(ttl, (int, float)) and ttl > 0 else 60.0


def _renew_until_gone(reference: weakref.ref[Lease], stop: threading.Event, ttl: float) -> None:
    while not stop.wait(ttl / 3):
        lease = reference()
        if lease is None:
            return
        try:
            if not lease.renew():
                return
        except StoreError:
            # The place may come back before the lease has lapsed; `held` tells by the clock.
            pass
        del lease
