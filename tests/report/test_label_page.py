"""The page of rows with several labels: scores are scikit-learn's, and no word is of a regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report.rendered import undrawn
from report.test_html import Page
from sklearn.metrics import accuracy_score, hamming_loss, precision_score, recall_score

from streamkernel import KernelRidgeClassifier
from streamkernel.errors import ShapeMismatchError
from streamkernel.models import RidgeModel
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.labels import LabelPairs, label_pairs
from streamkernel.report.facts.standing import Standing, standing
from streamkernel.report.figures import plot
from streamkernel.report.figures.labels import label_figures
from streamkernel.report.pages.kinds import picture_of

NAMES = ("red", "</script>", "never")


@pytest.fixture(scope="module")
def fitted() -> tuple[RidgeModel, dict[str, Any]]:
    """A model, and other rows with their labels and values; one label is rare."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0.3, X[:, 0] > 2.0]).astype(float)
    model = KernelRidgeClassifier(20, alpha=0.1, random_state=0).fit(X[:300], Y[:300])
    found = model.model_.with_parts(model.model_.record.changed(target_names=NAMES), model.model_.arrays)
    values = 0.5 * (model.decision_function(X[300:]) + 1.0)
    return found, {"kind": "the others", "true": Y[300:], "predicted": values}


def labels_of(model: RidgeModel, pairs: Any) -> LabelPairs:
    found = label_pairs(model, pairs)
    assert isinstance(found, LabelPairs)
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(fitted: tuple[RidgeModel, dict[str, Any]], weighted: bool) -> None:
    model, pairs = fitted
    w = np.random.default_rng(1).integers(1, 5, 200).astype(float) if weighted else None
    found = labels_of(model, pairs if w is None else {**pairs, "weight": w})
    true, named = pairs["true"] > 0.5, pairs["predicted"] > 0.5
    assert found.all_right == pytest.approx(accuracy_score(true, named, sample_weight=w))
    assert found.wrong == pytest.approx(hamming_loss(true, named, sample_weight=w))
    assert found.wrong == pytest.approx(np.mean([each.wrong for each in found.labels]))
    for each, t, f in zip(found.labels, true.T, named.T, strict=True):
        assert each.recall == pytest.approx(recall_score(t, f, sample_weight=w))
        assert each.precision == pytest.approx(
            precision_score(t, f, sample_weight=w, zero_division=np.nan), nan_ok=True
        )
    # Of the commonest set of labels, named for every row.
    every, kinds = np.unique(true, axis=0, return_inverse=True)
    shares = [np.average(kinds.reshape(-1) == kind, weights=w) for kind in range(len(every))]
    assert found.commonest == pytest.approx(max(shares))


def test_a_label_that_no_row_has_and_none_is_given(fitted: tuple[RidgeModel, dict[str, Any]]) -> None:
    model, pairs = fitted
    none = {**pairs, "true": pairs["true"] * [1, 1, 0], "predicted": pairs["predicted"] * [1, 1, 0]}
    last = labels_of(model, none).labels[-1]
    assert np.isnan([last.recall, last.precision]).all()
    assert (last.wrong, last.having) == (0.0, 0.0)
    assert all(isinstance(each, plot.Figure) for each in label_figures(labels_of(model, none)))


def test_the_page_speaks_of_labels_and_not_of_numbers(fitted: tuple[RidgeModel, dict[str, Any]]) -> None:
    model, pairs = fitted
    page = Page(undrawn(model, pairs=pairs, but=["label-errors", "label-1", "label-2", "label-3"]))
    assert {"label-errors", "label-1", "label-2", "label-3"} <= set(page.panels())
    for words in ("Hamming loss", "rows whose labels are all right, the rows given", "Labels", "red, </script>, never"):
        assert words in page.text
    for words in ("RMSE", "R²", "Mean absolute error", "Predicted against true", "Targets"):
        assert words not in page.text
    assert [figure.name for figure in picture_of(model)[1] if isinstance(figure, plot.Figure)][-1] == "label-errors"


def test_values_that_are_not_finite_and_other_labels(fitted: tuple[RidgeModel, dict[str, Any]]) -> None:
    model, pairs = fitted
    broken = {**pairs, "predicted": np.full((200, 3), np.nan)}
    assert label_pairs(model, broken) == Absent("no value of any row is finite")
    assert "Wrong labels: no value of any row is finite." in Page(undrawn(model, pairs=broken)).text
    with pytest.raises(ShapeMismatchError, match="2 labels, the model 3"):
        label_pairs(model, {name: each if name == "kind" else each[:, :2] for name, each in pairs.items()})


def test_models_are_ranked_by_the_share_of_rows_that_are_all_right(fitted: tuple[RidgeModel, dict[str, Any]]) -> None:
    model, pairs = fitted
    assert isinstance(standing(model), Absent)  # no row was held out
    check = model.record.check
    assert check is not None
    kept = {f"check_{name}": pairs[name] for name in ("true", "predicted")}
    held = model.with_parts(model.record.changed(check=check.changed(kind="held-out")), {**model.arrays, **kept})
    found = standing(held)
    assert isinstance(found, Standing)
    assert (found.measure, found.score) == ("accuracy", labels_of(model, pairs).all_right)
