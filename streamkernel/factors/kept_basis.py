"""A basis and all that is known of it: a configuration and named arrays, what models, factors and transformers share.

That is also how it lies on disk, as a bundle (`streamkernel.store`); docs/model.md describes each field.
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

__all__ = ["KeptBasis"]


class KeptBasis:
    """Base of the dataclasses `RidgeModel`, `Factor` and `TransformerModel`.

    Attributes
    ----------
    config : everything that is not an array.
    arrays : by name; `components` are basis points in scaled units.
    """

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1
    # Of arrays that must be there, and of those that may: n basis functions, p features; other letters as they come.
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
    # Words of the messages: what it is, how it came about, what else to give it, how to come by another.
    _NOUN: ClassVar[str]
    _MADE: ClassVar[str] = "the model was fitted on"
    _GIVE: ClassVar[str] = "predict on rows with the same columns"
    _AGAIN: ClassVar[str] = "fit it again"

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @cached_property
    def basis(self) -> Basis:
        """The n functions, in the order of picking."""
        kernel = kernel_from_config(self.config["kernel"])
        return Basis(kernel, np.ascontiguousarray(self.arrays["components"]), self.arrays["component_indices"])

    def with_basis(self, basis: Basis) -> Self:
        """This; its basis is at hand already, and perhaps its factor L with it."""
        self.__dict__["basis"] = basis
        return self

    @property
    def scaler(self) -> Scaler | None:
        """What the rows were scaled by."""
        stored = self.config["scaler"]
        return None if stored is None else Scaler.from_config(stored)

    @property
    def column_names(self) -> list[str]:
        """Names of the p features."""
        names: list[str] = self.config["columns"]
        return names

    @property
    def known_columns(self) -> KnownColumns:
        """These names, to hold those of other rows against."""
        names = tuple(self.column_names)
        named = bool(self.config.get("named_columns", are_real(names)))
        return KnownColumns(names, named, self._MADE, self._GIVE)

    @property
    def component_indices(self) -> NDArray[np.int64]:
        """(n,) row numbers of the basis, in the order of picking; -1 for points that are no rows."""
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
        """(n,) what each pick scored; empty for rules that do not score."""
        return self.arrays["gains"]

    @property
    def gain_parts(self) -> NDArray[np.float64] | None:
        """(n, 2) of each gain the part of the trace and that of the targets; None for rules without two parts."""
        return self.arrays.get("gain_parts")

    @property
    def predicted_gains(self) -> NDArray[np.float64] | None:
        """(n, 2) the same parts as look-ahead guessed them before each pick; None for rules that know the gains."""
        return self.arrays.get("predicted_gains")

    @property
    def selection_traces(self) -> NDArray[np.float64] | None:
        """(n + 1,) residual traces as the rule followed them from pick to pick; None for rules that did not."""
        return self.arrays.get("selection_traces")

    def prepare(self, table: Table) -> Table:
        """A table of raw rows, its columns in the order of those that the basis was chosen from, and scaled as these.

        Raises
        ------
        ShapeError
            Another number of columns than that table had, or other ones.
        """
        return self.known_columns.matched(table).with_scaler(self.scaler)

    @property
    def digest(self) -> str:
        """SHA-256 of everything but times, memory and where it ran: equal work, equal digests."""
        return bundle_digest(self.bundle())

    def bundle(self) -> Bundle:
        """What the store is given."""
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
        """
        bundle = read_bundle(path, cls.KIND, versions=(cls.VERSION,), arrays=tuple(cls.SHAPES))
        try:
            _make_kernels_known(bundle.config, kernels)
        except ModelFormatError as error:
            raise ModelFormatError(f"{path}: {error}") from None
        return bundle

    def as_read(self, path: str | PathLike[str]) -> Self:
        """This as a reader of the path will find it; refused, before it is written, as that reader would refuse it.

        Raises
        ------
        ModelFormatError
            See `checked`.
        ParameterError, DTypeError
            What JSON or Zarr cannot hold.
        """
        bundle = as_read(self.bundle())
        # A reader is given the classes of kernels that are not ours.
        with self._of_fields(path):
            kernels = [kernel_from_config(part["kernel"]) for part in _with_kernels(self.config)]
        _make_kernels_known(bundle.config, [kind for kernel in kernels for kind in own_kernels(kernel)])
        return self.with_parts(bundle.config, bundle.arrays).checked(path)

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write this as a bundle, whole or not at all; never what a reader would refuse."""
        self.as_read(path)
        write_bundle(path, self.bundle(), overwrite=overwrite)

    def with_parts(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The same kind of thing of other parts."""
        return type(self)(config, arrays)  # type: ignore[call-arg]  # a dataclass of these two

    def checked(self, path: str | PathLike[str]) -> Self:
        """This, if its parts fit together: what is written and what is read has to pass.

        Raises
        ------
        ModelFormatError
            A field is missing or is not what it should be; shapes disagree.
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
        """Around what takes fields of it: whole to its digests, it may yet say what none of ours says."""
        try:
            yield
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, ModelFormatError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise ModelFormatError(f"{path} is not a {self._NOUN}: {why}; {self._AGAIN}") from error

    def _fits(self, name: str, sizes: dict[str, int]) -> bool:
        """Whether an array has its shape; letters without a size get theirs."""
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
    """The parts of a configuration that have a kernel: itself, or each of its views."""
    return [part for part in (config, *config.get("views", ())) if isinstance(part, dict) and "kernel" in part]


def _make_kernels_known(config: dict[str, Any], kernels: Iterable[type[Kernel]]) -> None:
    """Let each kernel of a configuration that was read know its class; `handed_over` says what is refused."""
    kinds = list(kernels)
    for part in _with_kernels(config):
        part["kernel"] = handed_over(part["kernel"], kinds)
