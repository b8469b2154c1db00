"""Checkpoints of a run: beside its output, kept only where a run can resume from them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from streamkernel.blobs import beside
from streamkernel.cli.fit_request import FitRequest
from streamkernel.errors import DataError, NumericalError, ParameterError, StoreError
from streamkernel.store import Checkpoints


@contextlib.contextmanager
def kept_if_useful(checkpoints: Checkpoints) -> Iterator[Checkpoints]:
    """Remove the checkpoints after an error where there is nothing to resume: before the first sweep, or after an error
    of the rows or the numbers, which would come again.
    """
    with checkpoints:
        try:
            yield checkpoints
        except BaseException as error:
            if type(error) is StoreError:
                # The store does not answer: removing the checkpoints would only wait once more.
                raise
            if isinstance(error, (DataError, NumericalError, ParameterError)) or not checkpoints.steps():
                checkpoints.discard()
            raise


def checkpoints_of(target: str | Path, wanted: FitRequest, resume: bool) -> Checkpoints:
    """Checkpoints beside the model; a resumed run must have the same estimator, settings, table and rows."""
    config = {
        "estimator": wanted.estimator,
        "settings": wanted.settings.to_config(),
        "table": wanted.table.fingerprint,
        "rows": [wanted.table.start, wanted.table.stop],
    }
    return Checkpoints(beside(target, ".{}.run"), config, fresh=not resume)
