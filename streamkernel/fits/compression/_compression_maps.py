"""What the methods of compression compare rows by: made of a chosen basis, or with its shapes, for plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import Basis, unfilled
from streamkernel.compression.pilot import Pilot, pilot_of
from streamkernel.engine import Session
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.reductions import Sample, stream_generator
from streamkernel.reductions.mean_features import ClassFeatures, MeanFeatures, ScoreFeatures
from streamkernel.reductions.row_spaces import Fitted, Joint, LikelihoodProfiles, RowSpace
from streamkernel.reductions.scaling import Scaling
from streamkernel.reductions.sparse_scores import SparseScores, squared_norms
from streamkernel.reductions.sums import Features, FeatureTimes, SparseTimes
from streamkernel.settings.compression import PRECLUSTER, CompressionSettings
from streamkernel.table import SparseScaler, Table, TableStatistics
from streamkernel.type_aliases import AnyArray, Float

_FUNCTIONS = (31,)  # stream of the counter-based generator
# Weight of the fitted value beside the features: of 2 % of the rows, the error of a kernel ridge regression, less that
# of all rows, is .4 of that of random rows on california-housing and .67 on kin40k; with 0 it is .5 and .8, with 1
# .4 and .8.
_FITTED = 0.3
_PIECE = 2048  # rows that are scaled at a time


def _squares(scaling: Scaling, X: AnyArray) -> Float:
    """(b,) ``|x|^2`` of the scaled rows of stored ones."""
    scaled = scaling.of(X).astype(np.float64)
    if scaling.centre is not None:
        return squared_norms(scaling, scaled)
    return np.asarray(np.einsum("ij,ij->i", scaled, scaled))


def needs_statistics(table: Table, settings: CompressionSettings) -> bool:
    """Whether a sweep must find means and deviations of the columns, or of the targets."""
    wanted = settings.scale != "none" or (table.n_targets > 0 and table.classes is None)
    return table.own_statistics is None and wanted


def table_of_choice(table: Table, settings: CompressionSettings) -> Table:
    """The table that scaling, kernel and basis are chosen from."""
    return table.without_targets() if settings.without_targets(table) else table


@dataclass(frozen=True)
class Units:
    """Mean and spread (d,) of targets that are numbers; of length 0 for others."""

    centre: Float
    spread: Float

    @classmethod
    def of(cls, table: Table, statistics: TableStatistics | None) -> Units:
        if table.classes is not None or table.n_targets == 0:
            return cls(np.zeros(0), np.ones(0))
        assert statistics is not None
        assert statistics.y is not None
        return cls(statistics.y.mean.copy(), np.where(statistics.y.std > 0.0, statistics.y.std, 1.0))

    @classmethod
    def unfilled(cls, table: Table) -> Units:
        """The same shapes, for plans."""
        d = 0 if table.classes is not None else table.n_targets
        return cls(np.zeros(d), np.ones(d))


@dataclass(frozen=True)
class Maps:
    """The maps of rows that a method needs.

    Attributes
    ----------
    settings, scaling, features, units : how rows are scaled, functions of the basis, units of the targets.
    classes : number of classes; 0 for none.
    pilot : fit to all rows; None where the method begins with none.
    radius : root of the mean of ``|x|^2`` over scaled rows.
    normal : function of a shape: standard normal numbers.
    """

    settings: CompressionSettings
    scaling: Scaling
    features: Features
    units: Units
    classes: int
    pilot: Pilot | None
    radius: float
    normal: Callable[[tuple[int, ...]], Float]

    @classmethod
    def of(
        cls,
        table: Table,
        settings: CompressionSettings,
        chosen: Chosen,
        statistics: TableStatistics | None,
        drawn: Sample,
        session: Session,
    ) -> Maps:
        """The maps for a basis; a fit costs one sweep.

        Parameters
        ----------
        statistics : of the columns and targets as stored; None where they are not needed.
        drawn : some rows, as stored.
        """
        basis, units = chosen.selection.basis, Units.of(table, statistics)
        centre = None
        if table.sparse:
            centre = np.zeros(table.n_features)
            if isinstance(chosen.scaler, SparseScaler):
                assert statistics is not None
                centre = statistics.X.mean / chosen.scaler.scale
        scaling = Scaling(chosen.scaler, table.dtype, chosen.table.width, centre)
        pilot = None
        if settings.fits:
            rows = replace(chosen.table, targets=table.targets)
            classes = table.classes is not None
            centre = np.average(drawn.Y, axis=0, weights=drawn.weights) if classes else units.centre
            pilot = pilot_of(rows, basis, centre, None if classes else units.spread**2, session)
        radius = 0.0
        if pilot is not None:  # other methods compare no features
            pieces = range(0, len(drawn), _PIECE)
            squares = np.concatenate([_squares(scaling, drawn.X[first : first + _PIECE]) for first in pieces])
            radius = float(np.sqrt(np.average(squares, weights=drawn.weights)))
        generator = stream_generator(settings.seed, _FUNCTIONS)
        count = 0 if table.classes is None else len(table.classes)
        features = Features.of_basis(basis)
        return cls(settings, scaling, features, units, count, pilot, radius or 1.0, generator.standard_normal)

    @classmethod
    def unfilled(cls, table: Table, settings: CompressionSettings, basis: Basis, width: int) -> Maps:
        """Maps with the shapes of those of a basis, and without their memory, for plans."""
        d = table.n_targets
        classes = 0 if table.classes is None else len(table.classes)
        pilot = Pilot(unfilled(len(basis), d), np.zeros(d)) if settings.fits else None
        scaling = Scaling(None, table.dtype, width, unfilled(table.n_features) if table.sparse else None)
        units = Units.unfilled(table)
        return cls(settings, scaling, Features.of_basis(basis), units, classes, pilot, 1.0, lambda s: unfilled(*s))

    def mean_features(self) -> MeanFeatures:
        """Features of rows whose means shall be those of all rows."""
        if self.pilot is not None:
            beta, intercept = self.pilot.beta, self.pilot.intercept
            scores = ScoreFeatures if self.scaling.centre is None else SparseScores
            return scores(self.scaling, self.features, beta, intercept, self.radius)
        return ClassFeatures(self.scaling, self.features, self.classes)

    def space(self, *, planned: bool = False) -> RowSpace:
        """The space in which rows become clusters; `planned` without the algebra that needs a basis."""
        settings, scaling, units = self.settings, self.scaling, self.units
        width, d = scaling.width, len(units.spread)
        if settings.method == PRECLUSTER:
            factors = settings.target_weight * np.sqrt(width) / units.spread
            return Joint(scaling, units.centre, factors if settings.target_weight else np.zeros(0))
        if self.pilot is not None:
            beta, intercept = self.pilot.beta, self.pilot.intercept
            f = FeatureTimes(self.features, beta, intercept) if planned else None
            f = f or FeatureTimes.of(self.features, beta, intercept)
            return Fitted(scaling, f, units.centre, units.spread, self.radius, _FITTED)
        linear = settings.functions == "linear"
        features = Features(None, scaling.columns) if linear else self.features
        q = settings.profiles * max(1, d)
        A, offset = self.normal((features.width, q)), self.normal((q,)) if linear else np.zeros(q)
        if linear and not planned:
            A /= np.sqrt(features.width)
        profiles: FeatureTimes | SparseTimes
        if linear and scaling.centre is not None:
            profiles = SparseTimes(A, offset if planned else offset - scaling.centre @ A, width)
        else:
            profiles = FeatureTimes(features, A, offset) if planned else FeatureTimes.of(features, A, offset)
        loss = "gaussian" if d else settings.loss
        return LikelihoodProfiles(scaling, profiles, loss, units.centre, units.spread)
