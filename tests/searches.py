"""Searches by evidence on few points, for tests that are about something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

__all__ = ["few_points"]

_POINTS = 60


@contextmanager
def few_points() -> Iterator[None]:
    """A search for hyper-parameters has 60 points of the sample, in place of 300 or 400: it costs their cube."""
    from streamkernel.fits.gaussian import gaussian, generalised

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "SAMPLE_BASIS", _POINTS)
        patch.setattr(generalised, "SAMPLE_BASIS", _POINTS)
        yield
