"""A basis and all facts about it: a record and named arrays, the common base of models, factors, transformers.

On disk it is a bundle (`streamkernel.store`), whose configuration is the record; docs/model.md describes each field.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import ModelFormatError
from streamkernel.factors._array_shapes import shapes_fit
from streamkernel.factors._scaler_record import scaler_of
from streamkernel.kernels import (
    Kernel,
    Precomputed,
    UserKernel,
    columns_of_pairs,
    is_kernel_of_pairs,
    kernel_from_config,
    kernel_kinds,
    user_kernel_classes,
    with_kernel_classes,
)
from streamkernel.matrix_rows import LEADING, kernel_values_in, places_in
from streamkernel.metric import MetricScaler
from streamkernel.notebook import html_table
from streamkernel.pairs import are_pairs
from streamkernel.records import BasisRecord, JsonObject
from streamkernel.store import Bundle, as_read, bundle_digest, read_bundle, write_bundle
from streamkernel.table import ClippedScaler, KnownColumns, RankScaler, RowScaler, Scaler, Table
from streamkernel.table.columns import are_real
from streamkernel.type_aliases import AnyArray, Fields, FieldsView, Float, Int


class SavedBasis(ABC):
    """Base of the dataclasses `RidgeModel`, `Factor` and `TransformerModel`.

    Attributes
    ----------
    record : all fields that are not arrays.
    arrays : arrays by name; `components` are basis points in scaled units.
    """

    KIND: ClassVar[str]
    # Class of the record.
    RECORD: ClassVar[type[BasisRecord]]
    # Versions that are read; see `version`.
    VERSIONS: ClassVar[tuple[int, ...]] = (1,)
    # Shapes of required and of optional arrays: n basis functions, p columns, `width` after a metric; other names
    # take any size, once.
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        "components": ("n", "width"),
        "component_indices": ("n",),
        "residual_path": ("n + 1",),
        "gains": ("n or 0",),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        "metric": ("p", "width"),
        "scaler_knots": ("knots",),
        "scaler_values": ("knots",),
        "scaler_counts": ("p",),
        "points": ("n", "p"),
        "gain_parts": ("n", "2"),
        "predicted_gains": ("n", "2"),
        "selection_traces": ("n + 1",),
    }
    # Arrays of whole numbers; all others are of floating point numbers.
    WHOLE: ClassVar[frozenset[str]] = frozenset({"component_indices", "scaler_counts"})
    # Phrases for messages: the kind of object, its origin, what to pass instead, how to get a new one.
    _NOUN: ClassVar[str]
    _MADE: ClassVar[str] = "the model was fitted on"
    _GIVE: ClassVar[str] = "predict on rows with the same columns"
    _AGAIN: ClassVar[str] = "fit it again"

    record: BasisRecord
    arrays: dict[str, AnyArray]

    @classmethod
    def from_config(cls, config: FieldsView, arrays: dict[str, AnyArray]) -> Self:
        """The object with a configuration, as `config` gives it, and arrays.

        Raises
        ------
        ModelFormatError
            A field is missing, or has a wrong type or value.
        """
        return cls(cls.RECORD.from_config(dict(config)), arrays)  # type: ignore[call-arg]  # a dataclass of these two

    @property
    def config(self) -> JsonObject:
        """The record as plain JSON, for users; the package itself reads `record`."""
        return self.record.to_config()

    @property
    def version(self) -> int:
        """The version of configuration and arrays that is written: the least that says what this object is.

        An earlier release then reads all that it understands, and refuses the rest.
        """
        return self.VERSIONS[0]

    @cached_property
    def basis(self) -> Basis:
        """The n basis functions, in the order of picking."""
        kernel = kernel_from_config(self.record.kernel)
        return Basis(kernel, np.ascontiguousarray(self.arrays["components"]), self.arrays["component_indices"])

    def with_basis(self, basis: Basis) -> Self:
        """This object, with a basis that the caller has already, and perhaps with its Cholesky factor L."""
        self.__dict__["basis"] = basis
        return self

    @property
    def scaler(self) -> RowScaler | None:
        """The scaler that was applied to the rows, with the metric of the fit; None if they are not scaled."""
        return scaler_of(self.record.scaler, self.arrays)

    @property
    def sparse(self) -> bool:
        """Whether its rows are sparse: its points are then stored in pairs of columns and values."""
        return is_kernel_of_pairs(self.record.kernel)

    @property
    def of_matrix(self) -> bool:
        """Whether its kernel is precomputed: its points are then rows of the matrix k(Z, Z)."""
        return bool(self.record.kernel.get("kernel") == Precomputed.name)

    @property
    def metric(self) -> Float | None:
        """T (p, r), the linear map of the scaled columns; None for a model without a metric."""
        return self.arrays.get("metric")

    @property
    def column_weights(self) -> Float | None:
        """``sqrt(diag(T T^T))`` (p,): the distance that a step of 1 in a scaled column makes; None without a metric."""
        return None if self.metric is None else np.linalg.norm(self.metric, axis=1)

    @property
    def metric_fields(self) -> Fields | None:
        """The metric in the output of commands: form, columns, errors; None if it was neither learned nor given.

        Both errors are those of `MetricRound`; those of a metric that was given are None. If no metric was better than
        the plain kernel, the form is "none".
        """
        choice = self.record.metric_choice
        if choice is None or not choice.tried_metrics:
            # A search without metrics chose the kernel only.
            if self.metric is None:
                return None
            return {"form": "given", "columns": self.metric.shape[1], "held_out_error": None, "plain_error": None}
        best = choice.chosen
        return {
            "form": best.form, "columns": best.columns, "held_out_error": best.error,
            "plain_error": choice.plain_error,
        }  # fmt: skip

    @property
    def lengthscale(self) -> float | list[float] | None:
        """The lengthscale of the kernel, or one for each feature; None for a kernel without one."""
        value = self.record.lengthscale
        return list(value) if isinstance(value, tuple) else value

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """Names of the p features."""

    @property
    @abstractmethod
    def known_columns(self) -> KnownColumns:
        """These names, to be compared with the names of other rows."""

    def _known_columns(self, names: tuple[str, ...], named: bool | None) -> KnownColumns:
        """The columns of a record; `named` is None in older files."""
        return KnownColumns(names, are_real(names) if named is None else named, self._MADE, self._GIVE)

    def shown_fields(self) -> Fields:
        """Names and values that a notebook shows; None where an object has none."""
        record = self.record
        return {
            "rows of the fit": record.rows.count,
            "features": len(self.column_names),
            "columns": self.column_names,
            "kernel": repr(self.basis.kernel),
            "basis functions": record.basis_size,
            "asked for": record.requested_basis,
            "rule": record.rule,
            "ended by": record.ended,
            "relative residual trace": record.certificate.relative_residual_trace,
        }

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        fields = {name.replace("_", " "): value for name, value in self.shown_fields().items()}
        return html_table(type(self).__name__, fields)

    @property
    def component_indices(self) -> Int:
        """(n,) row numbers of the basis, in the order of picking; -1 for points that are not rows."""
        return self.arrays["component_indices"]

    @property
    def points(self) -> AnyArray:
        """(n, p) basis points in the units of the rows; of sparse rows in pairs of columns and values.

        Of a precomputed kernel the matrix k(Z, Z) (n, n), as nothing else is known of them.
        """
        if self.of_matrix:
            return kernel_values_in(self.arrays["components"])
        if "points" in self.arrays:
            # A metric may have fewer columns than the rows, and a column may have been clipped: the points cannot be
            # computed back from the basis.
            return self.arrays["points"]
        Z, scaler = self.arrays["components"], self.scaler
        return Z if scaler is None else scaler.unscaled(Z).astype(Z.dtype)

    @property
    def residual_path(self) -> Float:
        """(n + 1,) exact residual traces ``tr(K - K~_t)``, t = 0 .. n."""
        return self.arrays["residual_path"]

    @property
    def gains(self) -> Float:
        """(n,) score of each pick; empty for rules without scores."""
        return self.arrays["gains"]

    @property
    def gain_parts(self) -> Float | None:
        """(n, 2) the two parts of each gain, of the trace and of the targets; None for rules without two parts."""
        return self.arrays.get("gain_parts")

    @property
    def predicted_gains(self) -> Float | None:
        """(n, 2) the same parts, predicted by look-ahead before each pick; None for rules that know the gains."""
        return self.arrays.get("predicted_gains")

    @property
    def selection_traces(self) -> Float | None:
        """(n + 1,) residual traces that the rule updated after each pick; None for rules that did not."""
        return self.arrays.get("selection_traces")

    def prepare(self, table: Table) -> Table:
        """A table of raw rows, with its columns in the order of the basis's table, and scaled like that table.

        Dense rows become sparse ones where those of the basis were, and sparse ones dense. Rows of a kernel matrix are
        read at the columns of the basis.

        Raises
        ------
        ShapeError
            The table has another number of columns, or other columns.
        """
        matched = self.known_columns.matched(table).as_sparse(self.sparse)
        if self.of_matrix:
            return matched.as_matrix_at(self.component_indices, self.points[:1].ravel())
        return matched.with_scaler(self.scaler)

    @property
    def digest(self) -> str:
        """SHA-256 of all parts except times, memory and machine: equal work gives equal digests."""
        return bundle_digest(self.bundle())

    def bundle(self) -> Bundle:
        """The bundle that is passed to the store."""
        return Bundle(self.KIND, self.version, self.config, self.arrays)

    @classmethod
    def read(cls, path: str | PathLike[str], kernels: Iterable[UserKernel] = ()) -> Self:
        """The object at a path, of this kind and one of its versions.

        Parameters
        ----------
        kernels : classes of kernels that are not ours.

        Raises
        ------
        StoreNotFoundError, ModelFormatError, IncompleteStoreError, CorruptMetadataError, CorruptChunkError
            It is absent, of another kind, incomplete or damaged, or its parts do not fit together (see `checked`).
        """
        bundle = read_bundle(path, cls.KIND, versions=cls.VERSIONS, arrays=tuple(cls.SHAPES))
        return cls._of_bundle(bundle, kernels, path).checked(path)

    @classmethod
    def _of_bundle(cls, bundle: Bundle, kernels: Iterable[UserKernel], path: str | PathLike[str]) -> Self:
        """The object in a bundle; each kernel has its class then (`with_kernel_classes`)."""
        config, kinds = bundle.config, kernel_kinds(kernels)
        try:
            for part in _with_kernels(config):
                part["kernel"] = with_kernel_classes(part["kernel"], kinds)
        except ModelFormatError as error:
            raise ModelFormatError(f"{path}: {error}") from None
        try:
            return cls.from_config(config, bundle.arrays)
        except ModelFormatError as error:
            cls._refuse(path, error)

    def as_read(self, path: str | PathLike[str]) -> Self:
        """This object as a reader of the path will get it; raises before writing if a reader would refuse it.

        Raises
        ------
        ModelFormatError
            See `checked`.
        ParameterError, DTypeError
            JSON or Zarr cannot hold a value.
        """
        # A reader receives the classes of kernels that are not ours.
        try:
            kernels = [kernel_from_config(part["kernel"]) for part in _with_kernels(self.config)]
        except (ModelFormatError, ValueError) as error:
            self._refuse(path, error)
        own = [kind for kernel in kernels for kind in user_kernel_classes(kernel)]
        read = self._of_bundle(as_read(self.bundle()), own, path)
        return self.with_parts(read.record, read.arrays).checked(path)

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write this object as a bundle, whole or not at all; an object that a reader would refuse is not written."""
        self.as_read(path)
        write_bundle(path, self.bundle(), overwrite=overwrite)

    def with_parts(self, record: Any, arrays: dict[str, AnyArray]) -> Self:
        """An object of the same class with another record, of its class, and other arrays."""
        return type(self)(record, arrays)  # type: ignore[call-arg]  # a dataclass of these two

    def checked(self, path: str | PathLike[str]) -> Self:
        """This object, if its parts fit together; called before writing and after reading.

        Raises
        ------
        ModelFormatError
            Shapes or types of arrays disagree, or the kernel or the scaler cannot be made.
        """
        self._check_arrays(path)
        try:
            scaler, kernel = self.scaler, self.basis.kernel
        except (ModelFormatError, ValueError) as error:
            # Kernels and scalers check their parameters themselves; those that are not ours raise what they like.
            self._refuse(path, error)
        assert kernel is not None
        if self.sparse:
            self._check_pairs(path, kernel)
        if self.of_matrix:
            self._check_matrix(path)
        if scaler is not None and scaler.n_features != len(self.column_names):
            raise ModelFormatError(f"{path}: the shapes of its arrays disagree; {self._AGAIN}")
        return self

    def _check_pairs(self, path: str | PathLike[str], kernel: Kernel) -> None:
        """Refuse points that are no sparse rows of the columns, or a kernel of others."""
        d = len(self.column_names)
        fitting = columns_of_pairs(kernel) == {d} and are_pairs(self.arrays["components"], d)
        if not fitting or isinstance(self.scaler, (Scaler, ClippedScaler, RankScaler, MetricScaler)):
            raise ModelFormatError(f"{path}: its points are no sparse rows of {d} columns; {self._AGAIN}")

    def _check_matrix(self, path: str | PathLike[str]) -> None:
        """Refuse points that are no rows of k(Z, Z), or columns that the rows do not have."""
        Z, columns = self.arrays["components"], self.component_indices
        n, p = len(columns), len(self.column_names)
        fits = Z.shape[1] == LEADING + n and np.array_equal(places_in(Z), np.arange(n)) and self.scaler is None
        if not fits or not ((columns >= 0) & (columns < p)).all():
            raise ModelFormatError(f"{path}: its points are no rows of a kernel matrix of theirs; {self._AGAIN}")

    @classmethod
    def _refuse(cls, path: str | PathLike[str], why: object) -> NoReturn:
        raise ModelFormatError(f"{path} is not a {cls._NOUN}: {why}; {cls._AGAIN}") from None

    def _check_arrays(self, path: str | PathLike[str]) -> None:
        sizes = {"p": len(self.column_names)}
        if "metric" not in self.arrays and not self.sparse and not self.of_matrix:
            sizes["width"] = sizes["p"]
        if not shapes_fit(self.arrays, self.SHAPES, self.OPTIONAL, sizes):
            raise ModelFormatError(f"{path}: the shapes of its arrays disagree; {self._AGAIN}")
        for name in {**self.SHAPES, **self.OPTIONAL}.keys() & self.arrays.keys():
            dtype, whole = self.arrays[name].dtype, name in self.WHOLE
            if dtype.kind != ("i" if whole else "f"):
                self._refuse(path, f"its array {name} is of {dtype}, not of {'whole ' * whole}numbers")


def _with_kernels(config: JsonObject) -> list[JsonObject]:
    """The parts of a configuration that have a kernel: the configuration itself, or each of its views."""
    views = config.get("views", ())
    parts = (config, *(views if isinstance(views, list) else ()))
    return [part for part in parts if isinstance(part, dict) and "kernel" in part]
