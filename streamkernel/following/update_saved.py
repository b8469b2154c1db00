"""A model on disk, updated in place: at any moment the complete old or the complete new model is there.

::

    .MODEL.update/     lock of the one update at work, and what its finished sweeps ended with (`store.Checkpoints`)
    MODEL/             read under the lock, replaced in one step

An update that is killed before that step has changed nothing, and the same call resumes it. After that step, the same
call finds nothing to do, because the model records the rows that it has seen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TypeVar

from streamkernel.blobs import beside, generation_of, normalised
from streamkernel.engine import Session
from streamkernel.errors import (
    CheckpointMismatchError,
    DataError,
    InputChangedError,
    NumericalError,
    ParameterError,
    RunLockedError,
)
from streamkernel.following._lock import remove_of_killed
from streamkernel.models.updatable import UpdatableModel
from streamkernel.outputs import remove_stray_partials, translated_os_errors
from streamkernel.store import Checkpoints, check_target
from streamkernel.table import Table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.updating.staleness import STALE
from streamkernel.updating.update import Update, check_options, update_model

M = TypeVar("M", bound=UpdatableModel)

# After these errors there is nothing to resume: they would come again.
_RECURRING = (DataError, ParameterError, InputChangedError, NumericalError)

# Number of attempts when other updates end just as this one begins.
_TRIES = 10


def update_saved(
    path: str | PathLike[str],
    load: Callable[[str | Path], M],
    table: Table,
    session_of: Callable[[Checkpoints], Session],
    **options: Unchecked,
) -> Update[M]:
    """Fold the rows of a table that a saved model has not seen into it, and replace the saved model.

    Parameters
    ----------
    path : path or URL of the model.
    load : function that reads the model, such as ``RidgeModel.load``.
    table : rows as they are stored, with targets.
    session_of : function that returns the session for these checkpoints; called only if there is work.
    options : options of `update_model`.

    Raises
    ------
    RunLockedError
        Another process is updating the model; nothing was done.
    InputChangedError
        A fit with overwrite replaced the model during the update; or see `update_model`.
    StreamKernelError
        See `update_model`; the model is unchanged.
    """
    # Check the options before they become part of the checkpoints' configuration.
    check_options(options.get("stale", STALE), options.get("grow", 0))
    folder = normalised(path)
    for _ in range(_TRIES):
        before = generation_of(folder)
        model = load(folder)
        target = check_target(folder, overwrite=True)
        config = {
            "model": model.digest,
            **table.run_pins,
            "options": {name: options.get(name) for name in ("stale", "grow", "as_new")},
        }
        with _checkpoints(beside(target, ".{}.update"), config) as checkpoints:
            if generation_of(folder) != before:
                # Another update ended between the read and the lock: the model that was read is outdated.
                checkpoints.discard()
                continue
            if isinstance(target, Path):
                # An update that was killed after its step left partial files. Where there is no work, nothing else
                # removes them.
                with translated_os_errors(target, "updating"):
                    remove_stray_partials(target.parent, target.name)
                remove_of_killed(target)
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
def _checkpoints(folder: str | Path, config: Fields) -> Iterator[Checkpoints]:
    """The checkpoints of an interrupted run of this update; they are removed where there is nothing to resume.

    Raises
    ------
    RunLockedError
        Another process is updating the model.
    """
    try:
        checkpoints = Checkpoints(folder, config)
    except CheckpointMismatchError:
        # Checkpoints of another update, which changed nothing: this one cannot use its sweeps.
        checkpoints = Checkpoints(folder, config, fresh=True)
    with checkpoints.kept_for_resume(_RECURRING):
        yield checkpoints
