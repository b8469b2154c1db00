"""Boosting as an estimator: members and votes against plain NumPy with the same draws, and their bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pytest
from estimators.boosting_problem import GIVEN, RNG, SMALL, THREE, X, Y, solution
from naive import boosting as naive
from problems import zarr_of_chunks

from streamkernel import KernelBoostingClassifier, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ParameterError
from streamkernel.fits.boosting.boosting import fit_boosting
from streamkernel.settings.boosting import BoostingSettings


def assert_votes(model: Any, found: naive.Boosted, labels: Any, w: Any, rtol: float) -> Any:
    """Errors and factors of all members to `rtol`, their samples, and every vote of the first ones; the members."""
    tried = solution(model).members
    np.testing.assert_allclose([each.error for each in tried], found.errors, rtol=rtol)
    np.testing.assert_allclose(model.member_weights_, found.factors, rtol=rtol)
    assert [each.rows for each in tried] == [len(rows) for rows, _ in found.samples]
    for count, staged in enumerate(model.staged_predict(X), start=1):
        np.testing.assert_array_equal(staged, naive.votes(found, count, labels.max() + 1))
        error = float(w @ (staged != labels) / w.sum())
        assert tried[count - 1].vote_training_error == pytest.approx(error, rel=1e-12)
    return tried


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("weighted", [False, True])
def test_members_and_votes_are_those_of_plain_numpy(labels: Any, weighted: bool) -> None:
    """Samples are drawn from two reservoirs in the sweep before; there they are drawn after the masses changed."""
    w = 0.5 + RNG.random(600) if weighted else np.ones(600)
    model = KernelBoostingClassifier(
        **SMALL, learner="ridge", member_alpha=0.5, validation=0, voting="hard", random_state=4
    ).fit(X, labels, w if weighted else None)
    found = naive.adaboost(X, labels, w, 6, 40, 0.7, 0.5, 4)
    tried = assert_votes(model, found, labels, w, rtol=1e-12)
    assert model.model_.bound == pytest.approx(np.minimum(np.cumprod(found.changes), 1.0), rel=1e-12)
    assert (np.array([each.vote_training_error for each in tried]) <= model.model_.bound).all()


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bounded_masses_and_their_factors_are_those_of_plain_numpy(labels: Any, weighted: bool) -> None:
    w = 0.5 + RNG.random(600) if weighted else np.ones(600)
    model = KernelBoostingClassifier(
        **SMALL, learner="ridge", member_alpha=0.5, validation=0, voting="hard", masses="bounded", random_state=4
    ).fit(X, labels, w if weighted else None)
    found = naive.madaboost(X, labels, w, 6, 40, 0.7, 0.5, 4)
    assert_votes(model, found, labels, w, rtol=1e-4)
    assert model.model_.bound is None


def test_rows_of_wrong_labels_do_not_take_over() -> None:
    """A fifth of the labels is another: exponential masses of these rows grow without bound, and theirs only to 1."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, (3000, 2))
    clean = (np.sin(2.0 * x[:, 0]) > x[:, 1]).astype(int)
    given = np.where(rng.random(3000) < 0.2, 1 - clean, clean)
    errors = {
        masses: (
            KernelBoostingClassifier(**SMALL | {"members": 40}, C=10.0, validation=0, masses=masses)
            .fit(x, given)
            .predict(x)
            != clean
        ).mean()
        for masses in ("bounded", "exponential")
    }
    assert errors["bounded"] < 0.8 * errors["exponential"]


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_wrong_rows_have_their_share_of_the_mass_after_each_member(labels: Any) -> None:
    """Half for two classes: else the two reservoirs were no draw from the new masses."""
    found = naive.adaboost(X, labels, np.ones(600), 4, 40, 0.7, 0.5, 0)
    C = int(labels.max()) + 1
    for codes, mass in zip(found.codes, found.masses, strict=True):
        assert mass[codes != labels].sum() == pytest.approx(1.0 - 1.0 / C, rel=1e-12)


@pytest.mark.parametrize(
    ("labels", "learner"),
    [
        pytest.param(Y, "svm", id="two-svm"),
        pytest.param(THREE, "ridge", id="three-ridge"),
        pytest.param(Y, "kmp", id="two-kmp"),
        pytest.param(THREE, "svm", id="three-svm", marks=pytest.mark.slow),
        pytest.param(Y, "ridge", id="two-ridge", marks=pytest.mark.slow),
        pytest.param(THREE, "kmp", id="three-kmp", marks=pytest.mark.slow),
    ],
)
def test_votes_are_better_than_members(learner: str, labels: Any) -> None:
    given = {**SMALL, "member_rows": 80, "n_components": 10 if learner == "kmp" else None}
    model = KernelBoostingClassifier(**given, learner=learner, C=10.0, member_alpha=1.0).fit(X[:400], labels[:400])
    stages = [float((each == labels[400:]).mean()) for each in model.staged_predict(X[400:])]
    assert stages[-1] >= stages[0] - 0.01
    assert stages[-1] > 0.7


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_a_soft_vote_counts_by_confidence(labels: Any) -> None:
    """The same members: weights times how far the winner of each is above the next, in 255 steps."""
    given = {**SMALL, "learner": "ridge", "validation": 0, "masses": "exponential"}
    soft = KernelBoostingClassifier(**given).fit(X, labels)
    hard = KernelBoostingClassifier(**given, voting="hard").fit(X, labels)
    np.testing.assert_array_equal(soft.member_weights_, hard.member_weights_)
    np.testing.assert_array_equal(soft.dual_coef_, hard.dual_coef_)
    members, C = soft.model_.members, int(labels.max()) + 1
    V = np.zeros((600, C))
    for t, a in enumerate(soft.member_weights_):
        run = members.run(t)
        K = naive.gaussian(X, members.points[members.positions[run]], 0.7)
        f = K @ members.coefficients[run] + members.constants[t]
        f = np.column_stack([-f[:, 0], f[:, 0]]) if C == 2 else f
        best = np.sort(f, axis=1)
        confidence = np.minimum(0.5 * (best[:, -1] - best[:, -2]), 1.0)
        V[np.arange(600), f.argmax(axis=1)] += a * confidence
    V /= soft.member_weights_.sum()
    found = soft.decision_function(X)
    np.testing.assert_allclose(found, V[:, 1] - V[:, 0] if C == 2 else V, atol=1.0 / 255.0)
    assert soft.model_.bound is None


