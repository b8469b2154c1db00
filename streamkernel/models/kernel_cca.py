"""The model of a fitted KernelCCA: two bases of the same rows, and the canonical variates on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from streamkernel.basis import Basis
from streamkernel.bounds import MatchingPursuitBound, matching_pursuit_bound
from streamkernel.errors import ModelFormatError, ParameterError, ShapeError
from streamkernel.factors import scaler_of
from streamkernel.kernels import columns_of_pairs, is_kernel_of_pairs, kernel_from_config
from streamkernel.models.transformers import TransformerModel
from streamkernel.pairs import are_pairs
from streamkernel.records import (
    Certificate,
    Count,
    FittedRecord,
    JsonObject,
    LengthscaleChoice,
    Record,
    ScalerRecord,
    SettingsRecord,
)
from streamkernel.reductions import RowMap, View
from streamkernel.reductions.predictions import BothVariates, ViewTimes
from streamkernel.reductions.sums import Features, FeatureTimes
from streamkernel.table import KnownColumns, RowScaler, SparseScaler, Table
from streamkernel.type_aliases import AnyArray, Fields


class SecondView(Record):
    """The options of the second view."""

    kernel: JsonObject
    lengthscale: str | float | tuple[float, ...] | None


class KernelCCASettingsRecord(SettingsRecord):
    """The options of a fit; those of the first view have the names of every basis."""

    basis_size: Count
    second_view: SecondView
    regularization: float
    bound_gamma: float | None
    delta: float


class ViewRecord(Record):
    """One view: its columns, kernel and scaler. `columns` are positions where both views are in one input."""

    names: tuple[str, ...]
    columns: tuple[Count, ...] | None
    kernel: JsonObject
    lengthscale: float | tuple[float, ...] | None
    scaler: ScalerRecord | None
    certificate: Certificate
    lengthscale_choice: LengthscaleChoice | None = None
    named: bool | None = None


class KernelCCASolution(Record):
    """The number of pairs of variates, and the ridge of each view."""

    requested: Count
    count: Count
    ridges: tuple[float, float]


class KernelCCABound(Record):
    """The parameters of Theorem 4."""

    gamma: float
    delta: float


class KernelCCARecord(FittedRecord):
    """The fields of a kernel CCA; those of the basis are those of the first view."""

    settings: KernelCCASettingsRecord
    views: tuple[ViewRecord, ViewRecord]
    cca: KernelCCASolution
    bound: KernelCCABound | None


@dataclass(frozen=True)
class KernelCCAModel(TransformerModel):
    """Canonical variates ``k_v(x_v, Z_v) dual_coef_v + intercept_v``; arrays of the second view end in ``_y``."""

    KIND: ClassVar[str] = "kernel-cca"
    RECORD: ClassVar[type[KernelCCARecord]] = KernelCCARecord
    # Releases that knew sparse rows, but not here, took a first view of them for dense rows, with other variates. The
    # first models of sparse rows have version 1 and are read.
    SPARSE_VERSION: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, ...]] = (1, SPARSE_VERSION)
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **TransformerModel.SHAPES,
        "components_y": ("n", "q"),
        "residual_path_y": ("n + 1",),
        "correlations": ("r",),
        "singular_values": ("r",),
        "dual_coef": ("n", "r"),
        "dual_coef_y": ("n", "r"),
        "intercept": ("r",),
        "intercept_y": ("r",),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **TransformerModel.OPTIONAL,
        "scaler_knots_y": ("knots_y",),
        "scaler_values_y": ("knots_y",),
        "scaler_counts_y": ("q",),
        "bound_sizes": ("s",),
        "bound_errors": ("s",),
    }
    WHOLE: ClassVar[frozenset[str]] = TransformerModel.WHOLE | {"scaler_counts_y", "bound_sizes", "bound_errors"}
    _NOUN: ClassVar[str] = "kernel CCA"

    record: KernelCCARecord

    @property
    def version(self) -> int:
        """`SPARSE_VERSION` where a view has sparse rows, and 1 for dense ones, as all releases read them."""
        return self.SPARSE_VERSION if self.is_sparse(0) or self.is_sparse(1) else super().version

    @property
    def column_names(self) -> list[str]:
        """Names of the columns of the first view."""
        return list(self.record.views[0].names)

    @property
    def from_columns(self) -> bool:
        """Whether both views are groups of columns of one input."""
        return self.record.views[1].columns is not None

    @cached_property
    def bases(self) -> tuple[Basis, Basis]:
        """The same rows as functions of either view."""
        kernel = kernel_from_config(self.record.views[1].kernel)
        points = np.ascontiguousarray(self.arrays["components_y"])
        return self.basis, Basis(kernel, points, self.arrays["component_indices"])

    def with_bases(self, bases: tuple[Basis, Basis]) -> Self:
        """Return this model; it uses the given bases, whose factors are computed already."""
        self.__dict__["bases"] = bases
        return self.with_basis(bases[0])

    def scaler_of(self, view: int) -> RowScaler | None:
        """The scaler of a view's columns; None where they are not scaled."""
        return scaler_of(self.record.views[view].scaler, self.arrays, ("", "_y")[view])

    @property
    def bound(self) -> MatchingPursuitBound | None:
        """Theorem 4 along the path of picks; None without a gamma."""
        bound = self.record.bound
        if bound is None:
            return None
        sizes, errors = self.arrays["bound_sizes"], self.arrays["bound_errors"]
        return matching_pursuit_bound(self.record.rows.count, sizes, errors, bound.delta, views=2)

    def is_sparse(self, view: int) -> bool:
        """Whether the rows of a view are sparse."""
        return self.sparse if view == 0 else is_kernel_of_pairs(self.record.views[1].kernel)

    def points_of(self, view: int) -> AnyArray:
        """(n, p) basis points of a view, in the units of the rows; of clipped columns, within their ends.

        Of sparse rows in pairs of columns and values (`streamkernel.pairs`).
        """
        Z, scaler = self.bases[view].points, self.scaler_of(view)
        return Z if scaler is None else scaler.unscaled(Z)

    def variates(self, view: int, *, of_targets: bool = False) -> ViewTimes:
        """The row map of one view's variates, on rows of an input that holds that view, or has it as targets."""
        suffix = ("", "_y")[view]
        times = FeatureTimes(
            Features.of_basis(self.bases[view]),
            np.ascontiguousarray(self.arrays[f"dual_coef{suffix}"]),
            self.arrays[f"intercept{suffix}"],
            "variates",
        )
        columns = self.record.views[view].columns
        return ViewTimes(View(columns, of_targets, self.scaler_of(view), self.is_sparse(view)), times)

    def rows_of(self, table: Table, view: int, *, of_targets: bool = False) -> Table:
        """A table whose rows the row map `variates` of this view takes.

        Raises
        ------
        ParameterError
            The view is the table's targets, but it has no targets, or labels.
        ShapeError
            The number of columns differs from that of the fit.
        """
        if of_targets:
            if table.targets is None or table.classes is not None:
                raise ParameterError("there is no second view of numbers; give y")
            known = self.columns_of(1)
            if table.n_targets != len(known.names):
                raise ShapeError(
                    f"the table has {table.n_targets} targets, {self._MADE} {len(known.names)}; {self._GIVE}"
                )
            return replace(table, targets=known.matched_targets(table.targets), weights=None)
        matched = self.columns_of(view).matched(table).as_sparse(self.is_sparse(view))
        return replace(matched, targets=None, weights=None)

    def columns_of(self, view: int) -> KnownColumns:
        """Columns of the input that holds a view."""
        if self.from_columns or view == 0:
            names, named = self.record.columns, self.record.named_columns
        else:
            names, named = self.record.views[1].names, self.record.views[1].named
        known = self._known_columns(names, named)
        return known if view == 0 else replace(known, what="the table of the second view")

    @property
    def known_columns(self) -> KnownColumns:
        """Columns of the first input."""
        return self.columns_of(0)

    def solution_fields(self) -> Fields:
        """The fields that `info` prints in addition to those of every basis; for a bound also whether it is vacuous."""
        second, bound = self.record.views[1], self.bound
        lengthscale = second.lengthscale
        fields = {
            "components": self.record.cca.count,
            "correlations": self.arrays["correlations"].tolist(),
            "features_of_second_view": len(second.names),
            "lengthscale_of_second_view": list(lengthscale) if isinstance(lengthscale, tuple) else lengthscale,
            "relative_residual_of_second_view": second.certificate.relative_residual_trace,
        }
        if bound is not None:
            fields["bound"] = bound.minimum
            fields["bound_is_vacuous"] = bound.says_nothing
        return fields

    def prepare(self, table: Table) -> Table:
        return self.rows_of(table, 0)

    def transformation(self) -> Any:
        return self.variates(0)

    def outputs(self, table: Table) -> tuple[RowMap, Table]:
        if self.from_columns:
            return BothVariates(self.variates(0), self.variates(1)), self.rows_of(table, 0)
        if table.targets is None or table.classes is not None:
            return self.variates(0), self.rows_of(table, 0)
        both = replace(self.rows_of(table, 0), targets=self.rows_of(table, 1, of_targets=True).targets)
        return BothVariates(self.variates(0), self.variates(1, of_targets=True)), both

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        sizes = {"bound_sizes", "bound_errors"} & self.arrays.keys()
        if self.record.bound is not None and (len(sizes) < 2 or not len(self.arrays["bound_sizes"])):
            self._refuse(path, "it has a bound, and lacks the arrays bound_sizes and bound_errors")
        try:
            scaler, second = self.scaler_of(1), self.bases[1]
            assert self.bound is None or self.bound.minimum is not None
        except (ModelFormatError, ValueError) as error:
            # The kernel, the scaler and the bound check their parameters themselves.
            self._refuse(path, error)
        q = len(self.record.views[1].names)
        fits = (scaler is None or scaler.n_features == q) and self._columns_fit()
        if self.is_sparse(1):
            fits = fits and columns_of_pairs(second.kernel) == {q} and are_pairs(second.points, q)
            fits = fits and (scaler is None or isinstance(scaler, SparseScaler))
        else:
            fits = fits and second.points.shape[1] == q
        if not fits:
            raise ModelFormatError(f"{path}: the shapes of its arrays disagree; {self._AGAIN}")
        return self

    def _columns_fit(self) -> bool:
        """Whether the views are of columns that the input of the fit had."""
        width, (first, second) = len(self.record.columns), self.record.views
        if second.columns is None:
            return first.columns is None and len(first.names) == width
        return all(
            view.columns is not None
            and len(view.columns) == len(view.names)
            and all(column < width for column in view.columns)
            for view in (first, second)
        )
