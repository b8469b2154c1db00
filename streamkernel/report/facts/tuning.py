"""The search for hyper-parameters, its results, and a committee's members: arrays in the units of the axes.

Each function returns None if the model has no such thing, and an `Absent` if there is a reason not to draw it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, lapack

from streamkernel.metric import mapped_names
from streamkernel.models.gaussian import GaussianModel
from streamkernel.models.generalised import GeneralisedModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.report.facts.fit import Absent
from streamkernel.report.text import plain
from streamkernel.type_aliases import Float, Int

SAMPLE, FULL = 0, 1

_OBJECTIVES = {
    "vfe": "variational bound",
    "dtc": "evidence (DTC)",
    "fitc": "evidence (FITC)",
    "exact": "evidence",
    "laplace": "evidence (Laplace)",
}
_MOST_FUNCTIONS = 4000  # the Cholesky factor of a larger matrix takes too long for a page


@dataclass(frozen=True)
class TuningPath:
    """Every point at which the evidence was evaluated, in order.

    Attributes
    ----------
    value : (t,) objective in `unit`, of targets in their own units; NaN if it was not finite.
    stage : (t,) `SAMPLE` or `FULL`.
    best : index of the point whose parameters the model has.
    names : names of the k parameters.
    parameters : (t, k), in their own units; signal and noise are standard deviations, in the units of one target.
    objective : name of the quantity that was maximised.
    sample_rows : rows of the sample.
    unit : unit of the values: that of the evidence of the fit.
    scaled : whether signal and noise are in units of the standard deviation of each of several targets.
    refined : whether the model has another signal or noise than the best point: that of the sums over all rows.
    """

    value: Float
    stage: Int
    best: int
    names: tuple[str, ...]
    parameters: Float
    objective: str
    sample_rows: int
    unit: str = "nats a row"
    scaled: bool = False
    refined: bool = False


@dataclass(frozen=True)
class Lengthscales:
    """One lengthscale for each feature, the shortest first: `value` (p,), with the features' names."""

    names: tuple[str, ...]
    value: Float


@dataclass(frozen=True)
class MemberWeights:
    """Each member's share of the committee's precision, (B,), in the order of their rows; they sum to 1."""

    share: Float
    block_size: int | None


def tuning_path(model: PredictingModel) -> TuningPath | Absent | None:
    """Evidence against the number of the evaluation."""
    if not isinstance(model, (GaussianModel, GeneralisedModel)):
        return None
    tuning, arrays = model.record.tuning, model.arrays
    if tuning is None:
        return Absent("they were given, or follow from the final sums")
    if "tuning_values" not in arrays or "tuning_parameters" not in arrays:
        return None
    value = np.asarray(arrays["tuning_values"], dtype=np.float64)
    value = np.where(np.isfinite(value), value, np.nan)
    if np.isfinite(value).sum() < 2:
        return Absent("fewer than two points have a finite evidence")
    parameters = np.exp(np.asarray(arrays["tuning_parameters"], dtype=np.float64))
    names = [plain(name, 40) for name in tuning.parameters]
    if len(names) != parameters.shape[1]:
        names = [f"parameter {index + 1}" for index in range(parameters.shape[1])]
    stage = np.asarray(arrays.get("tuning_stage", np.zeros(len(value))), dtype=np.int64)
    best = tuning.best
    if best is None:
        last = np.flatnonzero(stage == stage[-1])
        best = last[np.nanargmax(np.where(np.isfinite(value[last]), value[last], -np.inf))]
    words = _OBJECTIVES.get(tuning.objective, plain(tuning.objective) or "evidence")
    found = TuningPath(value, stage, int(best), tuple(names), parameters, words, tuning.sample_rows)
    if not isinstance(model, GaussianModel):
        return _with_deviations(found)
    found = _with_deviations(_in_units_of_targets(model, found))
    return replace(found, refined=_refined(model, found))


def _with_deviations(path: TuningPath) -> TuningPath:
    """Signal and noise as standard deviations, as everywhere on a page."""
    variances = np.array([name.endswith(" variance") for name in path.names])
    return replace(
        path,
        names=tuple(name.removesuffix(" variance") for name in path.names),
        parameters=np.where(variances, np.sqrt(path.parameters), path.parameters),
    )


