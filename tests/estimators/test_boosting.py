"""Boosting as an estimator: against plain NumPy with the same draws, its bounds, its ends, and awkward rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pytest
from naive import boosting as naive
from problems import zarr_of_chunks

from streamkernel import KernelBoostingClassifier, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import ModelFormatError, ParameterError, SingleClassError
from streamkernel.fits import _boosting_path
from streamkernel.fits.boosting import fit_boosting
from streamkernel.kinds import KINDS, settings_of
from streamkernel.models.boosting import BoostingModel
from streamkernel.settings.boosting import BoostingSettings

RNG = np.random.default_rng(3)
X = RNG.uniform(-2.0, 2.0, (600, 3))
Y = (np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(600) > 0.0).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.standard_normal(600), [0.0, 2.0])
GIVEN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "lengthscale": 0.7, "scale": "none"}
SMALL: dict[str, Any] = {**GIVEN, "member_rows": 40, "members": 6}


def solution(model: Any) -> Any:
    return model.model_.record.solution


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


@pytest.mark.parametrize("learner", ["svm", "ridge", "kmp"])
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
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


@pytest.mark.filterwarnings("ignore:about 200 of 399 rows are distinct")
def test_whole_weights_are_repeated_rows() -> None:
    """Where all rows are drawn, the random numbers do not matter."""
    w = 1 + np.arange(200) % 3
    given = {**GIVEN, "learner": "ridge", "member_rows": 2000, "members": 3, "validation": 0}
    weighted = KernelBoostingClassifier(**given).fit(X[:200], Y[:200], w)
    repeated = KernelBoostingClassifier(**given).fit(np.repeat(X[:200], w, axis=0), np.repeat(Y[:200], w))
    np.testing.assert_allclose(weighted.member_errors_, repeated.member_errors_, rtol=1e-9)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:about 30 of 1451 rows are distinct")
def test_an_error_of_less_than_a_row_of_the_table_is_as_it_is() -> None:
    """A single row of weight 1 among rows of 50 is wrong: also then whole weights are repeated rows."""
    rows = X[:30] + 2.0 * np.sign(X[:30, :1])
    labels = (rows[:, 0] > 0.0).astype(int)
    labels[4] = 1 - labels[4]
    w = np.where(np.arange(30) == 4, 1, 50)
    given = {**GIVEN, "learner": "ridge", "member_alpha": 20.0, "member_rows": 2000, "members": 3, "validation": 0}
    weighted = KernelBoostingClassifier(**given).fit(rows, labels, w)
    repeated = KernelBoostingClassifier(**given).fit(np.repeat(rows, w, axis=0), np.repeat(labels, w))
    assert 0.0 < weighted.member_errors_[0] < 0.5 / 30
    np.testing.assert_allclose(weighted.member_errors_, repeated.member_errors_, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(weighted.member_weights_, repeated.member_weights_, rtol=1e-9)


@pytest.mark.parametrize("method", ["resampling", "filtering"])
def test_a_row_whose_weight_is_rounding_does_not_count(method: str) -> None:
    labels = (X[:, 0] > 0.0).astype(int)
    apart = X + 5.0 * labels[:, None]
    labels[4] = 1 - labels[4]
    w = np.where(np.arange(600) == 4, 1e-30, 1.0)
    model = KernelBoostingClassifier(**SMALL, method=method, validation=0).fit(apart, labels, w)
    assert solution(model).ended == "no errors"
    assert model.predict(apart)[4] != labels[4]


def test_rows_to_train_on_whose_weights_are_rounding_are_refused() -> None:
    table = open_table(X, Y, classify=True).with_keys()
    folds = BoostingSettings().folds(table)
    assert folds is not None
    held = folds.held_out(table.read(0, 600).keys)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="are held out"):
        KernelBoostingClassifier(**SMALL).fit(X, Y, np.where(held, 1.0, 1e-30))


def test_rows_of_weight_0_change_nothing_but_draws() -> None:
    w = np.ones(300)
    w[200:] = 0.0
    given = {**SMALL, "learner": "ridge", "validation": 0}
    weighted = KernelBoostingClassifier(**given).fit(X[:300], Y[:300], w)
    fewer = KernelBoostingClassifier(**given).fit(X[:200], Y[:200])
    np.testing.assert_array_equal(weighted.predict(X), fewer.predict(X))


def test_balanced_classes_have_equal_masses() -> None:
    rare = (X[:, 0] > 1.6).astype(int)
    model = KernelBoostingClassifier(**SMALL, class_weight="balanced", validation=0).fit(X, rare)
    assert (model.predict(X)[rare == 1] == 1).mean() > 0.9
    assert model.model_.record.class_weights == pytest.approx((600 / (2 * (rare == 0).sum()), 600 / (2 * rare.sum())))


def test_a_member_without_errors_ends_the_fit() -> None:
    labels = (X[:, 0] > 0.0).astype(int)
    apart = X + 5.0 * labels[:, None]
    for method in ("resampling", "filtering"):
        model = KernelBoostingClassifier(**SMALL, method=method).fit(apart, labels)
        assert solution(model).ended == "no errors"
        assert len(model.member_weights_) == 1
        np.testing.assert_array_equal(model.predict(apart), labels)


@pytest.mark.parametrize("masses", ["bounded", "exponential"])
def test_a_member_no_better_than_chance_is_left_out(masses: str) -> None:
    """Labels are coins, which a later member does not know better than one."""
    coins = np.random.default_rng(1).integers(0, 2, 600)
    model = KernelBoostingClassifier(**{**SMALL, "members": 30}, validation=0, masses=masses).fit(X, coins)
    assert solution(model).ended == "chance"
    assert len(model.member_weights_) == len(solution(model).members) - 1
    assert (model.member_errors_ < 0.5).all()


def test_a_sweep_knows_chance_better_than_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the few rows that weigh members the last one is better than a coin; on all rows it is not, and left out."""
    monkeypatch.setattr(_boosting_path, "sample_rows", lambda table: 40)
    coins = np.random.default_rng(1).integers(0, 2, 600)
    model = KernelBoostingClassifier(**{**SMALL, "members": 30}, validation=0, random_state=25).fit(X, coins)
    tried = solution(model).members
    assert solution(model).ended == "chance"
    assert len(model.member_weights_) == len(tried) - 1
    assert tried[-1].error >= 0.5
    assert tried[-1].factor == 0.0
    assert (model.member_errors_ < 0.5).all()


