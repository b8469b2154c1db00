"""A model on disk, updated in its place: at any moment the old one or the new one is there, whole.

::

    .MODEL.update/     lock of the one update at work, and what its finished sweeps ended with (`store.Checkpoints`)
    MODEL/             read under the lock, replaced in one step

An update that is killed before that step has changed nothing, and is resumed by the same call; one that is killed after
it is found done, since the model says which rows it has seen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from streamkernel.blobs import beside, generation_of, spelled
from streamkernel.engine import Session
from streamkernel.errors import (
    CheckpointMismatchError,
    DataError,
    InputChangedError,
    NumericalError,
    ParameterError,
    RunLockedError,
    StoreError,
)
from streamkernel.estimators.staleness import STALE
from streamkernel.estimators.updatable import Updatable
from streamkernel.estimators.updating import Update, check_options, update_model
from streamkernel.outputs import remove_stray_partials, translated_os_errors
from streamkernel.store import Checkpoints, check_target
from streamkernel.table import Table

__all__ = ["update_saved"]

M = TypeVar("M", bound=Updatable[Any])

# After these there is nothing to resume.
_WOULD_COME_AGAIN = (DataError, ParameterError, InputChangedError, NumericalError)

# How often it follows other updates that end just as it begins.
_TRIES = 10


def update_saved(
    path: str | PathLike[str],
    load: Callable[[str | Path], M],
    table: Table,
    session_of: Callable[[Checkpoints], Session],
    **options: Any,
) -> Update[M]:
    """Fold the rows of a table that a saved model has not seen into it, and save it in the old one's place.

    Parameters
    ----------
    path : of the model.
    load : what reads it, such as ``RidgeModel.load``.
    table : rows as they are stored, with targets.
    session_of : what gives the session that runs it, with these checkpoints, if there is work.
    options : of `update_model`.

    Raises
    ------
    RunLockedError
        Another process is updating the model; nothing was done.
    InputChangedError
        The model was replaced while this ran, by a fit that overwrites; or see `update_model`.
    StreamKernelError
        See `update_model`; the model is as it was.
    """
    # Before they become part of the checkpoints' configuration.
    check_options(options.get("stale", STALE), options.get("grow", 0))
    folder = spelled(path)
    for _ in range(_TRIES):
        before = generation_of(folder)
        model = load(folder)
        target = check_target(folder, overwrite=True)
        config = {
            "model": model.digest,
            "table": table.fingerprint,
            "rows": [table.start, table.stop],
            "options": {name: options.get(name) for name in ("stale", "grow", "as_new")},
        }
        with _checkpoints(beside(target, ".{}.update"), config) as checkpoints:
            if generation_of(folder) != before:
                # Another update ended between the reading and the lock: what was read is no longer the model.
                checkpoints.discard()
                continue
            if isinstance(target, Path):
                # Of one that was killed after the step: where nothing is left to be done, nobody else looks.
                with translated_os_errors(target, "updating"):
                    remove_stray_partials(target.parent, target.name)
            update = update_model(model, table, partial(session_of, checkpoints), **options)
            if update.changed:
                if generation_of(folder) != before:
                    raise InputChangedError(
                        f"{folder} was replaced by another process while it was updated; nothing was written: run again"
                    )
                update.model.save(target, overwrite=True)
            checkpoints.discard()
            return update
    raise RunLockedError(f"{folder} is being updated by others again and again; wait for them and run again")


@contextlib.contextmanager
def _checkpoints(folder: str | Path, config: dict[str, Any]) -> Iterator[Checkpoints]:
    """Those of an interrupted update, if it was this one; none are left behind where there is nothing to resume.

    Raises
    ------
    RunLockedError
        Another process is at work.
    """
    try:
        checkpoints = Checkpoints(folder, config)
    except CheckpointMismatchError:
        # Of another update, which changed nothing: what it swept is of no use to this one.
        checkpoints = Checkpoints(folder, config, fresh=True)
    with checkpoints:
        try:
            yield checkpoints
        except BaseException as error:
            if type(error) is StoreError:
                # A place that does not answer: asking it what to remove would take as long again.
                raise
            if isinstance(error, _WOULD_COME_AGAIN) or not checkpoints.steps():
                checkpoints.discard()
            raise
