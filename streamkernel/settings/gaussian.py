"""Settings of Gaussian process regression and of the committee: hyper-parameters, their search, noise model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamkernel.atomic import array_digest
from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels import Kernel, own_kernels
from streamkernel.kernels.parameters import checked_rows
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.checks import checked_choice, checked_number
from streamkernel.table import KnownColumns, Table
from streamkernel.table.columns import default_names, frame_names
from streamkernel.table.finite import require_finite

__all__ = [
    "APPROXIMATIONS",
    "DEGREES_ROWS",
    "EVIDENCE",
    "PARTITIONS",
    "TUNE",
    "CommitteeSettings",
    "GaussianSettings",
    "TunedSettings",
]

APPROXIMATIONS = ("dtc", "fitc", "pitc")
PARTITIONS = ("rows", "cells")
TUNE = ("sample", "full", "none")
EVIDENCE = "evidence"
DEGREES_ROWS = 2500  # sampled rows for the estimate of effective degrees of freedom


@dataclass(frozen=True)
class TunedSettings(BasisSettings):
    """Options of a fit whose hyper-parameters are found by evidence: those of the basis, and

    Parameters
    ----------
    lengthscale : "evidence", or a value as in any fit, which then stays fixed.
    ard : whether each feature has a lengthscale of its own, for "evidence".
    signal_variance : "evidence", or a number > 0.
    tune : "sample", on some thousands of rows; "none": a lengthscale of "evidence" is the median distance then, and
        only variances are found by evidence.
    """

    SAMPLE_ROWS: ClassVar[dict[str, int]] = {**BasisSettings.SAMPLE_ROWS, EVIDENCE: 5000}
    LENGTHSCALES: ClassVar[tuple[str, ...]] = (EVIDENCE, *BasisSettings.LENGTHSCALES)
    TUNE: ClassVar[tuple[str, ...]] = ("sample", "none")

    lengthscale: Any = EVIDENCE
    ard: bool = False
    signal_variance: Any = EVIDENCE
    tune: str = "sample"

    def __post_init__(self) -> None:
        super().__post_init__()
        _checked_variance("signal_variance", self.signal_variance)
        checked_choice("tune", self.tune, self.TUNE)
        if not isinstance(self.ard, (bool, np.bool_)):
            raise ParameterError(f"ard must be true or false, not {self.ard!r}")
        own = own_kernels(self.kernel) if isinstance(self.kernel, Kernel) and self.tunes else []
        if own:
            raise ParameterError(
                f"the slope of the kernel {own[0].__name__} by its lengthscale is not known, which the search by "
                "evidence takes; give signal_variance and noise_variance as numbers, or one of this package's kernels"
            )
        if self.ard and not self.tunes_lengthscale:
            raise ParameterError(
                "ard has lengthscales found by evidence, but they are given, the kernel has none or tune is 'none'; "
                "leave out the one or the other"
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

    def sampled_rows(self, table: Table) -> int:
        """Number of rows to sample for hyper-parameters, or for the shares of the classes."""
        wanted = self.SAMPLE_ROWS[EVIDENCE] if self.tunes else 0
        return min(max(wanted, super().sampled_rows(table)), table.n_rows)

    def to_config(self) -> dict[str, Any]:
        return super().to_config() | {
            "ard": bool(self.ard),
            "signal_variance": _plain(self.signal_variance),
            "tune": self.tune,
        }


@dataclass(frozen=True)
class GaussianSettings(TunedSettings):
    """Options of Gaussian process regression: those of `TunedSettings`, and

    Parameters
    ----------
    approximation : model of cov(y | f at the basis): "dtc" a constant, "fitc" a diagonal, "pitc" blocks.
    noise_variance : "evidence", or a number > 0, in squared units of the targets.
    tune : also "full": continues from the sample's optimum over all rows, with two sweeps per step.
    block_size : number of rows of a block, a model parameter; for "pitc".
    partition : rows of a block: "rows" in the stored order, or "cells" of rows near a common centre.
    """

    TUNE: ClassVar[tuple[str, ...]] = TUNE
    APPROXIMATIONS: ClassVar[tuple[str, ...]] = APPROXIMATIONS

    approximation: str = "fitc"
    noise_variance: Any = EVIDENCE
    block_size: int = 1000
    partition: str = "rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("approximation", self.approximation, self.APPROXIMATIONS)
        checked_choice("partition", self.partition, PARTITIONS)
        _checked_variance("noise_variance", self.noise_variance)
        size = self.block_size
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ParameterError(f"block_size must be a whole number > 0, not {size!r}")

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

    def sampled_rows(self, table: Table) -> int:
        wanted = DEGREES_ROWS if self.approximation == "pitc" else 0
        return min(max(wanted, super().sampled_rows(table)), table.n_rows)

    def to_config(self) -> dict[str, Any]:
        return super().to_config() | {
            "approximation": self.approximation,
            "noise_variance": _plain(self.noise_variance),
            "block_size": int(self.block_size),
            "partition": self.partition,
        }


@dataclass(frozen=True)
class CommitteeSettings(GaussianSettings):
    """Options of a Bayesian committee machine: those of `GaussianSettings`, whose blocks are its members, and

    Parameters
    ----------
    queries : (q, p) points where predictions will be asked for, in the units of the rows; they join the query points.
    """

    APPROXIMATIONS: ClassVar[tuple[str, ...]] = ("pitc",)

    approximation: str = "pitc"
    queries: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queries is not None and not isinstance(self.queries, QueryPoints):
            object.__setattr__(self, "queries", QueryPoints.of(self.queries))

    def components(self, table: Table) -> int:
        if self.queries is not None:
            self.queries.matched(table)
        return super().components(table)

    def matched(self, table: Table) -> Self:
        if self.queries is None:
            return self
        return replace(self, queries=self.queries.matched(table))

    def to_config(self) -> dict[str, Any]:
        if self.queries is None:
            return super().to_config()
        points = self.queries.points
        return super().to_config() | {"queries": {"rows": len(points), "digest": array_digest(points)}}


@dataclass(frozen=True, eq=False)
class QueryPoints:
    """Points (q, p) where predictions will be asked for, and the names of their columns; None for an array."""

    points: NDArray[Any]
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, given: Any) -> QueryPoints:
        """Make query points from a table, a DataFrame or an array.

        Raises
        ------
        DataError
            The points are not rows of finite numbers.
        """
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


def _checked_variance(name: str, value: Any) -> None:
    if isinstance(value, str):
        if value != EVIDENCE:
            raise ParameterError(f"{name} must be 'evidence' or a number > 0, not {value!r}")
        return
    checked_number(name, value, least=0.0, exclusive=True)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)
