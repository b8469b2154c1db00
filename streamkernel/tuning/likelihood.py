"""Lengthscales and signal variance of a generalised Gaussian process, by the Laplace evidence of a sample in memory.

First a grid: all lengthscales of the given kernel times 1/4 to 4, each with two signal variances. From its best point,
L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995) moves the logarithms of all free hyper-parameters, in rounds. Each round chooses
basis points for the kernel of the previous round and keeps them fixed.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

import numpy as np

from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels import Kernel, log_lengthscales, with_log_lengthscales
from streamkernel.kernels.parameters import checked_integer, checked_number
from streamkernel.linalg import require_finite
from streamkernel.reductions import Sample
from streamkernel.reductions.likelihoods import Likelihood, Softmax
from streamkernel.table import open_table
from streamkernel.tuning._bounds import Bounds, spread_lengthscales
from streamkernel.tuning._sample_basis import Run, greedy_points
from streamkernel.tuning._search import Tuning, TuningPoint, maximise
from streamkernel.tuning.laplace_evidence import LaplaceEvidence
from streamkernel.tuning.sample_evidence import in_this_thread
from streamkernel.type_aliases import Float

MOVABLE = ("lengthscale", "signal")

_STREAM = (22,)
_STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # factors of the given lengthscales
# Of f, whose scale the likelihood fixes: f = 1.4 is a probability of 0.8, f = 4.5 one of 0.99.
_SIGNALS = (2.0, 20.0)
_SIGNAL_RANGE = (1e-3, 1e3)
_MOST_CLASSES = 12
_MOST_UNKNOWNS = 1000  # n r, the size of the Hessian that every step factors
_ENOUGH = 1e-3  # nats per row: a round that gains less ends the search
_FLAT = 5e-6  # a round ends when an iteration gains less, in nats per row


def tune_likelihood(
    sample: Sample,
    kernel: Kernel,
    likelihood: Likelihood,
    *,
    ard: bool = False,
    n_basis: int = 300,
    signal: float | None = None,
    fixed: Collection[str] = (),
    seed: int = 0,
    rounds: int = 3,
    evaluations: int = 20,
    run: Run | None = None,
) -> Tuning:
    """Maximise the Laplace evidence of a sample.

    Parameters
    ----------
    sample : rows, with their targets.
    kernel : Kernel with the lengthscales of the centre of the grid, such as the median distance.
    likelihood : Likelihood; with more than 12 classes, only the 12 most frequent ones of the sample are used.
    ard : True for one lengthscale per feature, if the kernel has one for all.
    n_basis : number of points of the sparse process, at most the rows of the sample; fewer for several classes, so that
        the Hessian has at most 1000 rows.
    signal : signal variance to start from, or the fixed one. None tries both of the grid; if fixed, the prior variance
        is then 1.
    fixed : names out of "lengthscale" and "signal" that keep their start values.
    seed : seed of the choice of points.
    rounds, evaluations : largest number of rounds, and of evaluations per round.
    run : function that runs a reduction over a table in memory (`Session.local`); in the calling thread by default.

    Raises
    ------
    ParameterError, ShapeError, DataError
        An argument is invalid, or the targets do not fit the likelihood.
    NumericalError
        The sample is not finite, or its evidence is not finite at any point.
    """
    unknown = sorted(set(fixed) - set(MOVABLE))
    if isinstance(fixed, str) or unknown:
        raise ParameterError(f"fixed = {fixed!r} names what cannot move; give some of {', '.join(MOVABLE)}")
    require_finite(sample.X, "the sample")
    sample, likelihood = _commonest(sample, likelihood)
    sample = _heavier(sample)
    n = min(checked_integer("n_basis", n_basis), max(10, _MOST_UNKNOWNS // likelihood.free), len(sample))
    if ard:
        kernel = spread_lengthscales(kernel, sample.X)
    kernel.check_features(sample.X.shape[1])
    search = _Search(sample, kernel, likelihood, n, fixed, seed, run or in_this_thread)
    start = search.best_of_grid(None if signal is None else checked_number("signal", signal))
    for number in range(1, checked_integer("rounds", rounds) + 1):
        before = search.best[1]
        start = search.round(start, checked_integer("evaluations", evaluations), number)
        if search.best[1] < before + _ENOUGH:
            break
    values, value = search.best
    if not np.isfinite(value):
        raise NumericalError(
            f"the evidence of the {len(sample)} sampled rows is not finite at any point that was tried; "
            "check the scale of the features"
        )
    return Tuning(
        with_log_lengthscales(kernel, values[:-1]),
        float(np.exp(values[-1])),
        None,
        value,
        "laplace",
        len(sample),
        tuple(name for name in MOVABLE if name not in fixed),
        tuple(search.points),
    )


class _Search:
    """A search over (log lengthscales, log signal variance), (t + 1,), which records every point."""

    def __init__(
        self,
        sample: Sample,
        kernel: Kernel,
        likelihood: Likelihood,
        n: int,
        fixed: Collection[str],
        seed: int,
        run: Run,
    ) -> None:
        self._sample, self._kernel, self._likelihood, self._n = sample, kernel, likelihood, n
        self._seed, self._run = seed, run
        self._rows = open_table(sample.X)
        self._weights = None if bool((sample.weights == 1.0).all()) else sample.weights
        self._start = log_lengthscales(kernel)
        self._free = np.array([*["lengthscale" not in fixed] * len(self._start), "signal" not in fixed])
        bounds = Bounds.of(kernel, sample.X)
        self._unit = bounds.unit
        low, high = (bounds.unit + np.log(end) for end in _SIGNAL_RANGE)
        self._low, self._high = np.append(bounds.low[:-2], low), np.append(bounds.high[:-2], high)
        self.points: list[TuningPoint] = []
        self.best: tuple[Float, float] = np.append(self._start, self._unit), -np.inf

    def best_of_grid(self, signal: float | None) -> Float:
        """Evaluate the grid, and return its best point."""
        steps = _STEPS if len(self._start) and self._free[0] else (1.0,)
        signals = np.log(_SIGNALS) + self._unit
        if signal is not None:
            signals = np.log([signal])
        elif not self._free[-1]:
            signals = np.array([self._unit])
        for number, step in enumerate(steps):
            lengthscales = self._start
            if step != 1.0:
                lengthscales = np.clip(lengthscales + np.log(step), self._low[:-1], self._high[:-1])
            evidence = self._evidence(lengthscales, (0, number))
            for value in signals:
                with suppress(NumericalError):
                    self._evaluate(evidence, np.append(lengthscales, value), "grid", 0)
        return self.best[0]

    def round(self, start: Float, evaluations: int, number: int) -> Float:
        """The best of at most `evaluations` points, starting from `start`, with basis points chosen there."""
        evidence = self._evidence(start[:-1], (number,))

        def evaluate(values: Float) -> tuple[float, Float, None]:
            return *self._evaluate(evidence, values, "search", number), None

        try:
            return maximise(evaluate, start, self._free, self._low, self._high, evaluations, _FLAT)[0]
        except NumericalError:
            # With new basis points the evaluation at `start` may fail for lack of digits.
            return start

    def _evidence(self, lengthscales: Float, stream: tuple[int, ...]) -> LaplaceEvidence:
        """The evidence with basis points chosen for these lengthscales."""
        kernel = with_log_lengthscales(self._kernel, lengthscales)
        points = greedy_points(self._run, self._rows, kernel, self._n, self._seed, (*_STREAM, *stream))
        return LaplaceEvidence(self._sample.X, self._sample.Y, self._weights, self._likelihood, points)

    def _evaluate(self, evidence: LaplaceEvidence, values: Float, stage: str, number: int) -> tuple[float, Float]:
        """Evidence and gradient per row; the gradient is 0 on the grid."""
        at = evidence.at(with_log_lengthscales(self._kernel, values[:-1]), float(np.exp(values[-1])))
        value, m = at.value / len(self._sample), len(self._sample)
        lengthscales = tuple(np.exp(values[:-1]).tolist())
        signal = float(np.exp(values[-1]))
        self.points.append(TuningPoint(stage, number, len(at.basis), lengthscales, signal, None, value))
        if value > self.best[1]:
            self.best = values, value
        return value, evidence.gradient(at) / m if stage == "search" else np.zeros(len(values))


def _heavier(sample: Sample) -> Sample:
    """The sample with weights of a sum of about one row, where they are less together.

    The evidence of such rows is of first order in their weights, and its maximum that of their multiples. Its own
    digits are lost beside the 1 of the prior's precision: of tiny weights the largest signal variance looks as good as
    any.
    """
    total = float(sample.weights.sum())
    if not 0.0 < total < 0.5:
        return sample
    return replace(sample, weights=np.ldexp(sample.weights, round(-np.log2(total))))


def _commonest(sample: Sample, likelihood: Likelihood) -> tuple[Sample, Likelihood]:
    """The sample and the likelihood of the 12 most frequent classes, if there are more."""
    if likelihood.width <= _MOST_CLASSES:
        return sample, likelihood
    codes = likelihood.targets(sample.Y, 0).argmax(axis=1)
    count = np.bincount(codes, minlength=likelihood.width)
    kept = np.sort(np.argsort(-count, kind="stable")[:_MOST_CLASSES])
    rows = sample.at_positions(np.flatnonzero(np.isin(codes, kept)))
    return Sample(rows.rows, rows.X, np.ascontiguousarray(rows.Y[:, kept]), rows.weights), Softmax(_MOST_CLASSES)
