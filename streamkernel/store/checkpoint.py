"""Checkpoints of one run: the state after each sweep. A killed driver resumes from it and gets the same bits.

::

    .MODEL.run/run.json         the run's configuration, written first
    .MODEL.run/lock             locked by the one driver, with its process and host; at a URL, its lease
    .MODEL.run/0002-look/       a bundle: the state after step 2
    .MODEL.run/rows/            values of every row for later sweeps, of runs that have such (`store.RowCodes`)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from streamkernel.atomic import canonical_json, text_digest
from streamkernel.blobs import joined, normalised
from streamkernel.errors import (
    CorruptMetadataError,
    IncompleteStoreError,
    MissingChunkError,
    ModelFormatError,
    ParameterError,
    StoreError,
    StoreNotFoundError,
    warn_user,
)
from streamkernel.outputs import translated_os_errors
from streamkernel.store._run_storage import ROWS, run_storage
from streamkernel.store.bundle import Bundle, read_bundle, replace_bundle
from streamkernel.store.plain import plain, require_equal
from streamkernel.type_aliases import AnyArray, Fields

KIND = "checkpoint"
# Number of the way in which fits compute their states, raised with each change of it: a state of another way would be
# taken for one of this way, and give a wrong model. 2: sums of partly whitened blocks, the sample of the search;
# 3: more functions whitened; 4: up to 16,384 spans of a sweep in place of 256, so that sums have other last digits;
# 5: the same, for sweeps of more than 2,048 spans; 6: the sums of a ridge regression in one matrix;
# 7: equal spans of short sweeps; 8: rows as stored, and statistics of the columns, in the first sweep;
# 9: upper triangles of symmetric sums; 10: other numbers of whitened functions.
REVISION = 10

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_STEP = re.compile(r"(\d{4,})-([a-z][a-z0-9_]*)")


def step_bundle(step: int, name: str, run: str, state: dict[str, AnyArray]) -> Bundle:
    """The bundle of a finished step; `run` is the digest of all that determines the run's result."""
    return Bundle(KIND, 1, {"step": step, "name": name, "run": run, "revision": REVISION}, state)


def read_step(path: str, name: str) -> Bundle | None:
    """The bundle of a step, or None after a warning, which names it `name`: the step is done again.

    That is where it is torn, or was saved by a release that computed other states.

    Raises
    ------
    StoreNotFoundError
        Nothing is there.
    """
    try:
        bundle = read_bundle(path, KIND)
    except (IncompleteStoreError, MissingChunkError, CorruptMetadataError, ModelFormatError) as error:
        _warn_torn(name, error.what)
        return None
    if bundle.config.get("revision") != REVISION:
        _warn_torn(name, f"{path} was saved by another release, whose sweeps differ")
        return None
    return bundle


def _warn_torn(name: str, why: object) -> None:
    warn_user(f"checkpoint {name} cannot be used and is done again ({why})")


class Checkpoints:
    """The states that one run has saved so far; opening them makes this process the run's only driver.

    Parameters
    ----------
    folder
        Path or URL of the checkpoints; created if it does not exist.
    config
        All that determines the run's result: input fingerprint, plan, parameters, seed. Plain JSON.
    fresh
        Whether to remove the checkpoints of an earlier run, whatever its configuration.

    Raises
    ------
    CheckpointMismatchError
        An earlier run with another configuration is here; the message lists the differing fields.
    RunLockedError
        Another driver works on this run; nothing was written.
    """

    def __init__(self, folder: str | os.PathLike[str], config: Fields, *, fresh: bool = False) -> None:
        place = normalised(folder)
        self.folder: str | Path = place
        self.config: Fields = plain(config)
        self._digest = text_digest(canonical_json(self.config))
        self._finished = False
        with translated_os_errors(self.folder, "opening checkpoints in"):
            self._storage = run_storage(place)
            try:
                if fresh:
                    # Values of rows, too: they are those of other rows.
                    ours = [name for name in self._storage.names() if _STEP.fullmatch(name) or name == ROWS]
                    self._storage.remove_steps(ours)
                self._check_config()
            except BaseException:
                self._storage.withdraw()
                raise

    def save(self, step: int, name: str, state: dict[str, AnyArray]) -> None:
        """Save `state` as the result of step number `step`; an earlier save of this step is replaced atomically."""
        path = joined(self.folder, self._name(step, name))
        self.check_open()
        replace_bundle(path, step_bundle(step, name, self._digest, state))

    def load(self, step: int, name: str) -> dict[str, AnyArray] | None:
        """The state from `save`, or None. For a torn checkpoint it warns and returns None: the step is done again."""
        saved = self._name(step, name)
        path = joined(self.folder, saved)
        self.check_open()
        try:
            bundle = read_step(path, saved)
        except StoreNotFoundError:
            return None
        if bundle is not None and bundle.config.get("run") != self._digest:
            _warn_torn(saved, f"{path} belongs to another run")
            return None
        return None if bundle is None else bundle.arrays

    @property
    def rows_folder(self) -> Path | None:
        """A folder of the run for values of rows, which lasts as its steps do; None at a URL."""
        return self.folder / ROWS if isinstance(self.folder, Path) else None

    def steps(self) -> list[tuple[int, str]]:
        """Number and name of every saved step, readable or not, in order."""
        matches = (_STEP.fullmatch(name) for name in self._storage.names())
        return sorted((int(match[1]), match[2]) for match in matches if match)

    def discard(self) -> None:
        """Remove everything, because the run is finished or not wanted. Releases the lock."""
        self.check_open()
        self._finished = True
        with translated_os_errors(self.folder, "removing"):
            self._storage.discard()

    @contextmanager
    def kept_for_resume(self, recurring: tuple[type[Exception], ...]) -> Iterator[Checkpoints]:
        """The frame around a run. After an error it removes the checkpoints where there is nothing to resume.

        That is before the first sweep, and after an error that would come again. The frame closes the checkpoints.

        Parameters
        ----------
        recurring : classes of the errors that would come again.
        """
        with self:
            try:
                yield self
            except BaseException as error:
                if type(error) is StoreError:
                    # The store does not answer: removing the checkpoints would only wait once more.
                    raise
                if self._finished:
                    # A signal interrupted the removal. The rest is removed here, and the signal is raised again.
                    with suppress(StoreError):
                        self.discard()
                elif isinstance(error, recurring) or not self.steps():
                    self.discard()
                raise

    def close(self) -> None:
        """Release the lock; saved steps stay."""
        self._storage.lock.release()

    def check_open(self) -> None:
        """Raise `RunLockedError` unless this process is still the only driver; to be called before publishing."""
        self._storage.lock.check()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if type(error) is StoreError:
            # The place does not answer, and the error has waited long enough: do not wait again to release the lock.
            self._storage.lock.abandon()
        else:
            self.close()

    def _name(self, step: int, name: str) -> str:
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise ParameterError(f"a checkpoint's step is a number from 0, not {step!r}")
        if not _NAME.fullmatch(name):
            raise ParameterError(f"{name!r} is no checkpoint name; use lower-case letters, digits and underscores")
        return f"{step:04d}-{name}"

    def _check_config(self) -> None:
        try:
            earlier = self._storage.description()
        except CorruptMetadataError:
            # No step was saved under this configuration, so there is nothing to protect.
            if self.steps():
                raise
            earlier = None
        if earlier is None:
            self._storage.write_description({"format": "streamkernel.run", "version": 1, "config": self.config})
        else:
            require_equal(self.config, earlier.get("config"), f"the run in {self.folder}")
