"""The models of the transformers: configuration and named arrays, in memory as on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from streamkernel.basis import Basis
from streamkernel.bounds import CompressionBound, compression_bound
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.factors import FactorEigen
from streamkernel.models.saved import SavedModel
from streamkernel.records import Count, FittedRecord, Record, StopRecord
from streamkernel.reductions import Predictions, RowMap
from streamkernel.reductions.sums import FeatureMap, Features, FeatureTimes
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Fields
from streamkernel.wording import option


class PrincipalComponents(Record):
    """The number of components, and the parts of the trace that they leave."""

    requested: Count | None
    count: Count
    unexplained: float
    left_by_basis: float
    residual_trace: float
    relative_residual_trace: float


class InverseMap(Record):
    """A map from components to rows: its ridge, its number of functions, and the error of each column.

    `rmse` is of the rows of the fit, in their units.
    """

    alpha: float
    functions: Count
    rmse: tuple[float, ...]


class KernelPCARecord(FittedRecord):
    """The fields of a kernel PCA; `stop` tells where `sparse="bound"` cut the basis."""

    eigen: PrincipalComponents
    stop: StopRecord | None = None
    inverse: InverseMap | None = None


@dataclass(frozen=True)
class TransformerModel(SavedModel, ABC):
    """Base of the models of the transformers."""

    _MADE: ClassVar[str] = "the transformer was fitted on"
    _GIVE: ClassVar[str] = "transform rows with the same columns"

    @abstractmethod
    def transformation(self) -> FeatureMap | FeatureTimes:
        """The row map that transforms, on rows that are scaled already."""

    def outputs(self, table: Table) -> tuple[RowMap, Table]:
        """The row map that `streamkernel transform` writes of the rows of `table`, and these rows as it takes them.

        Raises
        ------
        ShapeError
            The table has other columns than the rows of the fit.
        """
        return self.transformation(), self.prepare(table.without_targets().without_weights())


@dataclass(frozen=True)
class NystroemModel(TransformerModel):
    """Whitened features; `normalization` is ``L^-1``."""

    KIND: ClassVar[str] = "nystroem"
    RECORD: ClassVar[type[FittedRecord]] = FittedRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {**TransformerModel.SHAPES, "normalization": ("n", "n")}
    _NOUN: ClassVar[str] = "Nystroem transformer"

    def transformation(self) -> FeatureMap:
        # Features by solves with L, which are more accurate than products with its inverse.
        return FeatureMap(Features.of_basis(self.basis), "features")


@dataclass(frozen=True)
class KernelPCAModel(TransformerModel):
    """Principal components: ``k(x, Z) dual_coef + intercept``."""

    KIND: ClassVar[str] = "kernel-pca"
    RECORD: ClassVar[type[KernelPCARecord]] = KernelPCARecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **TransformerModel.SHAPES,
        "eigenvalues": ("r",),
        "directions": ("n", "r"),
        "mean": ("n",),
        "dual_coef": ("n", "r"),
        "intercept": ("r",),
    }
    # Those of an inverse map, which must have them all.
    OF_INVERSE: ClassVar[dict[str, tuple[str, ...]]] = {
        "inverse_points": ("k", "r"),
        "inverse_coef": ("k", "p"),
        "inverse_offset": ("p",),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {**TransformerModel.OPTIONAL, **OF_INVERSE}
    _NOUN: ClassVar[str] = "kernel PCA"

    record: KernelPCARecord

    @classmethod
    def of(cls, eigen: FactorEigen, fields: Fields, arrays: dict[str, AnyArray], wanted: int | None) -> KernelPCAModel:
        """Make the model from a decomposition; `fields` and `arrays` are those of its basis."""
        scores, residual, trace = eigen.scores(), eigen.residual_trace, fields["certificate"].trace
        assert residual is not None
        assert eigen.left_by_basis is not None
        components = PrincipalComponents(
            requested=None if wanted is None else int(wanted),
            count=len(eigen.values),
            unexplained=eigen.unexplained,
            left_by_basis=eigen.left_by_basis,
            residual_trace=residual,
            relative_residual_trace=residual / trace if trace else 0.0,
        )
        solved = {
            "eigenvalues": eigen.values,
            "directions": eigen.directions,
            "mean": eigen.mean,
            "dual_coef": scores.coefficients,
            "intercept": scores.offset,
        }
        return cls(KernelPCARecord(**fields, eigen=components), {**arrays, **solved})

    def solution_fields(self) -> Fields:
        found = self.record.eigen
        fields: Fields = {
            "components": found.count,
            "relative_residual_of_components": found.relative_residual_trace,
        }
        bound = self.bound
        if bound is not None:
            fields["bound"], fields["bound_is_vacuous"] = bound.minimum, bound.vacuous
            fields["bound_is_least_at"] = bound.best_size
        return fields

    @property
    def bound(self) -> CompressionBound | None:
        """Theorem 2 along the path of picks.

        None where k(x, x) has no bound, for points that are not rows, and where weights are no numbers of equal rows.
        """
        kernel, points, rows = self.basis.kernel, self.basis.points, self.component_indices
        if not kernel.stationary or np.any(rows < 0):
            return None
        largest = float(kernel.diagonal(points[:1])[0])
        # The residual traces are of rows that stand as often as their weights say: so many are the trace of K.
        counted = round(float(self.residual_path[0] / largest))
        try:
            return compression_bound(self.residual_path[1:], counted, largest=largest)
        except ParameterError:  # weights far below 1: fewer rows than functions, or than the residual needs
            return None

    @cached_property
    def eigen(self) -> FactorEigen:
        """The decomposition of ``C K~ C``."""
        found = self.record.eigen
        return FactorEigen(
            values=self.arrays["eigenvalues"],
            directions=np.ascontiguousarray(self.arrays["directions"]),
            mean=self.arrays["mean"],
            features=Features.of_basis(self.basis),
            unexplained=found.unexplained,
            left_by_basis=found.left_by_basis,
        )

    def transformation(self) -> FeatureTimes:
        coefficients = np.ascontiguousarray(self.arrays["dual_coef"])
        return FeatureTimes(Features.of_basis(self.basis), coefficients, self.arrays["intercept"], "scores")

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        # The number of rows is the only other input of the bound.
        if self.record.rows.count < len(self.residual_path) - 1:
            raise ModelFormatError(f"{path} has more functions than rows; {self._AGAIN}")
        lost = [name for name in self.OF_INVERSE if (name in self.arrays) != (self.record.inverse is not None)]
        if lost:
            raise ModelFormatError(f"{path} has a part of an inverse map only, see {lost[0]}; {self._AGAIN}")
        return self

    def inverse(self) -> Predictions:
        """The row map from components (b, r) to rows (b, p) in the units of their columns.

        Raises
        ------
        ParameterError
            The model was fitted without it.
        """
        if self.record.inverse is None:
            raise ParameterError(
                f"the model has no map from components to rows; fit it with {option('fit_inverse_transform', True)}"
            )
        points = np.ascontiguousarray(self.arrays["inverse_points"])
        basis = Basis(self.basis.kernel, points, np.arange(len(points)))
        coefficients = np.ascontiguousarray(self.arrays["inverse_coef"])
        return Predictions(basis, coefficients, self.arrays["inverse_offset"], flat=False)
