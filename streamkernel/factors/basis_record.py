"""A basis and all facts about it: a configuration and named arrays, the common base of models, factors, transformers.

Stored on disk it has the same form, as a bundle (`streamkernel.store`); docs/model.md describes each field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.errors import ModelFormatError
from streamkernel.kernels import Kernel, handed_over, kernel_from_config, own_kernels
from streamkernel.store import Bundle, as_read, bundle_digest, read_bundle, write_bundle
from streamkernel.table import KnownColumns, Scaler, Table
from streamkernel.table.columns import are_real

__all__ = ["BasisRecord"]


class BasisRecord:
    """Base of the dataclasses `RidgeModel`, `Factor` and `TransformerModel`.

    Attributes
    ----------
    config : all fields that are not arrays.
    arrays : arrays by name; `components` are basis points in scaled units.
    """

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1
    # Shapes of required and of optional arrays: n basis functions, p features; other letters take any size, once.
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "components": ("n", "p"),
        "component_indices": ("n",),
        "residual_path": ("n + 1",),
        "gains": ("n or 0",),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        "gain_parts": ("n", "2"),
        "predicted_gains": ("n", "2"),
        "selection_traces": ("n + 1",),
    }
    # Phrases for messages: the kind of object, its origin, what to pass instead, how to get a new one.
    _NOUN: ClassVar[str]
    _MADE: ClassVar[str] = "the model was fitted on"
    _GIVE: ClassVar[str] = "predict on rows with the same columns"
    _AGAIN: ClassVar[str] = "fit it again"

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @cached_property
    def basis(self) -> Basis:
        """The n basis functions, in the order of picking."""
        kernel = kernel_from_config(self.config["kernel"])
        return Basis(kernel, np.ascontiguousarray(self.arrays["components"]), self.arrays["component_indices"])

    def with_basis(self, basis: Basis) -> Self:
        """This object, with a basis that the caller has already, and perhaps with its Cholesky factor L."""
        self.__dict__["basis"] = basis
        return self

    @property
    def scaler(self) -> Scaler | None:
        """The scaler that was applied to the rows; None if they are not scaled."""
        stored = self.config["scaler"]
        return None if stored is None else Scaler.from_config(stored)

    @property
    def column_names(self) -> list[str]:
        """Names of the p features."""
        names: list[str] = self.config["columns"]
        return names

    @property
    def known_columns(self) -> KnownColumns:
        """These names, to be compared with the names of other rows."""
        names = tuple(self.column_names)
        named = bool(self.config.get("named_columns", are_real(names)))
        return KnownColumns(names, named, self._MADE, self._GIVE)

    @property
    def component_indices(self) -> NDArray[np.int64]:
        """(n,) row numbers of the basis, in the order of picking; -1 for points that are not rows."""
        return self.arrays["component_indices"]

    @property
    def points(self) -> NDArray[Any]:
        """(n, p) basis points in the units of the rows."""
        Z, scaler = self.arrays["components"], self.scaler
        if scaler is None:
            return Z
        return (Z.astype(np.float64) * scaler.scale + scaler.mean).astype(Z.dtype)

    @property
    def residual_path(self) -> NDArray[np.float64]:
        """(n + 1,) exact residual traces ``tr(K - K~_t)``, t = 0 .. n."""
        return self.arrays["residual_path"]

    @property
    def gains(self) -> NDArray[np.float64]:
        """(n,) score of each pick; empty for rules without scores."""
        return self.arrays["gains"]

    @property
    def gain_parts(self) -> NDArray[np.float64] | None:
        """(n, 2) the two parts of each gain, of the trace and of the targets; None for rules without two parts."""
        return self.arrays.get("gain_parts")

    @property
    def predicted_gains(self) -> NDArray[np.float64] | None:
        """(n, 2) the same parts, predicted by look-ahead before each pick; None for rules that know the gains."""
        return self.arrays.get("predicted_gains")

    @property
    def selection_traces(self) -> NDArray[np.float64] | None:
        """(n + 1,) residual traces that the rule updated after each pick; None for rules that did not."""
        return self.arrays.get("selection_traces")

    def prepare(self, table: Table) -> Table:
        """A table of raw rows, with its columns in the order of the basis's table, and scaled like that table.

        Raises
        ------
        ShapeError
            The table has another number of columns, or other columns.
        """
        return self.known_columns.matched(table).with_scaler(self.scaler)

    @property
    def digest(self) -> str:
        """SHA-256 of all parts except times, memory and machine: equal work gives equal digests."""
        return bundle_digest(self.bundle())

    def bundle(self) -> Bundle:
        """The bundle that is passed to the store."""
        return Bundle(self.KIND, self.VERSION, self.config, self.arrays)

    @classmethod
    def read(cls, path: str | PathLike[str], kernels: Iterable[type[Kernel]] = ()) -> Bundle:
        """The bundle at a path, of this kind and version.

        Parameters
        ----------
        kernels : classes of kernels that are not ours.

        Raises
        ------
        StoreNotFoundError, ModelFormatError, IncompleteStoreError, CorruptMetadataError, CorruptChunkError
            The bundle is absent, of another kind, incomplete or damaged.
        """
        bundle = read_bundle(path, cls.KIND, versions=(cls.VERSION,), arrays=tuple(cls.SHAPES))
        try:
            _make_kernels_known(bundle.config, kernels)
        except ModelFormatError as error:
            raise ModelFormatError(f"{path}: {error}") from None
        return bundle

    def as_read(self, path: str | PathLike[str]) -> Self:
        """This object as a reader of the path will get it; raises before writing if a reader would refuse it.

        Raises
        ------
        ModelFormatError
            See `checked`.
        ParameterError, DTypeError
            JSON or Zarr cannot hold a value.
        """
        bundle = as_read(self.bundle())
        # A reader receives the classes of kernels that are not ours.
        with self._of_fields(path):
            kernels = [kernel_from_config(part["kernel"]) for part in _with_kernels(self.config)]
        _make_kernels_known(bundle.config, [kind for kernel in kernels for kind in own_kernels(kernel)])
        return self.with_parts(bundle.config, bundle.arrays).checked(path)

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write this object as a bundle, whole or not at all; an object that a reader would refuse is not written."""
        self.as_read(path)
        write_bundle(path, self.bundle(), overwrite=overwrite)

    def with_parts(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """An object of the same class with other parts."""
        return type(self)(config, arrays)  # type: ignore[call-arg]  # a dataclass of these two

    def checked(self, path: str | PathLike[str]) -> Self:
        """This object, if its parts fit together; called before writing and after reading.

        Raises
        ------
        ModelFormatError
            A field is missing or has a wrong value, or shapes disagree.
        """
        with self._of_fields(path):
            scaler, sizes = self.scaler, {"p": len(self.column_names)}
            wrong = [name for name in {**self.SHAPES, **self.OPTIONAL} if not self._fits(name, sizes)]
            assert self.basis.kernel is not None
            if not all(isinstance(name, str) for name in self.config.get("volatile", [])):
                raise ValueError("its volatile parts are not named")
        if wrong or (scaler is not None and scaler.n_features != sizes["p"]):
            raise ModelFormatError(f"{path}: the shapes of its arrays disagree; {self._AGAIN}")
        return self

    @contextmanager
    def _of_fields(self, path: str | PathLike[str]) -> Iterator[None]:
        """Turn errors of code that reads its fields into `ModelFormatError`: even whole files can have wrong fields."""
        try:
            yield
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, ModelFormatError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise ModelFormatError(f"{path} is not a {self._NOUN}: {why}; {self._AGAIN}") from error

    def _fits(self, name: str, sizes: dict[str, int]) -> bool:
        """Whether an array has its shape; a letter that has no size yet takes that of this array."""
        if name not in self.arrays:
            return name in self.OPTIONAL
        shape, wanted = self.arrays[name].shape, {**self.SHAPES, **self.OPTIONAL}[name]
        if len(shape) != len(wanted):
            return False
        for size, words in zip(shape, wanted, strict=True):
            letter, _, more = words.removesuffix(" or 0").partition(" + ")
            if size == 0 and words.endswith(" or 0"):
                continue
            expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, size - int(more or 0))
            if size != expected + int(more or 0):
                return False
        return True


def _with_kernels(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a configuration that have a kernel: the configuration itself, or each of its views."""
    return [part for part in (config, *config.get("views", ())) if isinstance(part, dict) and "kernel" in part]


def _make_kernels_known(config: dict[str, Any], kernels: Iterable[type[Kernel]]) -> None:
    """Give each kernel of a configuration from disk its class; `handed_over` lists the errors."""
    kinds = list(kernels)
    for part in _with_kernels(config):
        part["kernel"] = handed_over(part["kernel"], kinds)
