"""Costs of support vector machines on the command line: the same model as in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streamkernel import KernelSVC, ingest, open_table

FIT = ("--estimator", "svc", "--basis", "12", "--lengthscale", "2", "--scheduler", "threads", "--quiet")


@pytest.mark.parametrize(("option", "given"), [("3", 3.0), ("0.3,3", (0.3, 3.0)), ("cv", "cv")])
def test_the_model_is_that_of_python(
    cli: Callable, tmp_path: Path, option: str, given: float | str | tuple[float, ...]
) -> None:
    X = np.random.default_rng(0).standard_normal((120, 2))
    ingest(open_table(X, np.where(X[:, 0] * X[:, 1] > 0.0, "same", "other"), classify=True), tmp_path / "store")
    ran = cli("fit", tmp_path / "store", tmp_path / "model", "--C", option, *FIT)
    assert ran.status == 0, ran.err
    found = KernelSVC.load(tmp_path / "model")
    fitted = KernelSVC(12, lengthscale=2.0, C=given).fit(open_table(tmp_path / "store"))
    np.testing.assert_array_equal(found.dual_coef_, fitted.dual_coef_)
    assert found.C_ == fitted.C_
