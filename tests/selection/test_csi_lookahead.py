"""Look-ahead CSI: the printed numbers, and the published programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from problems import Float, csi_path_of

from streamkernel import factorize
from streamkernel.selection._csi_decompositions import LookAhead

CARD = naive.card()
Y40 = CARD.y - CARD.y.mean()  # the card centres y, and not the columns
SGMA = [17, 4, 27, 33, 29, 20]
ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracle"

# Card 3.1 and 3.4: columns ahead, picks, predicted and true gains as printed.
PRINTED: list[tuple[int, list[int], list[float] | None, list[float] | None]] = [
    (0, [0, 34, 10, 3, 9, 8], None, None),
    (
        4,
        [30, 21, 18, 0, 14, 31],
        [0.407085, 0.328355, 0.0237701, 0.0224867, 0.0158682, 0.0156506],
        [0.522146, 0.31307, 0.0674491, 0.0224867, 0.0170229, 0.016679],
    ),
    (10, [27, 29, 6, 11, 4, 9], None, None),
    (40, [27, 29, 6, 22, 4, 9], [0.523886, 0.353456, 0.0395004, 0.0189851, 0.0172702, 0.00835963], None),
]


# ---------------------------------------------------------------------------------------------- the printed numbers
@pytest.mark.parametrize(("delta", "picks", "predicted", "true"), PRINTED)
def test_printed_numbers(delta: int, picks: list[int], predicted: list[float] | None, true: list[float] | None) -> None:
    afresh, promised = naive.csi_look_ahead(CARD.K, 6, Y40, kappa=0.9, delta=delta)
    found = csi_path_of(CARD.K, Y40, 6, kappa=0.9, delta=delta)
    assert afresh.picks == found.picks.tolist() == picks
    if predicted is not None:
        np.testing.assert_allclose(promised, predicted, rtol=6e-6)
        np.testing.assert_allclose(found.predicted.sum(axis=1), predicted, rtol=6e-6)
        np.testing.assert_allclose(afresh.scores, true or predicted, rtol=6e-6)
        np.testing.assert_allclose(found.gains.sum(axis=1), true or predicted, rtol=6e-6)
    assert found.columns == min(6 + delta, 40)


def test_predicted_gain_of_the_targets_is_no_bound() -> None:
    first = csi_path_of(CARD.K, Y40, 1, kappa=0.9, delta=10)
    np.testing.assert_allclose(first.predicted.sum(), 0.535724, rtol=6e-6)
    np.testing.assert_allclose(first.gains.sum(), 0.523886, rtol=6e-6)
    assert first.predicted[0, 1] > first.gains[0, 1]


def test_no_columns_ahead_are_incomplete_cholesky() -> None:
    expected, _ = naive.incomplete_cholesky(CARD.K, 12)
    for kappa in (0.0, 0.5, 0.99):
        found = csi_path_of(CARD.K, CARD.y, 12, kappa=kappa, delta=0, centred=True)
        assert found.picks.tolist() == expected.picks
        np.testing.assert_allclose(found.traces[1:], expected.traces, rtol=1e-12)
        np.testing.assert_allclose(found.predicted[:, 0], (1 - kappa) / 40 * np.array(expected.scores), rtol=1e-10)
    np.testing.assert_allclose(found.traces[1:7], [34.8364, 29.0728, 24.0337, 19.8675, 16.512, 12.3778], rtol=6e-6)


def test_all_columns_ahead_without_targets_are_the_picks_of_sgma() -> None:
    expected, _ = naive.sgma(CARD.K, [range(40)] * 10)
    for Y in (CARD.y, np.zeros((40, 0))):
        found = csi_path_of(CARD.K, Y, 10, kappa=0.0, delta=40)
        assert found.picks.tolist()[:6] == SGMA
        assert found.picks.tolist() == expected.picks
        np.testing.assert_allclose(40 * found.gains[:, 0], expected.scores, rtol=1e-10)
        np.testing.assert_allclose(found.traces[1:], expected.traces, rtol=1e-10)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kappa", [0.5, 0.9, 1.0])
def test_all_columns_ahead_are_exact_gains(kappa: float, centred: bool) -> None:
    """With kappa = 1 this is kernel matching pursuit, pre-fitting."""
    Y = np.stack([CARD.y, CARD.t, np.sin(np.arange(40))], axis=1)
    found = csi_path_of(CARD.K, Y, 8, kappa=kappa, delta=40, centred=centred)
    expected = naive.csi_exact(CARD.K, [range(40)] * 8, Y, kappa=kappa, centred=centred)
    assert found.picks.tolist() == expected.picks
    np.testing.assert_allclose(found.gains.sum(axis=1), expected.scores, rtol=1e-9)
    np.testing.assert_allclose(found.predicted, found.gains, rtol=1e-9, atol=1e-14)


# ------------------------------------------------------------------------------------------ the published programs
def oracle_rows(name: str) -> Float:
    """Features and, in the last column, the target of the reference outputs."""
    if not (ORACLE / f"{name}.csv").is_file():
        pytest.skip(f"reference outputs of kernlab are not in {ORACLE}")
    return np.loadtxt(ORACLE / f"{name}.csv", delimiter=",", skiprows=1)


def oracle_gamma(name: str) -> float:
    return float((ORACLE / f"{name}.gamma").read_text())


def oracle(name: str) -> tuple[Float, Float]:
    """Kernel matrix and targets of the reference outputs."""
    rows = oracle_rows(name)
    return naive.gaussian(rows[:, :-1], rows[:, :-1], 1 / np.sqrt(2 * oracle_gamma(name))), rows[:, -1]


def reference(name: str, output: str) -> Float:
    return np.loadtxt(ORACLE / f"{name}_kernlab_{output}.csv", delimiter=",")


RUNS = [(name, c, k, d) for name in ("reg60", "clf200") for c in (False, True) for k in (0.5, 0.99) for d in (5, 40)]
every_run = pytest.mark.parametrize(("name", "centred", "kappa", "delta"), RUNS)


def published_run(name: str, centred: bool, kappa: float, delta: int) -> tuple[list[int], Float, Float]:
    """Fifteen picks of kernlab's csi, what it predicted of them, and what they gained."""
    run = f"csi_rank15_cen{int(centred)}_kappa{kappa}_delta{delta}"
    place = reference(name, f"{run}_pivots1based")
    gains = (reference(name, f"{run}_{part}gain")[:15] for part in ("pred", "true"))
    return np.argsort(place)[:15].tolist(), *gains


