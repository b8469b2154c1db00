"""Models that predict distributions, made by plain formulas on the basis of a fitted ridge model: what pages draw."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.models import GaussianModel, GeneralisedModel, RidgeModel

__all__ = ["Drawn", "committee_of", "counts_of", "gaussian_of", "labels_of", "with_parts", "with_tuning"]

Float = NDArray[np.float64]

_OF_THE_BASIS = ("components", "component_indices", "residual_path", "gains")
_OF_RIDGE = ("alpha", "solution", "lengthscale_choice", "totals")
_TUNED = {"ard": False, "signal_variance": "evidence", "tune": "none"}


Drawn = GaussianModel | GeneralisedModel
D = TypeVar("D", GaussianModel, GeneralisedModel)


def with_parts(model: D, config: dict[str, Any] | None = None, **arrays: Any) -> D:
    """The model with parts replaced, and arrays left out that are None."""
    kept = {name: array for name, array in {**model.arrays, **arrays}.items() if array is not None}
    return type(model).from_config({**model.config, **(config or {})}, kept)


def gaussian_of(
    ridge: RidgeModel, X: Any, Y: Float, held_out: Any, *, signal: float = 25.0, noise: float = 1.0, wide: float = 1.0
) -> GaussianModel:
    """DTC on the ridge model's basis, fitted to X (m, p), Y (m, d), checked on the rows `held_out` (c, p).

    Deviations are those of the formula times `wide`.
    """
    G, Gc = (_features(ridge.basis, _scaled(ridge, rows)) for rows in (X, held_out))
    centre, d = Y.mean(axis=0), Y.shape[1]
    h, V = np.linalg.eigh(G.T @ G / noise)
    h = np.maximum(h, 0.0)
    shares = signal * h / (1.0 + signal * h)
    beta = V @ ((signal / (1.0 + signal * h))[:, None] * (V.T @ (G.T @ (Y - centre) / noise)))
    variance = signal * (1.0 - (Gc @ V) ** 2 @ shares) + noise
    arrays = {name: ridge.arrays[name] for name in _OF_THE_BASIS} | {
        "check_true": ridge.arrays["check_true"],
        "check_predicted": Gc @ beta + centre,
        "check_std": wide * np.repeat(np.sqrt(variance)[:, None], d, axis=1),
        "dual_coef": beta,
        "rotation": V,
        "shares": np.repeat(shares[:, None], d, axis=1),
        "signal_variance": np.full(d, signal),
        "noise_variance": np.full(d, noise),
    }
    own = {"approximation": "dtc", "noise_variance": noise, "block_size": 1000, "partition": "rows"}
    settings = {**ridge.config["settings"], "lengthscale": "evidence", **_TUNED, **own, "tune": "full"}
    kept = {name: value for name, value in ridge.config.items() if name not in _OF_RIDGE}
    found = {
        "solution": {"log_evidence": -1.6 * len(X) * d, "bound": -1.7 * len(X) * d, "effective_df": [9.0] * d},
        "totals": {**ridge.config["totals"], "residual_trace": 1.0, "log_det": 0.0},
        "tuning": None,
        "approximation": "dtc",
        "row_noise": None,
        "block_size": None,
    }
    return GaussianModel.from_config({**kept, **found, "estimator": "gp", "settings": settings}, arrays)


def _scaled(ridge: RidgeModel, X: Any) -> Any:
    return X if ridge.scaler is None else (X - ridge.scaler.mean) / ridge.scaler.scale


def _features(basis: Basis, X: Any) -> Float:
    return np.asarray(np.linalg.solve(basis.L, basis.block(X).T).T)


def with_tuning(model: GaussianModel, lengthscales: int = 1, sample: int = 40, full: int = 8) -> GaussianModel:
    """A search that goes up, looks far down now and then, and begins anew over all rows."""
    rng = np.random.default_rng(0)
    names = ["lengthscale"] if lengthscales == 1 else [f"lengthscale of x{index}" for index in range(lengthscales)]
    names += ["signal variance", "noise variance"]
    goal = np.concatenate([np.linspace(0.0, 4.0, lengthscales), [0.5, -2.0]])
    stage = np.repeat([0, 1], [sample, full])
    way = np.concatenate([np.linspace(0.0, 1.0, sample) ** 0.5, np.linspace(0.95, 1.0, full)])[:, None]
    parameters = way * goal + 0.1 * (1.0 - way) * rng.standard_normal((sample + full, len(goal)))
    value = -1.5 + 1.2 * way[:, 0] ** 2 - 0.04 * stage
    value[3::7] -= rng.uniform(0.2, 9.0, len(value[3::7]))
    value[5:6] = np.nan
    best = int(np.nanargmax(np.where(stage == stage[-1], value, np.nan)))
    tuning = {"objective": "vfe", "parameters": names, "best": best, "sample_rows": 5000}
    found = np.exp(parameters[best, :lengthscales]).tolist()
    return with_parts(
        model,
        {"tuning": tuning, "lengthscale": found[0] if lengthscales == 1 else found},
        tuning_parameters=parameters,
        tuning_values=value,
        tuning_stage=stage,
    )


def committee_of(model: GaussianModel, members: int = 40, block_size: int = 50) -> GaussianModel:
    """The same as a committee, whose members weigh what a Gamma distribution says."""
    weights = np.random.default_rng(0).gamma(30.0, size=members)
    settings = {**model.config["settings"], "approximation": "pitc", "block_size": block_size, "partition": "order"}
    return with_parts(model, {"estimator": "committee", "settings": settings}, member_weights=weights / weights.sum())


def generalised(ridge: RidgeModel, arrays: dict[str, Any], **fields: Any) -> GeneralisedModel:
    """A generalised model with the basis of a ridge model; of its solution nothing is drawn but the evidence."""
    kept = {name: value for name, value in ridge.config.items() if name not in _OF_RIDGE}
    settings = {**ridge.config["settings"], **_TUNED, "tune": "sample", "newton_tol": 1e-6, "max_iterations": 30}
    solution = {"method": "newton", "loss": 1.0, "objective": 1.0, "decrement": 0.0, "converged": True, "path": []}
    solution |= {"iterations": 3, "log_evidence": -0.5 * ridge.record.totals.rows, "effective_df": 9.0}
    found = {"settings": settings, "solution": solution, "tuning": None, "residual_share": 1.0}
    found["totals"] = {"rows": ridge.record.totals.rows, "trace": ridge.record.totals.trace}
    return GeneralisedModel.from_config({**kept, **found, **fields}, arrays)


def labels_of(ridge: RidgeModel, *, sharp: float = 1.0) -> GeneralisedModel:
    """A classifier whose labels come as often as it says where `sharp` is 1, less surely above that."""
    rng = np.random.default_rng(0)
    true, classes = ridge.arrays["check_true"], len(ridge.config["classes"])
    P = rng.dirichlet(np.full(classes, 0.7), len(true))
    codes = (P.cumsum(axis=1) < rng.uniform(size=(len(true), 1))).sum(axis=1)
    said = P**sharp / (P**sharp).sum(axis=1, keepdims=True)
    arrays = {name: ridge.arrays[name] for name in _OF_THE_BASIS} | {
        "check_true": np.eye(classes)[codes],
        "check_probability": said,
        "dual_coef": ridge.arrays["dual_coef"],
    }
    return generalised(ridge, arrays, estimator="gp-classifier", likelihood="softmax", signal_variance=4.0)


def counts_of(ridge: RidgeModel, *, spread: float = 0.0) -> GeneralisedModel:
    """A Poisson model; with `spread` the counts vary more than its rates say."""
    rng = np.random.default_rng(0)
    rate = np.exp(0.1 * ridge.arrays["check_predicted"][:, :1])
    true = rng.poisson(rate * np.exp(spread * rng.standard_normal(rate.shape))).astype(np.float64)
    arrays = {name: ridge.arrays[name] for name in _OF_THE_BASIS} | {
        "check_true": true,
        "check_predicted": rate,
        "dual_coef": ridge.arrays["dual_coef"],
    }
    return generalised(ridge, arrays, estimator="poisson", likelihood="poisson", signal_variance=1.0)
