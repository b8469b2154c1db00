"""streamkernel.follow: the follower of a store, from Python."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from os import PathLike

from streamkernel.byte_counts import parse_bytes
from streamkernel.engine import Executor, Progress, Silent, executor_of
from streamkernel.errors import ParameterError
from streamkernel.following.follower import Fold, Followed, Follower, Limits
from streamkernel.following.stop import Stop, StopFlag
from streamkernel.kinds import predicting_class, updatable
from streamkernel.models.updatable import UpdatableModel
from streamkernel.store import bundle_kind
from streamkernel.type_aliases import Unchecked, Untyped
from streamkernel.updating.staleness import STALE
from streamkernel.updating.update import check_options
from streamkernel.wording import option


def follow(
    store: str | PathLike[str],
    model: str | PathLike[str],
    *,
    interval: float = 2.0,
    stale: float = STALE,
    grow: int = 0,
    once: bool = False,
    until_rows: int | None = None,
    seconds: float | None = None,
    patience: float = 3600.0,
    on_fold: Callable[[Fold], object] | None = None,
    on_trouble: Callable[[Exception, float], object] | None = None,
    stop: Stop | None = None,
    memory_limit: Unchecked = None,
    client: Untyped = None,
    progress: Progress | None = None,
    **choices: Unchecked,
) -> Followed:
    """Fold each append to a store into a saved model, exactly once, as it arrives; the same as `streamkernel follow`.

    Parameters
    ----------
    store : path of a table to which rows are appended, and which the model was fitted to or updated with.
    model : path of the model; it is replaced in one step by each fold.
    interval : seconds between two looks at the store.
    stale, grow : see `UpdatingEstimator.update`.
    once, until_rows, seconds : end after the first look, when the model has seen this many rows, after this many
        seconds.
    patience : seconds to wait for the end of temporary errors (a store that cannot be reached).
    on_fold : called with each `Fold`, when its model is on disk.
    on_trouble : called with a temporary error, and the seconds until the next attempt.
    stop : an object whose `is_set` returns whether to end, such as a `threading.Event`.
    memory_limit, client, progress : as for the estimators.
    choices : ``alpha`` of ridge models, ``variances`` of processes and committees; see `UpdatingEstimator.update`.

    Raises
    ------
    ParameterError
        An option is wrong, or the model cannot be updated.
    RunLockedError
        The model is being followed by another process.
    InputChangedError
        The store has shrunk, is another table, or rows that were seen have changed.
    StreamKernelError
        Any error that is not temporary; the saved model is that of the last fold.
    """
    check_options(stale, grow)
    check_times(interval, patience, seconds)
    if until_rows is not None and (isinstance(until_rows, bool) or not isinstance(until_rows, int) or until_rows < 1):
        raise ParameterError(f"{option('until_rows')} must be a whole number > 0, not {until_rows!r}", value=until_rows)

    @contextlib.contextmanager
    def executor() -> Iterator[Executor]:
        yield executor_of(client)

    return Follower(
        store=os.fspath(store),
        model=os.fspath(model),
        load=_load,
        executor=executor,
        watcher=_Calls(on_fold, on_trouble),
        options={"stale": stale, "grow": grow, "choices": choices, "memory_limit": parse_bytes(memory_limit)},
        interval=interval,
        patience=patience,
        limits=Limits(once, until_rows, seconds),
        stop=StopFlag() if stop is None else stop,
        progress=progress or Silent(),
        own_rows=client is None,
    ).run()


def check_times(interval: float, patience: float, seconds: float | None) -> None:
    """Raise `ParameterError` for times that are not numbers of seconds, before any work."""
    for name, value, least in (("interval", interval, 0.01), ("patience", patience, 0.0), ("seconds", seconds, 0.0)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < least:
            raise ParameterError(
                f"{option(name)} must be a finite number of seconds >= {least:g}, not {value!r}", value=value
            )


class _Calls:
    """A watcher that calls functions."""

    def __init__(
        self, on_fold: Callable[[Fold], object] | None, on_trouble: Callable[[Exception, float], object] | None
    ) -> None:
        self._on_fold, self._on_trouble = on_fold, on_trouble

    def folded(self, fold: Fold) -> None:
        if self._on_fold:
            self._on_fold(fold)

    def failed(self, error: Exception, seconds: float) -> None:
        if self._on_trouble:
            self._on_trouble(error, seconds)

    def recovered(self) -> None:
        pass


def _load(path: Unchecked) -> UpdatableModel:
    return updatable(predicting_class(bundle_kind(path), str(path)).load(path), path)
