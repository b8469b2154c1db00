"""The base classes of the estimators: input of any kind, fitted attributes, values of rows, saving and loading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d

from streamkernel.byte_counts import parse_bytes
from streamkernel.engine import Progress, Session, executor_of, layout_of, resident_bytes
from streamkernel.engine.lazy import lazy_rows
from streamkernel.errors import ModelFormatError, ParameterError, warn_user
from streamkernel.estimators._apart import apart
from streamkernel.estimators._text_columns import refuse_times, validated
from streamkernel.kernels import Precomputed, UserKernel
from streamkernel.kernels.parameters import checked_columns
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.saved import SavedModel
from streamkernel.pairs import as_csr
from streamkernel.reductions import Collect, RowMap
from streamkernel.settings.basis import BasisSettings
from streamkernel.store import write_bundle
from streamkernel.table import KnownColumns, Table, open_table
from streamkernel.table.columns import frame_names, with_names
from streamkernel.table.finite import require_finite
from streamkernel.table.frames import known_types, refuse_query, refuse_unions
from streamkernel.table.targets import plain_labels
from streamkernel.table.values import unmasked
from streamkernel.type_aliases import AnyArray, ArrayOrDask, Fields, Unchecked, Untyped
from streamkernel.updating.update import known_rows
from streamkernel.wording import option

_NO_TARGETS = "no_validation"  # scikit-learn's word for the check of X alone


def is_array_like(X: Unchecked) -> bool:
    """Return whether X lies in memory; scikit-learn's own checks and messages then apply."""
    if isinstance(X, (str, PathLike, Table)):
        return False
    return type(X).__module__.split(".")[0] not in ("dask", "zarr", "xarray")


def takes_sparse(estimator: Untyped) -> bool:
    """Whether an estimator takes sparse rows: those of kernels do."""
    return getattr(estimator, "_settings_class", None) is not None


def is_precomputed(kernel: Unchecked) -> bool:
    """Whether the parameter `kernel` says that rows are those of a kernel matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == Precomputed.name)


def _width(y: Unchecked) -> int:
    """Columns of y; 1 for what is no matrix, which scikit-learn's checks refuse where it is no vector either."""
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # rows of different lengths
        return 1
    return int(shape[1]) if len(shape) == 2 else 1


