"""Settings of fits that search for a kernel and a metric where there are enough rows to choose by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from streamkernel.kernels import Kernel, StationaryKernel
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.parameter import left_to_the_fit
from streamkernel.table import Table
from streamkernel.type_aliases import Fields, Unchecked

# Rows from which the fit searches for a metric and a kernel, and chooses its penalty by folds, if it is asked for
# nothing else. Of fewer rows too few can be held out to choose by: on boston (404 rows) each choice makes the error
# larger.
LEAST_SEARCHED = 2_000
# Features up to which it searches for a metric: the search holds several p x p matrices, and decomposes one each round.
MOST_FEATURES = 1_000

SEARCHED = f"from {LEAST_SEARCHED:,} rows on"


@dataclass(frozen=True)
class SearchedSettings(BasisSettings):
    """A fit to targets whose kernel and metric may be left to it."""

    kernel: str | Kernel | Fields | None = left_to_the_fit(BasisSettings, "kernel", f"auto {SEARCHED}, gaussian below")
    metric: Unchecked = left_to_the_fit(
        BasisSettings, "metric", f"learned {SEARCHED} and up to {MOST_FEATURES:,} features, else none"
    )

    def enough(self, table: Table) -> bool:
        """Whether a table has enough rows with targets, of weight > 0, to choose by."""
        return table.n_targets > 0 and table.counted >= LEAST_SEARCHED

    def for_table(self, table: Table) -> Self:
        """These settings, with kernel and metric chosen for a table where they are None.

        With `LEAST_SEARCHED` rows: a search among kernels and, up to `MOST_FEATURES` features, for a metric, unless
        something that is given names the kernel or its lengthscale. With fewer rows, or sparse ones: the Gaussian
        kernel, and no metric. Of any table, a rank asks for a metric. The choice does not depend on the basis size:
        where that is too large, a smaller one is planned alike.
        """
        left = self.left_to(table)
        return replace(self, **left) if left else self

    def left_to(self, table: Table) -> Fields:
        """Values for a table of the settings that are None; no others are there."""
        enough = self.enough(table)
        free = isinstance(self.lengthscale, str) and self.lengthscale == "median" and self.gamma is None
        found: Fields = {}
        kernel = self.kernel
        if kernel is None and table.sparse:
            # The search for a kernel, as that for a metric, holds rows dense.
            found["kernel"] = kernel = "gaussian"
        elif kernel is None:
            plain = self.degree is None and self.coef0 is None and not self.kernel_params
            kernel = "auto" if enough and free and plain and self.given_metric is None else "gaussian"
            found["kernel"] = kernel
        if self.metric is None:
            narrow = table.n_features <= MOST_FEATURES and isinstance(kernel, str) and not table.sparse
            searched = free and self.searches_lengthscale
            learned = enough and searched and narrow and isinstance(self.kernel_template, StationaryKernel)
            found["metric"] = "learned" if learned or self.metric_rank is not None else "none"
        return found
