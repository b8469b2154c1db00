"""Committees for classes and counts against Laplace's approximation, member by member, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from committees import CARD, CARD_PARTS, Committee, basis_at, friendly, printed
from hypothesis import given
from hypothesis import strategies as st
from problems import table_of_chunks
from scipy.special import expit, logit

from streamkernel.committee import GeneralisedCommittee, fit_generalised_committee
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import DataError, NumericalError, ParameterError
from streamkernel.reductions.likelihoods import Bernoulli, Poisson
from streamkernel.reductions.likelihoods.laplace_mode import find_mode
from streamkernel.table import Table, open_table

CARD_GENERALISED = [-1.33789, -1.16957, -0.857072, -0.792924, -0.944852, -1.03836]
TERMS: dict[str, Callable[[Any], naive.committee.Derivatives]] = {
    "bernoulli": naive.logistic_terms,
    "poisson": naive.poisson_terms,
}


@dataclass(frozen=True)
class Generalised(Committee):
    """One column of 0 and 1, or of counts."""

    likelihood: str = "bernoulli"
    centre: float = 0.0

    @property
    def y(self) -> Any:
        return self.Y[:, 0]

    def mode(self, part: Any, weights: Any = 1.0) -> Any:
        part = list(part)
        own = np.broadcast_to(weights, len(self.X))[part]
        return naive.laplace_mode(
            self.K[np.ix_(part, part)], self.y[part], TERMS[self.likelihood](self.y[part]), self.centre, own
        )

    def expected(self, parts: list[Any], weights: Any = 1.0) -> tuple[Any, Any]:
        """Mean and covariance at the queries."""
        f = np.zeros(len(self.X))
        for part in parts:
            f[list(part)] = self.mode(part, weights)
        z, noise = naive.pseudo_targets(f, self.y, TERMS[self.likelihood](self.y), weights)
        A, c = naive.committee_information(self.K_qq, self.K_qm.T, self.K, z - self.centre, noise, parts)
        mean, covariance = naive.committee_moments(self.K_qq, A, c)
        return self.centre + mean[:, 0], covariance

    def fitted(self, block_size: int, table: Table | None = None, **more: Any) -> GeneralisedCommittee:
        basis = basis_at(self.queries, self.kernel)
        options: dict[str, Any] = {"centre": self.centre, "block_size": block_size} | more
        return fit_generalised_committee(
            self.table if table is None else table, basis, self.likelihood, self.signal, **options
        )


def problem(likelihood: str = "bernoulli", m: int = 40, seed: int = 0, **more: Any) -> Generalised:
    plain = friendly(m=m, q=6, d=1, seed=seed)
    if likelihood == "bernoulli":
        Y = (plain.Y > 0.2).astype(np.float64)
    else:
        Y = np.random.default_rng(seed).poisson(np.exp(1.0 + plain.Y)).astype(np.float64)
    return Generalised(plain.X, Y, plain.queries, 1.3, 2.2, 1.0, likelihood, **more)


def latent(found: GeneralisedCommittee, X: Any, j: int = 0) -> tuple[Any, Any]:
    mean, covariance = found.latents[j].moments(X)
    return mean[:, 0], covariance[:, 0, 0]


def assert_says(
    found: GeneralisedCommittee, c: Generalised, expected: tuple[Any, Any], tolerance: float = 1e-8
) -> None:
    mean, variance = latent(found, c.queries)
    np.testing.assert_allclose(mean, expected[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(variance, np.diag(expected[1]), rtol=tolerance, atol=tolerance)


def test_printed_numbers() -> None:
    c = Generalised(CARD.X, (CARD.t > 0)[:, None] * 1.0, CARD.Xq)
    printed(c.expected(CARD_PARTS)[0], CARD_GENERALISED)
    printed(latent(c.fitted(10), CARD.Xq)[0], CARD_GENERALISED)
    printed(c.mode(range(40))[:4], [1.49986, -0.907264, -1.7103, -0.882082])


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
@pytest.mark.parametrize("block_size", [1, 9, 20, 40])
@pytest.mark.parametrize("centre", [0.0, 0.8])
def test_members_at_their_modes(likelihood: str, block_size: int, centre: float) -> None:
    c = problem(likelihood, centre=centre)
    found = c.fitted(block_size)
    parts = naive.member_rows(40, block_size)
    assert found.sums.members == len(parts)
    assert found.sums.count == 40
    assert_says(found, c, c.expected(parts))


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_one_member_is_laplaces_approximation(likelihood: str) -> None:
    """Mean mu + K_q (y - E y), variance k - K_q (K + W^-1)^-1 K_q' (Rasmussen & Williams 2006, eqs. (3.21), (3.24))."""
    c = problem(likelihood, centre=0.3)
    f = c.mode(range(40))
    _, mean, slope = TERMS[likelihood](c.y)(f)
    covariance = c.K_qq - c.K_qm @ np.linalg.solve(c.K + np.diag(1.0 / slope), c.K_qm.T)
    assert_says(c.fitted(1000), c, (0.3 + c.K_qm @ (c.y - mean), covariance))


