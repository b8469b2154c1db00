"""Settings of Gaussian process regression and of the committee: hyper-parameters, their search, noise model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from streamkernel.atomic import array_digest
from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels import Kernel, user_kernel_classes
from streamkernel.kernels.parameters import checked_rows
from streamkernel.records import Count, Record, SettingsRecord
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.parameter import parameter
from streamkernel.table import KnownColumns, Table
from streamkernel.table.columns import default_names, frame_names
from streamkernel.table.finite import require_finite
from streamkernel.type_aliases import AnyArray, Fields, Unchecked
from streamkernel.wording import option

EVIDENCE = "evidence"
DEGREES_ROWS = 2500  # sampled rows for the estimate of effective degrees of freedom


Given = Literal["evidence"] | float


class TunedSettingsRecord(SettingsRecord):
    """The options of a fit whose hyper-parameters may be searched for."""

    ard: bool
    signal_variance: Given
    tune: str


class Queries(Record):
    """The points that predictions were announced for."""

    rows: Count
    digest: str


class GaussianSettingsRecord(TunedSettingsRecord):
    """The options of a fit of Gaussian process regression."""

    approximation: str
    noise_variance: Given
    block_size: Count
    partition: str
    queries: Queries | None = None


@dataclass(frozen=True)
class TunedSettings(BasisSettings):
    """A fit whose hyper-parameters are found by evidence."""

    RECORD: ClassVar[type[TunedSettingsRecord]] = TunedSettingsRecord
    TAKES_MATRIX: ClassVar[bool] = True
    SAMPLE_ROWS: ClassVar[dict[str, int]] = {**BasisSettings.SAMPLE_ROWS, EVIDENCE: 5000}

    lengthscale: Unchecked = parameter(
        EVIDENCE,
        "The lengthscale: a number, a number for each feature (a,b,c), median (the median distance of sampled rows) or "
        "auto (a search on a sample of rows). evidence takes the lengthscale of the largest evidence.",
        "kernel",
        words=(EVIDENCE, *BasisSettings.SAMPLE_ROWS),
        kind=list,
    )
    ard: bool = parameter(False, "Whether evidence finds a lengthscale for each feature.", kind=bool)
    signal_variance: Unchecked = parameter(
        EVIDENCE,
        "The variance of the function f: a number, or evidence for the one of the largest evidence.",
        words=(EVIDENCE,),
        least=0.0,
        above=True,
    )
    tune: str = parameter(
        "sample",
        "Where the evidence is maximised: on a sample of rows (sample), or nowhere, with the median distance as the "
        "lengthscale (none).",
        kind=str,
        words=("sample", "none"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # A function has no lengthscale of which a slope could be missing.
        found = user_kernel_classes(self.kernel) if isinstance(self.kernel, Kernel) and self.tunes else []
        own = [kind for kind in found if isinstance(kind, type)]
        if own:
            raise ParameterError(
                f"the slope of the kernel {own[0].__name__} by its lengthscale is not known, which the search by "
                f"evidence takes; give {option('signal_variance')} and {option('noise_variance')} as numbers, or one "
                "of this package's kernels"
            )
        if self.ard and not self.tunes_lengthscale:
            raise ParameterError(
                f"{option('ard')} has lengthscales found by evidence, but they are given, the kernel has none or "
                f"{option('tune')} is 'none'; leave out the one or the other"
            )

    def check_sparse(self, table: Table) -> None:
        super().check_sparse(table)
        if table.sparse and self.ard:
            raise ParameterError(
                f"the rows are sparse ({table.n_rows} x {table.n_features}), which have one lengthscale for all "
                f"columns, and {option('ard')} finds one for each; leave it out, or give dense rows"
            )

    @property
    def tunes_lengthscale(self) -> bool:
        """Whether the search maximises the evidence over lengthscales."""
        # A kernel with its own lengthscale, or without one, leaves nothing to search for.
        return self.tune != "none" and self.searches_lengthscale and self.lengthscale == EVIDENCE

    @property
    def tunes(self) -> bool:
        """Whether there is anything to find on sampled rows before the final sweep."""
        return self.tunes_lengthscale or self.signal_variance == EVIDENCE

    def tuning_rows(self, table: Table) -> int:
        """Number of rows to sample for hyper-parameters, or for the shares of the classes."""
        wanted = self.SAMPLE_ROWS[EVIDENCE] if self.tunes else 0
        return min(max(wanted, super().tuning_rows(table)), table.counted)


@dataclass(frozen=True)
class GaussianSettings(TunedSettings):
    """Gaussian process regression."""

    RECORD: ClassVar[type[GaussianSettingsRecord]] = GaussianSettingsRecord

    tune: str = parameter(
        "sample",
        "Where the evidence is maximised: on a sample of rows (sample), or nowhere, with the median distance as the "
        "lengthscale (none). full continues over all rows, from the optimum of the sample.",
        kind=str,
        words=("sample", "full", "none"),
    )
    approximation: str = parameter(
        "fitc",
        "The model of the covariance of the targets given the basis: a diagonal (fitc), a constant (dtc) or blocks "
        "(pitc).",
        kind=str,
        words=("fitc", "dtc", "pitc"),
    )
    noise_variance: Unchecked = parameter(
        EVIDENCE,
        "The variance of the noise in squared units of the targets: a number, or evidence for the one of the largest "
        "evidence.",
        words=(EVIDENCE,),
        least=0.0,
        above=True,
    )
    block_size: int = parameter(
        1000, "The number of rows of a block of pitc, or of a member of the committee.", kind=int, least=1
    )
    partition: str = parameter(
        "rows",
        "Which rows a block has: rows in the stored order (rows), or rows near a common centre (cells).",
        kind=str,
        words=("rows", "cells"),
    )

    def check_sparse(self, table: Table) -> None:
        super().check_sparse(table)
        if table.sparse and self.partition == "cells":
            raise ParameterError(
                f"the rows are sparse ({table.n_rows} x {table.n_features}), and {option('partition')} 'cells' has "
                f"dense centres; give {option('partition', 'rows')}, or dense rows"
            )

    @property
    def whitens_rows(self) -> bool:
        """Whether the final sweep needs signal and noise variance before it begins."""
        return self.approximation != "dtc"

    @property
    def tunes(self) -> bool:
        # Signal and noise variance of "dtc" follow from its sums.
        return self.tunes_lengthscale or (self.whitens_rows and self.searches_variances)

    @property
    def searches_variances(self) -> bool:
        """Whether signal or noise variance is found by evidence."""
        return EVIDENCE in (self.signal_variance, self.noise_variance)

    @property
    def polishes(self) -> bool:
        """Whether the search continues from the sample's optimum over all rows."""
        return self.tune == "full" and self.tunes

    @property
    def sums_of_polish(self) -> bool:
        """Whether the last step of the search over all rows gives the sums of the model."""
        return self.polishes and self.approximation == "fitc"

    def matched(self, table: Table) -> Self:
        """The settings for a fit to `table`: rows that they hold get its columns, in its order."""
        return self

    def tuning_rows(self, table: Table) -> int:
        wanted = DEGREES_ROWS if self.approximation == "pitc" else 0
        return min(max(wanted, super().tuning_rows(table)), table.counted)


