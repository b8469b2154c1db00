"""predict --interval: bounds that hold the target with a probability."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from streamkernel import GaussianProcessRegressor, KernelRidge, ingest, open_table

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (900, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(900)
    ingest(open_table(X, y), tmp_path / "t", dtype="float64")
    given = {"lengthscale": 1.0, "tune": "none", "signal_variance": 1.0, "noise_variance": 0.09}
    GaussianProcessRegressor(40, **given).fit(X, y).save(tmp_path / "m")
    KernelRidge(10, alpha=1.0, metric="none").fit(X, y).save(tmp_path / "r")
    return tmp_path


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_bounds_are_those_of_the_distribution_and_hold_their_share(cli: Run, folder: Path, level: float) -> None:
    ran = cli("predict", folder / "m", folder / "t", folder / "p.csv", "--std", "--interval", level, *THREADS)
    assert ran.status == 0, ran.err
    found = pd.read_csv(folder / "p.csv")
    assert found.columns.tolist() == ["row", "prediction", "std", "lower", "upper"]
    lower, upper = norm.interval(level, found["prediction"], found["std"])
    np.testing.assert_allclose(found["lower"], lower, rtol=1e-12)
    np.testing.assert_allclose(found["upper"], upper, rtol=1e-12)
    y = open_table(folder / "t").read(0, 900).Y[:, 0]
    assert abs(np.mean((found["lower"] <= y) & (y <= found["upper"])) - level) < 0.05
    alone = cli("predict", folder / "m", folder / "t", folder / "q.csv", "--interval", level, *THREADS)
    assert alone.status == 0
    pd.testing.assert_frame_equal(pd.read_csv(folder / "q.csv"), found.drop(columns="std"))


def test_what_has_no_intervals_says_what_has(cli: Run, folder: Path) -> None:
    arguments = ("predict", folder / "r", folder / "t", folder / "p.csv", *THREADS)
    assert "--estimator gp or --estimator quantile" in cli(*arguments, "--interval", ".9").error
    for level in ("0", "1", "95", "nan"):
        error = cli("predict", folder / "m", folder / "t", folder / "p.csv", "--interval", level, *THREADS).error
        assert "must be a probability between 0 and 1" in error
    assert not (folder / "p.csv").exists()
