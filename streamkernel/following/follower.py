"""The follower of a store that grows: it folds each completed append into the saved model, exactly once.

::

    generation of STORE is another one?  --no-->  wait
                   | yes
    update_saved(MODEL, the rows of STORE that MODEL has not seen)        one step: the old model, or the new one

Nothing else is stored: the model records the rows that it has seen, and one step replaces both. A follower that is
killed at any moment and started again continues from this record, so that no row is lost or counted twice. Appends that
arrive during a fold are part of the next fold. Between two folds the follower checks only the metadata of a few files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from streamkernel.blobs import joined
from streamkernel.engine import Executor, Progress, Session, Silent, resident_bytes
from streamkernel.errors import (
    ClusterError,
    IncompleteStoreError,
    InputChangedError,
    ParameterError,
    ShapeMismatchError,
)
from streamkernel.following._lock import only_follower
from streamkernel.following._model_cache import CachedModel
from streamkernel.following._temporary_errors import ErrorStreak, is_temporary
from streamkernel.following.stop import Abandoned, Stop, StopFlag, Stoppable
from streamkernel.following.update_saved import update_saved
from streamkernel.models.updatable import UpdatableModel
from streamkernel.store import Checkpoints
from streamkernel.table import Table
from streamkernel.table.generation import table_generation
from streamkernel.table.synthetic import is_synthetic
from streamkernel.type_aliases import Fields
from streamkernel.updating.staleness import STALE
from streamkernel.updating.update import Update, new_rows
from streamkernel.wording import call

_SLICE = 0.1  # seconds within which a request to stop is noticed


@dataclass(frozen=True)
class Fold:
    """The result of one fold: `rows_folded` new rows, `rows` all rows that the model has seen. See `Update`."""

    rows_folded: int
    rows: int
    seconds: float
    residual_of_fit: float
    residual_of_new: float | None
    stale: bool
    grown: int
    basis_size: int
    resumed_sweeps: int
    digest: str

    @classmethod
    def of(cls, update: Update[Any], seconds: float, digest: str) -> Fold:
        """The fields of an update, without its model."""
        return cls(
            rows_folded=update.rows_folded,
            rows=update.rows,
            seconds=seconds,
            residual_of_fit=update.staleness.of_fit,
            residual_of_new=update.staleness.of_new,
            stale=update.stale,
            grown=update.grown,
            basis_size=update.model.record.basis_size,
            resumed_sweeps=update.resumed_sweeps,
            digest=digest,
        )

    def to_dict(self) -> Fields:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Followed:
    """The totals of a follower; `ended` is "stopped", or names the limit that was reached: "once", "rows", "time"."""

    folds: int
    rows_folded: int
    rows: int
    retries: int
    seconds: float
    ended: str
    digest: str

    def to_dict(self) -> Fields:
        """Plain JSON."""
        return asdict(self)


class Watcher(Protocol):
    """The receiver of a follower's events."""

    def folded(self, fold: Fold) -> None:
        """Called after a fold, when its model is on disk."""

    def failed(self, error: Exception, seconds: float) -> None:
        """Called after a temporary error; the next attempt follows after `seconds`."""

    def recovered(self) -> None:
        """Called when the temporary error has ended."""


@dataclass(frozen=True)
class Limits:
    """When a follower ends by itself: after the first look, once the model has seen `rows` rows, after `seconds`."""

    once: bool = False
    rows: int | None = None
    seconds: float | None = None


