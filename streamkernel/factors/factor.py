"""A low-rank factor on disk: G with ``G G^T = K~``, its basis, the record of the picks, and the residual traces.

::

    FACTOR/rows/G       (m, n) Zarr array; zarr.open_group("FACTOR/rows")["G"] just works, and so does `open_table`
    FACTOR/basis        a bundle: kernel, scaler, basis points, row numbers, gains, residual traces; written last

A stored G holds the whitened features ``k(X, Z) L^-T`` of the table's rows, ``L L^T = k(Z, Z)``. Its first t columns
are the factor of the first t functions (Smola & Schoelkopf 2000, section 3; Fine & Scheinberg 2001).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import ClassVar

from streamkernel.blobs import blobs_at, is_url, joined, normalised
from streamkernel.errors import IncompleteStoreError, StoreExistsError, StoreNotFoundError
from streamkernel.factors.features import FeatureRows
from streamkernel.factors.saved_basis import SavedBasis
from streamkernel.kernels import UserKernel
from streamkernel.outputs import FACTOR_PARTS, check_name_length, is_of_factor
from streamkernel.records import FactorRecord
from streamkernel.store import bundle_kind, check_target
from streamkernel.table import KnownColumns, Table, open_table
from streamkernel.type_aliases import AnyArray, ArrayOrDask, FieldsView
from streamkernel.wording import call, option, switch

BASIS, ROWS = FACTOR_PARTS


@dataclass(frozen=True, eq=False)
class Factor(SavedBasis):
    """A low-rank factor: its basis, and G if that was stored.

    Parameters
    ----------
    path : path or URL of the factor; None if it is not on disk.
    record : all fields that are not arrays.
    arrays : arrays by name; `components` are basis points in scaled units.
    """

    KIND: ClassVar[str] = "factor"
    RECORD: ClassVar[type[FactorRecord]] = FactorRecord
    _NOUN: ClassVar[str] = "factor"
    _MADE: ClassVar[str] = "the factor was made from"
    _GIVE: ClassVar[str] = "give rows with the same columns"
    _AGAIN: ClassVar[str] = "make it again"

    path: str | Path | None
    record: FactorRecord
    arrays: dict[str, AnyArray]

    @classmethod
    def from_config(cls, config: FieldsView, arrays: dict[str, AnyArray]) -> Factor:
        return Factor(None, FactorRecord.from_config(dict(config)), arrays)

    def with_parts(self, record: FactorRecord, arrays: dict[str, AnyArray]) -> Factor:
        return Factor(self.path, record, arrays)

    @property
    def column_names(self) -> list[str]:
        """Names of the table's features (not of the columns of G)."""
        return list(self.record.column_names)

    @property
    def known_columns(self) -> KnownColumns:
        return self._known_columns(self.record.column_names, self.record.named_columns)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n), the shape of G."""
        return self.record.rows.count, len(self.basis)

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
        """The rows of G, for products, solves and eigenvectors.

        Raises
        ------
        StoreNotFoundError
            G was not stored (``columns="none"``); `rows_of` computes it again from the table.
        """
        if self.path is None or self.record.columns is None:
            raise StoreNotFoundError("this factor was made without its columns; use rows_of(table)")
        return FeatureRows(open_table(joined(self.path, ROWS, "G")))

    @property
    def G(self) -> ArrayOrDask:
        """G as a Dask array (m, n); nothing is read yet."""
        return self.rows.to_dask()

    def rows_of(self, table: Table) -> FeatureRows:
        """Features of any rows that have the table's columns, recomputed block by block.

        Raises
        ------
        ShapeError
            The number of columns differs from that of the factor's table.
        """
        return FeatureRows(self.prepare(table), self.basis)

    @classmethod
    def load(cls, path: str | PathLike[str], *, kernels: Iterable[UserKernel] = ()) -> Factor:
        """Load a factor; each chunk of G is verified when it is read.

        Parameters
        ----------
        kernels : classes of your own kernels, if the factor may have one of them.

        Raises
        ------
        StoreNotFoundError, IncompleteStoreError, ModelFormatError, CorruptMetadataError, CorruptChunkError
            The factor is absent, incomplete or damaged.
        """
        folder = normalised(path)
        parts = entries_of(folder)
        if not parts and not (isinstance(folder, Path) and os.path.exists(folder)):
            raise StoreNotFoundError(f"{folder} does not exist; make it with {call('factorize')}")
        if BASIS not in parts:
            raise IncompleteStoreError(
                f"{folder} is not a whole factor: it has no {BASIS}; go on with {call('factorize', 'resume')}"
            )
        factor = replace(cls.read(joined(folder, BASIS), kernels), path=folder)
        stored = factor.record.columns
        if stored is not None and factor.rows.table.fingerprint != stored.fingerprint:
            raise IncompleteStoreError(
                f"{folder}: its columns are not those of its basis: a run that was to replace it was interrupted; "
                f"finish that run with {call('factorize', 'overwrite', 'resume')}, or make the factor again with "
                f"{option('overwrite', True)}"
            )
        return factor


def entries_of(path: str | PathLike[str]) -> set[str]:
    """Names of the entries in a factor's folder or below its URL; empty if there are none."""
    if not is_url(path):
        try:
            return set(os.listdir(path))
        except OSError:
            return set()
    # Deeper entries are not listed: they may be a whole bucket or file system.
    prefixes, stamps = blobs_at(path).level()
    names = {key.partition("/")[0] for key in (*prefixes, *stamps)}
    # At a URL, a part's name is listed before the part is finished.
    return names if BASIS not in names or bundle_kind(joined(path, BASIS)) is not None else names - {BASIS}


def checked_folder(path: str | PathLike[str], *, overwrite: bool, resume: bool) -> str | Path:
    """Check that a factor may be made at a path or URL, and return it as an absolute path or URL; creates nothing.

    Raises
    ------
    ParameterError
        The name is too long for the names of the folders beside it.
    StoreExistsError
        A factor exists there and `overwrite` is false, or something else exists there.
    """
    folder = normalised(path)
    if isinstance(folder, Path):
        check_name_length(folder)
    if isinstance(folder, Path) and folder.is_symlink():
        raise StoreExistsError(
            f"{folder} is a symbolic link to {os.readlink(folder)}, which is not followed to be written; give that path"
        )
    entries = entries_of(folder)
    strangers = sorted(name for name in entries if not is_of_factor(name))
    if strangers:
        raise StoreExistsError(f"{folder} exists and is not a factor (it holds {strangers[0]}); choose another path")
    # After the check of the folder itself: the message for another kind of output must name the folder, not its parts.
    check_target(joined(folder, BASIS), overwrite=True, kind="factor")
    if BASIS in entries and not overwrite:
        # A run that was to replace it may have left its columns beside the former basis.
        other = f"; to resume a run that replaces it, {switch('overwrite')} too" if resume else ""
        raise StoreExistsError(f"{folder} exists; choose another path or {switch('overwrite')}{other}")
    return folder
