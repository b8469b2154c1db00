"""Settings of a compressed table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from streamkernel.errors import ParameterError
from streamkernel.selection import Rule
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.parameter import parameter
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

SUBSAMPLE, PRECLUSTER, SQUASH, THINNING = METHODS = ("subsample", "precluster", "squash", "thinning")
FUNCTIONS, LOSSES, REPRESENTATIVES = ("fitted", "kernel", "linear"), ("logistic", "hinge"), ("mean", "seed")
_SHARE = 50
# Candidates for each row of the result, where they have room.
_MOST_CANDIDATES, _LEAST_CANDIDATES, _CANDIDATE_BYTES = 30, 4, 256 << 20


@dataclass(frozen=True)
class CompressionSettings(BasisSettings):
    """How a table is compressed. Of the basis, only its kernel and size are of use: its functions are random rows."""

    UNUSED: ClassVar[tuple[str, ...]] = ("fit_intercept",)

    rule: str | Rule = parameter(
        "uniform",
        "The rule that chooses the basis.",
        "basis",
        kind=str,
        checked=False,
    )
    objective: str | float = parameter(
        "trace",
        "The score of candidates in the rule few-sweep: the residual trace (trace), what they explain of the targets "
        "(prediction), or a mixture (a number, 1 for prediction).",
        "basis",
        checked=False,
        words=("trace", "prediction"),
    )
    method: str = parameter(
        SQUASH,
        "What the rows become: random rows (subsample), means of clusters of the features (precluster), rows with the "
        "likelihood of all rows (squash), or rows whose mean features are those of all rows (thinning).",
        kind=str,
        words=METHODS,
    )
    size: int | None = parameter(
        None, "The number of rows.", kind=int, least=1, optional=True, default_words="2 % of the rows"
    )
    functions: str = parameter(
        "fitted",
        "The functions whose likelihood squash keeps: those near a fit to all rows (fitted), random ones of the "
        "kernel's space (kernel), or random linear ones of the scaled features (linear).",
        kind=str,
        words=FUNCTIONS,
    )
    oversampling: int | None = parameter(
        None,
        "The number of candidates that are drawn for each row of the result, for thinning, and for squash of classes.",
        kind=int,
        least=2,
        optional=True,
        default_words="30, fewer where they take more than 256 MB",
    )
    sweeps: int = parameter(5, "The largest number of sweeps that move the centres of clusters.", kind=int, least=0)
    representative: str = parameter(
        "mean",
        "The row of a cluster: the mean of its rows (mean), or the row that it began with (seed).",
        kind=str,
        words=REPRESENTATIVES,
    )
    target_weight: float = parameter(
        0.0,
        "The weight of targets that are numbers beside the features, in the clusters of precluster.",
        least=0.0,
    )
    profiles: int = parameter(
        100, "The number of random functions of likelihood profiles, for squash.", kind=int, least=1
    )
    loss: str = parameter(
        "logistic",
        "The loss of likelihood profiles of classes, for squash with random functions.",
        kind=str,
        words=LOSSES,
    )

    @property
    def needs_all_functions(self) -> bool:
        """False: functions only tell rows apart, and those that depend on others tell nothing more."""
        return False

    @property
    def uses_kernel(self) -> bool:
        """Whether the method uses functions of a kernel."""
        return self.method == THINNING or (self.method == SQUASH and self.functions != "linear")

    @property
    def fits(self) -> bool:
        """Whether the method begins with a fit to all rows."""
        return self.method == SQUASH and self.functions == "fitted"

    def herds(self, table: Table) -> bool:
        """Whether rows are picked one after the other; else they become clusters, or are drawn."""
        return self.method == THINNING or (self.fits and table.classes is not None)

    def candidates(self, table: Table) -> int:
        """Number of candidates for each row of the result."""
        if self.oversampling is not None:
            return self.oversampling
        bytes_of_one = self.rows_of(table) * (table.stored_width * table.dtype.itemsize + 8 * table.n_targets + 24)
        return int(min(_MOST_CANDIDATES, max(_LEAST_CANDIDATES, _CANDIDATE_BYTES // bytes_of_one)))

    def check_sparse(self, table: Table) -> None:
        """Refuse sparse rows where they become clusters of features, or means of rows: both are dense."""
        if not table.sparse or self.method == SUBSAMPLE:
            return
        of_features = self.method == PRECLUSTER or self.fits
        if self.method != THINNING and not self.herds(table) and (of_features or self.representative == "mean"):
            raise ParameterError(
                f"the rows are sparse ({table.n_rows} x {table.n_features}), and "
                + (
                    f"{option('method', self.method)} makes clusters of their features, whose centres are dense"
                    if of_features
                    else f"{option('representative', 'mean')} makes means of rows, which are dense"
                )
                + f"; give {option('method', THINNING)} or {option('method', SUBSAMPLE)}, "
                f"{option('method', SQUASH)} with {option('representative', 'seed')} and "
                f"{option('functions', 'kernel')} or {option('functions', 'linear')}, or targets that are classes"
            )
        super().check_sparse(table)

    @property
    def searches_lengthscale(self) -> bool:
        """Whether the lengthscale is found on a sample of rows; other methods need none."""
        return (self.uses_kernel or self.searches_sample) and super().searches_lengthscale

    def components(self, table: Table) -> int:
        """Number of functions: one where the method uses none, since a basis is chosen in any case."""
        if self.uses_kernel:
            return super().components(table)
        if self.n_components is not None:
            raise ParameterError(
                f"{option('n_components')} is {self.n_components}, and {option('method', self.method)} uses no "
                "functions of a kernel; leave it out"
            )
        return 1

    def rows_of(self, table: Table) -> int:
        """Number of rows of the compressed table.

        Raises
        ------
        ParameterError
            There are fewer rows of weight > 0, or a method needs targets and there are none.
        """
        if self.method == SQUASH and table.n_targets == 0:
            raise ParameterError(
                f"{option('method', SQUASH)} compares what rows say about their targets, and the rows have none; give "
                f"targets, or {option('method', PRECLUSTER)}"
            )
        if self.size is None:
            return max(1, math.ceil(table.counted / _SHARE))
        if self.size > table.counted:
            raise ParameterError(
                f"{option('size')} is {self.size}, more than the {table.counted} rows"
                + ("" if table.counted == table.n_rows else " of weight > 0")
                + f"; give at most {table.counted}"
            )
        return int(self.size)

    def without_targets(self, table: Table) -> bool:
        """Whether the choice of scaling, kernel and basis needs no targets."""
        auto: Unchecked = self.lengthscale
        return not (self.searches_sample or (self.searches_lengthscale and auto == "auto") or self.rule != "uniform")
