"""Classifier: log loss and accuracy of gp-classifier against LogisticRegression on Nystroem features of the same n.

covtype-subset (class 2 against the rest) and a9a; 20,000 train and 10,000 test rows. The peer is the pipeline
of StandardScaler, Nystroem (uniform rows, the lengthscale that ours found) and LogisticRegression: with its default
C = 1, and with the C of 0.1, 1, 10, 100 that 3-fold cross-validation of the log loss picks.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any

import numpy as np
from _report import at_least, at_most, main, not_asked, unasked
from _sets import COVTYPE_CLASS, data_sets
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamkernel import GaussianProcessClassifier

SETS, N, SEEDS = ("covtype-subset", "a9a"), 300, 3
TRAIN, TEST = 20_000, 10_000
CS = (0.1, 1.0, 10.0, 100.0)


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims."""
    n, seeds, train = (50, 1, 3_000) if quick else (N, SEEDS, TRAIN)
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    for name in SETS:
        stored = data_sets.load(name)
        if stored is None:
            claims.append(not_asked(name, f"../shared/data/{name}.npz is not there"))
            continue
        found = [_one(name, stored, n, train, seed) for seed in range(seeds)]
        medians = {
            who: {score: statistics.median(each[who][score] for each in found) for score in found[0][who]}
            for who in found[0]
        }
        for who, scores in medians.items():
            rows.append([name, who, *(round(scores[score], 4) for score in ("log_loss", "accuracy", "seconds"))])
        ours = medians.pop("streamkernel")
        for who, peer in medians.items():
            claims.append(at_most(f"{name}: log loss less that of {who}", ours["log_loss"] - peer["log_loss"], 0.0))
            claims.append(at_least(f"{name}: accuracy less that of {who}", ours["accuracy"] - peer["accuracy"], 0.0))
    return {
        "title": f"Classifiers on {n} functions, {train:,} rows (medians of {seeds} splits)",
        "columns": ["set", "who", "log loss", "accuracy", "seconds"],
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
    }


def _one(name: str, stored: Any, n: int, train: int, seed: int) -> dict[str, dict[str, float]]:
    X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y)
    if name == "covtype-subset":
        y = (y == COVTYPE_CLASS).astype(int)
    order = np.random.default_rng(seed).permutation(len(X))
    chosen, held_out = order[:train], order[train : train + TEST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model = GaussianProcessClassifier(n, random_state=seed).fit(X[chosen], y[chosen])
        seconds = time.perf_counter() - began
        scores = {"streamkernel": _scores(model, X[held_out], y[held_out], seconds)}
        gamma = 1.0 / (2.0 * float(model.lengthscale_) ** 2)
        features = Nystroem(gamma=gamma, n_components=n, random_state=seed)
        peer = make_pipeline(StandardScaler(), features, LogisticRegression(max_iter=5000))
        searched = GridSearchCV(peer, {"logisticregression__C": CS}, scoring="neg_log_loss", cv=3)
        for who, estimator in (("scikit-learn, C = 1", peer), ("scikit-learn, C searched", searched)):
            began = time.perf_counter()
            estimator.fit(X[chosen], y[chosen])
            scores[who] = _scores(estimator, X[held_out], y[held_out], time.perf_counter() - began)
    return scores


def _scores(model: Any, X: Any, y: Any, seconds: float) -> dict[str, float]:
    loss = log_loss(y, model.predict_proba(X), labels=model.classes_)
    return {"log_loss": float(loss), "accuracy": float((model.predict(X) == y).mean()), "seconds": seconds}


if __name__ == "__main__":
    main(run, __doc__)
