"""The choice of a kernel: its template, metric and lengthscale, and the sampled rows that show the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels import (
    Kernel,
    Precomputed,
    StationaryKernel,
    as_kernel,
    leaves_lengthscale,
    located,
    sees_names,
    sparse_kernel,
)
from streamkernel.settings._basis_parameters import CANDIDATES, BasisParameters
from streamkernel.table import Table
from streamkernel.table.columns import columns_named
from streamkernel.type_aliases import Fields, Float, Unchecked
from streamkernel.wording import estimator, option

# Sampled rows that a metric is learned from; more where a fit takes several seconds anyway: on the smooth target of
# `bench fit`, with 200,000 rows, the error is .0074 with 12,000 and .0094 with 8,000.
METRIC_ROWS, MANY_METRIC_ROWS, _MANY_ROWS = 8000, 12_000, 100_000

# Sampled rows that ends of columns are found from, fewer where rows are wide. A quantile of so many is off by half a
# per cent of the rows.
SCALING_ROWS, _LEAST_SCALING = 8000, 1000
_SCALING_BYTES = 256 << 20


def metric_of(values: Unchecked) -> tuple[tuple[float, ...], ...]:
    """A matrix of numbers, as plain tuples.

    Raises
    ------
    ParameterError
        It is no matrix of finite numbers with at least one column.
    """
    try:
        # A cast would drop the imaginary parts of complex numbers.
        matrix = np.zeros(0) if np.iscomplexobj(values) else np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.ndim != 2 or matrix.size == 0 or not np.isfinite(matrix).all():
        shown = f"an array of shape {matrix.shape}" if matrix.ndim and matrix.size else repr(values)[:80]
        if matrix.ndim == 2 and matrix.size:
            shown = f"{int((~np.isfinite(matrix)).sum())} of {matrix.size} that are NaN or infinity"
        raise ParameterError(
            f"{option('metric')} must be 'none', 'learned', 'diagonal' or a matrix of finite numbers with a row for "
            f"each feature, not {shown}"
        )
    if not matrix.any():
        raise ParameterError(
            f"{option('metric')} is 0 in all its {' x '.join(map(str, matrix.shape))} numbers: all rows would be "
            "equal; give a map that keeps some distances"
        )
    return tuple(tuple(row) for row in matrix.tolist())


@dataclass(frozen=True)
class KernelChoice(BasisParameters):
    """The kernel of a fit: the user gives some parts of it, and the fit finds the others on a sample of rows."""

    @cached_property
    def kernel_template(self) -> Kernel:
        """The kernel, with lengthscale 1 where the fit still has to find it."""
        lengthscale = self.lengthscale
        if isinstance(lengthscale, str):
            lengthscale = None
        options = dict(self.kernel_params or {})
        options |= {name: getattr(self, name) for name in ("degree", "coef0") if getattr(self, name) is not None}
        try:
            return as_kernel(self._kernel_name, lengthscale=lengthscale, gamma=self.gamma, **options)
        except TypeError as error:
            raise ParameterError(
                f"{option('kernel_params')} {self.kernel_params!r} do not fit the kernel ({error})"
            ) from None

    @property
    def _kernel_name(self) -> Unchecked:
        """The kernel as it is given; of several candidates the first one."""
        # None is refused by `as_kernel` where it is not left to the fit.
        return CANDIDATES[0] if self.chooses_kernel or self._is_left("kernel") else self.kernel

    def kernel_of(self, table: Table) -> Kernel:
        """`kernel_template` for the rows of a table, which may be sparse, with positions of the columns it names."""
        template = self.located_kernel(table.columns, table.schema)
        if table.of_matrix:
            return Precomputed(table.n_features)
        return sparse_kernel(template, table.n_features) if table.sparse else template

    def located_kernel(self, names: Sequence[str], schema: Fields | None) -> Kernel:
        """`kernel_template` for rows whose columns have these names: its parts see positions only.

        Parameters
        ----------
        schema : what the columns of the source were (`Table.schema`).

        Raises
        ------
        ParameterError
            A name stands for no column; or there is a metric, whose columns have no names.
        """
        kernel = self.kernel_template
        if self.given_metric is not None and sees_names(kernel):
            raise ParameterError(
                f"the kernel sees columns by name, and there is a {option('metric')}, whose columns have no names; "
                "give their positions, from 0 on"
            )
        return located(kernel, names, partial(columns_named, schema=schema))

    @property
    def of_matrix(self) -> bool:
        """Whether the rows of the fit are those of a kernel matrix."""
        return isinstance(self.kernel_template, Precomputed)

    def kernel_rows(self, table: Table) -> Table:
        """The rows of a table as the kernel takes them: those of a kernel matrix, where the kernel is precomputed."""
        return table.as_matrix() if self.of_matrix else table

    @property
    def given_metric(self) -> Float | None:
        """The metric T (p, r) that the user gave; None for none."""
        none = self.metric is None or isinstance(self.metric, str)
        return None if none else np.array(self.metric, dtype=np.float64)

    def _width(self, table: Table) -> int:
        """Number of columns that the kernel sees."""
        metric = self.given_metric
        return table.n_features if metric is None else metric.shape[1]

    @property
    def chooses_kernel(self) -> bool:
        """Whether held-out rows of a sample choose the kernel."""
        return isinstance(self.kernel, str) and self.kernel == "auto"

    @property
    def kernel_candidates(self) -> tuple[Kernel, ...]:
        """The kernels that a search on a sample tries."""
        return tuple(as_kernel(name) for name in CANDIDATES) if self.chooses_kernel else (self.kernel_template,)

    @property
    def learns_metric(self) -> bool:
        """Whether the fit learns a metric from its targets."""
        if self._is_left("metric"):
            return self.metric_rank is not None
        return isinstance(self.metric, str) and self.metric != "none"

    @property
    def searches_sample(self) -> bool:
        """Whether held-out rows of a sample choose the metric, the kernel or both."""
        return self.learns_metric or self.chooses_kernel

    @property
    def searches_lengthscale(self) -> bool:
        """Whether the fit finds the lengthscale on a sample of rows."""
        if not isinstance(self.lengthscale, str) or self.gamma is not None or isinstance(self.kernel, (Kernel, dict)):
            return False
        return leaves_lengthscale(self._kernel_name)

    def sampled_rows(self, table: Table, trained_share: float = 1.0, of_rows: int | None = None) -> int:
        """Number of rows to sample before the basis is chosen; `trained_share` of them are in no validation fold.

        Parameters
        ----------
        of_rows : number of rows that the table stands for; None for its own.
        """
        metric_rows = min(round(self.searched_rows(table, of_rows) / trained_share), table.counted)
        return max(metric_rows, self.tuning_rows(table), self.scaling_rows(table))

    def searched_rows(self, table: Table, of_rows: int | None = None) -> int:
        """Number of rows that the search for a metric and a kernel uses; `of_rows` as of `sampled_rows`."""
        if not self.searches_sample:
            return 0
        rows = table.counted if of_rows is None else of_rows
        return min(MANY_METRIC_ROWS if rows >= _MANY_ROWS else METRIC_ROWS, table.counted)

    def tuning_rows(self, table: Table) -> int:
        """Number of rows to sample for the lengthscale, or for the shares of the classes."""
        wanted = 0
        if self.searches_lengthscale:
            wanted = self.SAMPLE_ROWS[self.lengthscale]
        elif table.classes is not None:
            wanted = self.SAMPLE_ROWS["median"]
        return min(wanted, table.counted) if wanted else 0

    @property
    def samples_scaling(self) -> bool:
        """Whether the scaling of the features is found from a sample of rows."""
        return self.scale in ("robust", "rank")

    def scaling_rows(self, table: Table) -> int:
        """Number of rows to sample for the scaling of the features."""
        if not self.samples_scaling:
            return 0
        fitting = max(_LEAST_SCALING, _SCALING_BYTES // (8 * table.n_features))
        return min(SCALING_ROWS, fitting, table.counted)

    def check_without_targets(self) -> None:
        """Refuse what is found from targets, for a fit that does not use them.

        Raises
        ------
        ParameterError
            The lengthscale, the kernel or the metric is to be found from targets.
        """
        if self.searches_lengthscale and self.lengthscale != "median":
            raise ParameterError(
                f"{option('lengthscale')} 'auto' is searched for by how well targets are predicted; give 'median' here"
            )
        if self.learns_metric:
            raise ParameterError(
                f"{option('metric')} {self.metric!r} is learned from targets, which this fit does not use; give "
                f"{option('metric', 'none')} or a matrix, such as that of an estimator which has learned one from the "
                f"same columns ({estimator('KernelRidge')}; its model_.metric)"
            )
        if self.chooses_kernel:
            raise ParameterError(
                f"{option('kernel')} 'auto' is chosen by how well targets are predicted; give the name of a kernel here"
            )

    def _check_metric(self, kernel: Kernel) -> None:
        """Refuse a learned metric for a kernel, or a lengthscale, that it does not fit."""
        if self.metric_rank is not None and not self.learns_metric:
            raise ParameterError(
                f"{option('metric_rank')} is {self.metric_rank}, and only a learned metric has a rank; give "
                f"{option('metric', 'learned')}, or leave {option('metric_rank')} out"
            )
        if not self.searches_sample:
            return
        if not isinstance(kernel, StationaryKernel):
            raise ParameterError(
                f"{self._wish}, and the kernel {kernel.name!r} is not a function of a distance "
                f"of rows; give {option('kernel', 'gaussian')} or another kernel with a lengthscale, or "
                f"{option('metric', 'none')}"
            )
        if not self.searches_lengthscale:
            raise ParameterError(
                f"{self._wish}, which finds the lengthscale too, and a lengthscale is given; leave "
                f"{option('lengthscale')} and {option('gamma')} out and name the kernel, or give "
                f"{option('metric', 'none')} and a named kernel"
            )

    def _check_units(self, kernel: Kernel) -> None:
        """Refuse to change the units of features in which a kernel has a parameter."""
        if not kernel.has_units or (self.scale == "none" and self.given_metric is None):
            return
        changes = f"{option('scale')} is {self.scale}" if self.scale != "none" else f"there is a {option('metric')}"
        raise ParameterError(
            f"the period of the kernel is in the units of the columns, and {changes}, which changes them; give "
            f"{option('scale', 'none')} and no metric, and rows whose columns have units that fit the lengthscales"
        )

    @property
    def _wish(self) -> str:
        if not self.learns_metric:
            return f"{option('kernel')} is auto"
        metric = option("metric")
        return f"{metric} is {self.metric or 'learned'}" + (" (it has a rank)" if self.metric is None else "")