@pytest.mark.parametrize("masses", ["bounded", "exponential"])
def test_a_first_member_no_better_than_chance_is_the_model(masses: str) -> None:
    """Labels alternate along a line: the nearest rows of a row in the sample have the other label."""
    line = np.arange(600.0)[:, None]
    given = {**GIVEN, "lengthscale": 1.0, "member_rows": 60, "C": 100.0, "validation": 0}
    with pytest.warns(UserWarning, match="no better than chance"):
        model = KernelBoostingClassifier(**given, masses=masses).fit(line, np.arange(600) % 2)
    assert solution(model).ended == "chance"
    assert len(model.member_weights_) == 1


def test_rows_of_one_label_are_refused_and_a_single_row_of_one_is_not() -> None:
    with pytest.raises(SingleClassError):
        KernelBoostingClassifier(**SMALL).fit(X, np.zeros(600, dtype=int))
    lone = np.where(np.arange(600) == 7, 2, Y)
    model = KernelBoostingClassifier(**SMALL).fit(X, lone)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == lone).mean() > 0.7


def test_held_out_rows_choose_the_number_of_members_and_no_member_sees_them() -> None:
    model = KernelBoostingClassifier(**{**SMALL, "members": 15}, learner="kmp", validation=0.25).fit(X, Y)
    table = open_table(X, Y, classify=True).with_keys()
    held = model.model_.record.settings.validation
    assert held == 0.25
    folds = BoostingSettings(validation=0.25).folds(table)
    assert folds is not None
    out = folds.held_out(table.read(0, 600).keys)
    assert solution(model).validation_rows == out.sum() > 100
    assert not out[model.component_indices_].any()
    errors = [each.vote_validation_error for each in solution(model).members]
    kept = len(model.member_weights_)
    assert kept == int(np.argmin(errors)) + 1
    for count, staged in enumerate(model.staged_predict(X[out]), start=1):
        assert errors[count - 1] == pytest.approx((staged != Y[out]).mean())


