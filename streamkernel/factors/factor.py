"""A low-rank factor on disk: G with ``G G^T = K~``, its basis, how that was picked, and what it leaves out.

::

    FACTOR/rows/G       (m, n) Zarr array; zarr.open_group(FACTOR)["rows/G"] just works, and so does `open_table`
    FACTOR/basis        a bundle: kernel, scaler, basis points, row numbers, gains, residual traces; written last

A stored G is the whitened features ``k(X, Z) L^-T`` of the table's rows, ``L L^T = k(Z, Z)``: its first t columns are
the factor of the first t functions (Smola & Schoelkopf 2000, section 3; Fine & Scheinberg 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.errors import (
    IncompleteStoreError,
    ModelFormatError,
    ShapeError,
    StoreExistsError,
    StoreNotFoundError,
)
from streamkernel.factors.features import FeatureRows
from streamkernel.kernels import kernel_from_config
from streamkernel.store import Bundle, bundle_digest, check_target, read_bundle
from streamkernel.table import Scaler, Table, open_table

__all__ = ["BASIS", "KIND", "ROWS", "Factor", "checked_folder"]

KIND = "factor"
VERSION = 1
BASIS, ROWS = "basis", "rows"

_ARRAYS = ("components", "component_indices", "gains", "residual_path")


@dataclass(frozen=True, eq=False)
class Factor:
    """Parameters
    ----------
    path : of the factor, or None for one that is not on disk.
    config : everything that is not an array.
    arrays : by name; `components` are basis points in scaled units.
    """

    path: Path | None
    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @cached_property
    def basis(self) -> Basis:
        """The n functions, in the order of picking."""
        kernel = kernel_from_config(self.config["kernel"])
        return Basis(kernel, np.ascontiguousarray(self.arrays["components"]), self.arrays["component_indices"])

    @property
    def scaler(self) -> Scaler | None:
        """What the rows were scaled by."""
        stored = self.config["scaler"]
        return None if stored is None else Scaler.from_config(stored)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return int(self.config["rows"]["count"]), len(self.basis)

    @property
    def component_indices(self) -> NDArray[np.int64]:
        """(n,) row numbers of the basis, in the order of picking."""
        indices: NDArray[np.int64] = self.arrays["component_indices"]
        return indices

    @property
    def gains(self) -> NDArray[np.float64]:
        """(n,) what each pick scored; empty for rules that do not score."""
        gains: NDArray[np.float64] = self.arrays["gains"]
        return gains

    @property
    def residual_path(self) -> NDArray[np.float64]:
        """(n + 1,) exact residual traces ``tr(K - K~_t)``, t = 0 .. n."""
        path: NDArray[np.float64] = self.arrays["residual_path"]
        return path

    @property
    def residual_trace(self) -> float:
        """``tr(K - K~)``."""
        return float(self.residual_path[-1])

    @property
    def relative_residual_trace(self) -> float:
        """``tr(K - K~) / tr K``."""
        return float(self.residual_path[-1] / self.residual_path[0]) if self.residual_path[0] else 0.0

    @property
    def rows(self) -> FeatureRows:
        """G as rows, for products, solves and eigenvectors.

        Raises
        ------
        StoreNotFoundError
            G was not stored (``columns="none"``); `rows_of` makes it anew from the table.
        """
        if self.path is None or self.config["columns"] is None:
            raise StoreNotFoundError("this factor was made without its columns; use rows_of(table)")
        return FeatureRows(open_table(self.path / ROWS / "G"))

    @property
    def G(self) -> Any:
        """G as a Dask array (m, n); nothing is read yet."""
        return self.rows.to_dask()

    def rows_of(self, table: Table) -> FeatureRows:
        """Features of any rows with the columns of the table, recomputed block by block.

        Raises
        ------
        ShapeError
            Another number of columns than the factor's table had.
        """
        if table.n_features != len(self.config["column_names"]):
            raise ShapeError(
                f"the table has {table.n_features} features, the factor was made from "
                f"{len(self.config['column_names'])}; give rows with the same columns"
            )
        return FeatureRows(table.with_scaler(self.scaler), self.basis)

    @property
    def digest(self) -> str:
        """SHA-256 of everything but times, memory and where it ran, G's own digests among it."""
        return bundle_digest(self.bundle())

    def bundle(self) -> Bundle:
        """What is kept beside G."""
        return Bundle(KIND, VERSION, self.config, self.arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Factor:
        """A factor from disk; G is verified chunk by chunk as it is read.

        Raises
        ------
        StoreNotFoundError, IncompleteStoreError, ModelFormatError, CorruptMetadataError, CorruptChunkError
        """
        folder = Path(path)
        if not folder.exists():
            raise StoreNotFoundError(f"{folder} does not exist; make it with streamkernel factor")
        if not (folder / BASIS).exists():
            raise IncompleteStoreError(
                f"{folder} is not a whole factor: it has no {BASIS}; go on with streamkernel factor ... --resume"
            )
        bundle = read_bundle(folder / BASIS, KIND, versions=(VERSION,), arrays=_ARRAYS)
        factor = cls(folder, bundle.config, bundle.arrays)
        try:
            consistent = len(factor.residual_path) == len(factor.basis) + 1 == len(factor.component_indices) + 1
            stored = factor.config["columns"]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ModelFormatError(f"{path} is not a factor: {error}; make it again") from error
        if not consistent:
            raise ModelFormatError(f"{path}: the shapes of its arrays disagree; make it again")
        if stored is not None and factor.rows.table.fingerprint != stored["fingerprint"]:
            raise IncompleteStoreError(
                f"{folder}: its columns are not those of its basis: a run that was to replace it was interrupted; "
                "make it again with --overwrite"
            )
        return factor


def checked_folder(path: str | PathLike[str], *, overwrite: bool, resume: bool) -> Path:
    """Where a factor may be made, as an absolute path; nothing is created here.

    Raises
    ------
    StoreExistsError
        A factor is there and `overwrite` is false, or something else is.
    """
    folder = check_target(Path(path) / BASIS, overwrite=True).parent
    if not folder.exists():
        return folder
    ours = {BASIS, ROWS}
    strangers = sorted(entry.name for entry in folder.iterdir() if entry.name.lstrip(".").partition(".")[0] not in ours)
    if strangers:
        raise StoreExistsError(f"{folder} exists and is not a factor (it holds {strangers[0]}); choose another path")
    if (folder / BASIS).exists() and not overwrite:
        whole = "is whole already: nothing to resume" if resume else "exists"
        raise StoreExistsError(f"{folder} {whole}; choose another path or ask for overwrite")
    return folder
