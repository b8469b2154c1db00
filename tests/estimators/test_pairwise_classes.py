"""One against one: the pairs' functions, votes and coupled probabilities against scikit-learn on the same features."""

from __future__ import annotations

import itertools
from itertools import product
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from sklearn.svm import LinearSVC
from slow_cases import slow_but
from strategies import few_examples

from streamkernel import KernelSVC, open_table
from streamkernel.errors import ParameterError
from streamkernel.reductions.margins import class_pairs
from streamkernel.reductions.predictions import coupled, pair_scores

RNG = np.random.default_rng(8)
X = RNG.standard_normal((500, 2))
LABELS = np.array(["a", "b", "c", "d"])[(X[:, 0] + 0.3 * RNG.standard_normal(500) > 0) + 2 * (X[:, 1] > 0.3)]
SIZE: dict[str, Any] = {"n_components": 20, "lengthscale": 1.0, "kernel": "gaussian", "metric": "none"}
PAIRS = class_pairs(4)


@pytest.mark.parametrize(
    ("loss", "weighted"),
    slow_but([("hinge", False), ("squared_hinge", True)], product(["hinge", "squared_hinge"], [False, True])),
)
def test_each_function_is_that_of_its_two_classes(loss: str, weighted: bool) -> None:
    w = 1.0 + np.arange(500) % 3 if weighted else np.ones(500)
    model = KernelSVC(**SIZE, C=2.0, loss=loss, multi_class="one-vs-one", gap_tol=1e-9)
    model.fit(X, LABELS, w if weighted else None)
    found = model.model_
    G = found.basis.features(found.prepare(open_table(X)).read(0, 500).X)
    assert model.dual_coef_.shape == (20, 6)
    f = found.functions.values(found.prepare(open_table(X)).read(0, 500).X)
    for k, (i, j) in enumerate(PAIRS):
        rows = np.isin(LABELS, model.classes_[[i, j]])
        theirs = LinearSVC(C=2.0, loss=loss, dual=True, tol=1e-9, max_iter=200_000)
        theirs.fit(G[rows], LABELS[rows] == model.classes_[j], w[rows])
        np.testing.assert_allclose(f[:, k], theirs.decision_function(G), atol=2e-3)
    scores = np.zeros((500, 4))
    for c in range(4):
        said = sum(f[:, k] * ((c == j) - 1.0 * (c == i)) for k, (i, j) in enumerate(PAIRS))
        votes = sum((f[:, k] > 0) * (c == j) + (f[:, k] <= 0) * (c == i) for k, (i, j) in enumerate(PAIRS))
        scores[:, c] = votes + said / (3.0 * (np.abs(said) + 1.0))
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, LABELS) > 0.85


@pytest.mark.filterwarnings("ignore:about 500 of 999 rows are distinct")
def test_repeated_rows_and_weights_are_one_model() -> None:
    w = 1 + np.arange(500) % 3
    repeated = np.repeat(np.arange(500), w)
    given: dict[str, Any] = {"C": 2.0, "multi_class": "one-vs-one", "gap_tol": 1e-10, "scale": "none"}
    one = KernelSVC(kernel="linear", metric="none", **given)
    weighted = one.fit(X, LABELS, w).decision_function(X)
    copies = one.fit(X[repeated], LABELS[repeated]).decision_function(X)
    np.testing.assert_allclose(copies, weighted, rtol=1e-10, atol=1e-10)


@given(arrays(np.float64, (3, 6), elements=st.floats(0.01, 0.99)))
@few_examples(0.3)
def test_coupling_is_the_minimum_over_the_simplex(q: Any) -> None:
    p = coupled(q, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p > 0.0).all()
    for row, found in zip(q, p, strict=True):
        r = np.zeros((4, 4))
        for value, (i, j) in zip(row, PAIRS, strict=True):
            r[j, i], r[i, j] = value, 1.0 - value

        def distance(p: Any, r: Any = r) -> float:
            return float(sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(4) for j in range(4) if i != j))

        whole = {"type": "eq", "fun": lambda p: sum(p) - 1.0}
        best = minimize(distance, np.full(4, 0.25), bounds=[(0.0, 1.0)] * 4, constraints=whole)
        assert distance(found) <= best.fun + 1e-8


@pytest.mark.parametrize(
    "true", [[0.1, 0.2, 0.3, 0.4], [0.25] * 4, [0.5, 0.25, 0.125, 0.125], [1e-6, 1e-6, 1e-3, 0.998998]]
)
def test_pairs_that_agree_with_class_probabilities_give_these_back(true: list[float]) -> None:
    """The system without its constraint is then singular, in exact numbers where they are powers of two."""
    agreeing = np.array([[true[j] / (true[i] + true[j]) for i, j in PAIRS]])
    np.testing.assert_allclose(coupled(agreeing, 4)[0], true, rtol=1e-7)


def test_certain_pairs_give_probabilities() -> None:
    q = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=6)))
    p = coupled(q, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p > 0.0).all()
    # A class that wins all its pairs is the one.
    wins = np.array([[[value == (j == c) for value, (i, j) in zip(pairs, PAIRS, strict=True) if c in (i, j)]
                      for c in range(4)] for pairs in q]).all(axis=2)  # fmt: skip
    assert wins.any()
    assert (p[wins] > 0.999).all()


def test_votes_decide_and_values_break_ties() -> None:
    # A circle of three classes: each wins once, and the largest values decide.
    f = np.array([[1.0, -2.0, 0.5], [-1.0, -1.0, 5.0]])
    scores = pair_scores(f, 3)
    assert scores.argmax(axis=1).tolist() == [0, 0]
    assert np.round(scores[0]).tolist() == [1.0, 1.0, 1.0]


def test_probabilities_of_pairs_saved_and_loaded(tmp_path: Path) -> None:
    model = KernelSVC(**SIZE, C=[0.5, 5.0], multi_class="one-vs-one").fit(X, LABELS)
    p = model.predict_proba(X)
    assert p.shape == (500, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).mean() > 0.95
    true = p[np.arange(500), np.searchsorted(model.classes_, LABELS)]
    assert -np.log(true).mean() < 0.5
    record = model.model_.record
    assert record.path is not None
    wrong = 1.0 - model.score(X, LABELS)
    assert abs(min(record.path.errors) - wrong) < 0.08
    model.save(tmp_path / "m")
    again = KernelSVC.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), p)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    lazy = again.predict_proba(dask.array.from_array(X, chunks=(150, 2)))
    np.testing.assert_allclose(lazy.compute(scheduler="threads"), p, rtol=1e-9)


def test_two_classes_are_the_same_either_way() -> None:
    two = np.where(X[:, 0] > 0.0, "up", "down")
    pair, rest = (KernelSVC(**SIZE, C=1.0, multi_class=way).fit(X, two) for way in ("one-vs-one", "one-vs-rest"))
    np.testing.assert_array_equal(pair.dual_coef_, rest.dual_coef_)


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="multi_class"):
        KernelSVC(multi_class="pairs").fit(X, LABELS)
    many = np.repeat(np.arange(51), 4)
    with pytest.raises(ParameterError, match=r"1,275 pairs of 51 classes; give multi_class='one-vs-rest'"):
        KernelSVC(multi_class="one-vs-one").fit(RNG.standard_normal((204, 2)), many)
    with pytest.raises(ParameterError, match="of the reduced machine"):
        KernelSVC(multi_class="one-vs-one", machine="full", loss="hinge").fit(X, LABELS)
