"""Checkpoints of a run: beside its output, kept where they are of use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from streamkernel.cli.fitting import Asked
from streamkernel.errors import DataError, ParameterError
from streamkernel.store import Checkpoints

__all__ = ["checkpoints_of", "kept_if_useful"]


@contextlib.contextmanager
def kept_if_useful(checkpoints: Checkpoints) -> Iterator[Checkpoints]:
    """Leave no folder behind where there is nothing to resume: before the first sweep, or when the rows are bad."""
    with checkpoints:
        try:
            yield checkpoints
        except BaseException as error:
            if isinstance(error, (DataError, ParameterError)) or not checkpoints.steps():
                checkpoints.discard()
            raise


def checkpoints_of(target: Path, wanted: Asked, resume: bool) -> Checkpoints:
    """Checkpoints beside the model: what determines the result is what must be equal on resuming."""
    config = {
        "estimator": wanted.estimator,
        "settings": wanted.settings.to_config(),
        "table": wanted.table.fingerprint,
        "rows": [wanted.table.start, wanted.table.stop],
    }
    return Checkpoints(target.with_name(f".{target.name}.run"), config, fresh=not resume)
