"""Fitted models on disk, and the estimators that are made of them: saved and loaded in one manner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from os import PathLike
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from streamkernel.errors import ModelFormatError, StreamKernelError
from streamkernel.factors import KeptBasis
from streamkernel.kernels import Kernel
from streamkernel.store import write_bundle

__all__ = ["SavedEstimator", "SavedModel"]


class SavedModel(KeptBasis):
    """Base of what an estimator keeps: everything that `save` writes and `load` reads back."""

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model as a Zarr group with JSON beside it, whole or not at all.

        Raises
        ------
        ModelFormatError
            `load` would refuse it; nothing was written.
        """
        self.write(path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str], *, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """Read a model back.

        Parameters
        ----------
        kernels : classes of kernels that are not ours, of which the model's may be one: nothing is imported by a name
            in a file.

        Raises
        ------
        StoreNotFoundError, ModelFormatError, IncompleteStoreError, CorruptMetadataError, CorruptChunkError
        """
        bundle = cls.read(path, kernels)
        return cls(bundle.config, bundle.arrays).checked(path)  # type: ignore[call-arg]  # a dataclass of these two


class SavedEstimator(ABC):
    """Base of the estimators: all they know once they are fitted is in `model_`."""

    _kind: ClassVar[str]
    _model: ClassVar[type[SavedModel]]

    @abstractmethod
    def _adopt(self, model: Any) -> Self:
        """Take a model's parts as fitted attributes."""

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write what was fitted as a Zarr group with JSON beside it: no pickle.

        Raises
        ------
        ModelFormatError
            `load` would refuse it; nothing was written.
        """
        check_is_fitted(self, "model_")
        model: SavedModel = self.model_  # type: ignore[attr-defined]  # set by _adopt
        # As `load` would take it; `model.save` would look at it once more.
        self._taken(model.as_read(path), path)
        write_bundle(path, model.bundle(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str], *, kernels: Iterable[type[Kernel]] = ()) -> Self:
        """A fitted estimator from a saved model, whoever saved it; its parameters are the defaults.

        Parameters
        ----------
        kernels : classes of kernels of your own, of which the model's may be one: ``kernels=[MyKernel]``. Nothing is
            imported by a name in a file.

        Raises
        ------
        StoreError
            There is no whole model, or one of another kind or version.
        """
        return cls._taken(cls._model.load(path, kernels=kernels), path)

    @classmethod
    def _taken(cls, model: SavedModel, path: str | PathLike[str]) -> Self:
        """An estimator of a model that is at the path, or is to be."""
        try:
            if model.config["estimator"] != cls._kind:
                raise ModelFormatError(f"{path} holds a {model.config['estimator']!r} model, not {cls._kind!r}")
            return cls()._adopt(model)
        except StreamKernelError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            # Whole to its digests, and yet a field is not there or is not what it should be.
            raise ModelFormatError(
                f"{path} is not a whole {cls._kind!r} model ({error!r:.200}); fit it again"
            ) from error
