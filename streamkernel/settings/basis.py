"""Settings of a basis, which the fits of all kinds share: kernel, rule and size of the basis, and what is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from streamkernel.atomic import array_digest
from streamkernel.errors import ParameterError
from streamkernel.kernels import FunctionKernel, Kernel, Linear, has_precomputed
from streamkernel.records import SettingsRecord
from streamkernel.selection import DENSE_RULES, Columns, Rule, as_rule
from streamkernel.settings._kernel_choice import KernelChoice, metric_of
from streamkernel.settings._precomputed import RULE_OF_MATRIX, check_precomputed, check_square
from streamkernel.settings.checks import checked_seed
from streamkernel.settings.parameter import check_values, parameters_in
from streamkernel.store.plain import plain
from streamkernel.table import Table
from streamkernel.type_aliases import Fields, FieldsView, Unchecked
from streamkernel.wording import call, estimator, option


def default_components(rows: int, most: int = 1000) -> int:
    """Default basis size: ``sqrt(m) log m``, at most `most` (Rudi, Camoriano & Rosasco 2015)."""
    return max(1, min(rows, most, math.ceil(math.sqrt(rows) * max(1.0, math.log(rows)))))


@dataclass(frozen=True)
class BasisSettings(KernelChoice):
    """The choice of a basis, which all fits share: its kernel, and the rule and the number of its functions."""

    def __post_init__(self) -> None:
        check_values(self)
        given: Unchecked = self.kernel
        if callable(given) and not isinstance(given, Kernel | type):
            object.__setattr__(self, "kernel", FunctionKernel(given))
        kernel = self.kernel_template
        if not (isinstance(self.metric, str) or self._is_left("metric")):
            # Tuples: settings are compared, and a caller may change the array.
            object.__setattr__(self, "metric", metric_of(self.metric))
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

    def check_sparse(self, table: Table) -> None:
        """Refuse sparse rows where the kernel, scaling, metric or rule needs dense ones.

        Raises
        ------
        ParameterError
            One of them does.
        """
        if not table.sparse:
            return
        size = f"the rows are sparse ({table.n_rows} x {table.n_features})"
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

    def for_table(self, table: Table) -> Self:
        """These settings for a table: all that the user left open is chosen, and stays as chosen."""
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