def names_of(estimator: Untyped) -> list[str] | None:
    """Column names of the DataFrame that scikit-learn's checks have just converted; None for an array."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def checked(estimator: Untyped, X: Unchecked, y: Unchecked = _NO_TARGETS, **options: Unchecked) -> Any:
    """X, or X and y, as arrays that scikit-learn has checked; NaN and infinity are found by us, to name their place."""
    refuse_unions(X, "X")
    refuse_times(estimator, X, "X")
    X = known_types(X)
    if y is not None and y is not _NO_TARGETS:
        refuse_unions(y, "y")
        refuse_times(estimator, y, "y")
        y = known_types(y)
        require_finite(y, "y")
    sparse = "csr" if takes_sparse(estimator) else False
    found = validated(
        estimator, unmasked(X, "X"), y, accept_sparse=sparse, dtype="numeric", ensure_all_finite=False, **options
    )
    require_finite(found if y is _NO_TARGETS else found[0], "X", names_of(estimator))
    return found


def opened(
    X: Unchecked,
    y: Unchecked,
    sample_weight: Unchecked,
    names: list[str] | None,
    *,
    classify: bool = False,
    multilabel: bool = False,
) -> Table:
    """The rows of a fit as a table.

    Parameters
    ----------
    X, y : checked arrays, or what `open_table` takes.
    sample_weight : row weights; None for those of X where it is a table, else for 1.
    names : column names, where X has none.
    classify : whether y holds class labels.
    multilabel : whether several columns of y are labels.
    """
    table = open_table(X, y, classify=classify, multilabel=multilabel, weights=sample_weight, sparse=True)
    return with_names(table, names)


def of_classes(table: Table, classes: Unchecked) -> Table:
    """The table with its labels coded by these classes, which may be more than it has.

    Raises
    ------
    ParameterError
        The classes are no list of labels, or lack one that the table has; or its rows may have several labels.
    """
    labels = plain_labels(classes)
    known = np.unique(np.asarray(labels)) if np.ndim(labels) == 1 else np.zeros(0)
    if table.classes is None or not len(known):
        what = "y has several columns" if table.classes is None else "it is none"
        raise ParameterError(f"{option('classes')} is a list of the labels of one column, and {what}; leave it out")
    lacking = [label for label in table.classes.tolist() if label not in known.tolist()]
    if lacking:
        raise ParameterError(f"{option('classes')} lacks {lacking[0]!r}, which y holds; give all labels")
    return table.for_model(known, len(known))


def in_order(X: Unchecked, known: KnownColumns, what: str = "X") -> Unchecked:
    """A DataFrame with its columns in the order of the fit; scikit-learn's checks take rows without names.

    Raises
    ------
    ShapeError
        The names are not those of the fit.
    """
    names = frame_names(X, what)
    if names is None:
        return X
    order = replace(known, what=what).order_in(names, named=True)
    if order is None:
        return X
    # If the fit had no names and these are x0, x1, ..., scikit-learn's checks warn that it had none.
    return X.select(list(known.names)) if hasattr(X, "column_names") else X[list(known.names)]


def warn_of_names(estimator: Untyped, known: KnownColumns, table: Table) -> Table:
    """Warn, as scikit-learn does for rows in memory, where only the table or only the fit has names."""
    kind = type(estimator).__name__
    if table.named and not known.named:
        warn_user(f"X has feature names, but {kind} was fitted without feature names")
    elif known.named and not table.named:
        warn_user(f"X does not have valid feature names, but {kind} was fitted with feature names")
    return table


class SavedEstimator(BaseEstimator, ABC):
    """Base of the estimators: `model_` holds everything that a fit has found."""

    _kind: ClassVar[str]
    _model: ClassVar[type[SavedModel]]
    _settings_class: ClassVar[type[BasisSettings]]
    _classify: ClassVar[bool] = False

    memory_limit: Unchecked
    client: Untyped
    progress: Progress | None

    model_: Any

    @abstractmethod
    def _adopt(self, model: Any) -> Self:
        """Set the fitted attributes from a model's parts."""
        self.model_ = model
        self.n_features_in_ = len(model.record.columns)
        known = model.known_columns
        # As scikit-learn does: where the rows of the fit have names, else it is not there.
        if known.named:
            self.feature_names_in_ = np.array(known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.component_indices_ = model.component_indices
        self.n_sweeps_ = model.record.sweep_count
        return self

    def _adopt_basis(self, model: SavedModel) -> None:
        """Set the fitted attributes of a single basis."""
        self.kernel_ = model.basis.kernel
        self.components_ = as_csr(model.points, self.n_features_in_) if model.sparse else model.points
        self.residual_trace_ = model.record.certificate.residual_trace
        self.relative_residual_trace_ = model.record.certificate.relative_residual_trace

    def _set_parameters(self, given: Fields) -> None:
        """Set the parameters as attributes, as scikit-learn wants it; `given` are the locals of a constructor."""
        self.__dict__.update({name: value for name, value in given.items() if name != "self"})

    def _opened(self, X: Unchecked, sample_weight: Unchecked) -> tuple[Table, Session, Fields]:
        """Rows of a fit without targets, its session, and the bytes that it may take and those that are taken."""
        limit, names = parse_bytes(self.memory_limit), None
        if is_array_like(X):
            frame_names(X)
            X = checked(self, X)
            names = names_of(self)
        before = resident_bytes()
        table = opened(X, None, sample_weight, names)
        return table, self._session(), {"memory_limit": limit, "driver_bytes": before}

    def _session(self) -> Session:
        return Session(executor_of(self.client), progress=self.progress)

    def __sklearn_tags__(self) -> Untyped:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self)
        # scikit-learn's splitters then cut columns as they cut rows.
        takes_matrix = takes_sparse(self) and self._settings_class.TAKES_MATRIX
        tags.input_tags.pairwise = takes_matrix and is_precomputed(getattr(self, "kernel", None))
        return tags

    def _fitted(self) -> Any:
        check_is_fitted(self, "model_")
        return self.model_

    def _in_memory(self, X: Unchecked, known: KnownColumns, what: str = "X") -> Table:
        """Rows in memory, checked by `checked`, in the order of the columns of the fit."""
        X = checked(self, in_order(X, known, what), reset=False)
        # The names were checked above, so `warn_of_names` is not called.
        return with_names(open_table(X, sparse=takes_sparse(self)), names_of(self))

    def _here(self, X: Unchecked, diagonal: Unchecked = None) -> Table:
        """Rows in memory for a prediction, scaled as those of the fit."""
        return self._prepared(self._in_memory(X, self.model_.known_columns), diagonal)

    def _prepared(self, table: Table, diagonal: Unchecked) -> Table:
        """Rows as those of the fit; of a kernel matrix with their k(x, x) (m,), where it is given."""
        prepared: Table = self.model_.prepare(table)
        if diagonal is None:
            return prepared
        if not self.model_.of_matrix:
            raise ParameterError(
                "diagonal is of rows of a kernel matrix, and the kernel of this model is not precomputed; leave it out"
            )
        return prepared.with_diagonal(checked_columns(diagonal, table.n_rows, "diagonal", "X")[:, 0])

    def _values(self, X: Unchecked, work: RowMap, name: str = "prediction", diagonal: Unchecked = None) -> ArrayOrDask:
        """Values of `work` for the rows of X: computed now for rows in memory, lazy otherwise."""
        if is_array_like(X):
            return values_now(work, self._here(X, diagonal), name)
        table = warn_of_names(self, self.model_.known_columns, _rows_of(self, X).without_targets())
        return values_later(work, self._prepared(table, diagonal), name)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model as a Zarr group with JSON beside it: no pickle.

        Raises
        ------
        ModelFormatError
            `load` would refuse it; nothing was written.
        """
        model: SavedModel = self._fitted()
        # Check that `load` would accept the model. `model.save` would do the same check again.
        self._taken(model.as_read(path), path)
        write_bundle(path, model.bundle(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str], *, kernels: Iterable[UserKernel] = ()) -> Self:
        """A fitted estimator from a saved model; its parameters are the defaults, not those of the fit.

        Parameters
        ----------
        kernels : classes of your own kernels, or functions, that the model may have: ``kernels=[MyKernel]``. Nothing is
            imported by a name in a file.

        Raises
        ------
        StoreError
            There is no complete model, or one of another kind or version.
        """
        return cls._taken(cls._model.load(path, kernels=kernels), path)

    @classmethod
    def _taken(cls, model: SavedModel, path: str | PathLike[str]) -> Self:
        """An estimator with this model; `path` is where it is or will be saved, for messages."""
        if model.record.estimator != cls._kind:
            raise ModelFormatError(f"{path} holds a {model.record.estimator!r} model, not {cls._kind!r}")
        return cls()._adopt(model)


def _rows_of(estimator: Untyped, X: Unchecked) -> Table:
    """Rows outside memory, which may be sparse where the estimator takes these."""
    return open_table(X, sparse=takes_sparse(estimator))


def values_now(work: Unchecked, table: Table, name: str) -> AnyArray:
    """The values of a column of a row map, for rows in memory."""
    values: AnyArray = Session().sweep(Collect(work, name, table.n_rows), table, name)
    return values


def values_later(work: Unchecked, table: Table, name: str) -> ArrayOrDask:
    """The values of a column of a row map, as a lazy Dask array."""
    return lazy_rows(work, table, name, layout_of(work, table).block_rows)


class PredictingEstimator(SavedEstimator):
    """Settings, fit and fitted attributes of models that predict; subclasses name their parameters and their model."""

    _model: ClassVar[type[PredictingModel]]

    model_: PredictingModel

    def _settings(self) -> BasisSettings:
        """The settings that the parameters describe."""
        return self._settings_class.from_parameters(self.get_params(deep=False))

    @staticmethod
    @abstractmethod
    def _fit(
        table: Table, settings: Unchecked, session: Session, *, estimator: str, **options: Unchecked
    ) -> PredictingModel:
        """The fit of the kind; options are those of `PredictingRun`."""

    def _adopt(self, model: Any) -> Self:
        super()._adopt(model)
        self._adopt_basis(model)
        self.lengthscale_ = model.lengthscale
        coefficients, intercept = model.coefficients, model.intercept
        flat = coefficients.shape[1] == 1 and model.flat
        self.dual_coef_ = coefficients[:, 0] if flat else coefficients
        self.intercept_ = float(intercept[0]) if flat else intercept
        return self


class SupervisedEstimator(PredictingEstimator):
    """Fitting to targets and predicting them, for input of any kind."""

    _several_targets: ClassVar[bool] = False
    _several_labels: ClassVar[bool] = False  # whether several columns of y may be labels of the rows

    def fit(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : (m, p) NumPy, pandas, Dask or Zarr array, xarray Dataset, `Table`, or the path of a store; for most
            estimators also a sparse matrix or array of SciPy, which stays sparse.
        y : (m,) or (m, d) targets; may be left out where X contains them.
        sample_weight : (m,) row weights, at least 0, of any of these kinds, or one number for all rows: row i counts
            as if it stood w_i times. None for those of a `Table`, else for 1.

        Returns
        -------
        self

        Raises
        ------
        StreamKernelError
            An error of the parameters, the data or the machine; see `streamkernel.errors`.
        """
        return self._fitted_to(X, y, sample_weight)

    def _fitted_to(self, X: Unchecked, y: Unchecked, sample_weight: Unchecked, classes: Unchecked = None) -> Self:
        """The fit, to rows of which some of the classes may have none."""
        with apart(self) as new:
            settings = new._settings()
            limit = parse_bytes(new.memory_limit)
            flat, names = False, None
            if is_array_like(X):
                X, y = new._validated(X, y)
                flat, names = np.ndim(y) == 2, names_of(new)
            before = resident_bytes()
            table = opened(X, y, sample_weight, names, classify=new._classify, multilabel=new._several_labels)
            if classes is not None:
                table = of_classes(table, classes)
            model = new._fit(
                table,
                settings,
                new._session(),
                memory_limit=limit,
                estimator=new._kind,
                targets_are_2d=flat,
                driver_bytes=before,
            )
            new._adopt(model)
        return self

    def _score_of_table(self, X: Unchecked, y: Unchecked, sample_weight: Unchecked, name: str) -> float:
        """The score of this name of rows that are not plain arrays, from one sweep."""
        model = self._fitted()
        table = warn_of_names(self, model.known_columns, known_rows(model, X, y, sample_weight))
        if table.n_targets == 0:
            raise ParameterError("the rows have no targets to compare predictions with; give y")
        found = self._session().sweep(model.scores(), model.prepare(model.prepare_targets(table)), "scores")
        return float((found if isinstance(found, dict) else found.scalars)[name])

    def _validated(self, X: Unchecked, y: Unchecked) -> tuple[AnyArray, AnyArray]:
        """X and y of a fit as arrays."""
        frame_names(X)
        X, y = self._checked(X, y)
        # As scikit-learn does, with a warning: an estimator of one target predicts a vector.
        one = not (self._classify or self._several_targets) and y.shape[1:] == (1,)
        return X, column_or_1d(y, warn=True) if one else y

    def _checked(self, X: Unchecked, y: Unchecked, **options: Unchecked) -> tuple[AnyArray, AnyArray]:
        refuse_query(y)
        refuse_unions(y, "y")
        numbers = not self._classify
        y = y if numbers or y is None else plain_labels(y)
        several = numbers or (self._several_labels and _width(y) > 1)
        arrays: tuple[AnyArray, AnyArray] = checked(self, X, y, multi_output=several, y_numeric=numbers, **options)
        return arrays

    def __sklearn_tags__(self) -> Untyped:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = self._several_targets
        return tags
