"""A fitted Gaussian process or committee: configuration and named arrays, in memory as on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from streamkernel.models._saturation import Degrees
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.models.predicting import checked_level
from streamkernel.models.tuned import TuningRecord
from streamkernel.models.updatable import UpdatableModel
from streamkernel.records import Count, CountedTotals, Record, UpdatableRecord
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.predictions import GaussianPredictions
from streamkernel.reductions.scores import GaussianScores
from streamkernel.reductions.sums import (
    BlockNoise,
    ConstantNoise,
    DiagonalNoise,
    GaussianEquations,
    GaussianSums,
    RowNoise,
)
from streamkernel.settings.checks import checked_choice
from streamkernel.settings.gaussian import EVIDENCE, GaussianSettingsRecord
from streamkernel.solvers import GaussianSolution, GaussianSystem
from streamkernel.type_aliases import AnyArray, Fields, FieldsView, Unchecked

VARIANCES = ("evidence", "keep")

_SUMS = ("H", "g", "YY", "G1", "Y1", "squares")  # arrays of `GaussianSums`


class QuerySet(Record):
    """The rule on the number of query points, with its numbers."""

    points: Count
    from_features: float | None
    from_sample: float | None
    sample: Count


class GaussianTotals(CountedTotals):
    """Sums over the rows of the fit; `weight` is there where it is not the number of rows."""

    residual_trace: float
    log_det: float
    weight: float | None = None


class GaussianSolutionRecord(Record):
    """The evidence of all rows and targets in nats, and the effective degrees of freedom of each target."""

    log_evidence: float
    bound: float | None
    effective_df: tuple[float, ...]


class GaussianRecord(UpdatableRecord):
    """The fields of a Gaussian process or a committee."""

    settings: GaussianSettingsRecord
    totals: GaussianTotals
    approximation: str
    row_noise: tuple[float, float] | None
    block_size: int | None
    solution: GaussianSolutionRecord
    tuning: TuningRecord | None = None
    query_set: QuerySet | None = None


@dataclass(frozen=True)
class GaussianModel(UpdatableModel):
    """A fitted Gaussian process or committee."""

    KIND: ClassVar[str] = "gaussian-process"
    RECORD: ClassVar[type[GaussianRecord]] = GaussianRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **UpdatableModel.SHAPES,
        "dual_coef": ("n", "d"),
        "intercept": ("d",),
        "rotation": ("n", "n"),
        "shares": ("n", "d"),
        "signal_variance": ("d",),
        "noise_variance": ("d",),
        "sum_H": ("n", "n"),
        "sum_g": ("n", "d"),
        "sum_YY": ("d", "d"),
        "sum_G1": ("n",),
        "sum_Y1": ("d",),
        "sum_squares": ("n",),
        "centre": ("d",),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **UpdatableModel.OPTIONAL,
        "tuning_parameters": ("t", "k"),
        "tuning_values": ("t",),
        "tuning_stage": ("t",),
        "member_weights": ("B",),
        "cells": ("c", "width"),
        "check_std": ("c of check", "d of check"),
    }
    WHOLE: ClassVar[frozenset[str]] = UpdatableModel.WHOLE | {"tuning_stage"}
    CHOICE: ClassVar[str] = "variances"
    _NOUN: ClassVar[str] = "Gaussian process model"

    record: GaussianRecord

    @property
    def sums(self) -> GaussianSums:
        """The sums of the final sweep; an update adds appended rows to them."""
        totals = self.record.totals
        return GaussianSums(
            **{name: self.arrays[f"sum_{name}"] for name in _SUMS},
            centre=self.arrays["centre"],
            log_det=totals.log_det,
            trace=totals.trace,
            residual_trace=totals.residual_trace,
            count=totals.rows,
            weight=float(totals.rows) if totals.weight is None else totals.weight,
        )

    @property
    def row_noise(self) -> RowNoise:
        """The model of cov(y | f at the basis) that the sums were computed with."""
        made = self.record.row_noise
        if made is None:
            return ConstantNoise()
        signal, noise = made
        if self.record.block_size is None:
            return DiagonalNoise(signal, noise)
        return BlockNoise(signal, noise, self.record.block_size, self.arrays.get("cells"), self.record.independent)

    def reduction_of_rows(self, rows: int) -> GaussianEquations:
        # Blocks of noise begin with the first of these rows.
        return GaussianEquations(self.basis, self.arrays["centre"], self.row_noise)

    def check_choices(self, choices: FieldsView) -> None:
        super().check_choices(choices)
        if "variances" in choices:
            checked_choice("variances", choices["variances"], VARIANCES)

    def with_sums(self, sums: GaussianSums, choices: FieldsView | None = None) -> Self:
        """As in the base class; `variances` is "keep" (those of the model stay) or "evidence" (the sums give all of
        them). By default, as in the fit, a variance that was given stays.
        """
        settings, arrays = self.record.settings, self.arrays
        variances = (choices or {}).get("variances")
        system = GaussianSystem(self.basis, sums, self.row_noise, independent=self.record.independent)
        if variances == "keep":
            solution = system.solve(arrays["signal_variance"], arrays["noise_variance"])
        else:
            given = (settings.signal_variance, settings.noise_variance)
            solution = solved(system, *(given if variances is None else (variances, variances)))
        parts = {**arrays, "residual_path": path_of(sums.trace, sums.squares), **gaussian_arrays(sums, solution)}
        parts.pop("member_weights", None)
        record = self.record.changed(**gaussian_record(sums, solution))
        return self.with_parts(record, parts).with_basis(self.basis)

    @property
    def degrees(self) -> Degrees | None:
        settings = self.record.settings
        return self._degrees(self.record.solution.effective_df, chosen=isinstance(settings.noise_variance, str))

    def solution_fields(self) -> Fields:
        solution = self.record.solution
        return {
            "approximation": self.record.approximation,
            "signal_variance": self.arrays["signal_variance"].tolist(),
            "noise_variance": self.arrays["noise_variance"].tolist(),
            "log_evidence": solution.log_evidence,
            "bound": solution.bound,
            "effective_df": list(solution.effective_df),
            **self._saturation,
        }

    def outputs(self, *, std: bool = False) -> GaussianPredictions:
        return self.predictions(std=std)

    def intervals(self, level: float, *, std: bool = False) -> GaussianPredictions:
        return replace(self.predictions(std=std), level=checked_level(level))

    def scores(self) -> AnyReduction:
        return GaussianScores(self.predictions(), self.record.target_scale)

    def predictions(self, *, std: bool = False, latent: bool = False) -> GaussianPredictions:
        """The row map that predicts, on rows that are scaled already.

        Parameters
        ----------
        std : also give standard deviations.
        latent : predict the function, without the noise of a target.
        """
        arrays = self.arrays
        return GaussianPredictions(
            self.basis,
            self.coefficients,
            self.intercept,
            np.ascontiguousarray(arrays["rotation"]),
            arrays["shares"],
            arrays["signal_variance"],
            arrays["noise_variance"],
            flat=self.flat,
            std=std,
            latent=latent,
        )


def gaussian_arrays(sums: GaussianSums, solution: GaussianSolution) -> dict[str, AnyArray]:
    """Arrays that follow from the sums."""
    return {
        "dual_coef": solution.coefficients,
        "intercept": solution.intercept,
        "rotation": solution.rotation,
        "shares": solution.shares,
        "signal_variance": solution.signal,
        "noise_variance": solution.noise,
        **{f"sum_{name}": getattr(sums, name) for name in _SUMS},
        "centre": sums.centre,
    }


def gaussian_record(sums: GaussianSums, solution: GaussianSolution) -> Fields:
    """Fields that follow from the sums."""
    return {
        "totals": GaussianTotals(
            rows=sums.count,
            trace=sums.trace,
            residual_trace=sums.residual_trace,
            log_det=sums.log_det,
            **({} if sums.weight == sums.count else {"weight": sums.weight}),
        ),
        "certificate": certificate_of(sums.trace, sums.residual_trace),
        "solution": GaussianSolutionRecord(
            log_evidence=float(solution.log_evidence.sum()),
            bound=None if solution.bound is None else float(solution.bound.sum()),
            effective_df=tuple(solution.effective_df.tolist()),
        ),
    }


def solved(system: GaussianSystem, signal: Unchecked, noise: Unchecked) -> GaussianSolution:
    """The posterior for given variances; "evidence" stands for those that maximise the evidence of the sums."""
    signal, noise = (None if value == EVIDENCE else float(value) for value in (signal, noise))
    found = system.choose(signal=signal, noise=noise)
    return system.solve(found.signal, found.noise)
