"""`update` for the estimators whose models can be updated."""

from __future__ import annotations

from typing import Any, Self

from streamkernel.byte_counts import parse_bytes
from streamkernel.engine import resident_bytes
from streamkernel.estimators._apart import apart
from streamkernel.estimators.base import SupervisedEstimator, in_order, is_array_like, names_of, warn_of_names
from streamkernel.table.columns import with_names
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.updating.staleness import STALE
from streamkernel.updating.update import Update, new_rows, update_model


class UpdatingEstimator(SupervisedEstimator):
    """Base of estimators whose models are `UpdatableModel`s.

    Attributes
    ----------
    last_update_ : Update, the result of the last call of `update`.
    """

    last_update_: Update[Any]

    def update(
        self,
        X: Unchecked,
        y: Unchecked = None,
        sample_weight: Unchecked = None,
        *,
        stale: float = STALE,
        grow: int = 0,
        as_new: bool = False,
        **choices: Unchecked,
    ) -> Self:
        """Fold in the rows that the model has not seen; the result is the fit of its basis to all rows.

        Unlike in `partial_fit`, rows count once: rows seen in `fit`, `update` or `partial_fit` are recognised by
        content and left out. They may be given again with more rows after them. An array or a store that begins with
        other rows is another one, and all its rows are new. Basis, scaler and lengthscale stay.

        Parameters
        ----------
        X : (m, p) NumPy, pandas, Dask or Zarr array, xarray Dataset, `Table`, or the path of a store.
        y : (m,) or (m, d) targets; may be left out where X contains them.
        sample_weight : (m,) row weights, as in `fit`. Rows that were seen with other weights are other rows.
        stale : warn where the relative residual trace of the new rows is more than this times that of the rows of the
            fit.
        grow : if so, add at most this many functions to the basis; X must then hold all rows, old and new.
        as_new : treat rows of which some, but not all, have changed since they were seen as new ones.
        choices : for ridge models ``alpha="gcv"``, "keep" or a number; for processes and committees
            ``variances="evidence"`` or "keep". By default what was given stays, also an alpha that held-out folds
            chose, and all else is chosen again.

        Returns
        -------
        self

        Raises
        ------
        StreamKernelError
            An error of the parameters, the rows or the machine; the estimator is unchanged.
        """
        return self._folded(X, y, sample_weight, stale=stale, grow=grow, as_new=as_new, choices=choices)

    def _partly_fitted(self, X: Unchecked, y: Unchecked, sample_weight: Unchecked, classes: Unchecked = None) -> Self:
        """The fit to these rows; where there is one already, the same with these rows more, seen before or not."""
        if not hasattr(self, "model_"):
            return self._fitted_to(X, y, sample_weight, classes)
        return self._folded(X, y, sample_weight, again=True)

    def _folded(
        self, X: Unchecked, y: Unchecked, sample_weight: Unchecked, *, choices: Fields | None = None, **how: Unchecked
    ) -> Self:
        """The model with further rows; `how` are options of `update_model`."""
        with apart(self) as new:
            model = new._fitted()
            if is_array_like(X):
                X, y = new._checked(in_order(X, model.known_columns), y, reset=False)
                before = resident_bytes()
                table = with_names(new_rows(model, X, y, sample_weight), names_of(new))
            else:
                before = resident_bytes()
                table = warn_of_names(new, model.known_columns, new_rows(model, X, y, sample_weight))
            done = update_model(
                model,
                table,
                new._session(),
                choices=choices or {},
                **how,
                memory_limit=parse_bytes(new.memory_limit),
                driver_bytes=before,
            )
            new.last_update_ = done
            new._adopt(done.model)
        return self
