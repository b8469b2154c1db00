"""Boosting: a vote of kernel machines, each fitted to a few of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from streamkernel.engine import Progress
from streamkernel.estimators._classifier import IndicatorClassifier
from streamkernel.estimators.base import is_array_like
from streamkernel.fits.boosting.boosting import fit_boosting
from streamkernel.models.boosting import BoostingModel
from streamkernel.settings.boosting import BoostingSettings
from streamkernel.type_aliases import ArrayOrDask, Fields, Float, Unchecked, Untyped

_ROWS = 4096  # of a block in staged predictions


def _has_probabilities(self: KernelBoostingClassifier) -> bool:
    model = getattr(self, "model_", None)
    return self.calibration != "none" if model is None else bool(model.has_probabilities)


class KernelBoostingClassifier(IndicatorClassifier):
    """Weighted vote of kernel machines that are fitted one after another, each to a few per cent of the rows.

    ``method="resampling"`` is AdaBoost: the rows of a member are drawn in proportion to weights that grow where the
    members before are wrong. With the error e of a member under these weights its say is
    ``a = 1/2 log((1 - e) / e)``; with K > 2 classes ``log(K - 1) / 2`` more (SAMME). With support vector machines as
    members it is Boost-SMO (Pavlov, Mao & Dom 2000; Tresp 2001, section 3.1.3). A member costs one sweep, which
    measures it and draws the rows of the next. ``method="filtering"`` is Schapire's vote of three machines.

    Parameters
    ----------
    n_components : int, default None
        Largest number of functions of a member: terms of the learner "kmp" (None for 30), of "ridge" those of rows that
        are drawn among the member's (None for all of these). The functions of "svm" are its support vectors, and no
        more rows are drawn for it.
    method : {"resampling", "filtering"}, default "resampling"
    learner : {"svm", "ridge", "kmp"}, default "svm"
        Support vector machine by SMO, kernel ridge on all rows of the member, or matching pursuit of few functions.
    voting : {"hard", "soft"}, default None
        "hard": AdaBoost's vote, the weight of a member for its class. "soft": its weight times its confidence, which is
        how far the value of that class is above the next, at most 1. None for "soft", and for filtering "hard".
    masses : {"bounded", "exponential"}, default None
        Rows are drawn in proportion to their masses, which follow from the margin u of the vote before. "bounded":
        row weight times min(1, exp(-u)), MadaBoost, whose rows of wrong labels do not take over. "exponential": row
        weight times exp(-u), u the margin of the hard vote: AdaBoost. None for "bounded" with a soft vote, else
        "exponential".
    members : int, default 50
        Largest number of members of resampling.
    member_rows : float, default None
        Rows of a member: their number, or below 1 their share. None for 4 % of the rows, at least 200 and at most
        10,000.
    C : float, default 1
        Cost of a unit of loss of "svm", for a row that counts once in the sample of a member.
    member_alpha : float, default 0.1
        Ridge of "ridge".
    validation : float in [0, 0.5], default 0.1
        Share of the rows that no member sees: of the votes of the first 1, 2, ... members that with the least error on
        them is kept. Equal rows stay together. 0 for none; of fewer than 60 rows none is held out.
    patience : int, default None
        End after this number of members without a smaller error on held-out rows.
    search_rows : int, default None
        Largest number of rows, from the first, that filtering reads for the rows of each machine. Where the first
        machine is right on all of them, it is the model.
    calibration : {"platt", "isotonic", "none"}, default "none"
        How probabilities follow from the votes of held-out rows.
    class_weight : dict or "balanced", default None
        As in `KernelRidgeClassifier`.
    kernel, lengthscale, gamma, degree, coef0, kernel_params, scale, metric, metric_rank : as in `KernelRidge`
        Chosen once, and shared by all members.
    random_state, memory_limit, client, progress : as in `KernelRidge`

    Attributes
    ----------
    member_weights_ : (T,) a of the members of the vote
    member_errors_ : (T,) their errors, under their own weights of the rows
    classes_ : labels, sorted
    components_, component_indices_, lengthscale_, kernel_, n_sweeps_, model_ : as in `KernelRidge`
    dual_coef_, intercept_ : coefficients of the members, one after another, and their constants (T, K)

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel import KernelBoostingClassifier
    >>> X = np.random.default_rng(0).standard_normal((1000, 2))
    >>> y = np.hypot(*X.T) < 1.0
    >>> model = KernelBoostingClassifier(members=5, member_rows=60).fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    [True, False]
    """

    _kind = "boosting"
    _model = BoostingModel
    _settings_class: ClassVar[type[BoostingSettings]] = BoostingSettings
    _fit = staticmethod(fit_boosting)

    model_: BoostingModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        method: str = "resampling",
        learner: str = "svm",
        voting: str | None = None,
        masses: str | None = None,
        members: int = 50,
        member_rows: float | None = None,
        C: float = 1.0,
        member_alpha: float = 0.1,
        validation: float = 0.1,
        patience: int | None = None,
        search_rows: int | None = None,
        calibration: str = "none",
        class_weight: Unchecked = None,
        kernel: Unchecked = None,
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        scale: str = "standard",
        metric: Unchecked = None,
        metric_rank: int | None = None,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _settings(self) -> BoostingSettings:
        return self._settings_class.from_parameters({**self.get_params(deep=False), "rule_options": None})

    def _adopt(self, model: Any) -> Self:
        super()._adopt(model)
        self.member_weights_: Float = model.member_weights
        solution = model.record.solution
        self.member_errors_ = np.array([each.error for each in solution.members[: solution.kept]])
        return self

    def decision_function(self, X: Unchecked) -> ArrayOrDask:
        """Shares of the votes (m, classes), in sum 1 at most; for two classes the second minus the first, (m,)."""
        return super().decision_function(X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Unchecked) -> ArrayOrDask:
        """Class probabilities (m, classes), by the curves of held-out rows; lazy as in `predict`."""
        return self._values(X, self._fitted().outputs(), "probability")

    def staged_decision_function(self, X: Unchecked) -> Iterator[ArrayOrDask]:
        """`decision_function` of the votes of the first 1, 2, ... members."""
        model: BoostingModel = self._fitted()
        if is_array_like(X):
            for votes in self._staged_here(model, X):
                yield self._decisions(votes)
            return
        for count in range(1, len(model.members) + 1):
            yield self._decisions(self._values(X, model.predictions(members=count)))

    def staged_predict(self, X: Unchecked) -> Iterator[ArrayOrDask]:
        """`predict` by the votes of the first 1, 2, ... members."""
        model: BoostingModel = self._fitted()
        if is_array_like(X):
            for votes in self._staged_here(model, X):
                yield self._labels(votes.argmax(axis=1))
            return
        for count in range(1, len(model.members) + 1):
            yield self._labels(self._values(X, model.predictions(members=count, argmax=True)))

    def _staged_here(self, model: BoostingModel, X: Unchecked) -> Iterator[Float]:
        """Votes (m, C) for rows in memory: each member gives its classes once."""
        table, votes = self._here(X), model.predictions()
        runs = [(start, min(start + _ROWS, table.n_rows)) for start in range(0, table.n_rows, _ROWS)]
        codes = np.concatenate([votes.members.codes(table.read(*run).X) for run in runs])
        for count in range(1, len(votes.members) + 1):
            yield votes.first(count).of_codes(codes[:, :count])
