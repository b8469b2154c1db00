"""A lease: machines that share only a place for byte strings agree on the one driver of a run.

The holder makes a new record after every third of its time to live. Another process takes the lease if it was released,
or if it has seen no new record for longer than the holder's time to live. It measures this time by its own clock,
because the clocks of two machines can differ. A holder that was stopped for that long finds the next number taken. It
then knows that it has lost the lease, and must publish nothing more. A damaged record is that of some holder: if this
holder lives, it makes the next record.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress

from streamkernel.blobs.blobs import Blobs
from streamkernel.blobs.clock import steady_seconds
from streamkernel.blobs.records import Record, RecordLog
from streamkernel.errors import RunLockedError, StoreError
from streamkernel.type_aliases import Fields

Clock = Callable[[], float]

# A live holder makes a record after every third of its time to live.
_RENEWALS, _WATCHED = 0.4, 6.0


def this_process() -> Fields:
    """Host and process number, to be read by people."""
    return {"host": socket.gethostname(), "process": os.getpid()}


class Lease:
    """A lease that this object holds until `release`, or until a renewal fails or is too late.

    Parameters
    ----------
    log, record, holder, ttl : log of the lease, its latest record, name of the holder, time to live in seconds.
    keep_alive : whether a thread of its own renews it.

    See Also
    --------
    acquire : takes a lease.
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
        about: Fields | None = None,
        keep_alive: bool = True,
        clock: Clock = steady_seconds,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Lease | None:
        """Take the lease; None if another process holds it, and still holds it after `wait` seconds.

        Parameters
        ----------
        blobs, name : place and name of its records.
        ttl : time to live in seconds: a holder that makes no record for longer has lost the lease.
        wait : seconds to watch another holder. At least its time to live is needed to detect that it has died.
        while_silent : whether to give up as soon as the other holder makes a new record.
        silent : seconds for which the holder has made no record already, by the clock of the place. The holder is
            still watched for as long as a live one needs for its next record, up to six seconds.
        about : further facts about the holder for the record, which always has its host and process number.
        keep_alive : whether a thread renews it until it is released or garbage-collected.
        """
        log = RecordLog(blobs, name)
        holder = uuid.uuid4().hex
        value = {"holder": holder, "ttl": ttl, "released": False, **this_process(), **(about or {})}
        began = clock()
        seen, since = log.latest_or_damaged(), began
        if seen is not None:
            lived = _ttl(seen, ttl)
            since -= max(0.0, min(silent, lived - _watched(lived)))
        while True:
            if seen is None or seen.value.get("released") or clock() - since > _ttl(seen, ttl):
                sent = clock()
                record = log.append(value, after=seen)
                if record is not None:
                    lease = cls(log, record, holder, ttl, clock=clock, keep_alive=keep_alive)
                    # Its time to live starts before the record was made, not when the answer arrived.
                    lease._renewed = sent
                    return lease
            elif clock() - began >= wait:
                return None
            else:
                sleep(min(0.25, ttl / 10))
            latest = log.latest_or_damaged()
            if latest is None or seen is None or latest.number != seen.number:
                if while_silent and latest is not None and not latest.value.get("released"):
                    return None
                seen, since = latest, clock()

    @property
    def held(self) -> bool:
        """Whether the lease is still ours: no other process can have taken it yet."""
        return not self._lost and not self._stop.is_set() and self._clock() - self._renewed <= self.ttl

    def check(self) -> None:
        """Raise `RunLockedError` unless the lease is still held; to be called before anything is published."""
        if not self.held:
            raise RunLockedError(
                f"the lease in {self.log.blobs.location} was lost to another driver; this one wrote nothing more"
            )

    def renew(self) -> bool:
        """Extend the lease by `ttl` seconds from now; False if it has been lost."""
        with self._guard:
            if self._stop.is_set() or self._lost:
                return False
            sent = self._clock()
            record = self.log.append(self._record.value, after=self._record)
            if record is None:
                self._lost = True
                return False
            self._record, self._renewed = record, sent
            return True

    def release(self) -> None:
        """Release the lease, so that the next holder need not wait; a second call does nothing."""
        with self._guard:
            if self._stop.is_set():
                return
            self._stop.set()
            if not self._lost:
                self.log.append({**self._record.value, "released": True}, after=self._record)

    def abandon(self) -> None:
        """Stop the renewals without a request to the place; the lease then expires."""
        self._stop.set()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exception: object) -> None:
        # What the block did is done. A lease that cannot be released, as on a full disk, expires.
        with suppress(StoreError):
            self.release()

    def __del__(self) -> None:
        self._stop.set()


def _ttl(record: Record, default: float = 60.0) -> float:
    """Time to live of a record's holder; `default` for that of a damaged record."""
    ttl = record.value.get("ttl")
    return float(ttl) if isinstance(ttl, (int, float)) and ttl > 0 else default


def _watched(ttl: float) -> float:
    """Seconds in which a live holder makes its next record."""
    return min(_RENEWALS * ttl, _WATCHED)


def is_renewed(log: RecordLog, seen: Record) -> bool:
    """Whether the record of a lease is not its latest one, or is not for long: it waits for as long as a holder may."""
    until = time.monotonic() + _watched(_ttl(seen))
    while (latest := log.latest_or_damaged()) is not None and latest.number == seen.number:
        if time.monotonic() > until:
            return False
        time.sleep(0.25)
    return True


def _renew_until_gone(reference: weakref.ref[Lease], stop: threading.Event, ttl: float) -> None:
    while not stop.wait(ttl / 3):
        lease = reference()
        if lease is None:
            return
        try:
            if not lease.renew():
                return
        except StoreError:
            # The place may answer again before the lease expires; `held` compares with the clock.
            pass
        del lease
