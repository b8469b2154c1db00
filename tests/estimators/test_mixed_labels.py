"""Labels that mix text and numbers, or are missing: one clear error, whatever holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamkernel import GaussianProcessClassifier, KernelMatchingPursuitClassifier, KernelRidgeClassifier, open_table
from streamkernel.errors import DTypeError

pd = pytest.importorskip("pandas")

X = np.random.default_rng(0).standard_normal((6, 2))
MIXED = ["a", 1, "b", "a", 1, "b"]
FITS = [
    lambda y: KernelRidgeClassifier(3).fit(X, y),
    lambda y: GaussianProcessClassifier(3).fit(X, y),
    lambda y: KernelMatchingPursuitClassifier(3).fit(X, y),
    lambda y: open_table(X, y, classify=True),
]


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("kind", [list, tuple, lambda y: np.array(y, dtype=object), pd.Series])
def test_text_and_numbers(fit: Any, kind: Any) -> None:
    with pytest.raises(DTypeError, match=r"y mixes text \('a', position 0\) and numbers \(1, position 1\)"):
        fit(kind(MIXED))


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b", "a", "b", "a"],
        np.array([1, None, 0, 1, 0, 1], dtype=object),
        pd.Series(["a", None, "b", "a", "b", "a"]),
        pd.Series(["a", pd.NA, "b", "a", "b", "a"], dtype="string"),
        np.array(["a", np.nan, "b", "a", "b", "a"], dtype=object),
    ],
    ids=["list", "numbers", "series", "string", "nan"],
)
def test_missing_ones(fit: Any, y: Any) -> None:
    with pytest.raises(DTypeError, match=r"a missing label .* at position 1 "):
        fit(y)


def test_objects_of_one_kind_are_labels() -> None:
    for values in (["a", "b"] * 3, [1, 2] * 3, [True, False] * 3):
        fitted = KernelRidgeClassifier(3).fit(X, np.array(values, dtype=object))
        np.testing.assert_array_equal(fitted.classes_, np.unique(values))


@pytest.mark.parametrize("library", ["", "[pyarrow]"])
@pytest.mark.parametrize(
    ("labels", "dtype"), [([2**60, 2**60 + 1], "int64"), ([-7, -3], "int64"), ([False, True], "bool")]
)
def test_labels_of_pandas_own_types_stay_what_they_are(labels: list[Any], dtype: str, library: str) -> None:
    if library:
        pytest.importorskip("pyarrow")
    own = dtype + library if library else {"int64": "Int64", "bool": "boolean"}[dtype]
    y = pd.Series(labels * 3, dtype=own, name="label")
    fitted = KernelRidgeClassifier(3).fit(X, y)
    assert fitted.classes_.dtype == dtype
    assert fitted.classes_.tolist() == labels
    np.testing.assert_array_equal(open_table(X, y, classify=True).classes, labels)
