""".npy and .npz: read as streams of rows, so that no member is ever decompressed as a whole."""

from __future__ import annotations

import errno
import lzma
import math
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from streamkernel.blobs import first_line
from streamkernel.errors import (
    DTypeError,
    EmptyDataError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
    SourceFormatError,
    StreamKernelError,
)
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import BATCH_BYTES, Batch, Reader
from streamkernel.table.values import float_dtype
from streamkernel.type_aliases import AnyArray, AnyDType, Unchecked
from streamkernel.wording import option

_COPY_BYTES = 1 << 22
_BROKEN = "is damaged ({}); fetch it again"
# Exceptions of zipfile, and of NumPy, which parses a header as Python, for damaged files.
_DAMAGE = (
    ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, EOFError, SyntaxError, TokenError, struct.error,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip


@contextmanager
def _damaged(label: str | Path, what: str) -> Iterator[None]:
    """Raise any sign of a damaged file as a `SourceFormatError`; `what` is the text of its message."""
    try:
        yield
    except StreamKernelError:
        raise
    except (*_DAMAGE, OSError) as error:
        # bz2 raises OSError without a number. A negative offset in a zip file gives EINVAL.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise SourceFormatError(f"{label} {what.format(first_line(error))}") from error


class _Member:
    """One array in a file: its header, and its rows as a stream."""

    def __init__(self, path: Path, name: str | None) -> None:
        self.label = f"{path}" if name is None else f"{path}: {name}"
        self._path, self._name = path, name
        with self._open() as handle:
            self.shape, self._fortran, self.dtype = _header(handle, self.label)
        size = path.stat().st_size if name is None else _inflated(path, name)
        if math.prod(self.shape[1:]) * self.dtype.itemsize > size and 0 not in self.shape:
            # Not even one row is there, so that a row's size must not decide how much to read.
            raise SourceFormatError(
                f"{self.label} has {size} bytes, fewer than a row of shape {self.shape[1:]}: truncated; fetch it again"
            )
        if self.dtype.hasobject:
            raise DTypeError(f"{self.label} holds pickled Python objects (dtype object); save numbers or text instead")
        if not self.shape:
            raise ShapeError(f"{self.label} is a single number (shape ()); give an array of rows")

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self._name is None:
            with open(self._path, "rb") as handle:
                yield handle
            return
        with (
            _damaged(self._path, _BROKEN),
            zipfile.ZipFile(self._path) as archive,
            archive.open(f"{self._name}.npy") as member,
        ):
            yield cast(BinaryIO, member)

    def rows(self, step: int) -> Iterator[AnyArray]:
        """Arrays of `step` rows."""
        with ExitStack() as stack:
            handle = stack.enter_context(self._open())
            if self._fortran and len(self.shape) > 1:
                yield from self._columns_first(handle, step, stack)
                return
            _header(handle, self.label)
            width = int(np.prod(self.shape[1:]))
            for first in range(0, self.shape[0], step):
                count = min(step, self.shape[0] - first) * width
                content = handle.read(count * self.dtype.itemsize)
                if len(content) != count * self.dtype.itemsize:
                    raise SourceFormatError(
                        f"{self.label} ends in row {first + len(content) // max(1, width * self.dtype.itemsize)}: "
                        "truncated; fetch it again"
                    )
                yield np.frombuffer(content, dtype=self.dtype).reshape(-1, *self.shape[1:])

    def _columns_first(self, handle: BinaryIO, step: int, stack: ExitStack) -> Iterator[AnyArray]:
        """Rows of an array in Fortran order, by a memory map of the file, or of a temporary copy of a zip member."""
        source: Unchecked = self._path
        if self._name is not None:
            source = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
            shutil.copyfileobj(handle, source, _COPY_BYTES)
            source.flush()
            source.seek(0)
            _header(source, self.label)
            offset = source.tell()
        else:
            _header(handle, self.label)
            offset = handle.tell()
        try:
            values = np.memmap(source, dtype=self.dtype, mode="r", offset=offset, shape=self.shape, order="F")
        except ValueError as error:
            raise SourceFormatError(f"{self.label} is truncated ({error}); fetch it again") from error
        for first in range(0, self.shape[0], step):
            yield np.array(values[first : first + step])


def _inflated(path: Path, name: str) -> int:
    with zipfile.ZipFile(path) as archive:
        return archive.getinfo(f"{name}.npy").file_size


def _header(handle: BinaryIO, label: str) -> tuple[tuple[int, ...], bool, AnyDType]:
    with _damaged(label, "is not a .npy array ({}); save it with numpy.save"):
        version = npy.read_magic(handle)
        shape, fortran, dtype = (
            npy.read_array_header_1_0(handle) if version == (1, 0) else npy.read_array_header_2_0(handle)
        )
        if min(shape, default=0) < 0 or dtype.itemsize == 0:
            raise ValueError(f"shape {shape}, dtype {dtype}")
        return shape, fortran, dtype


class NpyReader(Reader):
    """Rows of a 2-d .npy array; `target` and `weight` are indices of columns."""

    _y_name = "y"

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._place = str(path)
        self._X = _Member(path, None)
        self._y: _Member | None = None
        self._w: _Member | None = None
        self._set_up(options.target, options.weight)

    def _set_up(self, target: str | int | None, weight: str | int | None) -> None:
        X = self._X
        if len(X.shape) != 2:
            raise ShapeError(f"{X.label} has shape {X.shape}; a table is 2-d (rows, columns)")
        if 0 in X.shape:
            raise EmptyDataError(f"{X.label} has shape {X.shape}: no rows or no columns")
        names = [f"x{index}" for index in range(X.shape[1])]
        self.named = False
        self._choose(names, target, weight, X.label)
        self.dtype = float_dtype(X.dtype, X.label)
        self.n_rows = self.estimated_rows = self.total = X.shape[0]
        y = self._y
        if y is not None:
            if y.shape[0] != X.shape[0]:
                raise ShapeMismatchError(
                    f"{self._place}: X has shape {X.shape} and y has shape {y.shape}; give one target per row of X"
                )
            if len(y.shape) > 2 or 0 in y.shape:
                raise ShapeError(f"{y.label} has shape {y.shape}; give (m,) or (m, d)")
            self.labelled = y.dtype.kind in "US"
            if not self.labelled:
                float_dtype(y.dtype, y.label)
            elif len(y.shape) > 1 and y.shape[1] != 1:
                raise ShapeError(f"{y.label} has {y.shape[1]} columns of labels; give one")
            width = y.shape[1] if len(y.shape) > 1 else 1
            name = self._y_name
            self.target_names = (name,) if width == 1 else tuple(f"{name}{index}" for index in range(width))
        w = self._w
        if w is not None:
            if w.shape != X.shape[:1]:
                raise ShapeMismatchError(
                    f"{self._place}: X has shape {X.shape} and {self.weight} has shape {w.shape}; give one weight per "
                    "row of X"
                )
            float_dtype(w.dtype, w.label)

    def batches(self) -> Iterator[Batch]:
        widest = self._X.shape[1] + (int(np.prod(self._y.shape[1:])) if self._y else 0)
        step = max(1, BATCH_BYTES // (8 * widest))
        with _damaged(self._place, _BROKEN):
            targets = self._y.rows(step) if self._y is not None else None
            weights = self._w.rows(step) if self._w is not None else None
            for values in self._X.rows(step):
                X, y, w = self._split(values)
                if weights is not None:
                    w = next(weights).astype(np.float64)
                labels = None
                if targets is not None:
                    y = next(targets).reshape(values.shape[0], -1)
                    if self.labelled:
                        distinct, y = np.unique(y.reshape(-1), return_inverse=True)
                        labels = [
                            text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
                            for text in distinct
                        ]
                    else:
                        y = y.astype(np.float64)
                yield Batch(X.astype(self.dtype, copy=False), y, labels, values.shape[0], w)


def _members(path: Path) -> list[str]:
    with _damaged(path, "is not an .npz archive ({}); save it with numpy.savez"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def arrays_of_npz(path: Path) -> dict[str, str]:
    """Names of the members that may be X and y of an archive that has no X; NAME where several may be, or none."""
    names = _members(path)
    if "X" in names:
        return {}
    _refuse_sparse(path, names)
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        with suppress(StreamKernelError):  # of objects, or of one number
            shapes[name] = _Member(path, name).shape
    return arrays_by_shape(shapes)


def arrays_by_shape(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Names of the arrays that may be X and y by their shapes; NAME where several may be, or none."""
    X = [name for name, shape in shapes.items() if len(shape) == 2 and shape[1] > 1] or ["NAME"]
    rows = shapes.get(X[0], (0,))[0]
    y = [name for name, shape in shapes.items() if shape in ((rows,), (rows, 1))]
    found = {"X": X[0] if len(X) == 1 else "NAME"}
    return found if not y else {**found, "y": y[0] if len(X) == len(y) == 1 else "NAME"}


def _refuse_sparse(path: Path, members: Collection[str]) -> None:
    """Refuse what `scipy.sparse.save_npz` wrote: its members are parts of one matrix, and none of them is X."""
    if {"format", "shape", "data"} <= {*members}:
        raise SourceFormatError(
            f"{path} is a sparse matrix as scipy.sparse.save_npz writes it, without targets; in Python, "
            f"ingest(open_table(scipy.sparse.load_npz({str(path)!r}), y, sparse=True), STORE) keeps it sparse, or "
            "write libsvm text by sklearn.datasets.dump_svmlight_file"
        )


class NpzReader(NpyReader):
    """Rows of the members X and y of an .npz archive, or of others; `weight` may name a member, too."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._place = str(path)
        members = _members(path)
        X, target, weight = options.X or "X", options.target, options.weight
        shown = ", ".join(members[:20]) or "none"
        if X not in members:
            _refuse_sparse(path, members)
            raise SourceFormatError(
                f"{path} has no member {X}; it has {shown}; name the array that is X by {option('X')}, and that of "
                f"y by {option('y')}"
            )
        y = options.y or "y"
        if y not in members and (options.y is not None or target == "y"):
            raise ParameterError(f"{path}: there is no target {y}; its members are {shown}")
        self._X = _Member(path, X)
        self._y = _Member(path, y) if y in members and y != X and target in (None, "y") else None
        self._w = None
        if weight in members and weight not in (X, y):
            self.weight, self._w = str(weight), _Member(path, str(weight))
        self._y_name = y
        self._set_up(None if self._y is not None else target, None if self._w is not None else weight)
