"""The session of a run that can be resumed: its checkpoints are beside its output."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from streamkernel.blobs import beside
from streamkernel.cli.ending_signals import ends_after_sweep
from streamkernel.cli.fit_request import FitRequest
from streamkernel.cli.output import Display
from streamkernel.cli.progress import SweepBar
from streamkernel.engine import Session
from streamkernel.errors import DataError, NumericalError, ParameterError
from streamkernel.store import Checkpoints

_RECURRING = (DataError, NumericalError, ParameterError)


@contextlib.contextmanager
def resumable_session(request: FitRequest, target: str | Path, resume: bool, display: Display) -> Iterator[Session]:
    """A session with checkpoints, which are removed at its end, or where a run could not resume from them.

    SIGTERM ends it after the present sweep.
    """
    with (
        SweepBar(display.quiet) as bar,
        request.place.executor(bar.note, request.worker_bytes) as executor,
        _checkpoints_of(target, request, resume).kept_for_resume(_RECURRING) as checkpoints,
        ends_after_sweep(bar, display.quiet) as progress,
    ):
        yield Session(executor, progress=progress, checkpoints=checkpoints)
        checkpoints.discard()


def _checkpoints_of(target: str | Path, request: FitRequest, resume: bool) -> Checkpoints:
    """Checkpoints beside the model; a resumed run must have the same estimator, settings, table and rows."""
    config = {
        "estimator": request.estimator,
        "settings": request.settings.to_run_config(),
        **request.table.run_pins,
    }
    return Checkpoints(beside(target, ".{}.run"), config, fresh=not resume)
