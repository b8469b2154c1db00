"""The path on which a basis was chosen, as it is kept: rows, gains and their parts, the residual trace after each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
import zarr
from rule_table import RULES_OF_ROWS

from streamkernel import Factor, KernelRidge, Nystroem, factorize

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 3.0
K = naive.gaussian(X, X, 1.5)
GIVEN: dict[str, Any] = {"lengthscale": 1.5, "scale": "none", "n_components": 15, "dtype": "float64"}

RULE_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((rule, {}) for rule in RULES_OF_ROWS),
    ("few-sweep", {"objective": "prediction"}),
    ("few-sweep", {"objective": 0.4}),
    ("csi", {"rule_options": {"kappa": 0.3, "picks": 4}}),
    ("sgma", {"rule_options": {"pool": "shared", "picks": 6}}),
    ("kmeans", {"rule_options": {"nearest": False}}),
]
OPTIONAL = {"gain_parts", "predicted_gains", "selection_traces"}


def members(path: Path) -> dict[str, Any]:
    return {name: array[:] for name, array in zarr.open_group(str(path), mode="r").arrays()}


@pytest.mark.parametrize(("rule", "options"), RULE_OPTIONS, ids=str)
def test_the_residual_trace_after_each_pick(tmp_path: Path, rule: str, options: dict[str, Any]) -> None:
    """Whatever the rule looked at: exact, by the dense oracle, for every leading part of the basis."""
    factorize(X, tmp_path / "F", Y, rule=rule, **GIVEN, **options)
    stored = members(tmp_path / "F" / "basis")
    n = len(stored["components"])
    assert n == 15
    # Centres of clusters are no rows: the columns of K at them, beside K.
    Z = stored["components"]
    beside = naive.gaussian(np.concatenate([X, Z]), np.concatenate([X, Z]), 1.5)
    at = list(range(300, 300 + n))
    left = [300.0] + [300.0 - np.trace(naive.nystroem(beside, at[:t])[:300, :300]) for t in range(1, n + 1)]
    np.testing.assert_allclose(stored["residual_path"], left, atol=1e-6)
    if options.get("rule_options") == {"nearest": False}:
        assert (stored["component_indices"] == -1).all()
    else:
        np.testing.assert_array_equal(X[stored["component_indices"]], Z)
    assert len(stored["gains"]) in (0, n)
    assert all(np.isfinite(values).all() for values in stored.values())
    weighed = rule in ("csi", "csi-lookahead") or options.get("objective") == 0.4
    assert OPTIONAL & stored.keys() == (OPTIONAL if rule == "csi-lookahead" else {"gain_parts"} if weighed else set())
    if weighed:
        assert (stored["gain_parts"] >= 0).all()
        np.testing.assert_allclose(stored["gain_parts"].sum(axis=1), stored["gains"], rtol=1e-12)


def criterion(picked: Any, kappa: float) -> Any:
    """(n + 1, 2): lambda tr(K - K~_t) and mu |Y - Q_t Q_t^T Y|^2 with an intercept, dense; their sum begins at 1."""
    left = []
    y = (Y - Y.mean()) / np.linalg.norm(Y - Y.mean())
    for t in range(len(picked) + 1):
        columns = K[:, picked[:t]] - K[:, picked[:t]].mean(axis=0)
        rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0] if t else y
        left.append([naive.residual_trace(K, list(picked[:t])) / 300.0, rest @ rest])
    return np.array(left) * [1.0 - kappa, kappa]


@pytest.mark.parametrize("rule", ["csi", "csi-lookahead"])
@pytest.mark.parametrize("kappa", [0.3, 0.99])
def test_the_parts_of_a_gain_are_what_the_two_norms_lose(rule: str, kappa: float) -> None:
    factor = factorize(X, None, Y, rule=rule, rule_options={"kappa": kappa}, **GIVEN)
    lost = -np.diff(criterion(factor.component_indices, kappa), axis=0)
    assert factor.gain_parts is not None
    np.testing.assert_allclose(factor.gain_parts, lost, atol=1e-9)


def test_what_look_ahead_predicted_and_what_came(tmp_path: Path) -> None:
    factorize(X, tmp_path / "F", Y, rule="csi-lookahead", rule_options={"delta": 8}, **GIVEN)
    factor = Factor.load(tmp_path / "F")
    assert factor.predicted_gains is not None
    assert factor.gain_parts is not None
    assert factor.selection_traces is not None
    np.testing.assert_allclose(factor.selection_traces, factor.residual_path, rtol=1e-9)
    # What look-ahead knows of a column it knows exactly, and what it does not adds to the gain of the trace.
    assert (factor.predicted_gains[:, 0] <= factor.gain_parts[:, 0] * (1 + 1e-9)).all()
    assert not np.allclose(factor.predicted_gains, factor.gain_parts)
    whole = factorize(X, None, Y, rule="csi-lookahead", rule_options={"delta": 300}, **GIVEN)
    np.testing.assert_allclose(whole.predicted_gains, whole.gain_parts, rtol=1e-6, atol=1e-12)


def test_a_basis_that_is_cut_has_a_path_that_is_cut() -> None:
    options: dict[str, Any] = {"rule": "csi-lookahead", "rule_options": {"gain_tolerance": 0.0}, **GIVEN}
    options["n_components"] = 60
    whole, cut = (factorize(X[:, :2], None, Y, stop=stop, **options) for stop in ("trace", "bound"))
    n = len(cut.basis)
    assert 0 < n < len(whole.basis)
    assert (cut.config["ended"], cut.config["rounds"][-1]["stop"]) == ("bound", n)
    np.testing.assert_array_equal(cut.component_indices, whole.component_indices[:n])
    for name in ("gains", "gain_parts", "predicted_gains"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name)[:n])
    for name in ("selection_traces", "residual_path"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name)[: n + 1], rtol=1e-9)


def test_models_and_transformers_keep_the_path_too(tmp_path: Path) -> None:
    model = KernelRidge(12, rule="csi-lookahead").fit(X, Y)
    model.save(tmp_path / "model")
    again = KernelRidge.load(tmp_path / "model").model_
    for name in OPTIONAL:
        np.testing.assert_array_equal(getattr(again, name), getattr(model.model_, name))
    np.testing.assert_allclose(again.selection_traces, again.residual_path, rtol=1e-9)
    mixed = KernelRidge(12, objective=0.5).fit(X, Y).model_
    assert mixed.gain_parts is not None
    np.testing.assert_allclose(mixed.gain_parts.sum(axis=1), mixed.gains, rtol=1e-12)
    assert mixed.predicted_gains is mixed.selection_traces is None
    features = Nystroem(12).fit(X).model_
    assert len(features.gains) == 12
    assert features.gain_parts is None
