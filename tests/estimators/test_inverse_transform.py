"""`KernelPCA.inverse_transform`: scikit-learn's where all rows are the basis, its formula in NumPy where few are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.decomposition import KernelPCA as Reference

from streamkernel import KernelPCA
from streamkernel.errors import ModelFormatError, ParameterError, ShapeError
from streamkernel.kernels import Gaussian, OfColumns
from streamkernel.models.transformers import KernelPCAModel

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 4)) * [2.0, 1.0, 0.5, 0.2] + [50.0, 0.0, -3.0, 0.0]
GIVEN: dict[str, Any] = {"kernel": "rbf", "gamma": 0.3, "fit_inverse_transform": True}


def gaussian(A: Any, B: Any, gamma: float) -> Any:
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("alpha", [1.0, 1e-2])
def test_all_rows_as_basis_are_scikit_learns(alpha: float) -> None:
    rows = X[:100] - X.mean(axis=0)
    ours = KernelPCA(5, basis_size=100, scale="none", rule="rpcholesky", alpha=alpha, **GIVEN).fit(rows)
    theirs = Reference(5, alpha=alpha, **GIVEN).fit(rows)
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(rows)), theirs.inverse_transform(theirs.transform(rows)), atol=1e-5
    )


@pytest.mark.parametrize("scale", ["none", "standard", "rank"])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_rows_as_basis_are_the_minimum_of_the_formula(scale: str, weighted: bool) -> None:
    w = RNG.integers(0, 3, len(X)).astype(float) if weighted else np.ones(len(X))
    model = KernelPCA(3, basis_size=12, scale=scale, alpha=0.1, **GIVEN).fit(X, sample_weight=w)
    offset = np.zeros(4) if scale == "none" else model.scaler_.mean
    T, T_Z = model.transform(X), model.model_.arrays["inverse_points"]
    K, W = gaussian(T, T_Z, 0.3), gaussian(T_Z, T_Z, 0.3)
    A = np.linalg.lstsq(K.T @ (w[:, None] * K) + 0.1 * W, K.T @ (w[:, None] * (X - offset)), rcond=None)[0]
    np.testing.assert_allclose(model.inverse_transform(T), offset + K @ A, rtol=1e-4, atol=1e-4)
    record = model.model_.record.inverse
    error = np.sqrt((w @ (model.inverse_transform(T) - X) ** 2) / w.sum())
    np.testing.assert_allclose(record.rmse, error, rtol=1e-6)


def test_it_denoises_a_curve() -> None:
    """Rows beside a circle come back nearer to it."""
    t = RNG.uniform(0.0, 2.0 * np.pi, 1500)
    circle = np.column_stack([np.cos(t), np.sin(t)])
    noisy = circle + 0.15 * RNG.standard_normal(circle.shape)
    model = KernelPCA(4, basis_size=60, scale="none", kernel="rbf", gamma=1.0, fit_inverse_transform=True, alpha=0.1)
    back = model.fit(noisy).inverse_transform(model.transform(noisy))
    off = [np.abs(np.hypot(*rows.T) - 1.0).mean() for rows in (noisy, back)]
    assert off[1] < 0.85 * off[0]


def test_kept_by_a_file_and_lazy(tmp_path: Path) -> None:
    model = KernelPCA(3, basis_size=20, **GIVEN).fit(X)
    model.save(tmp_path / "m")
    loaded, T = KernelPCA.load(tmp_path / "m"), model.transform(X)
    expected = model.inverse_transform(T)
    assert expected.shape == X.shape
    np.testing.assert_array_equal(loaded.inverse_transform(T), expected)
    lazy = loaded.inverse_transform(da.from_array(T, chunks=(150, 3)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-12)
    stored = KernelPCA(3, basis_size=20, **GIVEN).fit(da.from_array(X, chunks=(90, 4)))
    np.testing.assert_allclose(stored.inverse_transform(T), expected, rtol=1e-6)
    assert stored.n_sweeps_ == KernelPCA(3, basis_size=20, kernel="rbf", gamma=0.3).fit(X).n_sweeps_ + 1
    half = {name: values for name, values in model.model_.arrays.items() if name != "inverse_coef"}
    with pytest.raises(ModelFormatError, match="a part of an inverse map only, see inverse_coef"):
        KernelPCAModel(model.model_.record, half).save(tmp_path / "half")


def test_bad_input() -> None:
    plain = KernelPCA(3, basis_size=20).fit(X)
    with pytest.raises(ParameterError, match="no map from components to rows; fit it with fit_inverse_transform=True"):
        plain.inverse_transform(plain.transform(X))
    model = KernelPCA(3, basis_size=20, **GIVEN).fit(X)
    with pytest.raises(ShapeError, match="X has 4 columns, and the model 3 components"):
        model.inverse_transform(X)
    for kernel in (Gaussian((1.0, 2.0, 3.0, 4.0)), 2.0 * OfColumns(Gaussian(1.0), [0, 1]) + Gaussian(1.0)):
        with pytest.raises(ParameterError, match="fit_inverse_transform needs the kernel between components"):
            KernelPCA(3, kernel=kernel, fit_inverse_transform=True).fit(X)
    with pytest.raises(ParameterError, match=r"^alpha must be finite and > 0"):
        KernelPCA(3, fit_inverse_transform=True, alpha=0.0).fit(X)
