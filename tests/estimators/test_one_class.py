"""One class as an estimator: against libsvm on the same features, shares of outliers, weights, awkward rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import dask.array
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import OneClassSVM
from slow_cases import slow_but

from streamkernel import KernelOneClass, open_table
from streamkernel.errors import ParameterError, StreamKernelWarning
from streamkernel.models.margins import OneClassModel
from streamkernel.reductions import Predictions
from streamkernel.reductions.scores.one_class import STEPS, CountDecisions, DecisionValues
from streamkernel.table import RowBlock

RNG = np.random.default_rng(5)
X = RNG.standard_normal((400, 3)) * [1.0, 2.0, 0.5]
SIZE: dict[str, Any] = {"n_components": 30, "lengthscale": 1.5}


def features(model: Any, rows: Any = X) -> Any:
    """Whitened features of rows, by the model's own basis."""
    found = model.model_
    return found.basis.features(found.prepare(open_table(rows)).read(0, len(rows)).X)


# A share of no whole number of rows: else the objective is as small for any threshold between two rows.
@pytest.mark.parametrize("nu", [0.0512, 0.303, 0.803])
def test_values_are_those_of_libsvm_on_the_features(nu: float) -> None:
    model = KernelOneClass(**SIZE, nu=nu, gap_tol=1e-10).fit(X)
    G, size = features(model), nu * len(X)
    theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-10).fit(G)
    ours = model.decision_function(X)
    np.testing.assert_allclose(size * model.score_samples(X), theirs.score_samples(G), rtol=1e-5)
    np.testing.assert_allclose(size * ours, theirs.decision_function(G), atol=1e-5 * size * model.offset_)
    np.testing.assert_allclose(size * model.offset_, theirs.offset_, rtol=1e-5)
    solution = model.model_.record.solution.problems[0]
    b = theirs.coef_[0] / size
    s = G @ b
    least = 0.5 * b @ b - theirs.offset_[0] / size + np.maximum(theirs.offset_[0] / size - s, 0.0).sum() / size
    assert solution.dual <= least * (1 - 1e-12)
    np.testing.assert_allclose(solution.primal, least, rtol=1e-5)


@pytest.mark.parametrize(("nu", "n"), slow_but([(0.01, 60), (0.5, 10)], product([0.01, 0.1, 0.5], [10, 60])))
def test_at_most_nu_of_the_rows_are_outside(nu: float, n: int) -> None:
    model = KernelOneClass(n, nu=nu).fit(X)
    found = model.predict(X)
    assert set(found.tolist()) == {-1, 1}
    assert (found < 0).mean() == model.outliers_ <= nu
    # At least nu are support vectors: rows outside, and at most one for each function on the threshold.
    assert model.outliers_ >= nu - (n + 1) / len(X)
    np.testing.assert_array_equal(found < 0, model.decision_function(X) < 0.0)
    np.testing.assert_array_equal(KernelOneClass(n, nu=nu).fit_predict(X), found)


def test_rows_on_the_threshold_are_inside_in_any_block() -> None:
    """All rows equal: every value is that of the threshold, but for rounding."""
    with pytest.warns(StreamKernelWarning):
        model = KernelOneClass(5, lengthscale=1.0, scale="none").fit(np.tile(X[:1], (300, 1)))
    for rows in (1, 7, 300):
        assert (model.predict(np.tile(X[:1], (rows, 1))) == 1).all()


def test_all_may_be_outside_and_one_is_not() -> None:
    found = KernelOneClass(**SIZE, nu=1.0).fit(X)
    assert 0.9 < found.outliers_ < 1.0
    assert found.offset_ == pytest.approx(found.score_samples(X).max(), rel=0.01)


def test_a_share_of_less_than_a_row_is_that_of_a_row() -> None:
    least = KernelOneClass(**SIZE, nu=1.0 / 400).fit(X)
    assert least.outliers_ == 0.0
    found = KernelOneClass(**SIZE, nu=1e-9).fit(X)
    np.testing.assert_array_equal(found.dual_coef_, least.dual_coef_)
    assert found.n_iter_ < 60


def test_a_small_share_of_many_rows() -> None:
    # A hundredth of a row of 20,000: from the middle of their boxes the dual variables fell for 100 sweeps.
    rows = np.random.default_rng(0).standard_normal((4000, 2))
    model = KernelOneClass(10, nu=1e-5, lengthscale=2.0).fit(rows, sample_weight=np.full(4000, 5.0))
    assert model.model_.record.solution.converged
    assert model.n_iter_ < 40
    assert (model.predict(rows) == 1).all()
    assert model.offset_ > 0.0


def test_a_start_from_a_sample_on_which_nothing_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    # After one sweep nothing is better than 0 on the sample: its barrier is 0, and none of it is taken.
    monkeypatch.setattr("streamkernel.fits.margins._margin_problems._SAMPLE_ROWS", 200)
    monkeypatch.setattr("streamkernel.fits.margins._margin_problems._WORTH_A_SAMPLE", 1)
    monkeypatch.setattr("streamkernel.fits.margins._margin_path._SAMPLE_SWEEPS", 1)
    model = KernelOneClass(**SIZE, nu=0.01).fit(X)
    assert model.duality_gap_ <= 1e-4