def _refined(model: GaussianModel, path: TuningPath) -> bool:
    scale = np.asarray(model.record.target_scale, dtype=np.float64) if path.scaled else 1.0
    point = dict(zip(path.names, path.parameters[path.best].tolist(), strict=True))
    return any(
        name in point and not np.allclose(np.sqrt(model.arrays[f"{name}_variance"]) / scale, point[name], rtol=1e-3)
        for name in ("signal", "noise")
    )


def evidence_unit(model: PredictingModel) -> tuple[str, float]:
    """The unit of an evidence on a page, and the number of its shares: rows, by weight, or these times targets."""
    totals = model.record.totals
    weight = getattr(totals, "weight", None)
    rows = totals.rows if weight is None else weight
    several = isinstance(model, GaussianModel) and model.target_count > 1
    return ("nats a row and target", rows * model.target_count) if several else ("nats a row", rows)


def _in_units_of_targets(model: GaussianModel, path: TuningPath) -> TuningPath:
    """The search works on targets of deviation 1: ``log p(y) = log p(y / s) - log s`` for each of them."""
    scale = np.asarray(model.record.target_scale, dtype=np.float64)
    if not (np.isfinite(scale).all() and (scale > 0.0).all()):
        return replace(path, unit=evidence_unit(model)[0], scaled=True)
    one = len(scale) == 1
    variances = np.array([name.startswith(("signal", "noise")) for name in path.names])
    factors = np.where(variances, scale[0] ** 2, 1.0) if one else np.ones(len(variances))
    return replace(
        path,
        value=path.value - float(np.log(scale).mean()),
        parameters=path.parameters * factors,
        unit=evidence_unit(model)[0],
        scaled=not one,
    )


def lengthscales(model: PredictingModel) -> Lengthscales | None:
    """The lengthscales of a kernel that has one for each feature; None for other kernels."""
    value = model.lengthscale
    if not isinstance(value, list) or len(value) < 2:
        return None
    found = np.asarray(value, dtype=np.float64)
    order = np.argsort(found, kind="stable")
    names = mapped_names(model.column_names, model.metric)
    return Lengthscales(tuple(plain(names[index], 40) for index in order), found[order])


def member_weights(model: PredictingModel) -> MemberWeights | None:
    """The weights of a committee's members; None for other models."""
    weights = model.arrays.get("member_weights")
    if weights is None or len(weights) == 0:
        return None
    share = np.asarray(weights, dtype=np.float64)
    total = float(share.sum())
    size = model.record.settings.block_size if isinstance(model, GaussianModel) else None
    return MemberWeights(share / total if total > 0.0 else share, size)


def freedom_curve(model: PredictingModel) -> Float | Absent | None:
    """Effective degrees of freedom of the first t = 0, 1, ..., n functions, (n + 1,), for the first target.

    ``p_eff(t) = tr S H_t (I + S H_t)^-1``, where H_t is the leading block of ``H = G^T Om^-1 G``, because whitening is
    triangular in the order of picking, and S is the signal variance. With ``I + S H = C C^T``,
    ``p_eff(t) = t - sum_{i <= t} |row i of C^-1|^2``, so that one Cholesky factor serves all t.
    """
    if not {"rotation", "shares"} <= model.arrays.keys():
        return None
    V, shares = model.arrays["rotation"], model.arrays["shares"]
    n = len(V)
    if n > _MOST_FUNCTIONS:
        return Absent(f"the basis has more than {_MOST_FUNCTIONS:,} functions")
    if not (np.isfinite(V).all() and np.isfinite(shares).all()):
        return Absent("they are not finite")
    # shares_j = S h_j / (1 + S h_j) with H = V diag(h) V^T; a share that rounds to 1 means a large h, not infinity.
    undetermined = np.maximum(1.0 - shares[:, 0], np.finfo(np.float64).eps)
    root = cholesky((V / undetermined) @ V.T, lower=True)
    inverse, _ = lapack.dtrtri(root, lower=1)
    squares = np.einsum("ij,ij->i", inverse, inverse)
    return np.concatenate([[0.0], np.cumsum(np.clip(1.0 - squares, 0.0, 1.0))])