@pytest.mark.parametrize("validation", [0.0004, 0.1, 0.15, 0.35, 0.4, 0.5])
def test_the_share_of_held_out_rows_is_what_was_asked_for(validation: float) -> None:
    folds = BoostingSettings(validation=validation).folds(open_table(X, Y, classify=True))
    assert folds is not None
    assert folds.share == pytest.approx(max(validation, 0.001))


def test_patience_ends_the_fit() -> None:
    given = {**SMALL, "members": 40, "learner": "kmp"}
    model = KernelBoostingClassifier(**given, patience=3).fit(X, Y)
    assert solution(model).ended == "patience"
    assert len(solution(model).members) < 40


def test_staged_values_of_stored_rows_are_lazy_and_equal(tmp_path: Path) -> None:
    model = KernelBoostingClassifier(**SMALL).fit(X, Y)
    store = zarr_of_chunks(tmp_path / "rows.zarr", X, Y.astype(float), 100)
    for here, there in zip(model.staged_decision_function(X), model.staged_decision_function(store), strict=True):
        assert isinstance(there, dask.array.Array)
        np.testing.assert_array_equal(here, there.compute())
    np.testing.assert_array_equal(here, model.decision_function(X))
    np.testing.assert_array_equal(list(model.staged_predict(store))[-1].compute(), model.predict(X))


@pytest.mark.parametrize("calibration", ["platt", "isotonic"])
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_probabilities_of_held_out_rows_are_shares(calibration: str, labels: Any) -> None:
    rng = np.random.default_rng(5)
    rows = rng.uniform(-2.0, 2.0, (3000, 3))
    given = np.digitize(rows[:, 0] + rows[:, 1] + rng.standard_normal(3000), [0.0] if labels is Y else [-1.0, 1.0])
    model = KernelBoostingClassifier(
        **GIVEN, member_rows=150, members=15, learner="kmp", n_components=10, validation=0.5, calibration=calibration
    ).fit(rows[:2000], given[:2000])
    p = model.predict_proba(rows[2000:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p.mean(axis=0) == pytest.approx(np.bincount(given[2000:]) / 1000, abs=0.06)
    own = p[np.arange(1000), given[2000:]]
    assert -np.log(own).mean() < -np.log(np.bincount(given[:2000]) / 2000)[given[2000:]].mean() - 0.1
    right = model.predict(rows[2000:]) == given[2000:]
    assert right.mean() == pytest.approx(p.max(axis=1).mean(), abs=0.1)


def test_a_model_without_calibration_has_no_probabilities() -> None:
    assert not hasattr(KernelBoostingClassifier(**SMALL).fit(X, Y), "predict_proba")


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = KernelBoostingClassifier(**SMALL, calibration="isotonic").fit(X, THREE)
    model.save(tmp_path / "model.zarr")
    other = KernelBoostingClassifier.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.member_weights_, model.member_weights_)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("member_ends", lambda ends: ends[::-1].copy()),
        ("member_positions", lambda positions: positions + 10_000),
        ("member_weights", lambda weights: -weights),
        ("dual_coef", lambda c: np.hstack([c, c])),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, name: str, change: Any) -> None:
    model = KernelBoostingClassifier(**SMALL).fit(X, Y).model_
    broken = BoostingModel(model.record, {**model.arrays, name: change(model.arrays[name])})
    with pytest.raises(ModelFormatError):
        broken.save(tmp_path / "model.zarr")


