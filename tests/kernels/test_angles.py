"""Cosine and arc-cosine: exact ends, rows of zeros, any units, and whole fits, saved and served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from kernels.formulas import plain
from numpy.typing import NDArray
from service.live import Live

from streamkernel import GaussianProcessRegressor, KernelRidge, Nystroem
from streamkernel.cli import main
from streamkernel.errors import ParameterError
from streamkernel.kernels import ArcCosine, Cosine, Gaussian, Kernel, Linear, as_kernel
from streamkernel.models import RidgeModel
from streamkernel.service import Settings

pytestmark = pytest.mark.usefixtures("few_points")

KERNELS: list[Kernel] = [Cosine(), ArcCosine(0), ArcCosine(1), ArcCosine(2)]
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-14}
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@DTYPES
def test_every_angle_between_two_rows_of_a_plane(dtype: type) -> None:
    ends = np.array([0.0, 1e-16, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 0.5])
    angles = np.concatenate([np.pi * np.linspace(0, 1, 1001), ends, np.pi - ends])
    X = np.column_stack([np.cos(angles), np.sin(angles)]).astype(dtype)
    wide = X.astype(np.longdouble)
    theta = np.arctan2(wide[:, 1], wide[:, 0])
    c, s, rest = np.cos(theta), np.sin(theta), np.longdouble("3.14159265358979323846264338") - theta
    truth = [c, rest / np.pi, (s + rest * c) / np.pi, (3 * s * c + rest * (1 + 2 * c**2)) / np.pi]
    for kernel, expected in zip(KERNELS, truth, strict=True):
        values = kernel(X, np.array([[1.0, 0.0]], dtype))[:, 0]
        assert np.abs(values - expected).max() <= TOLERANCE[dtype], kernel


@DTYPES
@pytest.mark.parametrize("p", [1, 2, 7, 40, 300])
def test_equal_and_opposite_rows_are_exact(p: int, dtype: type) -> None:
    X = (1e3 * np.random.default_rng(p).standard_normal((70, p))).astype(dtype)
    for kernel in (Cosine(), ArcCosine(0)):
        assert np.all(np.diag(kernel(X)) == 1)
        assert np.all(np.diag(kernel(X, 4 * X)) == 1)
        assert np.all(np.diag(kernel(X, -2 * X)) == (-1 if isinstance(kernel, Cosine) else 0))
    for order in (1, 2):
        K = ArcCosine(order)(X, -X)
        assert np.abs(np.diag(K) / ArcCosine(order).diagonal(X)).max() <= TOLERANCE[dtype]
    K = Cosine()(X)
    assert K.min() >= -1
    assert K.max() <= 1


@DTYPES
def test_a_row_of_zeros(dtype: type) -> None:
    X = np.array([[0.0, 0.0], [3.0, 4.0], [-1.0, 0.0], [0.0, -0.0]], dtype)
    for kernel, expected in zip(KERNELS, (0.0, 0.5, 0.0, 0.0), strict=True):
        K = kernel(X)
        assert np.all(K[[0, 3]] == expected)
        assert np.all(K[:, [0, 3]] == expected)
        assert np.all(kernel.diagonal(X)[[0, 3]] == expected)
        np.testing.assert_allclose(K, plain(kernel, X, X), rtol=3e-6, atol=1e-6)
        np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=1e-6)
        assert np.linalg.eigvalsh(K)[0] >= -1e-6


@DTYPES
@pytest.mark.parametrize("p", [3, 50])
def test_units_do_not_matter(p: int, dtype: type) -> None:
    # Squares of such rows over- or underflow; the angles, and the norms themselves, do not.
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((31, p)).astype(dtype), rng.standard_normal((9, p)).astype(dtype)
    for power in (-100, -60, 60, 120) if dtype == np.float32 else (-980, -600, 600, 1015):
        scale = dtype(2.0) ** power
        for kernel in (Cosine(), ArcCosine(0)):
            np.testing.assert_allclose(kernel(scale * X, Z), kernel(X, Z), atol=3 * TOLERANCE[dtype])
        np.testing.assert_allclose(ArcCosine(1)(scale * X, Z), scale * ArcCosine(1)(X, Z), rtol=1e-5)


@DTYPES
def test_symmetric_and_positive_semi_definite(dtype: type) -> None:
    X = np.random.default_rng(0).standard_normal((90, 4)).astype(dtype)
    X[60:] = -2 * X[:30]
    X[50:55] = 0
    for kernel in KERNELS:
        K = kernel(X)
        np.testing.assert_array_equal(K, K.T)
        eigenvalues = np.linalg.eigvalsh(K.astype(np.float64))
        assert eigenvalues[0] >= -20 * np.finfo(dtype).eps * eigenvalues[-1], kernel


def test_the_mean_over_random_hidden_units() -> None:
    # 2 E h(w.x) h(w.z), from which Cho & Saul derive the formulas.
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((4, 3)), rng.standard_normal((3, 400_000))
    for order in (0, 1, 2):
        units = np.where(X @ w > 0, np.maximum(X @ w, 0) ** order, 0)
        np.testing.assert_allclose(2 * units @ units.T / w.shape[1], ArcCosine(order)(X), rtol=0.06, atol=0.02)


def test_names_and_parameters() -> None:
    assert as_kernel("cosine") == Cosine()
    assert as_kernel("arc_cosine") == as_kernel("arccosine") == as_kernel("arc_cosine1") == ArcCosine() == ArcCosine(1)
    assert as_kernel("arc_cosine", order=2) == as_kernel("arc_cosine2")
    assert as_kernel("arc_cosine0", lengthscale=3.0) == ArcCosine(0)
    assert not any(kernel.stationary for kernel in KERNELS)
    for order in (3, -1, 0.5, True, "1", None):
        with pytest.raises(ParameterError, match="order"):
            ArcCosine(order)  # type: ignore[arg-type]


X = np.random.default_rng(0).standard_normal((400, 3))
Y = np.abs(X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_ridge_fit_is_the_plain_one(kernel: Kernel) -> None:
    # The rank of the cosine kernel is the number of features.
    n = 3 if isinstance(kernel, Cosine) else 20
    model = KernelRidge(n, kernel=kernel, alpha=0.1, scale="none", fit_intercept=False).fit(X, Y)
    Z = model.components_
    values, vectors = np.linalg.eigh(plain(kernel, Z, Z))
    penalty = np.sqrt(0.1 * np.maximum(values, 0))[:, None] * vectors.T
    system = np.vstack([plain(kernel, X, Z), penalty]), np.concatenate([Y, np.zeros(n)])
    weights = np.linalg.lstsq(*system, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), plain(kernel, X, Z) @ weights, atol=1e-6)
    assert 0 <= model.relative_residual_trace_ < 1


def test_fitted_saved_and_served(tmp_path: Path) -> None:
    names = ("cosine", "arc_cosine0", "arc_cosine", "arc_cosine2")
    fits = {name: KernelRidge(3 if name == "cosine" else 30, kernel=name).fit(X, Y) for name in names}
    fits["gp"] = GaussianProcessRegressor(30, kernel="arc_cosine").fit(X, Y)
    for name, fitted in fits.items():
        fitted.save(tmp_path / "models" / name)
        expected = fitted.predict(X)
        np.testing.assert_array_equal(type(fitted).load(tmp_path / "models" / name).predict(X), expected)
        assert fitted.kernel_ == as_kernel("arc_cosine" if name == "gp" else name)
        # The cosine and order 0 know the direction of a row, not how long it is.
        assert fitted.score(X, Y) > (0.3 if name in ("cosine", "arc_cosine0") else 0.8)
    with (
        Live(Settings(tmp_path / "models")) as running,
        httpx.Client(base_url=running.url, trust_env=False, timeout=30) as client,
    ):
        for name, fitted in fits.items():
            answer = client.post(f"/v1/models/{name}/predict", json={"rows": X[:5].tolist()}).json()
            assert answer["prediction"] == fitted.predict(X[:5]).tolist()


def test_without_a_lengthscale_there_is_none_to_search_for() -> None:
    for kernel in ("cosine", "arc_cosine", "linear"):
        assert KernelRidge(3, kernel=kernel, lengthscale="auto").fit(X, Y).lengthscale_ is None
        with pytest.raises(ParameterError, match="the kernel has none"):
            GaussianProcessRegressor(3, kernel=kernel, ard=True).fit(X, Y)


def test_the_command_line_takes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    assert main(["ingest", str(tmp_path / "rows.npz"), str(tmp_path / "rows")]) == 0
    fit = ["fit", str(tmp_path / "rows"), str(tmp_path / "model"), "--basis", "20", "--scheduler", "threads"]
    assert main([*fit, "--kernel", "arc_cosine2"]) == 0
    assert RidgeModel.load(tmp_path / "model").config["kernel"] == {"kernel": "arc_cosine", "order": 2}
    capsys.readouterr()
    assert main(["info", str(tmp_path / "model")]) == 0
    assert "arc cosine (order 2)" in capsys.readouterr().out
    assert main([*fit[:2], str(tmp_path / "other"), *fit[3:], "--kernel", "cosine", "--degree", "2"]) == 1
    assert "--degree means nothing to the kernel cosine" in capsys.readouterr().err


def test_products_with_other_kernels() -> None:
    product = ArcCosine(1) * Gaussian(2.0) + Cosine() * Linear()
    np.testing.assert_allclose(product(X), plain(product, X, X), atol=1e-12)


def test_real_rows(shared_data: Callable[[str], dict[str, NDArray[Any]]]) -> None:
    data = shared_data("abalone")
    rows, targets = data["X"].astype(np.float64), data["y"].astype(np.float64).ravel()
    for kernel in KERNELS:
        for dtype, tolerance in TOLERANCE.items():
            some = rows[:300].astype(dtype)
            truth = plain(kernel, some, some)
            assert np.abs(kernel(some) - truth).max() <= tolerance * np.abs(truth).max(), kernel
    train, test, error = slice(0, 3000), slice(3000, None), {}
    for name, n in {"linear": rows.shape[1], "arc_cosine": 100, "arc_cosine0": 100}.items():
        fitted = KernelRidge(n, kernel=name).fit(rows[train], targets[train])
        error[name] = float(np.mean((fitted.predict(rows[test]) - targets[test]) ** 2))
    assert max(error["arc_cosine"], error["arc_cosine0"]) < error["linear"]
    assert Nystroem(5, kernel="cosine").fit(rows).transform(rows).shape == (len(rows), 5)
