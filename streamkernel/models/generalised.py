"""A fitted generalised Gaussian process, of classes or counts: configuration and arrays (docs/model.md)."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.models._saturation import Degrees
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.tuned import TuningRecord
from streamkernel.records import Count, CountedTotals, ModelRecord, NonNegative, Record
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.predictions import ClassProbabilities, LatentPosterior, PoissonPredictions, covariance_of
from streamkernel.reductions.scores import CountScores, ProbabilityScores
from streamkernel.settings.generalised import GeneralisedSettingsRecord
from streamkernel.type_aliases import Fields
from streamkernel.wording import option


class NewtonIteration(Record):
    """One iteration: the objective before it, the predicted decrease of a full step, and the step length."""

    objective: float
    promised: float
    step: float


class GeneralisedSolutionRecord(Record):
    """The minimum; `decrement` is twice what a further step would gain."""

    method: str
    loss: float
    objective: float
    decrement: float
    converged: bool
    path: tuple[NewtonIteration, ...]
    iterations: Count
    log_evidence: float
    effective_df: float


class GeneralisedTotals(CountedTotals):
    """Sums over the rows of the fit; `weight` is there where it is not the number of rows."""

    weight: float | None = None


class GeneralisedRecord(ModelRecord):
    """The fields of a generalised Gaussian process."""

    settings: GeneralisedSettingsRecord
    totals: GeneralisedTotals
    likelihood: str
    signal_variance: NonNegative
    residual_share: NonNegative
    solution: GeneralisedSolutionRecord
    covariance_share: NonNegative = 1.0
    tuning: TuningRecord | None = None


@dataclass(frozen=True)
class GeneralisedModel(PredictingModel):
    """A fitted generalised Gaussian process, of classes or counts."""

    KIND: ClassVar[str] = "generalised-gaussian-process"
    RECORD: ClassVar[type[GeneralisedRecord]] = GeneralisedRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.SHAPES,
        "dual_coef": ("n", "c"),
        "intercept": ("c",),
        "contrasts": ("c", "r"),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.OPTIONAL,
        "covariance": ("k", "n", "n"),
        "covariance_vectors": ("n", "n"),
        "covariance_class_vectors": ("r", "r"),
        "covariance_shrinkage": ("n", "r"),
        "tuning_parameters": ("t", "q"),
        "tuning_values": ("t",),
        "tuning_stage": ("t",),
        "check_std": ("c of check", "d of check"),
        "check_probability": ("c of check", "d of check"),
    }
    WHOLE: ClassVar[frozenset[str]] = PredictingModel.WHOLE | {"tuning_stage"}
    _NOUN: ClassVar[str] = "generalised Gaussian process model"

    record: GeneralisedRecord

    @property
    def target_count(self) -> int:
        return 1 if self.classes is None else len(self.classes)

    @property
    def has_probabilities(self) -> bool:
        return self.classes is not None

    @property
    def posterior(self) -> LatentPosterior:
        """The latent functions, on rows that are scaled already."""
        arrays = self.arrays
        covariance = {name: np.ascontiguousarray(arrays[name]) for name in arrays if name.startswith("covariance")}
        return LatentPosterior(
            self.basis,
            np.ascontiguousarray(self.coefficients),
            self.intercept,
            arrays["contrasts"],
            self.record.signal_variance,
            covariance_of(covariance),
            self.record.residual_share,
            self.record.covariance_share,
        )

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        if "covariance" not in self.arrays:
            for name in ("covariance_vectors", "covariance_class_vectors", "covariance_shrinkage"):
                if name not in self.arrays:
                    self._refuse(path, f"it lacks {name!r}")
        functions, free = self.arrays["contrasts"].shape
        # Two classes are the signs of one function.
        wanted = 1 if self.target_count == 2 else self.target_count
        if functions != wanted or self.posterior.covariance.free != free:
            raise ModelFormatError(f"{path}: its functions are not those of its arrays; {self._AGAIN}")
        return self

    def predictions(self, *, std: bool = False) -> ClassProbabilities | PoissonPredictions:
        """The row map that predicts, on rows that are scaled already."""
        if self.classes is not None:
            return ClassProbabilities(self.posterior)
        return PoissonPredictions(self.posterior, std=std)

    def outputs(self, *, std: bool = False) -> ClassProbabilities | PoissonPredictions:
        if std and self.classes is not None:
            raise ParameterError(
                f"this is a {self.record.estimator} model: its uncertainty is in the probabilities, which are "
                f"always written; leave {option('return_std')} out"
            )
        return self.predictions(std=std)

    def scores(self) -> AnyReduction:
        work = self.predictions()
        return (
            ProbabilityScores(work)
            if isinstance(work, ClassProbabilities)
            else CountScores(work, self.record.target_scale)
        )

    @property
    def degrees(self) -> Degrees | None:
        used, settings = self.record.solution.effective_df, self.record.settings
        # Probabilities of C classes have C - 1 free functions; a rate has one.
        outputs = max(self.target_count - 1, 1)
        return self._degrees(used, chosen=isinstance(settings.signal_variance, str), outputs=outputs)

    def solution_fields(self) -> Fields:
        solution = self.record.solution
        return {
            "likelihood": self.record.likelihood,
            "signal_variance": self.record.signal_variance,
            "log_evidence": solution.log_evidence,
            "effective_df": solution.effective_df,
            **self._saturation,
            "iterations": solution.iterations,
            "converged": solution.converged,
        }
