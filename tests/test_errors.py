"""Errors carry their remedy apart; warnings stand at the user's line, whatever lies between it and what warns."""

from __future__ import annotations

import errno
import os
import pickle
import warnings

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor, KernelRidge, Nystroem
from streamkernel.blobs import translated_os_errors
from streamkernel.errors import CorruptChunkError, StoreError, StreamKernelError, StreamKernelWarning
from streamkernel.wording import option


@pytest.mark.parametrize(
    "estimator", [KernelRidge(20), Nystroem(20), GaussianProcessRegressor(20, tune="none", approximation="dtc")]
)
def test_a_warning_of_fit_is_at_the_call_of_fit(estimator: object) -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((10, 2)), 5, axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, X[:, 0])  # type: ignore[attr-defined]
    [ours] = [warning for warning in caught if issubclass(warning.category, StreamKernelWarning)]
    assert "linearly independent" in str(ours.message)
    assert ours.filename == __file__


@pytest.mark.parametrize(
    "error",
    [
        StoreError(f"a; {option('alpha')} is wrong", remedy=f"give {option('alpha', 0.5)}"),
        CorruptChunkError("a; alpha is wrong", "x/c/0", remedy="give alpha=0.5"),
    ],
)
def test_an_error_carries_its_remedy_apart(error: StreamKernelError) -> None:
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert str(each) == "a; alpha is wrong; give alpha=0.5"
        assert each.message == f"{each.what}; {each.remedy}" == error.message
        assert (each.what, each.remedy) == (error.what, error.remedy)


def test_what_became_of_the_path_stands_before_the_remedy() -> None:
    said = r"^no space left while writing here \(.*\) \(nothing was appended\); free some or use another disk, then run"
    with pytest.raises(StoreError, match=said), translated_os_errors("here", "writing", "nothing was appended"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
