"""Checkpoints of a run: beside its output, kept where they are of use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from streamkernel.blobs import beside
from streamkernel.cli.fitting import Asked
from streamkernel.errors import DataError, NumericalError, ParameterError, StoreError
from streamkernel.store import Checkpoints

__all__ = ["checkpoints_of", "kept_if_useful"]


@contextlib.contextmanager
def kept_if_useful(checkpoints: Checkpoints) -> Iterator[Checkpoints]:
    """Leave no folder behind where there is nothing to resume: before the first sweep, or when the rows are bad, or
    the numbers, which would be the same again.
    """
    with checkpoints:
        try:
            yield checkpoints
        except BaseException as error:
            if type(error) is StoreError:
                # A place that does not answer: asking it what to remove would take as long again.
                raise
            if isinstance(error, (DataError, NumericalError, ParameterError)) or not checkpoints.steps():
                checkpoints.discard()
            raise


def checkpoints_of(target: str | Path, wanted: Asked, resume: bool) -> Checkpoints:
    """Checkpoints beside the model: what determines the result is what must be equal on resuming."""
    config = {
        "estimator": wanted.estimator,
        "settings": wanted.settings.to_config(),
        "table": wanted.table.fingerprint,
        "rows": [wanted.table.start, wanted.table.stop],
    }
    return Checkpoints(beside(target, ".{}.run"), config, fresh=not resume)