@pytest.mark.parametrize(
    "change",
    [
        lambda solution: {"members": ()},
        lambda solution: {"members": tuple(each.changed(factor=1e5) for each in solution.members)},
        lambda solution: {"members": tuple(each.changed(error=-1.0) for each in solution.members)},
    ],
)
def test_members_of_a_record_that_do_not_fit_are_refused(tmp_path: Path, change: Any) -> None:
    model = KernelBoostingClassifier(**SMALL, voting="hard").fit(X, Y).model_
    found = model.record.solution
    broken = BoostingModel(model.record.changed(solution=found.changed(**change(found))), model.arrays)
    with pytest.raises(ModelFormatError):
        broken.save(tmp_path / "model.zarr")


def test_curves_without_knots_are_refused(tmp_path: Path) -> None:
    model = KernelBoostingClassifier(**SMALL, calibration="isotonic").fit(X, Y).model_
    empty = {name: model.arrays[name][:, :0] for name in ("calibration_knots", "calibration_values")}
    with pytest.raises(ModelFormatError, match="calibration_knots"):
        BoostingModel(model.record, {**model.arrays, **empty}).save(tmp_path / "model.zarr")


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_rows": 1},
        {"member_rows": 2.5},
        {"member_rows": 0},
        {"member_rows": 30_000},
        {"members": 0},
        {"method": "bagging"},
        {"learner": "tree"},
        {"C": 0.0},
        {"member_alpha": -1.0},
        {"validation": 0.6},
        {"validation": 0.0, "patience": 2},
        {"validation": 0.0, "calibration": "platt"},
        {"search_rows": 10},
        {"voting": "soft", "method": "filtering"},
        {"voting": "weak"},
        {"masses": "bounded", "method": "filtering"},
        {"masses": "heavy"},
        {"member_rows": 100, "n_components": 50},
        {"kernel": "sigmoid"},
    ],
)
def test_bad_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        KernelBoostingClassifier(**{**GIVEN, **wrong}).fit(X, Y)


@pytest.mark.parametrize("given", [{"rule": "uniform"}, {"rule_options": {"pool": "shared"}}, {"tol": np.ones(2)}])
def test_options_of_the_choice_of_a_basis_are_refused(given: dict[str, Any]) -> None:
    """From the command line and of jobs: the estimator does not have them."""
    with pytest.raises(ParameterError, match=next(iter(given))):
        settings_of(KINDS["boosting"], given)


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


@pytest.mark.parametrize("scale", ["robust", "rank", "standard"])
def test_points_in_the_units_of_the_columns_are_those_of_all_members(tmp_path: Path, scale: str) -> None:
    """With a metric, or a scaling that cannot be inverted, the model stores its rows as they were, each once."""
    given: dict[str, Any] = {"scale": scale, "members": 3, "member_rows": 40, "validation": 0, "lengthscale": 1.0}
    metric = [[1.0, 0.0], [0.5, 1.0], [0.0, 2.0]] if scale == "standard" else "none"
    model = KernelBoostingClassifier(kernel="gaussian", metric=metric, **given).fit(X, Y)
    np.testing.assert_allclose(model.components_, X[model.component_indices_], atol=1e-9)
    model.save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(KernelBoostingClassifier.load(tmp_path / "model.zarr").predict(X), model.predict(X))


def test_a_limit_of_functions_limits_the_rows_of_a_machine_and_the_functions_of_others() -> None:
    for learner in ("svm", "ridge", "kmp"):
        model = KernelBoostingClassifier(20, learner=learner, members=3, validation=0, **GIVEN).fit(X, Y)
        assert (np.diff(model.model_.members.ends, prepend=0) <= 20).all()
        most = max(each.rows for each in solution(model).members)
        assert most == (20 if learner == "svm" else 200)
