"""All errors of streamkernel, as one tree.

::

    StreamKernelError
    ├── ParameterError (ValueError)            an argument or option is wrong; raised before any I/O
    ├── DataError (ValueError)                 the rows themselves
    │   ├── EmptyDataError                     no rows or no columns
    │   ├── ShapeError                         0-d, 1-d or 3-d where a table of rows is needed; wrong width
    │   ├── ShapeMismatchError                 X and y disagree
    │   ├── ChunkAlignmentError                chunks of X and y cannot be read together
    │   ├── DTypeError (TypeError)             complex, object, string
    │   ├── NonFiniteDataError                 NaN or infinity, with array, chunk, first row, count
    │   ├── NumericRangeError                  squared norms overflow
    │   ├── SingleClassError                   a classifier was given one class
    │   ├── DegenerateBandwidthError           all rows equal: no median distance
    │   └── SourceFormatError                  a source file, with file, line and column
    ├── StoreError (OSError)                   a store on disk
    │   ├── StoreNotFoundError (FileNotFoundError)
    │   ├── StoreExistsError (FileExistsError)
    │   ├── StoreAccessError (PermissionError)
    │   ├── IncompleteStoreError               no COMPLETE manifest: half-written
    │   ├── MissingChunkError                  names the chunk's key
    │   ├── CorruptChunkError                  names the chunk's key
    │   ├── CorruptMetadataError               names the metadata file
    │   ├── InputChangedError                  the input differs from the one at the start of the run
    │   ├── ModelFormatError                   unknown version, missing array
    │   ├── CheckpointMismatchError            resumed with another configuration
    │   └── RunLockedError                     another driver holds the same run
    ├── ResourceLimitError (MemoryError)       the plan does not fit; both numbers and the remedy
    ├── NumericalError (ArithmeticError)       a solver produced NaN or infinity
    │   └── SingularKernelError                alpha = 0 with a singular kernel
    ├── ClusterError (RuntimeError)            the scheduler or its workers have stopped
    ├── SecurityError (PermissionError)        a connection without encryption; a certificate that is not accepted
    └── DependencyError (ImportError)          an installed library lacks a part; the versions that have it

Each message gives in one line what is wrong, where, and the remedy. An error whose remedy is another one for some
callers carries it apart: ``StoreError("no space left", remedy="run again")``. Each class also derives from the built-in
exception that callers expect, so that ``except ValueError`` works. A message names parameters, functions and estimators
by `streamkernel.wording`, so that each front end can say them in its users' words.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from streamkernel.wording import Mention, in_python, mentions, worded


class _Message(Exception):
    """An error or a warning whose text names parameters; see `streamkernel.wording`.

    Attributes
    ----------
    message : the text with its marks, to be a part of another message; ``str`` gives it in Python's words.
    what : `message` without the remedy, for a front end that has another one to give.
    remedy : the way out, with its marks; empty where the error does not carry it apart.
    parameter : name of the first parameter that the message names; None where it names none.
    value : the value that was refused, where the caller gives it.
    """

    what: str
    remedy: str
    parameter: str | None
    value: object

    def __init__(self, what: str = "", *, remedy: str = "", value: object = None) -> None:
        self.what, self.remedy = what, remedy
        message = self.message
        super().__init__(worded(message, in_python))
        self.parameter = next((each.name for each in mentions(message) if each.kind in ("option", "switch")), None)
        self.value = value

    @property
    def message(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what

    def __reduce__(self) -> tuple[Any, ...]:
        # Not the built-in one: Dask replaces that by a way of making an object that a MemoryError refuses.
        return type(self), (self.message,), self.__dict__  # which holds what and remedy

    def worded(self, words: Callable[[Mention], str]) -> str:
        """The message in the words of a front end."""
        return worded(self.message, words)


class StreamKernelError(_Message):
    """Base class of all errors that streamkernel raises on purpose."""


class StreamKernelWarning(_Message, UserWarning):
    """Base class of all warnings that streamkernel issues."""


class UncheckedChunksWarning(StreamKernelWarning):
    """A Zarr array has no checksum codec, so that a damaged bit would not be detected."""


class ParameterError(StreamKernelError, ValueError):
    """An argument or option is wrong; raised before any I/O."""


class DataError(StreamKernelError, ValueError):
    """The rows themselves cannot be used."""


class EmptyDataError(DataError):
    """No rows or no columns."""


class ShapeError(DataError):
    """Not a table of rows: 0-d, 1-d, 3-d, or another number of columns than expected."""


class ShapeMismatchError(DataError):
    """X and y disagree about the number of rows."""


class ChunkAlignmentError(DataError):
    """The chunks of X and y cannot be read together."""


class DTypeError(DataError, TypeError):
    """Complex, object or string values where numbers are needed."""


class NonFiniteDataError(DataError):
    """NaN or infinity; the message gives array, chunk, first row and count."""


class NumericRangeError(DataError):
    """Values so large that a squared norm overflows."""


class SingleClassError(DataError):
    """A classifier was given only one class."""


class DegenerateBandwidthError(DataError):
    """All sampled rows are equal, so that their median distance of 0 is not a lengthscale."""


class SourceFormatError(DataError):
    """A source file cannot be read as a table; the message gives file, line and column."""


class StoreError(StreamKernelError, OSError):
    """A store on disk cannot be used."""


class StoreNotFoundError(StoreError, FileNotFoundError):
    """There is no store at this path; nothing was created."""


class StoreExistsError(StoreError, FileExistsError):
    """The output exists and overwrite was not requested."""


class StoreAccessError(StoreError, PermissionError):
    """The store may not be read or written by this user."""


class IncompleteStoreError(StoreError):
    """No COMPLETE manifest: the writer did not finish."""


class MissingChunkError(StoreError):
    """A chunk of the grid is missing or empty; it is never replaced by the fill value."""

    def __init__(self, what: str, key: str = "", *, remedy: str = "") -> None:
        super().__init__(what, remedy=remedy)
        self.key = key


class CorruptChunkError(MissingChunkError):
    """A chunk exists, but its bytes differ from those that were written."""


class CorruptMetadataError(StoreError):
    """A metadata file is empty, truncated or not what Zarr writes."""


class InputChangedError(StoreError):
    """The input differs from the one at the start of the run."""


class ModelFormatError(StoreError):
    """A model has an unknown version, or an array is missing."""


class CheckpointMismatchError(StoreError):
    """A checkpoint has another configuration; the message lists the fields."""


class RunLockedError(StoreError):
    """Another driver holds the same run; nothing was written."""


class ResourceLimitError(StreamKernelError, MemoryError):
    """The work needs more memory than allowed; the message gives both numbers and the remedy."""


class NumericalError(StreamKernelError, ArithmeticError):
    """A solver produced NaN or infinity."""


class SingularKernelError(NumericalError):
    """The kernel matrix is singular and alpha = 0."""


class ClusterError(StreamKernelError, RuntimeError):
    """The scheduler or its workers have stopped; the run can be resumed from its checkpoint."""


class SecurityError(StreamKernelError, PermissionError):
    """A connection is not encrypted although it must be, or one side does not accept a certificate."""


class DependencyError(StreamKernelError, ImportError):
    """A library is not installed, or its version lacks a part that streamkernel uses."""


def error_class(name: str) -> type[StreamKernelError] | None:
    """The error class with this name; None if there is none."""
    found = globals().get(name)
    return found if isinstance(found, type) and issubclass(found, StreamKernelError) else None


def warn_user(message: str) -> None:
    """Issue a warning about the user's data, located at the line that called the package."""
    package, level = __name__.partition(".")[0], 1
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(StreamKernelWarning(message), stacklevel=level + 1)
