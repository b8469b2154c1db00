"""Targets: numbers unchanged, or class labels as codes and one-hot columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.errors import DataError, DTypeError, ShapeMismatchError, warn_user
from streamkernel.table.rows import RowArray, RowReader
from streamkernel.table.values import check_finite, check_targets, float_dtype, listed
from streamkernel.type_aliases import AnyArray, Float, Int, Unchecked
from streamkernel.wording import estimator

MAX_CLASSES = 10_000
_SHOWN_VARIANTS = 3
_WHOLE = re.compile(r"-?[0-9]{1,15}\.0")


@dataclass(frozen=True)
class Targets:
    """Targets y of a table.

    Attributes
    ----------
    rows
        The stored values: numbers, codes, or labels.
    names
        One name per stored column.
    classes
        Sorted labels of a classification target, else None.
    coded
        True where the stored values are already positions in `classes`.
    positions
        Position in `classes` of each stored code, where the codes are of another order of labels.
    of_model
        Whether `classes` are those of a model, not those found in the stored values.
    indicators
        Whether each column is a label that a row has (1) or has not (0); a row may have several.
    """

    rows: RowArray
    names: tuple[str, ...]
    classes: AnyArray | None = None
    coded: bool = False
    positions: tuple[int, ...] | None = None
    of_model: bool = False
    indicators: bool = False

    def __post_init__(self) -> None:
        if self.classes is None and self.rows.dtype.kind not in "fiub":
            if self.rows.dtype.kind in "UT" and self.rows.width == 1:
                raise DTypeError(
                    f"y holds text (dtype {self.rows.dtype}); give numbers, or for class labels "
                    f"{estimator('KernelRidgeClassifier')} or another classifier; a table takes them where it is "
                    "opened with classify"
                )
            float_dtype(self.rows.dtype, "y")

    @property
    def n_targets(self) -> int:
        """Columns of Y: targets d, or classes."""
        return self.rows.width if self.classes is None else len(self.classes)

    def encode(self, values: AnyArray, start: int) -> Float:
        """Y (b, d) float64 of stored values (b,) or (b, d): unchanged, or ``Y_ic = 1 if y_i == class_c else 0``."""
        if self.classes is None:
            Y = np.ascontiguousarray(values, dtype=np.float64).reshape(values.shape[0], -1)
            check_targets(Y, start, self.names, self.rows.where)
            if self.indicators:
                _check_indicators(Y, start, self.names)
            return Y
        codes = self.codes(values, start)
        one_hot = np.zeros((codes.size, len(self.classes)))
        one_hot[np.arange(codes.size), codes] = 1.0
        return one_hot

    def for_model(self, classes: AnyArray | None, d: int) -> Targets:
        """These targets coded by a model's classes; for None, after a check that they are d numbers a row.

        Raises
        ------
        ShapeMismatchError, DataError
            The model has another number of targets, or numbers instead of labels, or lacks a label. Labels that are
            not coded are compared when they are read.
        """
        if classes is None:
            if self.classes is not None:
                raise DataError(
                    "the table's targets are class labels, the model is a regression; give targets that are numbers, "
                    "or a classifier"
                )
            if self.n_targets != d:
                raise ShapeMismatchError(f"the table has {self.n_targets} targets, the model {d}; give equal ones")
            return self
        if not self.coded:
            if classes.dtype.kind not in "biuf" and self.rows.dtype.kind in "biuf":
                raise DataError(
                    f"the table's targets are numbers, the model's classes are text ({listed(classes)}); give targets "
                    "with these labels"
                )
            return replace(self, classes=classes, of_model=True)
        assert self.classes is not None
        labels, place = self.classes.tolist(), {label: position for position, label in enumerate(classes.tolist())}
        if labels == list(place):
            return self
        # Stores and models of earlier versions have labels as their files wrote them.
        forms = {label_form(label): position for label, position in reversed(place.items())}
        place |= {label: forms[form] for label in labels if label not in place and (form := label_form(label)) in forms}
        # Fewer rows may lack a class.
        unknown = [label for label in labels if label not in place]
        if unknown:
            raise DataError(
                f"the table's class {unknown[0]!r} is none of the model's ({listed(classes)}); fit again on rows with "
                "all classes"
            )
        then = range(len(labels)) if self.positions is None else self.positions
        positions = tuple(place[labels[position]] for position in then)
        return replace(self, classes=classes, positions=positions, of_model=True)

    def codes(self, values: AnyArray, start: int) -> Int:
        """Positions (b,) in `classes` of stored values."""
        assert self.classes is not None
        flat = values.reshape(values.shape[0])
        if self.coded:
            codes = flat.astype(np.int64)
            bad = (codes < 0) | (codes >= len(self.positions or self.classes))
            if self.positions is not None and not bad.any():
                codes = np.asarray(self.positions, dtype=np.int64)[codes]
        else:
            check_finite(flat, start, self.names, self.rows.where, "y")
            codes = np.minimum(np.searchsorted(self.classes, flat), len(self.classes) - 1).astype(np.int64)
            bad = np.asarray(self.classes[codes] != flat)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            [value] = flat[row : row + 1].tolist()
            if self.of_model:
                raise DataError(
                    f"y holds {value!r} in row {start + row}, which is none of the model's classes "
                    f"({listed(self.classes)}); fit again on rows with all classes, or leave these rows out"
                )
            raise DataError(
                f"y holds {value!r} in row {start + row}, which is none of the {len(self.classes)} classes that the "
                "table was opened with; open the table again"
            )
        return codes


def label_form(label: Unchecked) -> Unchecked:
    """The form that text labels of files have (`schema.values.canonical`); any other label is itself."""
    if not isinstance(label, str):
        return label
    text = unicodedata.normalize("NFC", label.strip(" \t\r\n"))
    if _WHOLE.fullmatch(text):
        return text[:-2]
    low = text.lower() if text.isascii() else text
    return low if low in ("true", "false") else text


def labelled_targets(rows: RowArray, names: tuple[str, ...], *, multilabel: bool = False) -> Targets:
    """Class labels, found in a pass over y; with `multilabel`, several columns are indicators of labels.

    Raises
    ------
    DataError
        As of `discover_classes`; or y in memory holds indicators other than 0 and 1. Others are looked at when they are
        read.
    """
    if not multilabel or rows.width == 1:
        return Targets(rows, names, discover_classes(rows, names))
    targets = Targets(rows, names, indicators=True)
    if rows.in_memory:
        targets.encode(RowReader(rows).read(0, rows.n_rows), 0)
    return targets


def _check_indicators(Y: Float, start: int, names: tuple[str, ...]) -> None:
    wrong = (Y != 0.0) & (Y != 1.0)
    if wrong.any():
        row, column = (int(place) for place in np.argwhere(wrong)[0])
        raise DataError(
            f"y holds {Y[row, column]:g} in row {start + row}, column {names[column]!r}: several columns of a "
            "classifier are labels that a row has (1) or has not (0); give these, or one column of classes"
        )


def discover_classes(rows: RowArray, names: tuple[str, ...]) -> AnyArray:
    """Sorted distinct labels of y (m,), found in one streamed pass; whole numbers stored as floats become integers
    unless they are in memory, where the caller's own dtype is kept.

    Raises
    ------
    DataError
        More than 10,000 labels, fractions among them, or several columns.
    """
    if rows.width != 1:
        raise DataError(f"class labels need one target column, y has {rows.width}; choose one with target=")
    if rows.dtype.kind not in "fiubUTO":
        raise DTypeError(f"y holds {rows.dtype}; class labels are text or whole numbers")
    reader = RowReader(rows)
    found: AnyArray | None = None
    row = 0
    while row < rows.n_rows:
        first, last = rows.chunk_span(row)
        values = reader.read(first, last).reshape(-1)
        check_finite(values, first, names, rows.where, "y")
        whole = values.dtype.kind != "f" or bool((values == np.floor(values)).all())
        if not whole:
            fractions = np.flatnonzero(values != np.floor(values))
            raise DataError(
                f"Unknown label type: y holds {values[fractions[0]].item()!r} in row {first + int(fractions[0])}, "
                "not a class label; it looks like a regression target"
            )
        fresh = np.unique(_text(values))
        found = fresh if found is None else np.unique(np.concatenate((found, fresh)))
        if found.size > MAX_CLASSES:
            raise DataError(
                f"y holds more than {MAX_CLASSES} distinct values: it looks like a regression target, not class "
                "labels; open it without classify, or group the labels"
            )
        row = last
    assert found is not None
    if found.dtype.kind == "u":
        _check_whole(int(found.max()))
    if found.dtype.kind in "UT":
        warn_of_variants(found.tolist(), "y")
    if found.dtype.kind == "f" and not rows.in_memory and np.abs(found).max() < 2**53:
        return found.astype(np.int64)
    return found


def warn_of_variants(labels: Iterable[object], what: str, where: Callable[[str], str] | None = None) -> None:
    """Warn of class labels that differ in upper and lower case or in spaces alone: they stay classes of their own.

    Parameters
    ----------
    labels : distinct labels, of which only text is looked at.
    what : what holds them, such as "column 'kind'".
    where : where a label is first, such as "rows.csv:2"; None where that has no name.
    """
    written: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            written.setdefault(" ".join(label.split()).casefold(), []).append(label)
    variants = [sorted(each) for each in written.values() if len(each) > 1]
    if variants:
        shown = "; ".join(", ".join(map(repr, each[:_SHOWN_VARIANTS])) for each in variants[:_SHOWN_VARIANTS])
        more = f"; and {len(variants) - _SHOWN_VARIANTS} more" if len(variants) > _SHOWN_VARIANTS else ""
        place = "" if where is None else f", in {where(variants[0][0])}"
        warn_user(
            f"{what} has labels that differ in case or spaces alone, {shown}{more}{place}: "
            "each is a class of its own; where they are one class, write them alike in the source"
        )


def plain_labels(y: Unchecked) -> Unchecked:
    """Convert labels in a list or of Python objects to text or numbers; return anything else unchanged.

    Raises
    ------
    DTypeError
        The labels mix text and numbers (NumPy would make text of both), or one is missing or of another type.
    """
    values = y
    if not isinstance(y, (list, tuple)):
        dtype = getattr(y, "dtype", None)
        if isinstance(dtype, np.dtype) and dtype.kind in "biufU":
            return y
        # Of pandas' Int64 and boolean scikit-learn would make floats, in which labels beyond 2^53 are one.
        values = np.asarray(y)
        if values.dtype.kind not in "OT":
            return y if dtype is None else values
    flat = np.empty(len(values), dtype=object)
    try:
        flat[:] = values
    except ValueError:  # several columns, which are refused with their shape
        return y
    if any(isinstance(value, (list, tuple, np.ndarray)) for value in flat):
        return y
    return _text(flat)


def _text(values: AnyArray) -> AnyArray:
    """Labels of one kind: Python objects must all be text, or all numbers (a mixture cannot be sorted)."""
    if values.dtype.kind == "T":
        # NumPy casts it by way of objects alone; a missing one is an object of its own.
        return _text(values.astype(object))
    if values.dtype.kind != "O":
        return values
    kinds: dict[str, int] = {}
    for position, value in enumerate(values):
        kind = _kind_of(value)
        if kind not in ("text", "numbers"):
            raise DTypeError(
                f"y holds {kind} ({value!r:.60}) at position {position} among its labels; give text or whole numbers, "
                "and leave out rows without a label"
            )
        kinds.setdefault(kind, position)
    if len(kinds) > 1:
        raise DTypeError(
            f"y mixes text ({values[kinds['text']]!r:.60}, position {kinds['text']}) and numbers "
            f"({values[kinds['numbers']]!r:.60}, position {kinds['numbers']}) among its labels; give labels of one "
            "kind, such as [str(label) for label in y]"
        )
    if "text" in kinds:
        return values.astype(np.str_)
    labels = values.tolist()
    if not any(isinstance(label, float) for label in labels):
        _check_whole(max(labels, key=abs))
    return np.array(labels)


def _check_whole(label: int) -> None:
    """Refuse labels beyond 64 bits with a sign: NumPy makes floats of them beside others, in which several are one."""
    if not -(2**63) <= label < 2**63:
        raise DTypeError(
            f"y holds {label} among its labels, and whole numbers as labels lie below 2^63; give text, such as "
            "[str(label) for label in y]"
        )


def _kind_of(value: Unchecked) -> str:
    if isinstance(value, str):
        return "text"
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "a missing label"
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return "a missing label" if value != value else "numbers"
    return f"a {type(value).__name__}"