@dataclass(frozen=True)
class CommitteeSettings(GaussianSettings):
    """A Bayesian committee machine, whose members are the blocks of `GaussianSettings`."""

    UNUSED: ClassVar[tuple[str, ...]] = ("approximation",)
    TAKES_MATRIX: ClassVar[bool] = False

    approximation: str = parameter(
        "pitc",
        "The model of the covariance of the targets given the basis: blocks, which are the members (pitc).",
        kind=str,
        words=("pitc",),
    )
    queries: Unchecked = parameter(
        None,
        "A store with the rows (q, p) that predictions will be made for; they join the query points.",
        kind=object,
        checked=False,
        optional=True,
        stored=False,
        compare=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queries is not None and not isinstance(self.queries, QueryPoints):
            object.__setattr__(self, "queries", QueryPoints.of(self.queries))

    def check_sparse(self, table: Table) -> None:
        super().check_sparse(table)
        if table.sparse and self.queries is not None:
            raise ParameterError(
                f"the rows are sparse ({table.n_rows} x {table.n_features}), and {option('queries')} are dense points; "
                f"leave {option('queries')} out, so that the rows of the fit alone give the query points"
            )

    def components(self, table: Table) -> int:
        if self.queries is not None:
            self.queries.matched(table)
        return super().components(table)

    def matched(self, table: Table) -> Self:
        if self.queries is None:
            return self
        return replace(self, queries=self.queries.matched(table))

    def to_config(self) -> Fields:
        if self.queries is None:
            return super().to_config()
        points = self.queries.points
        return super().to_config() | {"queries": {"rows": len(points), "digest": array_digest(points)}}


@dataclass(frozen=True, eq=False)
class QueryPoints:
    """Points (q, p) where predictions will be asked for, and the names of their columns; None for an array."""

    points: AnyArray
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, given: Unchecked) -> QueryPoints:
        """Make query points from a table, a DataFrame or an array.

        Raises
        ------
        DataError
            The points are not rows of finite numbers.
        ParameterError
            They are sparse.
        """
        if given.sparse if isinstance(given, Table) else hasattr(given, "toarray") and hasattr(given, "nnz"):
            raise ParameterError(
                f"{option('queries')} are sparse, and query points are dense rows; give them as an array, or leave "
                "them out, so that the rows of the fit alone give the query points"
            )
        if isinstance(given, Table):
            rows = np.asarray(given.read(given.start, given.stop).X)
            return cls(rows, given.columns if given.named else None)
        names = frame_names(given)
        points = checked_rows(given, "queries")
        require_finite(points, "queries")
        return cls(points, None if names is None else tuple(names))

    def matched(self, table: Table) -> QueryPoints:
        """The points, with their columns in the order of the table of the fit.

        Raises
        ------
        ShapeError
            The columns have other names, or another number.
        """
        if self.points.shape[1] != table.n_features and self.names is None:
            raise ShapeError(
                f"queries have {self.points.shape[1]} features, the table {table.n_features}; give points of its kind"
            )
        known = KnownColumns(
            table.columns, table.named, "the table of the fit has", "give points of its kind", "the table of queries"
        )
        order = known.order_in(self.names or default_names(self.points.shape[1]), named=self.names is not None)
        if order is None:
            return self
        return QueryPoints(np.ascontiguousarray(self.points[:, list(order)]), table.columns)
