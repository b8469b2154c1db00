"""Gaussian processes: RMSE, NLPD and coverage against GPyTorch's SGPR at equal hyper-parameters, on four real sets.

Ours: FITC on n rows chosen in a few sweeps, lengthscales (one per feature), signal and noise by evidence. The peer is
given the same hyper-parameters and as many inducing points, drawn uniformly from the rows and, better for it, centres
of k-means; the better of the two counts. Targets and columns are standardised; NLPD is per row, in nats, of the
standardised target, and the mean of the target 0 for both.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _peers import in_peer_process, peer_python
from _report import at_least, at_most, main, not_asked, unasked
from _sets import Split, splits
from sklearn.cluster import MiniBatchKMeans

from streamkernel import GaussianProcessRegressor

SETS = ("protein-casp", "kin40k", "BNG-pwLinear", "california-housing")
N, SEEDS = 500, 3
NORMAL95 = 1.959964
EQUAL = 1e-3  # seeds differ by more
COLUMNS = ["set", "rows", "who", "rmse", "nlpd", "coverage95", "seconds"]


def run(quick: bool = False) -> dict[str, Any]:
    """The table and the claims."""
    n, seeds = (50, 1) if quick else (N, SEEDS)
    python = peer_python(install=not quick)
    rows: list[list[Any]] = []
    claims: list[dict[str, Any]] = []
    for split in splits(SETS, quick):
        if isinstance(split, str):
            claims.append(not_asked("a set", split))
            continue
        found = [_ours(split, n, seed) for seed in range(seeds)]
        ours = _medians([scores for scores, _ in found])
        rows.append([split.name, len(split.X), "streamkernel", *_shown(ours)])
        claims.append(at_least(f"{split.name}: coverage of 95 % intervals", ours["coverage95"], 0.93))
        claims.append(at_most(f"{split.name}: coverage of 95 % intervals", ours["coverage95"], 0.97))
        if python is None:
            claims.append(not_asked(f"{split.name}: against SGPR", "GPyTorch is not installed"))
            continue
        peers = {
            way: _medians([_peer(split, python, model, n, way, seed) for seed, (_, model) in enumerate(found)])
            for way in ("uniform", "k-means")
        }
        for way, scores in peers.items():
            rows.append([split.name, len(split.X), f"SGPR, {way}", *_shown(scores)])
        for name in ("rmse", "nlpd"):
            best = min(scores[name] for scores in peers.values())
            claims.append(at_most(f"{split.name}: {name} less SGPR's", ours[name] - best, EQUAL))
    return {
        "title": f"Gaussian processes at n = {n} (medians of {seeds} seeds)",
        "columns": COLUMNS,
        "rows": rows,
        "claims": unasked(claims, "--quick") if quick else claims,
    }


def _ours(split: Split, n: int, seed: int) -> tuple[dict[str, float], GaussianProcessRegressor]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(n, ard=True, scale="none", fit_intercept=False, random_state=seed)
        model.fit(split.X, split.y)
    seconds = time.perf_counter() - began
    mean, std = model.predict(split.X_test, return_std=True)
    z = (split.y_test - mean) / std
    return {
        "rmse": float(np.sqrt(((split.y_test - mean) ** 2).mean())),
        "nlpd": float((0.5 * np.log(2 * np.pi * std**2) + 0.5 * z**2).mean()),
        "coverage95": float((np.abs(z) <= NORMAL95).mean()),
        "seconds": seconds,
    }, model


def _peer(split: Split, python: Path, model: GaussianProcessRegressor, n: int, way: str, seed: int) -> dict[str, float]:
    count = len(model.components_)
    if way == "uniform":
        Z = split.X[np.random.default_rng(seed).choice(len(split.X), count, replace=False)]
    else:
        scaled = split.X / np.asarray(model.lengthscale_)
        centres = MiniBatchKMeans(count, random_state=seed, n_init=1, batch_size=4096).fit(scaled).cluster_centers_
        Z = centres * np.asarray(model.lengthscale_)
    with tempfile.TemporaryDirectory(prefix="streamkernel-sgpr-") as folder:
        path = Path(folder) / "arrays.npz"
        np.savez(
            path, X=split.X, y=split.y, X_test=split.X_test, y_test=split.y_test, Z=Z,
            lengthscale=np.broadcast_to(model.lengthscale_, split.X.shape[1]).copy(),
            signal=model.signal_variance_[0], noise=model.noise_variance_[0],
        )  # fmt: skip
        return in_peer_process(python, "_sgpr_once", str(path))


def _medians(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(scores[name] for scores in found) for name in found[0]}


def _shown(scores: dict[str, float]) -> list[float]:
    return [round(scores[name], 4) for name in ("rmse", "nlpd", "coverage95")] + [round(scores["seconds"], 1)]


if __name__ == "__main__":
    main(run, __doc__)
