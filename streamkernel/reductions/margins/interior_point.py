"""Sums of one iteration of an interior point method for piecewise linear losses on whitened features, float64.

With features ``g = [G, 1]`` of a row, dual variables ``u = l + a`` in the box ``[l, l + C]`` and slacks z, s::

    min_b  1/2 |b|^2 + sum_i w_i loss(y_i, g_i^T b)     max_u  y^T u - 1/2 |G~^T u|^2
    z - s = g^T b - y        a z = mu        (C - a) s = mu        b = sum_i w_i u_i g_i

The Newton step d of these equations solves a system of n + 1 unknowns (Smola & Schoelkopf 2000, section 6.1)::

    theta = z / a + s / (C - a)
    (I + sum w g g^T / theta) d = sum w u g - b + sum w g (mu / a - mu / (C - a) - (z - s)) / theta

**One sweep for an iteration, and no state for a row.** The usual method takes two or three sweeps: the step length of
all variables is the least that any row allows, and is known only after a sweep. Here each row has its own step lengths.
Then the slacks are moved to ``z - s = g^T b - y`` again, and the next system contains what is missing in
``b = sum w u g``. So the variables of a row follow from b and mu of all iterations so far, by some thirty operations
for each of them: they are computed again in each sweep, and never stored. The bounds hold for any variables in their
boxes, so that each sweep ends with an exact duality gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import mirror_upper
from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.likelihoods import add_weighted_gram
from streamkernel.reductions.margins.losses import Kink, PiecewiseLinear
from streamkernel.reductions.margins.step_sums import StepSums, TraceSums, rows_with_weight
from streamkernel.reductions.margins.targets import Target
from streamkernel.reductions.sums.features import Features
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float

_MOST_OF_THE_WAY = 0.99  # share of the way to the end of a box or to a slack of 0 that a step may go
_REPLAY_FLOPS = 120  # time of an iteration of one kink, in operations: a third of them divide


@dataclass(frozen=True)
class InteriorPath:
    """The iterations so far of one problem.

    Attributes
    ----------
    start : (n + 1,) coefficients b before the first of them; the last is the constant.
    barrier : mu of the first variables, those of the central path at the start.
    directions : (k, n + 1) steps d.
    barriers : (k,) mu that each step aimed at.
    lengths : (k,) share of each step that b takes, and the variables of a row at most.
    """

    start: Float
    barrier: float
    directions: Float
    barriers: Float
    lengths: Float

    @classmethod
    def begin(cls, start: Float, barrier: float) -> InteriorPath:
        """The path of no iterations."""
        return cls(start, barrier, np.empty((0, len(start))), np.empty(0), np.empty(0))

    def further(self, direction: Float, barrier: float, length: float = 1.0) -> InteriorPath:
        """The path with one iteration more."""
        directions = np.concatenate([self.directions, direction[None]])
        barriers, lengths = np.append(self.barriers, barrier), np.append(self.lengths, length)
        return InteriorPath(self.start, self.barrier, directions, barriers, lengths)

    @property
    def coefficients(self) -> Float:
        """b (n + 1,) after all iterations."""
        return np.asarray(self.start + self.lengths @ self.directions)


@dataclass(frozen=True)
class InteriorPointSums:
    """Sums of one problem.

    Attributes
    ----------
    gram : (n + 1, n + 1), ``sum w g g^T / theta``
    dual : (n + 1,), ``sum w u g``
    rest : (n + 1,), ``-sum w g (z - s) / theta``
    barrier : (n + 1,), ``sum w g (1 / a - 1 / (C - a)) / theta``
    low, high : (n + 1,), ``sum w l g`` and ``sum w (l + C) g``: `dual` for variables at the ends of their boxes.
    loss : ``sum w loss(y, g^T b)``
    linear : ``sum w y u``
    complementarity : ``sum w (a z + (C - a) s)``
    weight : sum of w over the kinks.
    low_linear, high_linear : `linear` for variables at the ends of their boxes.
    """

    gram: Float
    dual: Float
    rest: Float
    barrier: Float
    low: Float
    high: Float
    loss: float
    linear: float
    complementarity: float
    weight: float
    low_linear: float
    high_linear: float

    @property
    def mean_barrier(self) -> float:
        """Mean of the products that the central path makes equal to mu."""
        return self.complementarity / (2.0 * self.weight)


class Variables:
    """Variables of one kink of b rows: a and C - a, z and s."""

    def __init__(self, kink: Kink, width: float, f: Float, barrier: float) -> None:
        self.targets, self.low = kink
        # On the central path: C z^2 + (C r - 2 mu) z - mu r = 0 with r = y - f, and z = s - r. Each root from the form
        # that does not cancel.
        t = width * (self.targets - f)
        root, square = np.hypot(t, 2.0 * barrier), 4.0 * barrier * barrier
        less = square / (np.abs(t) + root)
        self.z = (2.0 * barrier + np.where(t > 0.0, less, root - t)) / (2.0 * width)
        self.s = (2.0 * barrier + np.where(t < 0.0, less, root + t)) / (2.0 * width)
        # Both are kept, because their difference from C would lose digits near the ends of the box.
        self.a, self.above = barrier / self.z, barrier / self.s

    @property
    def theta(self) -> Float:
        return np.asarray(self.z / self.a + self.s / self.above)

    def step(self, change: Float, f: Float, barrier: float, most: float) -> None:
        """Take a step of length `most` or less in place; `change` is ``g^T d``, and f the values after it."""
        a, above, z, s = self.a, self.above, self.z, self.s
        da = (barrier / a - barrier / above - (z - s) - change) / self.theta
        dz = (barrier - z * da) / a - z
        ds = (barrier + s * da) / above - s
        # Lengths of the steps as reciprocals, which need no case of a step that nothing ends.
        length = 1.0 / np.maximum(1.0 / most, np.maximum(-da / a, da / above) / _MOST_OF_THE_WAY)
        slack_length = 1.0 / np.maximum(1.0 / most, np.maximum(-dz / z, -ds / s) / _MOST_OF_THE_WAY)
        da *= length
        a += da
        above -= da
        z += slack_length * dz
        s += slack_length * ds
        missing = (f - self.targets) - (z - s)
        z += np.maximum(missing, 0.0)
        s -= np.minimum(missing, 0.0)


@dataclass(frozen=True)
class InteriorPointStep(Sums[StepSums[InteriorPointSums]]):
    """Accumulate `InteriorPointSums` of K problems on the same features.

    Parameters
    ----------
    features : Features of n functions.
    losses : K losses.
    targets : K targets; None for a loss of f alone.
    paths : K paths.
    """

    features: Features
    losses: tuple[PiecewiseLinear, ...]
    targets: tuple[Target | None, ...]
    paths: tuple[InteriorPath, ...]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, K = self.features.width, len(self.losses)
        own = {"gram": (K, n + 1, n + 1), "vectors": (K, 5, n + 1), "totals": (K, 6)}
        return own | TraceSums.shapes(self.features)

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"gram"})

    def fold(self, state: State, block: RowBlock) -> State:
        X, Y, w = rows_with_weight(block)
        G = self.features.of(X)
        TraceSums.add(state, self.features, X, G, w)
        inverses = np.zeros((len(G), len(self.losses)))
        for k, (loss, target, path) in enumerate(zip(self.losses, self.targets, self.paths, strict=True)):
            y = np.zeros(len(G)) if target is None else target.of(Y)
            own = w if target is None else target.weights(Y, w)
            inverses[:, k] = self._add(G, y, own, loss, path, state["vectors"][k], state["totals"][k])
        add_weighted_gram(G, inverses, state["gram"])
        return state

    @staticmethod
    def _add(
        G: Float, y: Float, w: Float, loss: PiecewiseLinear, path: InteriorPath, vectors: Float, totals: Float
    ) -> Float:
        """Add the vectors and totals of one problem in place; returns ``w / theta`` (b,), summed over the kinks."""
        steps = np.vstack([path.start, path.directions])
        changes = np.ascontiguousarray((G @ steps[:, :-1].T + steps[:, -1]).T)
        values = np.cumsum(changes * np.append(1.0, path.lengths)[:, None], axis=0)
        f = values[-1]
        inverse, rows = np.zeros(len(G)), np.zeros((5, len(G)))
        for kink in loss.kinks(y):
            v = Variables(kink, loss.C, values[0], path.barrier)
            for number, (barrier, length) in enumerate(zip(path.barriers, path.lengths, strict=True), 1):
                v.step(changes[number], values[number], barrier, length)
            weight = w / v.theta
            low, u, high = w * v.low, w * (v.low + v.a), w * (v.low + loss.C)
            inverse += weight
            rows += [u, weight * (v.s - v.z), weight * (1.0 / v.a - 1.0 / v.above), low, high]
            totals[1:4] += [v.targets @ u, w @ (v.a * v.z + v.above * v.s), w.sum()]
            totals[4:] += [v.targets @ low, v.targets @ high]
        totals[0] += w @ loss.loss(y, f)
        vectors[:, :-1] += rows @ G
        vectors[:, -1] += rows.sum(axis=1)
        return inverse

    def finalize(self, state: State) -> StepSums[InteriorPointSums]:
        problems = (
            InteriorPointSums(mirror_upper(gram), *vectors, *(float(value) for value in totals))
            for gram, vectors, totals in zip(state["gram"], state["vectors"], state["totals"], strict=True)
        )
        return StepSums(tuple(problems), TraceSums.of(state))

    @property
    def _iterations(self) -> int:
        """Iterations of all paths."""
        return sum(len(path.barriers) for path in self.paths)

    def scratch_bytes(self, rows: int) -> int:
        n, K = self.features.width, len(self.losses)
        longest = max((len(path.barriers) for path in self.paths), default=0)
        return self.features.scratch_bytes(rows) + 8 * rows * (n + K + 2 * longest + 28) + 16 * 1024 * (n + 1)

    def flops_per_row(self) -> float:
        n, K = self.features.width, len(self.losses)
        own = self.features.raw_flops() + (0.0 if self.features.basis is None else float(n * n))
        kinks = max((loss.kink_count for loss in self.losses), default=1)
        return own + float(K * (n + 1) ** 2 + 10 * K * n + self._iterations * (2 * n + _REPLAY_FLOPS * kinks))
