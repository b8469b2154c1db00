"""The errors of estimators on folds, and how sure their differences are.

With e_j the error on fold j of K::

    mean = sum_j e_j / K        standard error = sqrt( sum_j (e_j - mean)^2 / (K (K - 1)) )

Of two estimators the differences ``d_j = e_j - e'_j`` on the same folds have their mean and standard error in the same
way, and the interval ``mean +- t se``, t the 0.975 quantile of Student's t with K - 1 degrees. It is approximate:
models of different folds share most of their rows, so that the e_j are not independent and no unbiased estimate of the
variance of their mean exists (Bengio & Grandvalet 2004). And the least of several errors is on average too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from streamkernel.notebook import html_table
from streamkernel.type_aliases import Fields, Float

_LEVEL = 0.975


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, its standard error, and its 95 % interval."""

    mean: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def of(cls, errors: Float, others: Float) -> Difference:
        """The differences of errors (K,) on the same folds."""
        d = errors - others
        mean, se = float(d.mean()), _standard_error(d)
        reach = float(stdtrit(len(d) - 1, _LEVEL)) * se
        return cls(mean, se, mean - reach, mean + reach)


@dataclass(frozen=True)
class Compared:
    """An estimator in a comparison.

    Attributes
    ----------
    name, estimator : its name, and that of its kind.
    errors : (K,) error on each fold.
    seconds : of all its fits and scores together.
    functions : (K,) number of basis functions of each model.
    model_bytes : (K,) bytes of the arrays of each model.
    shared : whether its models are of the sums of one sweep, kept apart by fold, and of one basis.
    """

    name: str
    estimator: str
    errors: tuple[float, ...]
    seconds: float
    functions: tuple[int, ...]
    model_bytes: tuple[int, ...]
    shared: bool = False

    @property
    def mean(self) -> float:
        """Mean error of the folds."""
        return float(np.mean(self.errors))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return _standard_error(np.array(self.errors))


@dataclass(frozen=True)
class Comparison:
    """The errors of estimators on the same folds.

    Attributes
    ----------
    error : name of the error: "rmse", "relative_rmse", "mae", "error" (the share of wrong classes), "log_loss", ...
    by : what made the folds: "content", "group" or "time".
    fitted_rows, left_out_rows : (K,) rows of weight > 0 that were fitted to, and that were left out, for each fold.
    estimators : the estimators in the order in which they were given.
    """

    error: str
    by: str
    fitted_rows: tuple[int, ...]
    left_out_rows: tuple[int, ...]
    estimators: tuple[Compared, ...]

    @property
    def folds(self) -> int:
        """Number of folds K."""
        return len(self.left_out_rows)

    @property
    def best(self) -> Compared:
        """The estimator with the least mean error; the first of several."""
        return min(self.estimators, key=lambda each: each.mean)

    def difference(self, name: str) -> Difference:
        """The errors of an estimator less those of the best one, fold by fold."""
        [found] = [each for each in self.estimators if each.name == name]
        return Difference.of(np.array(found.errors), np.array(self.best.errors))

    def _repr_html_(self) -> str:
        """What a notebook shows: each mean error with its standard error, and how much more it is than the least."""
        return html_table(
            f"{self.error}, {self.folds} folds by {self.by}", {each.name: self._shown(each) for each in self.estimators}
        )

    def _shown(self, each: Compared) -> str:
        mean = f"{each.mean:.4g} ± {each.standard_error:.2g}"
        if each is self.best:
            return f"{mean}, the least" if len(self.estimators) > 1 else mean
        difference = self.difference(each.name)
        return f"{mean}, {difference.mean:.3g} ± {difference.standard_error:.2g} more than {self.best.name}"

    def to_config(self) -> Fields:
        """Plain JSON."""
        return {
            "error": self.error,
            "by": self.by,
            "folds": self.folds,
            "fitted_rows": list(self.fitted_rows),
            "left_out_rows": list(self.left_out_rows),
            "best": self.best.name,
            "estimators": [self._config(each) for each in self.estimators],
        }

    def _config(self, each: Compared) -> Fields:
        difference = self.difference(each.name)
        return {
            "name": each.name,
            "estimator": each.estimator,
            "errors": list(each.errors),
            "mean": each.mean,
            "standard_error": each.standard_error,
            "difference": difference.mean,
            "difference_standard_error": difference.standard_error,
            "difference_interval": [difference.low, difference.high],
            "seconds": each.seconds,
            "functions": list(each.functions),
            "model_bytes": list(each.model_bytes),
            "shared": each.shared,
        }


def _standard_error(values: Float) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))