def test_filtering_promises_an_error() -> None:
    """Three machines with errors of at most e: 3 e^2 - 2 e^3, plus what samples of rows add."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2.0, 2.0, (6000, 2))
    labels = (np.sin(2.0 * rows[:, 0]) > rows[:, 1]).astype(int)
    model = KernelBoostingClassifier(**GIVEN, method="filtering", member_rows=60, C=10.0).fit(
        rows[:4000], labels[:4000]
    )
    errors = [each.error for each in solution(model).members]
    assert len(errors) == 3
    e = max(errors)
    assert model.model_.bound[0] == pytest.approx(3 * e**2 - 2 * e**3)
    wrong = float((model.predict(rows[4000:]) != labels[4000:]).mean())
    assert wrong <= model.model_.bound[0] + 3.0 * np.sqrt(wrong / 2000)
    assert wrong < errors[0]


def digest_of(table: Any, executor: Any = None, **settings: Any) -> str:
    found = fit_boosting(
        table, BoostingSettings(**settings), Session(executor or ThreadExecutor(1)), estimator="boosting"
    )
    return found.digest


@pytest.mark.parametrize("method", [pytest.param("resampling", marks=pytest.mark.slow), "filtering"])
def test_any_chunking_and_any_threads_give_the_same_members(tmp_path: Path, method: str) -> None:
    settings = {**GIVEN, "method": method, "member_rows": 40, "members": 4, "learner": "svm", "calibration": "platt"}
    arrays = []
    for chunk in (600, 77, 10):
        store = zarr_of_chunks(tmp_path / f"{chunk}.zarr", X, Y.astype(float), chunk)
        model = fit_boosting(
            open_table(store, classify=True),
            BoostingSettings(**settings),
            Session(ThreadExecutor(3)),
            estimator="boosting",
        )
        arrays.append(model.arrays)
        assert digest_of(open_table(store, classify=True), **settings) == model.digest
    for name, values in arrays[0].items():
        if not name.startswith("check"):
            assert all(np.array_equal(values, other[name]) for other in arrays[1:]), name


def test_staged_values_of_stored_rows_are_lazy_and_equal(tmp_path: Path) -> None:
    model = KernelBoostingClassifier(**SMALL).fit(X, Y)
    store = zarr_of_chunks(tmp_path / "rows.zarr", X, Y.astype(float), 100)
    for here, there in zip(model.staged_decision_function(X), model.staged_decision_function(store), strict=True):
        assert isinstance(there, dask.array.Array)
        np.testing.assert_array_equal(here, there.compute())
    np.testing.assert_array_equal(here, model.decision_function(X))
    np.testing.assert_array_equal(list(model.staged_predict(store))[-1].compute(), model.predict(X))


def test_filtering_is_of_two_classes() -> None:
    with pytest.raises(ParameterError, match="two classes"):
        KernelBoostingClassifier(**SMALL, method="filtering").fit(X, THREE)


def test_a_search_of_few_rows_reads_these_alone() -> None:
    """Wrong rows beyond the cap are not found: the first machine is right on all that it searches."""
    labels = (X[:, 0] > 0.0).astype(int)
    apart = X + 5.0 * labels[:, None]
    labels[500:] = 1 - labels[500:]
    given = {**GIVEN, "method": "filtering", "member_rows": 40, "validation": 0}
    capped = KernelBoostingClassifier(**given, search_rows=300).fit(apart, labels)
    assert solution(capped).ended == "no errors"
    assert capped.component_indices_.max() < 300
    assert solution(capped).members[0].vote_training_error == pytest.approx(100 / 600)
    assert len(KernelBoostingClassifier(**given).fit(apart, labels).member_weights_) == 3


def test_a_limit_of_functions_limits_the_rows_of_a_machine_and_the_functions_of_others() -> None:
    for learner in ("svm", "ridge", "kmp"):
        model = KernelBoostingClassifier(20, learner=learner, members=3, validation=0, **GIVEN).fit(X, Y)
        assert (np.diff(model.model_.members.ends, prepend=0) <= 20).all()
        most = max(each.rows for each in solution(model).members)
        assert most == (20 if learner == "svm" else 200)