@dataclass
class Follower:
    """Parameters
    ----------
    store, model : paths.
    load : function that reads the model.
    executor : function that returns the executor's context; entered when there is work, left at the end or when it was
        lost.
    watcher : receiver of the events.
    options : options of `update_model`: stale, grow, choices, memory_limit.
    interval : seconds between two looks at the store.
    patience : seconds to wait for the end of temporary errors.
    limits : when to end.
    stop : request to end; checked ten times a second, and in sweeps for every task. A sweep is then abandoned.
    progress : receiver of the progress of the sweeps.
    own_rows : whether sweeps run in this process; its resident bytes then count against the memory limit.
    """

    store: str
    model: str
    load: Callable[[Any], UpdatableModel]
    executor: Callable[[], AbstractContextManager[Executor]]
    watcher: Watcher
    options: Fields
    interval: float = 2.0
    patience: float = 3600.0
    limits: Limits = field(default_factory=Limits)
    stop: Stop = field(default_factory=StopFlag)
    progress: Progress = field(default_factory=Silent)
    own_rows: bool = True

    def __post_init__(self) -> None:
        if is_synthetic(self.store):
            raise ParameterError(
                f"no rows are ever appended to {self.store}, so there is nothing to follow; {call('update_model')} "
                "folds the rows of one with a larger rows= into the model"
            )
        self.model = joined(self.model)
        self._kept = CachedModel(self.model, self.load)
        self._trouble = ErrorStreak(self.patience)
        self._stack = ExitStack()
        self._running: Executor | None = None
        self._driver_bytes: int | None = None
        self._seen: tuple[Any, Any] | None = None
        self._foreign = False
        self._table_rows = self._folds = self._rows_folded = self._retries = 0
        self._starting = 0.0

    def run(self) -> Followed:
        """Follow until a limit is reached or `stop` is set.

        Raises
        ------
        RunLockedError
            The model is being followed by another process.
        InputChangedError
            The store has shrunk, is another table, or rows that were seen have changed.
        StreamKernelError
            Any error that is not temporary; the saved model is that of the last fold.
        """
        self._began = time.monotonic()
        with only_follower(self.model, self.store) as check, self._stack:
            self._told(self._kept())
            while not (ended := self._ended()):
                if self._trouble.times == 0 and self._seen == self._generations():
                    self._wait(self.interval)
                    continue
                check()
                then = self._generations()
                try:
                    fold = self._look()
                except Abandoned:
                    continue
                except Exception as error:
                    self._after(error, moved=self._generations() != then)
                    continue
                # If the model in memory may differ from the one on disk, the follower looks again at once.
                self._seen = (then[0], self._kept.generation or "unknown")
                if self._trouble.over():
                    self.watcher.recovered()
                if fold is not None:
                    self.watcher.folded(fold)
        seconds = time.monotonic() - self._began
        return Followed(self._folds, self._rows_folded, self._rows, self._retries, seconds, ended, self._digest)

    def _told(self, model: UpdatableModel) -> None:
        self._rows, self._digest = model.record.totals.rows, model.digest

    def _generations(self) -> tuple[Any, Any]:
        return table_generation(self.store), self._kept.saved_generation()

    def _ended(self) -> str:
        limits = self.limits
        if self.stop.is_set():
            return "stopped"
        if limits.rows is not None and self._rows >= limits.rows:
            return "rows"
        if limits.seconds is not None and time.monotonic() - self._began >= limits.seconds:
            return "time"
        return "once" if limits.once and self._seen is not None else ""

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        if self.limits.seconds is not None:
            until = min(until, self._began + self.limits.seconds)
        # Not Event.wait: a signal handler that sets the event while this thread holds its lock would wait for ever.
        while not self.stop.is_set() and (left := until - time.monotonic()) > 0:
            time.sleep(min(_SLICE, left))

    def _look(self) -> Fold | None:
        """Fold in the new rows; None where there are none."""
        began, self._starting = time.perf_counter(), 0.0
        table = self._opened()
        if self.own_rows and self._driver_bytes is None:
            # Measured once: the next fold uses again the heap that earlier folds have left.
            self._driver_bytes = resident_bytes()
        options = {"stale": STALE, **self.options, "grown_only": True, "driver_bytes": self._driver_bytes}
        update = update_saved(self.model, self._kept, table, self._session, **options)
        self._table_rows = table.features.n_rows
        self._told(update.model)
        if not update.changed:
            return None
        self._kept.saved(update.model)
        self._folds += 1
        self._rows_folded += update.rows_folded
        return Fold.of(update, time.perf_counter() - began - self._starting, self._digest)

    def _opened(self) -> Table:
        """The store's rows, after a check that none of them is still being written."""
        model = self._kept()
        try:
            table = new_rows(model, self.store)
        except ShapeMismatchError as error:
            # Other writers make X longer before y.
            raise IncompleteStoreError(
                f"rows are being written to {self.store}, or it is damaged: {error.message}"
            ) from error
        rows = table.features.n_rows
        self._foreign = not table.features.as_stored[0].proved
        if rows < self._table_rows:
            raise InputChangedError(
                f"{self.store} has {rows} rows, it had {self._table_rows}: it has shrunk; restore it, or fit again on "
                "the rows that it has now"
            )
        # Rows of other writers may be visible before they are complete.
        if self._foreign and rows > self._table_rows:
            self._wait(min(self.interval, 1.0))
            try:
                table.check_unchanged()
            except InputChangedError as error:
                raise IncompleteStoreError(f"rows are being written to {self.store}; wait until they are") from error
        return table

    def _session(self, checkpoints: Checkpoints) -> Session:
        if self._running is None:
            began = time.perf_counter()
            self._running = self._stack.enter_context(self.executor())
            self._starting = time.perf_counter() - began
        return Session(self._running, progress=Stoppable(self.progress, self.stop), checkpoints=checkpoints)

    def _after(self, error: Exception, *, moved: bool) -> None:
        """Wait after an error that may pass; any other is raised again."""
        if self.stop.is_set():
            # The workers of this machine were stopped as well, which caused the error.
            return
        begun, times = self._seen is not None, self._trouble.times
        if not is_temporary(error, begun=begun, moved=moved, foreign=self._foreign, times=times):
            raise error
        seconds = self._trouble.again()
        if seconds is None:
            raise error
        if isinstance(error, ClusterError):
            # The next attempt starts a new executor.
            self._running = None
            self._stack.close()
        self._retries += 1
        self.watcher.failed(error, seconds)
        self._wait(seconds)
