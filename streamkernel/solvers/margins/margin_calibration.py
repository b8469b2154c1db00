"""What histograms of held-out rows correct: curves from decision values to probabilities, and shifts of quantiles.

Platt's curve minimises the log loss of the held-out rows; targets are moved towards 1/2 by a row of each class, so that
classes that are separated give a finite slope (Platt 2000; Newton's method of Lin, Lin & Weng 2007). Isotonic
regression minimises the squared error among increasing curves, by pooling adjacent bins (Zadrozny & Elkan 2002).

Functions of quantiles are too near to the rows that they were fitted to: of other rows, more than the share q is below
the quantile q of a low level. A shift by the quantile q of the held-out residuals mends that for each level, as split
conformal prediction does for both ends of an interval together (Romano, Patterson & Candes 2019).
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are used: these take long

from streamkernel.reductions.predictions import Isotonic, Sigmoids
from streamkernel.reductions.scores import bin_edges, residual_edges
from streamkernel.type_aliases import Float

_STEPS, _HALVINGS = 100, 40
_SMALL = 1e-12  # decrease of the log loss, as a share of it, at which the fit ends


def _centres() -> Float:
    """Values of f that stand for the rows of each bin; of the outer ones the inner ends."""
    edges = bin_edges()
    centres = 0.5 * (edges[:-1] + edges[1:])
    centres[0], centres[-1] = edges[1], edges[-2]
    return np.asarray(centres)


def platt_curves(histogram: Float) -> Sigmoids:
    """Logistic curves.

    Parameters
    ----------
    histogram : (K, 2, bins) weight of held-out rows of the other classes, and of the class.
    """
    found = np.array([_platt(_centres(), *each) for each in histogram])
    return Sigmoids(np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1]))


def _platt(f: Float, negative: Float, positive: Float) -> tuple[float, float]:
    outside, inside = float(negative.sum()), float(positive.sum())
    low, high = 1.0 / (outside + 2.0), (inside + 1.0) / (inside + 2.0)
    w = negative + positive
    held = w > 0.0
    f, w, t = f[held], w[held], (low * negative + high * positive)[held]
    if np.ptp(f) == 0.0 or not (outside > 0.0 and inside > 0.0):
        # All rows in one bin, or on one side: no slope can be seen, and the curve is their share.
        share = float(t.sum() / w.sum())
        return 0.0, float(np.log(share) - np.log1p(-share))
    features = np.stack([f, np.ones_like(f)])

    def loss(at: Float) -> float:
        z = at @ features
        return float(w @ np.logaddexp(0.0, z) - t @ z)

    at = np.array([0.0, np.log((inside + 1.0) / (outside + 1.0))])
    now = loss(at)
    for _ in range(_STEPS):
        p = scipy.special.expit(at @ features)
        gradient = features @ (w * p - t)
        hessian = (features * (w * p * (1.0 - p))) @ features.T
        hessian[np.diag_indices(2)] += _SMALL * (1.0 + np.trace(hessian))
        step = np.linalg.solve(hessian, gradient)
        for halving in range(_HALVINGS):
            further = at - 0.5**halving * step
            after = loss(further)
            if after <= now - 1e-4 * 0.5**halving * float(gradient @ step):
                break
        else:
            break
        ended = now - after <= _SMALL * abs(now)
        at, now = further, after
        if ended:
            break
    # A falling curve would call the rows on the right side of a boundary the less likely ones.
    return (float(at[0]), float(at[1])) if at[0] > 0.0 else (0.0, float(np.log(t.sum()) - np.log(w.sum() - t.sum())))


def isotonic_curves(histogram: Float) -> Isotonic:
    """Increasing curves, linear between the bins; parameters are those of `platt_curves`."""
    centres, values = _centres(), []
    for negative, positive in histogram:
        w = negative + positive
        held = np.flatnonzero(w > 0.0)
        fitted = scipy.optimize.isotonic_regression(positive[held] / w[held], weights=w[held]).x
        # No finite number of rows shows that a class is impossible: the ends are those of Platt's targets.
        fitted = np.clip(fitted, 1.0 / (negative.sum() + 2.0), 1.0 - 1.0 / (positive.sum() + 2.0))
        values.append(np.interp(centres, centres[held], fitted))
    return Isotonic(np.tile(centres, (len(histogram), 1)), np.array(values))


def quantile_shifts(histogram: Float, levels: Float) -> Float:
    """Shifts (K,): so much higher, the share `levels` of the held-out rows is below each function.

    Parameters
    ----------
    histogram : (K, bins) weight of the residuals r = y - f of held-out rows.
    levels : (K,) levels q.
    """
    edges = residual_edges()
    # Weights within a bin are taken as spread evenly over it.
    below = np.concatenate([np.zeros((len(histogram), 1)), np.cumsum(histogram, axis=1)], axis=1)
    return np.array([_crossing(edges, each, level * each[-1]) for each, level in zip(below, levels, strict=True)])


def _crossing(x: Float, rising: Float, value: float) -> float:
    """Where a piecewise linear function that rises, or stays, has a value; the middle of where it stays at it."""
    first, last = np.searchsorted(rising, value, "left"), np.searchsorted(rising, value, "right") - 1
    if last >= first:
        return 0.5 * float(x[first] + x[last])
    share = (value - rising[last]) / (rising[first] - rising[last])
    return float(x[last] + share * (x[first] - x[last]))
