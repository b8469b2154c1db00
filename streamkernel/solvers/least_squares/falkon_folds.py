"""Alpha by errors on held-out rows, for a basis whose n x n sums are never computed: conjugate gradients.

With H_T, g_T of the rows that are trained on and H_v, g_v, ... of the held-out rows (`EachFold`)::

    (H_T + alpha I) beta = g_T                    by conjugate gradients, P = guess of H_T + alpha_0 I
    SSE = YY_v - 2 beta^T g_v + beta^T H_v beta   (`validation.squared_errors`, with the intercept)

A sweep computes ``H_T p`` and ``H_v p`` for the directions p of several alphas: the kernel values, most of its work,
are filled once for all of them. ``H_v beta`` follows the iterates by the same steps as beta does, so that the error of
every iterate is known without another sweep. One more product shows the true residual at the end: with functions that
are nearly dependent, a small alpha is lost in the rounding of products, and is left out.

Alphas within a decade share one factor, with alpha_0 in their middle. The eigenvalues of ``P^-1 A`` are spread by the
factor alpha / alpha_0 at most, and by less where P is a rough guess: on kin40k, protein-casp and covtype (n = 1,000,
20,000 rows, 8 n of them for P) half a decade takes no more iterations than an own factor, a decade up to twice as many.
Factors of their own would take n^2 numbers for each alpha.

The search begins where a sample says: the rows of the preconditioner, some of them held out, choose alpha for the first
n/2 functions by direct solves (`alpha_of_sample`), n^3/24 operations each. From there it goes as `validation.search`
does, the first four alphas at once. A new alpha starts from the parabola in log alpha through solutions beside it: sums
are linear in beta, so that its residual and its error are known before the first sweep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.linalg import RidgePath, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.sums import EachFold, FoldSums, NormalProduct, RidgeSums
from streamkernel.solvers.least_squares._conjugate_gradients import Columns, ConjugateGradients, column_products
from streamkernel.solvers.least_squares.falkon import FalkonSystem, relative_residual
from streamkernel.solvers.least_squares.ridge import least_squares
from streamkernel.solvers.least_squares.solver_choice import STEPS
from streamkernel.solvers.least_squares.validation import (
    LEAST_ROWS,
    FoldChoice,
    FoldSolution,
    FoldSystem,
    alpha_of_step,
    least,
    search,
    squared_errors,
    usable,
)
from streamkernel.type_aliases import Float

TOLERANCE = 2e-3  # of the relative residual: errors are then known to 1e-3, a tenth of what chance leaves of them
MOST = 60  # iterations of a solve of the search
_LOST = 0.1  # relative residual above which an alpha counts as one that cannot be solved for
# Iterations without a new least residual after which a column ends: the rest is rounding. No first rise of the residual
# is too large: it was 20 times on covtype with n = 3,000, and the iterates converged.
_STALLED = 20
_SHARED = 1.05  # decades from the factor's alpha
_FEW = 250  # functions for which direct solves cost nothing


@dataclass(frozen=True)
class SampleChoice:
    """Alpha from a sample.

    Attributes
    ----------
    alpha : the choice.
    low, high : ends of the alphas that make sense for all rows.
    """

    alpha: float
    low: float
    high: float


def alpha_of_sample(
    trained: RidgeSums,
    held: RidgeSums | None,
    effective: float,
    times: float,
    *,
    intercept: bool = True,
    scale: Float | None = None,
    classes: bool = False,
    independent: float = 1.0,
) -> SampleChoice:
    """Alpha by the error of the first n/2 functions on held-out rows of a sample; by GCV where these say nothing.

    The ridge is the variance of the noise over that of the function, which does not depend on the number of rows.

    Parameters
    ----------
    trained, held : sums of the sampled rows that are trained on, with n functions, and of the others, with n/2 or more;
        None without these.
    effective : number of independent rows among `held`.
    times : number of rows over that of sampled ones, from which the upper end follows.
    intercept, scale, classes : as for `FoldSystem`; independent : as for `RidgeSystem`.
    """
    n = len(trained.H)
    few, size = min(n, max(n // 4, _FEW)), functions_of_sample(n)
    with single_threaded_blas():
        H, g, square = least_squares(_leading(trained, few), intercept)
        path = RidgePath.of(H, g, square, trained.weight, int(intercept), share=independent)
    alphas = path.grid()
    alpha, low, high = path.choose(scale), float(alphas[0]), float(alphas[-1])
    if held is not None:
        part, other = _leading(trained, size), _leading(held, size)
        sums = FoldSums(part.merge(other), (other,), np.array([effective]))
        system = FoldSystem(sums, intercept=intercept, scale=scale, classes=classes)
        if not system.lacking:
            alpha = system.choose(alpha, low, high).alpha
    return SampleChoice(alpha, low, high * times)


def functions_of_sample(n: int) -> int:
    """Number of leading functions of n for which `alpha_of_sample` solves."""
    return min(n, max(n // 2, _FEW))


def _leading(sums: RidgeSums, size: int) -> RidgeSums:
    """The sums of the first functions: whitening is triangular."""
    return RidgeSums(
        sums.H[:size, :size],
        sums.g[:size],
        sums.YY,
        sums.G1[:size],
        sums.Y1,
        sums.centre,
        sums.weight,
        sums.trace,
        sums.count,
    )


@dataclass(frozen=True)
class _Tried:
    """A solution without the held-out rows.

    Attributes
    ----------
    beta : (n, d); residual : (n, d) ``g_T - (H_T + alpha I) beta``, centred if there is an intercept.
    held : (n, d) ``H_v beta``.
    solution : as of `FoldSystem`.
    error : mean squared error on the held-out rows; infinite if the iterations were not enough.
    """

    alpha: float
    beta: Float
    residual: Float
    held: Float
    solution: FoldSolution
    error: float


class FalkonFolds:
    """Held-out errors along alpha of a `FalkonSystem` with one fold.

    Parameters
    ----------
    system : FalkonSystem with the sums of one fold.
    scale, classes : as for `FoldSystem`.

    Attributes
    ----------
    lacking : reason why held-out errors say nothing; "" if they do.
    """

    def __init__(self, system: FalkonSystem, *, scale: Float | None = None, classes: bool = False) -> None:
        assert system.parts is not None
        assert len(system.parts.held) == 1, "one fold is held out"
        self._system = system
        (self._held,), self._trained = system.parts.held, system.parts.trained
        self.effective = float(system.parts.effective[0]) if usable(self._held, system.sums, classes) else 0.0
        self._scale = np.ones(len(system.sums.centre)) if scale is None else scale
        self._g, _ = self._trained.least_squares(system.intercept) if self.effective > 0.0 else (self._trained.g, None)
        self._tried: dict[float, _Tried] = {}
        self._factor: tuple[float, Float] | None = None
        self.lacking = ""
        if self.effective < LEAST_ROWS:
            self.lacking = f"only about {self.effective:.0f} distinct rows are held out in a fold that leaves others"

    def choose(self, start: float, low: float, high: float) -> FoldChoice:
        """Search for the alpha of least error in [low, high], from `start`."""
        start = min(max(start, low), high)
        self._solve(sorted({alpha_of_step(start, step, low, high) for step in STEPS}))

        def score(alpha: float) -> float:
            if alpha not in self._tried:
                self._solve([alpha])
            return self._tried[alpha].error

        tried = search(score, start, low, high)
        at = least(tried)
        if not math.isfinite(tried[at]):
            raise NumericalError(
                f"no alpha from {low:.2g} to {high:.2g} could be solved for in {MOST} iterations without the held-out "
                "rows; give a number for alpha, or solve directly"
            )
        best = self._tried[at]
        alphas = np.array(sorted(alpha for alpha, error in tried.items() if math.isfinite(error)))
        return FoldChoice(
            alpha=at,
            error=best.error,
            alphas=alphas,
            errors=np.array([tried[float(alpha)] for alpha in alphas]),
            sizes=np.array([len(best.beta)], dtype=np.int64),
            size_alphas=np.array([at]),
            size_errors=np.array([best.error]),
            mse=best.solution.squares / self._held.weight,
            rows=self._held.count,
            effective=self.effective,
            folds=(0,),
            solutions=(best.solution,),
        )

    def _solve(self, alphas: Sequence[float]) -> None:
        """Solutions for some alphas, by the same sweeps."""
        factor = self._factor_for(alphas)
        if factor is None:
            for alpha in alphas:
                self._tried[alpha] = self._result(alpha, *3 * [np.zeros_like(self._g)], lost=True)
            return
        system, d = self._system, self._g.shape[1]
        shift = np.repeat(alphas, d)
        right = np.tile(self._g, (1, len(alphas)))
        begun = [self._beginning(alpha) for alpha in alphas]
        X, R, held = (np.concatenate(part, axis=1) for part in zip(*begun, strict=True))
        product_of_held = np.zeros_like(R)

        def product(V: Float, columns: Columns) -> Float:
            nonlocal product_of_held
            work = NormalProduct(system.basis, system.basis.coefficients(V))
            assert system.folds is not None
            parts = system.session.sweep(EachFold(work, system.folds), system.table, "products without held-out rows")
            (product_of_held,), AV = parts.held, parts.trained
            AV += shift[columns] * V
            if system.intercept:
                AV -= np.outer(self._trained.G1, self._trained.G1 @ V) / self._trained.weight
            return AV

        def precondition(V: Float) -> Float:
            return solve_lower_t(factor, solve_lower(factor, V))

        with single_threaded_blas():
            cg = ConjugateGradients(right, product, precondition, (X, R))
            first = column_products(right, precondition(right))
            now = relative_residual(cg.rz, first)
            known, since = now.copy(), np.zeros(len(now), dtype=np.int64)
            for iteration in range(1, MOST + 1):
                going = (now > TOLERANCE) & ~cg.stuck & (since < _STALLED)
                if not going.any():
                    break
                held[:, going] += cg.advance(going) * product_of_held
                now = relative_residual(cg.rz, first)
                since = np.where(now < known, 0, since + going)
                known = np.minimum(known, now)
                system.session.progress.note(
                    f"alpha {alphas[0]:.3g} to {alphas[-1]:.3g}, iteration {iteration}: relative residual "
                    f"{now.max(initial=0.0):.2g}"
                )
            # The true residual, and the product with the solutions themselves: rounding adds up along the iterates.
            cg.refresh(np.ones(len(now), dtype=bool))
            now, held = relative_residual(cg.rz, first), product_of_held
            for index, alpha in enumerate(alphas):
                own = slice(index * d, (index + 1) * d)
                lost = bool(now[own].max(initial=0.0) > _LOST)
                parts = (np.ascontiguousarray(each[:, own]) for each in (cg.X, cg.R, held))
                self._tried[alpha] = self._result(alpha, *parts, lost=lost)

    def _factor_for(self, alphas: Sequence[float]) -> Float | None:
        """A factor of P for an alpha near these; None where all of them are lost in rounding."""
        if self._factor is not None and all(abs(math.log10(each / self._factor[0])) <= _SHARED for each in alphas):
            return self._factor[1]
        self._factor = None
        share = self._trained.weight / self._system.sums.weight
        for alpha in alphas[(len(alphas) - 1) // 2 :]:
            try:
                self._factor = alpha, self._system.preconditioner(alpha, share)
            except NumericalError:
                continue
            return self._factor[1]
        return None

    def _beginning(self, alpha: float) -> tuple[Float, Float, Float]:
        """Beta, its residual and ``H_v beta`` to begin with: between solutions those of a parabola in log alpha."""
        solved = sorted(
            (each for each in self._tried.values() if math.isfinite(each.error)),
            key=lambda each: abs(math.log(each.alpha / alpha)),
        )[:3]
        if not solved:
            return np.zeros_like(self._g), self._g.copy(), np.zeros_like(self._g)
        if not min(each.alpha for each in solved) < alpha < max(each.alpha for each in solved):
            solved = solved[:1]
        shares = _lagrange(np.log([each.alpha for each in solved]), math.log(alpha))
        beta, H_beta, held = (np.zeros_like(self._g) for _ in range(3))
        for share, each in zip(shares, solved, strict=True):
            beta += share * each.beta
            H_beta += share * (self._g - each.residual - each.alpha * each.beta)
            held += share * each.held
        return beta, self._g - H_beta - alpha * beta, held

    def _result(self, alpha: float, beta: Float, residual: Float, H_beta: Float, *, lost: bool) -> _Tried:
        held, trained = self._held, self._trained
        constant = -held.centre
        if self._system.intercept:
            constant = (trained.Y1 - trained.G1 @ beta) / trained.weight
        squares = squared_errors(beta, H_beta, constant, held.g, held.G1, held.Y1, held.square, held.weight)
        error = float((squares / self._scale).sum() / held.weight)
        if lost or not math.isfinite(error):
            error = math.inf
        return _Tried(alpha, beta, residual, H_beta, FoldSolution(beta, held.centre + constant, squares), error)


def _lagrange(points: Float, at: float) -> Float:
    """Values of the Lagrange polynomials of some points at another."""
    shares = np.ones(len(points))
    for i, point in enumerate(points):
        others = np.delete(points, i)
        shares[i] = np.prod((at - others) / (point - others))
    return shares
