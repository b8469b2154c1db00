"""Components and variates of some rows, and correlations of the variates there: arrays in the units of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.errors import ParameterError, ShapeMismatchError
from streamkernel.report.text import count, plain
from streamkernel.type_aliases import FieldsView, Float, Int

_MOST_LABELS = 8


@dataclass(frozen=True)
class Projected:
    """Values of some rows for a scatter.

    Attributes
    ----------
    rows : names the rows and their number.
    first, second : (m, r) components, or the variates of each view; `second` is None for components.
    group : (m,) number of each row's label; None where the rows have none.
    labels : the labels, the commonest first; the last one stands for all others where there are many.
    target : (m,) a number of each row; None where the rows have none.
    target_name : its name.
    """

    rows: str
    first: Float
    second: Float | None = None
    group: Int | None = None
    labels: tuple[str, ...] = ()
    target: Float | None = None
    target_name: str = ""


def projected(pairs: FieldsView, names: Sequence[str]) -> Projected:
    """Rows with their components or variates.

    Parameters
    ----------
    pairs : "kind" names the rows; `names` are the arrays (m, r) that are wanted, equal in shape; "label" (m,) or
        "target" (m,) and its name "target_name" give the colours of the rows.

    Raises
    ------
    ParameterError
        A part is missing.
    ShapeMismatchError
        Shapes differ.
    """
    missing = [name for name in ("kind", *names) if name not in pairs]
    if missing:
        raise ParameterError(f"pairs lacks {', '.join(missing)}; give kind, {' and '.join(names)}")
    values = [np.asarray(pairs[name], dtype=np.float64) for name in names]
    shape = values[0].shape
    for name, each in zip(names, values, strict=True):
        if each.ndim != 2 or each.shape != shape:
            raise ShapeMismatchError(
                f"{name} has shape {each.shape}; give (rows, components), as {names[0]} has {shape}"
            )
    for name in ("label", "target"):
        if name in pairs and np.shape(pairs[name]) != shape[:1]:
            raise ShapeMismatchError(f"{name} has shape {np.shape(pairs[name])} for {shape[0]} rows; give one for each")
    kept = np.isfinite(np.hstack(values)).all(axis=1)
    values = [each[kept] for each in values]
    rows = f"{count(len(values[0]))} rows ({plain(pairs['kind'], 80)})"
    found = Projected(rows, values[0], values[1] if len(values) > 1 else None)
    if "label" in pairs:
        return _labelled(found, [plain(each, 24) for each in np.asarray(pairs["label"])[kept].tolist()])
    if "target" in pairs:
        target = np.asarray(pairs["target"], dtype=np.float64)[kept]
        return replace(found, target=target, target_name=plain(pairs.get("target_name", ""), 40))
    return found


def _labelled(found: Projected, labels: list[str]) -> Projected:
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.minimum(np.arange(len(names)), _MOST_LABELS - 1)
    shown = [str(names[index]) for index in order[:_MOST_LABELS]]
    if len(names) > _MOST_LABELS:
        shown[-1] = f"{len(names) - _MOST_LABELS + 1} others"
    return replace(found, group=place[codes], labels=tuple(shown))


@dataclass(frozen=True)
class HeldCorrelations:
    """Correlation (r,) of each pair of variates over some rows, and its standard error."""

    rows: str
    correlation: Float
    standard_error: Float


def held_correlations(found: Projected) -> HeldCorrelations | None:
    """Correlations of the variates on other rows than those of the fit; None for fewer than four rows.

    ``SE(r) = (1 - r^2) / sqrt(m - 3)``: that of Fisher's ``artanh r``, ``1 / sqrt(m - 3)``, by the delta method.
    """
    if found.second is None or len(found.first) < 4:
        return None
    u, v = (each - each.mean(axis=0) for each in (found.first, found.second))
    lengths = np.sqrt((u * u).sum(axis=0) * (v * v).sum(axis=0))
    r = np.divide((u * v).sum(axis=0), lengths, out=np.zeros(u.shape[1]), where=lengths > 0.0)
    r = np.clip(r, -1.0, 1.0)
    return HeldCorrelations(found.rows, r, (1.0 - r * r) / np.sqrt(len(u) - 3.0))
