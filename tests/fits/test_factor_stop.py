"""Where a factor stops: the picks that are kept are those that the bounds of the whole path ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import Factor, factorize
from streamkernel.bounds import compression_bound
from streamkernel.errors import ParameterError


def rows(m: int = 600, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(m)


def test_bound_keeps_the_picks_of_its_minimum(tmp_path: Path) -> None:
    X, _ = rows()
    whole = factorize(X, n_components=60, lengthscale=1.0, rule="sgma")
    cut = factorize(X, tmp_path / "F", n_components=60, lengthscale=1.0, rule="sgma", stop="bound", dtype="float64")
    bound = compression_bound(whole.residual_path[1:], 600)
    size = int(bound.argmin) + 1
    assert 1 < size < 60
    assert cut.shape == (600, size)
    np.testing.assert_array_equal(cut.component_indices, whole.component_indices[:size])
    np.testing.assert_array_equal(cut.gains, whole.gains[:size])
    np.testing.assert_allclose(cut.residual_path, whole.residual_path[: size + 1], rtol=1e-9)
    assert cut.config["stop"] == {
        "rule": "bound", "looked": 60, "reached": True, "value": pytest.approx(bound.values[size - 1])
    }  # fmt: skip
    assert cut.config["ended"] == "bound"
    assert cut.config["rounds"][-1]["stop"] == size
    assert Factor.load(tmp_path / "F").digest == cut.digest


@pytest.mark.parametrize("targets", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_gap_keeps_the_first_basis_that_is_good_enough(tmp_path: Path, targets: int) -> None:
    X, y = rows(800)
    Y = np.column_stack([y, 5 * np.cos(X[:, 1])])[:, :targets]
    options: dict[str, Any] = {"n_components": 80, "lengthscale": 1.5, "rule": "incomplete-cholesky", "scale": "none"}
    whole = factorize(X, tmp_path / "W", Y, dtype="float64", **options)
    cut = factorize(X, tmp_path / "F", Y, dtype="float64", stop="gap", **options)
    size = cut.shape[1]
    assert 1 < size < 80
    G = whole.G.compute()
    G, Z = G - G.mean(axis=0), (Y - Y.mean(axis=0)) / Y.std(axis=0)

    def relative(t: int, alpha: float) -> float:
        A = G[:, :t]
        beta = np.linalg.solve(A.T @ A + alpha * np.eye(t), A.T @ Z)
        error = ((Z - A @ beta) ** 2).sum()
        return whole.residual_path[t] * error / alpha / (error + alpha * (beta**2).sum())

    # alpha is the whole model's own choice, found back from the value that is kept.
    value = cut.config["stop"]["value"]
    assert value <= 0.01
    alphas = np.geomspace(1e-4, 1e3, 4000)
    alpha = alphas[np.argmin([abs(np.log(relative(size, a) / value)) for a in alphas])]
    assert relative(size, alpha) == pytest.approx(value, rel=0.02)
    assert all(relative(t, alpha) > 0.0099 for t in range(1, size))


def test_a_path_that_does_not_reach_its_goal_is_kept_whole() -> None:
    X, y = rows()
    cut = factorize(X, None, y, n_components=3, lengthscale=1.0, stop="gap")
    assert cut.shape == (600, 3)
    assert cut.config["stop"]["reached"] is False
    assert factorize(X, n_components=3).config["stop"] == {"rule": "trace"}


def test_what_has_nothing_to_go_by_is_refused(tmp_path: Path) -> None:
    X, _ = rows(50)
    for options, said in (
        ({"stop": "soon"}, "stop must be one of trace, bound, gap"),
        ({"stop": "gap"}, "needs targets"),
        ({"stop": "bound", "kernel": "linear"}, "is bounded"),
    ):
        with pytest.raises(ParameterError, match=said):
            factorize(X, tmp_path / "F", n_components=5, **options)
    assert not (tmp_path / "F").exists()
