"""The base class of the estimators that are saved and loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from os import PathLike
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from streamkernel.errors import ModelFormatError
from streamkernel.kernels import Kernel
from streamkernel.models.saved import SavedModel
from streamkernel.store import write_bundle
from streamkernel.type_aliases import Fields


class SavedEstimator(ABC):
    """Base of the estimators: `model_` holds everything that a fit has found."""

    _kind: ClassVar[str]
    _model: ClassVar[type[SavedModel]]

    @abstractmethod
    def _adopt(self, model: Any) -> Self:
        """Set the fitted attributes from a model's parts."""

    def _set_parameters(self, given: Fields) -> None:
        """Set the parameters as attributes, as scikit-learn wants it; `given` are the locals of a constructor."""
        vars(self).update({name: value for name, value in given.items() if name != "self"})

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model as a Zarr group with JSON beside it: no pickle.

        Raises
        ------
        ModelFormatError
            `load` would refuse it; nothing was written.
        """
        check_is_fitted(self, "model_")
        model: SavedModel = self.model_  # type: ignore[attr-defined]  # set by _adopt
        # Check that `load` would accept the model. `model.save` would do the same check again.
        self._taken(model.as_read(path), path)
        write_bundle(path, model.bundle(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str], *, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """A fitted estimator from a saved model; its parameters are the defaults, not those of the fit.

        Parameters
        ----------
        kernels : classes of your own kernels that the model may have: ``kernels=[MyKernel]``. Nothing is imported by a
            name in a file.

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