@every_run
def test_the_oracle_is_the_published_program(name: str, centred: bool, kappa: float, delta: int) -> None:
    """With the scans of csi.m in place of argmax: pick for pick, and what was promised of each."""
    K, y = oracle(name)
    picks, promised, gained = published_run(name, centred, kappa, delta)
    path, predicted = naive.csi_look_ahead(K, 15, y, kappa=kappa, delta=delta, centred=centred, published=True)
    assert path.picks == picks
    np.testing.assert_allclose(predicted, promised, atol=1e-11)
    np.testing.assert_allclose(path.scores, gained, atol=1e-11)


@every_run
def test_published_picks(name: str, centred: bool, kappa: float, delta: int) -> None:
    """With the option `published` a factor has the picks of kernlab, in its order, and its gains."""
    rows = oracle_rows(name)
    picks, promised, gained = published_run(name, centred, kappa, delta)
    options = {"delta": delta, "kappa": kappa, "centre": centred, "gain_tolerance": 0.0, "published": True}
    given: dict[str, Any] = {"gamma": oracle_gamma(name), "scale": "none", "n_components": 15}
    factor = factorize(rows[:, :-1], None, rows[:, -1], rule="csi-lookahead", rule_options=options, **given)
    assert factor.basis.rows.tolist() == picks
    np.testing.assert_allclose(factor.gain_parts.sum(axis=1), gained, atol=1e-11)
    np.testing.assert_allclose(factor.predicted_gains.sum(axis=1), promised, atol=1e-11)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("delta", [0, 3, 12, 60])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_published_scans_on_tables_with_equal_rows(centred: bool, delta: int, seed: int) -> None:
    """Equal rows, several targets: as the scans made afresh for every pick."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 3, size=(50, 3)).astype(float)
    Y = np.column_stack([np.sin(X.sum(axis=1)), X[:, 0] + 5.0])
    K = naive.gaussian(X, X, 1.0)
    expected, _ = naive.csi_look_ahead(K, 10, Y, kappa=0.8, delta=delta, centred=centred, published=True)
    found = csi_path_of(K, Y, 10, kappa=0.8, delta=delta, centred=centred, published=True)
    assert found.picks.tolist() == expected.picks


@every_run
def test_gains_along_the_published_picks(name: str, centred: bool, kappa: float, delta: int) -> None:
    K, y = oracle(name)
    picks, _, gained = published_run(name, centred, kappa, delta)
    constant = np.full(len(K), len(K) ** -0.5) if centred else None
    Y = y[None] - (y.mean() if centred else 0.0)
    state = LookAhead(lambda j: K[:, j].copy(), np.ones(len(K)), Y, n=15, delta=delta, constant=constant)
    drops = np.array([state.pick(j) for j in picks])
    np.testing.assert_allclose(
        (1 - kappa) / len(K) * drops[:, 0] + kappa / (Y**2).sum() * drops[:, 1], gained, atol=1e-11
    )
    G = reference(name, f"csi_rank15_cen{int(centred)}_kappa{kappa}_delta{delta}_G")
    np.testing.assert_allclose(state.D, 1 - (G**2).sum(axis=1), atol=1e-11)


def test_criterion_beside_the_published_program() -> None:
    """Plain argmax has other columns ahead, hence other picks: J is the better or the worse, by 5 % in the mean."""
    ratios = []
    for name, centred, kappa, delta in RUNS:
        K, y = oracle(name)
        _, _, gained = published_run(name, centred, kappa, delta)
        found = csi_path_of(K, y, 15, kappa=kappa, delta=delta, centred=centred)
        ratios.append(np.log(1 - np.cumsum(found.gains.sum(axis=1))) - np.log(1 - np.cumsum(gained)))
    assert np.abs(np.mean(ratios, axis=1)).max() < 0.35
    assert abs(np.mean(ratios)) < 0.07
    assert abs(np.mean(ratios, axis=0)[-1]) < 0.03


@pytest.mark.parametrize("name", ["reg60", "clf200"])
def test_no_columns_ahead_beside_inchol(name: str) -> None:
    K, y = oracle(name)
    for run, n, tol in (("inchol_max15_tol1e-12", 15, 0.0), ("inchol_max60_tol0.001", 60, 1e-3)):
        picks = reference(name, f"{run}_pivots1based").astype(int) - 1
        found = csi_path_of(K, y, len(picks), kappa=0.5, delta=0)
        assert found.picks.tolist() == picks.tolist()
        left = reference(name, f"{run}_diagresidues")
        np.testing.assert_allclose(found.traces[-1], left.sum(), rtol=1e-9)
        # Its tolerance is one of the residual in all, or of the largest: n was the limit, or it holds.
        assert len(picks) == n or left.max() < tol


def test_directions_stay_orthonormal() -> None:
    """With columns of look-ahead that depend on each other to the last digits, one projection leaves 4e-11 of them."""
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(200, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 8.0)
    Y = np.stack([np.sin(9.0 * X[:, 0] + X[:, 1]), random.normal(size=200)])
    picks = csi_path_of(K, Y.T, 48, kappa=0.9, delta=40).picks
    assert len(picks) > 40
    state = LookAhead(lambda j: K[:, j], np.ones(200), Y, n=len(picks), delta=40)
    for j in picks:
        state.pick(int(j))
    Q = state._Q[: state._u][state._sound[: state._u] > 0.0]
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), rtol=0.0, atol=1e-12)