def test_the_unit_of_weights_does_not_count() -> None:
    w = 1.0 + np.arange(400) % 3
    one, other = (KernelOneClass(**SIZE, gap_tol=1e-8).fit(X, sample_weight=c * w) for c in (1.0, 2.0**-30))
    np.testing.assert_allclose(other.decision_function(X), one.decision_function(X), rtol=1e-7, atol=1e-9)
    assert (w @ (one.predict(X) < 0)) / w.sum() == pytest.approx(one.outliers_)
    assert one.outliers_ <= 0.1


def test_targets_are_ignored() -> None:
    labels = np.where(X[:, 0] > 0, "a", "b")
    plain = KernelOneClass(**SIZE).fit(X)
    np.testing.assert_array_equal(KernelOneClass(**SIZE).fit(X, labels).dual_coef_, plain.dual_coef_)
    table = open_table(X, X[:, 0])
    fitted = KernelOneClass(**SIZE).fit(table)
    np.testing.assert_array_equal(fitted.dual_coef_, plain.dual_coef_)
    assert fitted.model_.record.target_names == ()


def test_dask_rows_are_lazy_and_a_sample_starts_long_tables() -> None:
    rows = np.tile(X, (85, 1)) + 0.1 * np.random.default_rng(0).standard_normal((34_000, 3))
    model = KernelOneClass(**SIZE, nu=0.2).fit(dask.array.from_array(rows, chunks=(9000, 3)))
    assert any("sampled rows" in sweep.name for sweep in model.model_.record.run.sweeps)
    lazy = model.decision_function(dask.array.from_array(rows, chunks=(9000, 3)))
    assert isinstance(lazy, dask.array.Array)
    found = lazy.compute()
    assert (found < 0.0).mean() == model.outliers_
    assert model.outliers_ == pytest.approx(0.2, abs=0.002)
    offset = model.score_samples(dask.array.from_array(rows[:5], chunks=(5, 3))).compute() - found[:5]
    np.testing.assert_allclose(offset, model.offset_, rtol=1e-9)


def test_it_is_saved(tmp_path: Any) -> None:
    model = KernelOneClass(**SIZE).fit(X)
    model.save(tmp_path / "m")
    again = KernelOneClass.load(tmp_path / "m")
    assert isinstance(again.model_, OneClassModel)
    assert (again.offset_, again.outliers_, again.model_.digest) == (
        model.offset_,
        model.outliers_,
        model.model_.digest,
    )
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_float32_and_linear_columns() -> None:
    rows = (X + 6.0).astype(np.float32)
    model = KernelOneClass(kernel="linear", scale="none", nu=0.1, gap_tol=1e-9).fit(rows)
    theirs = OneClassSVM(kernel="linear", nu=0.1, tol=1e-10).fit(rows.astype(float))
    assert model.model_.record.rule == "columns"
    np.testing.assert_allclose(40.0 * model.score_samples(rows), theirs.score_samples(rows), rtol=1e-5)
    assert model.outliers_ <= 0.1


def test_rows_around_the_origin_are_told_of() -> None:
    with pytest.warns(StreamKernelWarning, match=r"lie around the origin .*; give kernel='gaussian' or another"):
        found = KernelOneClass(kernel="linear").fit(X)
    assert (found.predict(X) == 1).all()


def test_too_few_sweeps_are_told_of() -> None:
    with pytest.warns(StreamKernelWarning, match=r"after 4 sweeps, not within 0.0001; .* or give a larger nu$"):
        KernelOneClass(**SIZE, max_sweeps=4).fit(X)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nu": 0.0}, "nu must be finite and > 0 and <= 1, not 0"),
        ({"nu": 1.5}, "nu must be .* <= 1, not 1.5"),
        (
            {"lengthscale": "auto"},
            "lengthscale 'auto' is searched for by how well targets are predicted; give 'median'",
        ),
        ({"metric": "learned"}, "metric 'learned' is learned from targets, which this fit does not use"),
        ({"kernel": "auto"}, "kernel 'auto' is chosen by how well targets are predicted"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelOneClass(**given).fit(X)


class Values(Predictions):
    """The first column of X as values."""

    def values(self, X: Any) -> Any:
        return X[:, :1]


@given(st.lists(st.sampled_from([-2.0, -1e-3, -1e-10, 0.0, 1e-10, 0.5]), min_size=1, max_size=30), st.floats(0.01, 1.0))
def test_the_threshold_is_lowered_by_the_least_step(values: list[float], share: float) -> None:
    f = np.array(values)
    w = 1.0 + np.arange(len(f)) % 2
    counting = CountDecisions(Values(None, np.zeros((1, 1)), np.zeros(1)), 1.0)  # type: ignore[arg-type]
    found: DecisionValues = counting.finalize(counting.map_block(RowBlock(0, f[:, None], None, w)))
    assert found.weight == w.sum()
    np.testing.assert_allclose(found.below, [w @ (f < -step) for step in (0.0, *STEPS)])
    lowered = found.lowered_for(share)
    fine = [step for step in STEPS if w @ (f < -step) <= share * w.sum() and (f >= -step).any()]
    assert lowered.step == (fine[0] if fine else STEPS[-1])
    assert lowered.outliers == pytest.approx(w @ (f < -lowered.step) / w.sum())
    assert lowered.histogram.sum() == pytest.approx(w.sum())
