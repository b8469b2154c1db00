"""Settings of a basis, which the fits of all kinds share: components, kernel, lengthscale, rule, scaling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np

from streamkernel.atomic import array_digest
from streamkernel.errors import ParameterError
from streamkernel.kernels import (
    KERNEL_NAMES,
    FunctionKernel,
    Kernel,
    Linear,
    Precomputed,
    StationaryKernel,
    as_kernel,
    has_precomputed,
    leaves_lengthscale,
    located,
    sees_names,
    sparse_kernel,
)
from streamkernel.records import SettingsRecord
from streamkernel.selection import DENSE_RULES, RULES, Columns, Rule, as_rule
from streamkernel.settings._precomputed import RULE_OF_MATRIX, check_precomputed, check_square
from streamkernel.settings.checks import checked_seed
from streamkernel.settings.parameter import check_values, parameter, parameters_in
from streamkernel.store.plain import plain
from streamkernel.table import Table
from streamkernel.table.columns import columns_named
from streamkernel.type_aliases import Fields, FieldsView, Float, Unchecked
from streamkernel.wording import call, estimator, option


def default_components(rows: int, most: int = 1000) -> int:
    """Default basis size: ``sqrt(m) log m``, at most `most` (Rudi, Camoriano & Rosasco 2015)."""
    return max(1, min(rows, most, math.ceil(math.sqrt(rows) * max(1.0, math.log(rows)))))


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]


CANDIDATES = ("gaussian", "matern52", "laplacian")  # kernels that "auto" chooses from: smooth, less so, with kinks
# Sampled rows that a metric is learned from; more where a fit takes several seconds anyway: on the smooth target of
# `bench fit`, with 200,000 rows, the error is .0074 with 12,000 and .0094 with 8,000.
METRIC_ROWS, MANY_METRIC_ROWS, _MANY_ROWS = 8000, 12_000, 100_000

# Sampled rows that ends of columns are found from, fewer where rows are wide. A quantile of so many is off by half a
# per cent of the rows.
SCALING_ROWS, _LEAST_SCALING = 8000, 1000
_SCALING_BYTES = 256 << 20


def _matrix(values: Unchecked) -> tuple[tuple[float, ...], ...]:
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
class BasisSettings:
    """The choice of a basis, which all fits share. Each field states its parameter; see `Parameter`.

    A `Kernel` has its own lengthscale; targets are centred where a constant is fitted.

    What a model stores of them has a class of its own, `RECORD`: the kernel is an object, a lengthscale that was given
    is None, rows are their digests, and fields that an older release did not write are absent. These fields are stated
    again, because types that are made at run time would be `Any` to mypy; a test holds both classes equal.
    """

    RECORD: ClassVar[type[SettingsRecord]] = SettingsRecord
    SAMPLE_ROWS: ClassVar[dict[str, int]] = {"median": 1000, "auto": 4000}
    MOST_COMPONENTS: ClassVar[int] = 1000  # limit on the default size
    UNUSED: ClassVar[tuple[str, ...]] = ()  # parameters that only have their defaults here
    # Whether the rows of a fit may be sparse: nothing but kernels then sees their numbers. And whether they may then be
    # those of a kernel matrix, too.
    TAKES_SPARSE: ClassVar[bool] = False
    TAKES_MATRIX: ClassVar[bool] = True

    n_components: int | None = parameter(
        None,
        "The number of basis functions.",
        "basis",
        kind=int,
        least=1,
        optional=True,
        flag="basis",
        default_words="sqrt(rows) log(rows), at most 1000",
    )
    kernel: str | Kernel | Fields | None = parameter(
        "gaussian",
        f"The name of the kernel: {_named(KERNEL_NAMES)}; or an expression of names, such as '2*gaussian + linear'; or "
        f"auto, the one of {_named(CANDIDATES)} with the smallest error on held-out rows of a sample; or precomputed, "
        "where the columns are those of the kernel matrix of the rows.",
        "kernel",
        kind=str,
        checked=False,
    )
    lengthscale: Unchecked = parameter(
        "median",
        "The lengthscale: a number, a number for each feature (a,b,c), median (the median distance of sampled rows) or "
        "auto (a search on a sample of rows).",
        "kernel",
        words=tuple(SAMPLE_ROWS),
        kind=list,
    )
    gamma: Unchecked = parameter(
        None,
        "scikit-learn's gamma, which replaces the lengthscale.",
        "kernel",
        checked=False,
        optional=True,
        stored=False,
    )
    degree: Unchecked = parameter(
        None, "The degree of the polynomial kernel.", "kernel", kind=int, checked=False, optional=True, stored=False
    )
    coef0: Unchecked = parameter(
        None,
        "The constant of the polynomial and the sigmoid kernel.",
        "kernel",
        checked=False,
        optional=True,
        stored=False,
    )
    kernel_params: Fields | None = parameter(
        None,
        "Further parameters of the kernel, such as nu.",
        "kernel",
        kind=dict,
        checked=False,
        optional=True,
        flag=None,
        stored=False,
    )
    tol: float = parameter(
        0.0,
        "The choice of the basis stops when the residual trace is at most this share of the trace.",
        "basis",
        least=0.0,
        most=1.0,
    )
    rule: str | Rule = parameter(
        "few-sweep",
        "The rule that chooses the basis. The end of this help lists the rules.",
        "basis",
        kind=str,
        checked=False,
        words=RULES,
        default_words="few-sweep; rpcholesky with a precomputed kernel; columns with the linear kernel, where neither "
        "rule, size nor tolerance is given",
    )
    objective: str | float = parameter(
        "prediction",
        "The score of candidates in the rule few-sweep: what they explain of the targets (prediction), the residual "
        "trace (trace), or a mixture (a number, 1 for prediction).",
        "basis",
        checked=False,
        words=("trace", "prediction"),
    )
    rule_options: Fields = parameter({}, "Further options of the rule.", "basis", kind=dict, checked=False, flag=None)
    scale: str = parameter(
        "standard",
        "How each feature is scaled: to mean 0 and deviation 1 (standard), the same after values far from the median "
        "are clipped (robust), to its ranks in a sample of rows (rank), or not (none).",
        "rows",
        kind=str,
        words=("standard", "robust", "rank", "none"),
    )
    metric: Unchecked = parameter(
        "none",
        "The linear map of the scaled features in which the kernel measures distances: learned (from the gradients of "
        "fits to a sample of rows), diagonal (the same, a weight for each feature), none, or a matrix of your own with "
        "a row for each feature.",
        "kernel",
        words=("none", "learned", "diagonal"),
        kind=list,
        matrix=True,
    )
    metric_rank: int | None = parameter(
        None,
        "The largest number of columns of a learned metric.",
        "kernel",
        kind=int,
        least=1,
        optional=True,
        default_words="the number of features",
    )
    fit_intercept: bool = parameter(
        True, "Whether the model has a constant that is not penalised.", "rows", kind=bool, flag="intercept"
    )
    seed: int = parameter(0, "The seed of all random draws: equal seeds, equal models.", "rows", kind=int, least=0)

    def __post_init__(self) -> None:
        check_values(self)
        given: Unchecked = self.kernel
        if callable(given) and not isinstance(given, Kernel | type):
            object.__setattr__(self, "kernel", FunctionKernel(given))
        kernel = self.kernel_template
        if not (isinstance(self.metric, str) or self._is_left("metric")):
            # Tuples: settings are compared, and a caller may change the array.
            object.__setattr__(self, "metric", _matrix(self.metric))
        if has_precomputed(kernel):
            check_precomputed(self, kernel)
            object.__setattr__(self, "scale", "none")
            if self.rule == type(self).rule and not self.rule_options and not getattr(self, "full", False):
                object.__setattr__(self, "rule", RULE_OF_MATRIX)
        self._check_metric(kernel)
        self._check_units(kernel)
        if self.needs_positive_definite and not kernel.positive_definite:
            raise ParameterError(
                f"the kernel {kernel.name!r} is not positive definite: it has no features to whiten; give another "
                f"{option('kernel')}, or fit by matching pursuit, which takes it ({estimator('KernelMatchingPursuit')})"
            )
        if isinstance(self.selection_rule(has_targets=True), Columns):
            Columns.check_kernel(kernel)

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
    def chooses_kernel(self) -> bool:
        """Whether held-out rows of a sample choose the kernel."""
        return isinstance(self.kernel, str) and self.kernel == "auto"

    @property
    def kernel_candidates(self) -> tuple[Kernel, ...]:
        """The kernels that a search on a sample tries."""
        return tuple(as_kernel(name) for name in CANDIDATES) if self.chooses_kernel else (self.kernel_template,)

    @property
    def given_metric(self) -> Float | None:
        """The metric T (p, r) that the user gave; None for none."""
        none = self.metric is None or isinstance(self.metric, str)
        return None if none else np.array(self.metric, dtype=np.float64)

    @property
    def of_matrix(self) -> bool:
        """Whether the rows of the fit are those of a kernel matrix."""
        return isinstance(self.kernel_template, Precomputed)

    def kernel_rows(self, table: Table) -> Table:
        """The rows of a table as the kernel takes them: those of a kernel matrix, where the kernel is precomputed."""
        return table.as_matrix() if self.of_matrix else table

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

    def _is_left(self, name: str) -> bool:
        """Whether a parameter is None, and these settings leave its choice to the fit (`for_table`)."""
        return getattr(self, name) is None and parameters_in(self)[name][0].optional

    @classmethod
    def from_parameters(cls, parameters: FieldsView) -> Self:
        """Make settings from a scikit-learn estimator's parameters; those of the run (memory, client) are ignored."""
        known = {each.name for each in fields(cls)}
        given = {name: value for name, value in parameters.items() if name in known}
        given |= {
            "rule_options": dict(parameters.get("rule_options") or {}),
            "seed": checked_seed(parameters["random_state"]),
        }
        return cls(**given)

    @property
    def needs_positive_definite(self) -> bool:
        """Whether the fit uses whitened features, which only positive definite kernels have."""
        return True

    @property
    def needs_all_functions(self) -> bool:
        """Whether the user should know that fewer functions than asked for are independent."""
        return True

    @property
    def needs_regular_system(self) -> bool:
        """Whether fewer independent functions than asked for are an error, because nothing regularises the fit."""
        return False

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

    def tuning_rows(self, table: Table) -> int:
        """Number of rows to sample for the lengthscale, or for the shares of the classes."""
        wanted = 0
        if self.searches_lengthscale:
            wanted = self.SAMPLE_ROWS[self.lengthscale]
        elif table.classes is not None:
            wanted = self.SAMPLE_ROWS["median"]
        return min(wanted, table.counted) if wanted else 0

    @property
    def searches_lengthscale(self) -> bool:
        """Whether the fit finds the lengthscale on a sample of rows."""
        if not isinstance(self.lengthscale, str) or self.gamma is not None or isinstance(self.kernel, (Kernel, dict)):
            return False
        return leaves_lengthscale(self._kernel_name)

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

    def check_sparse(self, table: Table) -> None:
        """Refuse sparse rows where this fit, its kernel, scaling, metric or rule needs dense ones.

        Raises
        ------
        ParameterError
            One of them does.
        """
        if not table.sparse:
            return
        size = f"the rows are sparse ({table.n_rows} x {table.n_features})"
        if not self.TAKES_SPARSE:
            raise ParameterError(
                f"{size}, and this estimator needs dense ones; take another one, such as {estimator('KernelRidge')} or "
                f"{estimator('KernelSVC')}, or give dense rows ({option('sparse', False)} of {call('ingest')})"
            )
        if self.scale in ("robust", "rank"):
            raise ParameterError(
                f"{size}, and {option('scale')} {self.scale!r} would fill their zeros; give {option('scale', 'none')}, "
                f"or {option('scale', 'standard')}, which divides by deviations and does not centre"
            )
        if self.given_metric is not None or self.searches_sample:
            wish = f"there is a {option('metric')}" if self.given_metric is not None else self._wish
            raise ParameterError(
                f"{size}, and {wish}, for which rows are dense; give {option('metric', 'none')} and a named kernel"
            )
        if isinstance(self.rule, str) and self.rule in DENSE_RULES:
            raise ParameterError(
                f"{size}, and the rule {self.rule!r} makes dense points; give another {option('rule')}, such as "
                "few-sweep"
            )
        self.kernel_of(table)

    @property
    def _kernel_name(self) -> Unchecked:
        """The kernel as it is given; of several candidates the first one."""
        # None is refused by `as_kernel` where it is not left to the fit.
        return CANDIDATES[0] if self.chooses_kernel or self._is_left("kernel") else self.kernel

    def selection_rule(self, *, has_targets: bool) -> Rule:
        """The rule that chooses the basis."""
        return as_rule(self.rule, objective=self.objective, has_targets=has_targets, **self.rule_options)

    def rule_for(self, table: Table) -> Rule:
        """The rule that chooses the basis of a fit to `table`."""
        return Columns() if self.takes_columns(table) else self.selection_rule(has_targets=table.n_targets > 0)

    def takes_columns(self, table: Table) -> bool:
        """Whether the basis functions are the columns.

        They are with the rule `columns`; and with the linear kernel where neither rule, size nor tolerance is given:
        a basis of rows would give the same model with other numbers, or less. That is up to the default basis size,
        and where there are as many rows: of fewer, the rows are the smaller basis.
        """
        if table.sparse:
            return False
        rule = self.selection_rule(has_targets=True)
        if isinstance(rule, Columns):
            return True
        left = self.rule == type(self).rule and not self.rule_options and self.n_components is None and self.tol == 0.0
        width = self._width(table)
        return left and isinstance(self.kernel_template, Linear) and width <= min(table.counted, self.MOST_COMPONENTS)

    def _width(self, table: Table) -> int:
        """Number of columns that the kernel sees."""
        metric = self.given_metric
        return table.n_features if metric is None else metric.shape[1]

    def for_table(self, table: Table) -> Self:
        """These settings, with what is left to the fit chosen for a table; they stay as they are chosen."""
        return self

    def components(self, table: Table) -> int:
        """Basis size for a table, at most its rows of weight > 0, after a check that the kernel fits its features.

        Raises
        ------
        ParameterError
            Another number than the columns where these are the functions, or lengthscales for another number of
            features.
        """
        if self.of_matrix:
            check_square(table)
        self.check_sparse(table)
        metric = self.given_metric
        if metric is not None and len(metric) != table.n_features:
            raise ParameterError(
                f"{option('metric')} has {len(metric)} rows and the table {table.n_features} features; give a row for "
                "each feature"
            )
        self.located_kernel(table.columns, table.schema).check_features(self._width(table))
        if self.searches_sample and table.n_targets == 0:
            raise ParameterError(
                f"{self._wish}, and the rows have no targets to learn from; give rows with targets "
                f"({call('ingest', 'target')}), or {option('metric', 'none')} and a named kernel"
            )
        if self.takes_columns(table):
            width = self._width(table)
            if self.n_components not in (None, width):
                raise ParameterError(
                    f"{option('n_components')} is {self.n_components}, and the rule 'columns' has a function for each "
                    f"of the {width} columns; leave it out, or give another {option('rule')}"
                )
            return width
        if self.n_components is None:
            return default_components(table.counted, self.MOST_COMPONENTS)
        return min(int(self.n_components), table.counted)

    def asks_beyond(self, table: Table) -> bool:
        """Whether more functions are asked for than there are rows of weight > 0, of which all are then taken."""
        asked = self.n_components
        return asked is not None and not self.takes_columns(table) and asked > table.counted

    @property
    def size_name(self) -> str:
        """Name of the parameter of an estimator that is the basis size."""
        return "n_components"

    def class_weights(self, table: Table) -> tuple[float, ...] | None:
        """The weight of each class, (C,); None where each has weight 1. Only classifiers have others."""
        return None

    def to_config(self) -> Fields:
        """Plain JSON: what determines the result, for the model and, in `to_run_config`, for checkpoints."""
        stated = parameters_in(self)
        stored = {name: each.plain(getattr(self, name)) for name, (each, _) in stated.items() if each.stored}
        # Runs that an earlier release interrupted have no metric; they go on as if these fields were absent.
        metric = {name: stored.pop(name) for name in ("metric", "metric_rank")}
        if self.given_metric is not None:
            metric["metric"] = f"given {array_digest(np.array(self.metric))}"
        return (
            stored
            | (metric if metric["metric"] != "none" else {})
            | {
                "kernel": {"kernel": "auto"} if self.chooses_kernel else self._kernel_config,
                "lengthscale": self.lengthscale if self.searches_lengthscale else None,
                "rule": self.rule if isinstance(self.rule, str) else self.rule.name,
                "objective": self.objective,
            }
        )

    def to_run_config(self) -> Fields:
        """Plain JSON that two runs have in common if one can go on from the checkpoints of the other."""
        return self.to_config()

    @property
    def _kernel_config(self) -> Fields | None:
        return None if self.kernel is None else self.kernel_template.to_config()

    def to_record(self) -> SettingsRecord:
        """The settings as a model stores them."""
        return self.RECORD.from_config(plain(self.to_config()))