@given(seed=st.integers(0, 2**32 - 1), likelihood=st.sampled_from(["bernoulli", "poisson"]), size=st.integers(1, 20))
def test_duplicates_and_the_order_of_members(seed: int, likelihood: str, size: int) -> None:
    c = problem(likelihood, m=2 * size, seed=seed)
    c.X[: len(c.X) // 2 : 2] = c.X[0]
    found = c.fitted(size)
    assert_says(found, c, c.expected(naive.member_rows(2 * size, size)))
    turned = np.r_[size : 2 * size, :size]
    other = Generalised(c.X[turned], c.Y[turned], c.queries, 1.3, 2.2, 1.0, likelihood).fitted(size)
    np.testing.assert_allclose(other.sums.H, found.sums.H, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.sums.g, found.sums.g, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_weights_are_so_many_rows(likelihood: str) -> None:
    c = problem(likelihood, m=20)
    counts = np.random.default_rng(4).integers(0, 4, 20)
    weighted = open_table(c.X, c.Y, weights=counts.astype(np.float64))
    rows = np.repeat(np.arange(20), counts)
    repeated = Generalised(c.X[rows], c.Y[rows], c.queries, 1.3, 2.2, 1.0, likelihood)
    expected, variance = latent(repeated.fitted(100), c.queries)
    for found in (c.fitted(20, weighted), c.fitted(100, weighted)):
        np.testing.assert_allclose(latent(found, c.queries), (expected, variance), rtol=1e-7, atol=1e-9)
    heard = np.flatnonzero(counts)
    parts = [part for rows in naive.member_rows(20, 6) if (part := [i for i in rows if i in heard])]
    assert_says(c.fitted(6, weighted), c, c.expected(parts, counts + (counts == 0)))


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_chunks_and_workers_do_not_matter(likelihood: str, tmp_path: Path) -> None:
    c = problem(likelihood, m=3600)
    found = c.fitted(90)
    for chunk in (280, 1600):
        table = table_of_chunks(tmp_path / f"{chunk}.zarr", c.X, c.y, chunk)
        runs = [c.fitted(90, table, session=Session(ThreadExecutor(threads))) for threads in (1, 3)]
        assert runs[0].sums.H.tobytes() == runs[1].sums.H.tobytes()
        assert runs[0].sums.g.tobytes() == runs[1].sums.g.tobytes()
        np.testing.assert_allclose(runs[0].sums.H, found.sums.H, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(runs[0].sums.g, found.sums.g, rtol=1e-11, atol=1e-11)


def test_members_by_cells() -> None:
    c = problem(m=60)
    centres = c.X[[3, 30, 41]]
    parts = naive.cell_members(((c.X[:, None] - centres[None]) ** 2).sum(axis=2), 3, 48)
    assert_says(c.fitted(3, partition=centres), c, c.expected(parts))


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_appended_rows_are_members_more(likelihood: str) -> None:
    c = problem(likelihood, m=100)
    old, new = (c.fitted(20, c.table.slice(*rows)).sums for rows in ((0, 60), (60, 100)))
    merged, refit = old.merge(new), c.fitted(20).sums
    for name in ("H", "g", "count", "members", "steps"):
        np.testing.assert_allclose(getattr(merged, name), getattr(refit, name), rtol=1e-12, atol=1e-12)
    with pytest.raises(ParameterError, match="cannot be added"):
        old.merge(c.fitted(20, centre=1.0).sums)


def test_the_prior_mean_is_that_of_constant_functions() -> None:
    c = problem("bernoulli")
    assert c.fitted(20, centre=None).sums.centre == pytest.approx([logit(c.y.mean())])
    d = problem("poisson")
    assert d.fitted(20, centre=None).sums.centre == pytest.approx([np.log(d.y.mean())])
    none = Generalised(c.X, np.zeros_like(c.Y), c.queries)
    assert np.isfinite(none.fitted(20, centre=None).sums.centre).all()


def test_predictions_of_two_classes() -> None:
    c = problem()
    labels = np.array(["no", "yes"])[c.y.astype(int)]
    found = c.fitted(20, open_table(c.X, labels, classify=True))
    table = found.predictions().map_block(open_table(c.queries).read(0, 6))
    mean, variance = latent(found, c.queries)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    expected = expit(mean[:, None] + np.sqrt(variance)[:, None] * nodes) @ weights / weights.sum()
    np.testing.assert_allclose(table["probability"][:, 1], expected, atol=1e-7)
    np.testing.assert_allclose(table["probability"].sum(axis=1), 1.0)
    assert table["prediction"].tolist() == (expected > 0.5).astype(int).tolist()
    np.testing.assert_array_equal(latent(c.fitted(20), c.queries)[0], mean)


def test_predictions_of_counts() -> None:
    c = problem("poisson")
    found = c.fitted(20)
    mean, variance = latent(found, c.queries)
    predicted = found.predictions(std=True).map_block(open_table(c.queries).read(0, 6))
    np.testing.assert_allclose(predicted["prediction"], np.exp(mean + variance / 2))
    assert (predicted["std"] ** 2 > predicted["prediction"]).all()


def test_many_classes_are_each_against_the_rest() -> None:
    c = problem(m=60)
    codes = np.digitize(friendly(m=60, d=1).Y[:, 0], [-0.3, 0.6])
    found = c.fitted(20, open_table(c.X, np.array(["a", "b", "c"])[codes], classify=True), centre=[-0.5, 0.1, 0.2])
    assert found.sums.H.shape == (3, 6, 6)
    one = []
    for j, centre in enumerate((-0.5, 0.1, 0.2)):
        alone = Generalised(c.X, (codes == j)[:, None] * 1.0, c.queries, 1.3, 2.2, 1.0, centre=centre)
        assert_says(alone.fitted(20), alone, latent_of(found, c.queries, j), 1e-12)
        one.append(alone.fitted(20).predictions().probabilities(c.queries)[:, 1])  # type: ignore[attr-defined]
    rows = found.predictions()
    values = rows.map_block(open_table(c.queries).read(0, 6))
    np.testing.assert_allclose(values["probability"], np.stack(one, axis=1) / np.sum(one, axis=0)[:, None], rtol=1e-9)
    assert values["prediction"].tolist() == np.argmax(one, axis=0).tolist()
    assert {name: array.dtype for name, array in values.items()} == {
        name: kind[1] for name, kind in rows.columns.items()
    }


def latent_of(found: GeneralisedCommittee, X: Any, j: int) -> tuple[Any, Any]:
    mean, variance = latent(found, X, j)
    return mean, np.diag(variance)


def test_it_learns() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (3000, 2))
    p = expit(3 * np.sin(2 * X[:, 0]) * np.cos(X[:, 1]))
    y = (rng.random(3000) < p).astype(np.float64)
    table = open_table(X, y)
    basis = basis_at(rng.uniform(-2, 2, (60, 2)))
    found = fit_generalised_committee(table.slice(0, 2000), basis, "bernoulli", 4.0, block_size=250)
    predicted = found.predictions().probabilities(X[2000:])[:, 1]  # type: ignore[attr-defined]
    assert np.abs(predicted - p[2000:]).mean() < 0.05


@pytest.mark.parametrize("signal", [1e-3, 1e4])
def test_modes_where_steps_must_be_halved(signal: float) -> None:
    """Counts from 0 to a million under a wide prior, and classes that can be told apart perfectly."""
    X = np.linspace(0, 4, 30)[:, None]
    K = signal * naive.gaussian(X, X, 0.8)
    for likelihood, y, terms in (
        (Poisson(), np.round(np.exp(3.5 * X[:, 0])), naive.poisson_terms),
        (Bernoulli(), (X[:, 0] > 2) * 1.0, naive.logistic_terms),
    ):
        mode = find_mode(K, y, likelihood, 0.0, None)
        _, mean, slope = terms(y)(mode.f)
        # At the mode f = K (y - E y), to what a last digit of f is worth there.
        assert (np.abs(K @ (y - mean) - mode.f) <= 1e-6 * (1.0 + K @ slope)).all()
        assert mode.steps < 30
        np.testing.assert_allclose(mode.roots**2, np.maximum(slope, 1e-10), rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(mode.scaled, mode.roots * mode.f + (y - mean) / mode.roots, rtol=1e-9, atol=1e-9)


def test_what_is_refused() -> None:
    c = problem()
    with pytest.raises(ParameterError, match="has no softmax"):
        fit_generalised_committee(c.table, basis_at(c.queries), "softmax", 1.0)
    with pytest.raises(ParameterError, match="likelihood = 'gamma'"):
        fit_generalised_committee(c.table, basis_at(c.queries), "gamma", 1.0)
    with pytest.raises(ParameterError, match="signal"):
        fit_generalised_committee(c.table, basis_at(c.queries), "bernoulli", 0.0)
    with pytest.raises(DataError, match="needs targets"):
        fit_generalised_committee(open_table(c.X), basis_at(c.queries), "bernoulli", 1.0)
    with pytest.raises(DataError, match="takes 0 and 1"):
        fit_generalised_committee(open_table(c.X, 3.0 * c.y), basis_at(c.queries), "bernoulli", 1.0, centre=0.0)
    with pytest.raises(DataError, match="counts"):
        fit_generalised_committee(open_table(c.X, -c.y), basis_at(c.queries), "poisson", 1.0, centre=0.0)
    with pytest.raises(NumericalError, match="is not finite"):
        find_mode(np.full((2, 2), np.nan), np.zeros(2), Bernoulli(), 0.0, None)
