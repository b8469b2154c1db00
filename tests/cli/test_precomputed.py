"""A kernel matrix on the command line: from an NPZ file to predictions of a slice, with standard deviations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from streamkernel.kernels import Gaussian

pytestmark = pytest.mark.usefixtures("bare_pages")

Run = Callable[..., Any]
THREADS = ("--scheduler", "threads", "--quiet")
GIVEN = ("--kernel", "precomputed", "--basis", "30", "--rows", "0:200")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 3))
    K = Gaussian(1.5)(X)
    path = tmp_path_factory.mktemp("matrix") / "matrix.npz"
    np.savez(path, X=0.5 * (K + K.T), y=np.sin(X[:, 0]) + 0.1 * rng.standard_normal(250))
    return path


def test_from_a_file_to_predictions(cli: Run, source: Path, tmp_path: Path) -> None:
    store, model, out = tmp_path / "rows", tmp_path / "model", tmp_path / "out"
    assert cli("ingest", source, store, "--dtype", "float64", "--quiet").status == 0
    planned = cli("plan", store, *GIVEN, "--json").result
    assert planned["basis_size"] == 30
    fitted = cli("fit", store, model, "--estimator", "gp", *GIVEN, *THREADS, "--json").result
    assert fitted["lengthscale"] is None
    assert cli("evaluate", model, store, "--rows", "200:250", *THREADS, "--json").result["rmse"] < 0.3
    assert cli("predict", model, store, out, "--std", "--rows", "200:250", *THREADS).status == 0
    written = zarr.open_group(out, mode="r")
    assert np.asarray(written["std"]).shape == (50,)
    assert "precomputed" in cli("info", model).out
    assert cli("report", model, tmp_path / "page.html").status == 0


def test_errors(cli: Run, source: Path, tmp_path: Path) -> None:
    store = tmp_path / "rows"
    assert cli("ingest", source, store, "--shuffle", "--quiet").status == 0
    shuffled = cli("fit", store, tmp_path / "model", *GIVEN, *THREADS)
    assert shuffled.status == 1
    assert "not symmetric" in shuffled.err
    assert "without shuffle" in shuffled.err
    refused = cli("plan", store, *GIVEN, "--lengthscale", "2")
    assert refused.status == 1
    assert "--lengthscale is of kernels of features" in refused.err
    assert "takes no precomputed kernel" in cli("plan", store, *GIVEN, "--estimator", "committee").err
