"""Every size of a matching pursuit: wrong rows counted, held-out rows of another table, bounds along the path."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from streamkernel import KernelMatchingPursuit, KernelMatchingPursuitClassifier, PursuitModel, ingest, open_table
from streamkernel.bounds import matching_pursuit_bound
from streamkernel.engine import Machine, Session
from streamkernel.errors import DataError, ModelFormatError, ParameterError
from streamkernel.fits.pursuit import fit_pursuit, plan_pursuit
from streamkernel.settings.pursuit import PursuitSettings

RNG = np.random.default_rng(2)
X = RNG.standard_normal((420, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(420)
TWO = np.where(y + 0.5 * RNG.standard_normal(420) > 0.3, "yes", "no")
THREE = np.digitize(y, [-0.5, 0.5]) * 10
FIT, REST = slice(0, 300), slice(300, None)

OPTIONS: dict[str, dict[str, Any]] = {
    "squared": {},
    "logistic": {"loss": "logistic"},
    "basic": {"variant": "basic", "picks": 6},
    "no constant": {"fit_intercept": False},
}


def wrong_rows(model: Any, rows: slice, targets: Any) -> list[int]:
    """Of each size, from its staged predictions."""
    return [int((stage != targets[rows]).sum()) for stage in model.staged_predict(X[rows])]


@pytest.mark.parametrize(("name", "targets"), [*product(OPTIONS, ["two"]), ("squared", "three"), ("basic", "three")])
def test_wrong_rows_of_every_size_are_those_of_the_staged_predictions(name: str, targets: str) -> None:
    t = TWO if targets == "two" else THREE
    model = KernelMatchingPursuitClassifier(18, validation=(X[REST], t[REST]), **OPTIONS[name]).fit(X[FIT], t[FIT])
    path, terms = model.path_, len(model.active_set_)
    assert path.validation_rows == 120
    np.testing.assert_array_equal(path.errors[1 : terms + 1, 0], wrong_rows(model, FIT, t))
    np.testing.assert_array_equal(path.errors[1 : terms + 1, 1], wrong_rows(model, REST, t))
    told = model.model_.solution_fields()
    assert told["validation_error"] == path.errors[terms, 1] / 120
    assert told["training_error"] == pytest.approx(1.0 - model.score(X[FIT], t[FIT]))
    assert model.model_.config["check"] == {"kind": "held-out", "rows": 120}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_bound_is_of_the_rows_outside_the_functions(name: str) -> None:
    model = KernelMatchingPursuitClassifier(12, validation=None, **OPTIONS[name]).fit(X[FIT], TWO[FIT])
    stages = list(model.staged_predict(X[FIT]))
    functions = [len(set(model.active_set_[: t + 1].tolist())) for t in range(len(stages))]
    outside = []
    for t, stage in enumerate(stages):
        wrong = stage != TWO[FIT]
        wrong[model.active_set_[: t + 1]] = False
        outside.append(int(wrong.sum()))
    expected = matching_pursuit_bound(300, functions, outside)
    np.testing.assert_allclose(model.model_.bound.values, expected.values, rtol=1e-12)
    assert model.model_.solution_fields()["bound_is_vacuous"] is True
    three = KernelMatchingPursuitClassifier(5).fit(X[FIT], THREE[FIT]).model_
    assert three.bound is None
    assert three.path.errors is not None


def test_a_gamma_counts_rows_that_are_missed() -> None:
    model = KernelMatchingPursuit(15, validation=0.3, bound_gamma=0.4, pool="split").fit(X, y)
    watch = PursuitSettings(15, validation=0.3).selection_rule(has_targets=True).watch
    held = watch.held_out(type("P", (), {"seed": 0})()).of(open_table(X).with_keys().read(0, 420))
    missed = np.array([np.abs(y - stage) > 0.4 for stage in model.staged_predict(X)])
    terms = len(missed)
    np.testing.assert_array_equal(model.path_.errors[1 : terms + 1, 0], missed[:, ~held].sum(axis=1))
    np.testing.assert_array_equal(model.path_.errors[1 : terms + 1, 1], missed[:, held].sum(axis=1))
    assert model.model_.bound.rows == model.path_.counted == (~held).sum()
    plain = KernelMatchingPursuit(15, validation=0.3, pool="split").fit(X, y)
    assert plain.n_sweeps_ == model.n_sweeps_ - 1
    assert plain.path_.errors is None
    assert plain.model_.bound is None


def test_a_table_of_held_out_rows_is_watched(tmp_path: Path) -> None:
    """The squared error of every size, by numbers, a table and a store alike; the fit is that of its own rows."""
    own = KernelMatchingPursuit(20, validation=None).fit(X[FIT], y[FIT])
    ingest(open_table(X[REST], y[REST]), tmp_path / "rest", dtype="float64", chunk_rows=37)
    first = None
    for validation in ((X[REST], y[REST]), open_table(X[REST], y[REST]), tmp_path / "rest"):
        model = KernelMatchingPursuit(20, validation=validation).fit(X[FIT], y[FIT])
        np.testing.assert_array_equal(model.path_.rows, own.path_.rows)
        errors = [((stage - y[REST]) ** 2).sum() for stage in own.staged_predict(X[REST])]
        np.testing.assert_allclose(model.path_.validation[1:, 0], errors, rtol=1e-6)
        assert len(model.active_set_) == 1 + int(np.argmin(errors))
        first = model if first is None else first
        np.testing.assert_array_equal(model.dual_coef_, first.dual_coef_)
        # One sweep of the other table, whatever it lies in.
        assert model.n_sweeps_ == own.n_sweeps_ + 1
    told = model.model_.config["settings"]["validation"]
    assert told["rows"] == 120
    assert str(tmp_path) not in str(told)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_patience_with_a_table(loss: str) -> None:
    noise = np.where(RNG.standard_normal(420) > 0, "b", "a")
    options: dict[str, Any] = {"patience": 6, "picks": 3, "loss": loss}
    model = KernelMatchingPursuitClassifier(100, validation=(X[REST], noise[REST]), **options).fit(X[FIT], noise[FIT])
    assert model.model_.config["ended"] == "validation"
    assert len(model.active_set_) < model.path_.terms < 40


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("other", [True, False])
def test_the_size_of_the_fewest_errors(loss: str, other: bool) -> None:
    options: dict[str, Any] = {"loss": loss, "picks": 2, "choose_by": "error"}
    if other:
        model = KernelMatchingPursuitClassifier(24, validation=(X[REST], TWO[REST]), **options).fit(X[FIT], TWO[FIT])
    else:
        model = KernelMatchingPursuitClassifier(24, validation=0.3, **options).fit(X, TWO)
    terms, path = len(model.active_set_), model.path_
    if loss == "squared":
        assert terms == max(1, int(path.errors[:, 1].argmin()))
    else:
        assert path.wrong[path.sizes.tolist().index(terms), 1] == path.wrong[1:, 1].min()


@pytest.mark.parametrize(
    ("loss", "validation"), [("squared", None), ("squared", 0.3), ("logistic", 0.3), ("squared", "rows")]
)
def test_the_plan_knows_of_the_sweeps(loss: str, validation: Any) -> None:
    other = open_table(X[REST], TWO[REST], classify=True)
    settings = PursuitSettings(20, loss=loss, validation=other if validation == "rows" else validation)
    table = open_table(X[FIT], TWO[FIT], classify=True)
    plan = plan_pursuit(table, settings, Machine(0, 1))
    names = [step.name for step in plan.steps]
    assert names.count("errors of every size") == 1
    assert ("watch" in names) == (validation == "rows")
    session = Session()
    fit_pursuit(table, settings, session)
    # Steps of the logistic loss end when they promise nothing more.
    assert plan.sweeps == len(session.records) or (loss == "logistic" and plan.sweeps > len(session.records))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"validation": (X[REST, :2], y[REST])}, "2 features, the rows of the fit have 3"),
        ({"validation": (X[REST],)}, "give a share"),
        ({"validation": (X[REST], None)}, "have no targets"),
        ({"validation": open_table(X[REST], TWO[REST], classify=True)}, "of the validation rows: .*class labels"),
        ({"choose_by": "error", "validation": None}, "counts held-out rows"),
        ({"choose_by": "error", "validation": 0.2}, "tell classes"),
        ({"choose_by": "rate"}, "choose_by must be one of"),
        ({"bound_gamma": 0.0}, "bound_gamma"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ParameterError, DataError), match=words):
        KernelMatchingPursuit(5, **options).fit(X[FIT], y[FIT])


def test_a_gamma_is_of_one_target_and_labels_are_those_of_the_fit() -> None:
    for targets, words in ((np.column_stack([y, y]), "2 targets"), (TWO, "right or wrong")):
        kind = KernelMatchingPursuit if targets is not TWO else KernelMatchingPursuitClassifier
        with pytest.raises(ParameterError, match=words):
            kind(5, bound_gamma=0.3).fit(X, targets)
    strange = np.where(TWO == "no", "never", TWO)
    with pytest.raises(DataError, match="never"):
        KernelMatchingPursuitClassifier(5, validation=(X[REST], strange[REST])).fit(X[FIT], TWO[FIT])


def test_probabilities_are_scored_and_kept_for_the_report() -> None:
    model = KernelMatchingPursuitClassifier(15, loss="logistic", validation=0.3).fit(X, TWO)
    P = model.predict_proba(X)
    table = model.model_.prepare(model.model_.prepare_targets(open_table(X, TWO, classify=True)))
    scores = Session().sweep(model.model_.scores(), table, "evaluate").scalars
    assert scores["log_loss"] == pytest.approx(log_loss(TWO, P))
    assert scores["brier"] == pytest.approx(brier_score_loss(TWO == "yes", P[:, 1]))
    assert scores["accuracy"] == pytest.approx(model.score(X, TWO))
    kept = model.model_.arrays["check_probability"]
    np.testing.assert_allclose(kept.sum(axis=1), 1.0)
    assert model.model_.config["check"] == {"kind": "held-out", "rows": int(model.path_.validation_rows)}
    written = model.model_.outputs().map_block(table.read(0, 50))
    np.testing.assert_allclose(written["probability"], P[:50], rtol=1e-9)
    np.testing.assert_array_equal(model.classes_[written["prediction"]], model.predict(X[:50]))


def test_counts_that_do_not_fit_the_path_are_refused(tmp_path: Path) -> None:
    model = KernelMatchingPursuitClassifier(8).fit(X, TWO).model_
    for name, values in (("path_outside", model.arrays["path_outside"] + 1000), ("path_errors", np.zeros((3, 2)))):
        with pytest.raises(ModelFormatError):
            PursuitModel(model.record, {**model.arrays, name: values}).save(tmp_path / name)
