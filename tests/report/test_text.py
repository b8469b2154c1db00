"""Numbers and names as people write them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.report.text import count, duration, kernel_text, percent, plain, plural, significant


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (12.345, "12.3"),
        (999.6, "1,000"),
        (35063.2, "35,063"),
        (123456.0, "123,456"),
        (0.000123, "0.000123"),
        (1e-7, "10⁻⁷"),
        (1.234e-7, "1.23 × 10⁻⁷"),
        (-2.5e10, "−2.50 × 10¹⁰"),
        (math.inf, "∞"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_significant(number: float | None, words: str) -> None:
    assert significant(number) == words


@given(st.floats(1e-300, 1e300))
def test_significant_keeps_three_digits(number: float) -> None:
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    text = significant(number).replace(",", "")
    mantissa, _, power = text.partition(" × ") if " × " in text else (text, "", "")
    if text.startswith("10") and text[2:] and text[2] in "⁻⁰¹²³⁴⁵⁶⁷⁸⁹":
        mantissa, power = "1", text
    value = float(mantissa) * (10.0 ** int(power[2:].translate(raised)) if power else 1.0)
    assert value == pytest.approx(number, rel=5.1e-3)


@pytest.mark.parametrize(
    ("share", "words"),
    [(1.0, "100 %"), (0.02091, "2.09 %"), (1.2e-5, "0.00120 %"), (3e-9, "3.00 × 10⁻⁹"), (0.0, "0 %"), (math.nan, "–")],
)
def test_percent(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 ms"),
        (0.0004, "0.4 ms"),
        (0.25, "250 ms"),
        (0.9996, "1.0 s"),
        (3.14, "3.1 s"),
        (59.96, "1 min"),
        (125.0, "2 min 5 s"),
        (3599.7, "1 h"),
        (4320.0, "1 h 12 min"),
    ],
)
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_count_and_plural() -> None:
    assert count(1234567) == "1,234,567"
    assert (plural(1, "row"), plural(2, "row")) == ("1 row", "2 rows")


def test_plain_leaves_one_printable_line_of_bounded_length() -> None:
    text = plain("a\nb\x00\ud800\u202ec" + "x" * 100)
    assert text.startswith("a�b���c")
    assert len(text) == 60
    text.encode()


def test_kernel_text() -> None:
    gaussian = {"kernel": "gaussian", "lengthscale": 2.0}
    matern = {"kernel": "matern", "lengthscale": 1.0, "nu": 1.5}
    assert kernel_text(gaussian) == "Gaussian"
    assert kernel_text(matern) == "Matérn 3/2"
    both = {"kernel": "sum", "left": gaussian, "right": {"kernel": "linear"}}
    assert kernel_text(both) == "Gaussian (lengthscale 2.000) + linear"
    product = {"kernel": "product", "left": both, "right": {"kernel": "fixed", "part": matern}}
    assert kernel_text(product) == "(Gaussian (lengthscale 2.000) + linear) × Matérn 3/2 (lengthscale 1.000)"
    scaled = {"kernel": "scaled", "part": both, "factor": 0.5}
    assert kernel_text({"kernel": "sum", "left": both, "right": scaled}) == (
        "Gaussian (lengthscale 2.000) + linear + 0.5000 × (Gaussian (lengthscale 2.000) + linear)"
    )
    assert kernel_text({"kernel": "polynomial", "degree": 3, "coef0": 1.0}) == "polynomial (degree 3, coef0 1.000)"
    assert kernel_text({"kernel": "precomputed", "n_columns": 30}) == "precomputed"


def test_kernel_text_tells_which_columns_a_part_sees() -> None:
    gaussian = {"kernel": "gaussian", "lengthscale": 2.0}

    def of(part: Any, *columns: int) -> Any:
        return {"kernel": "of_columns", "part": part, "columns": list(columns)}

    both = {"kernel": "sum", "left": of(gaussian, 2, 0), "right": of({"kernel": "linear"}, 1)}
    assert kernel_text(both) == "Gaussian (lengthscale 2.000, columns=[2, 0]) + linear (columns=[1])"
    names = ["age", "hours a week", "x" * 100]
    assert kernel_text(of(gaussian, 0, 1), names) == "Gaussian (lengthscale 2.000, columns=[age, hours a week])"
    # Those of a part within a part are counted among its columns.
    assert kernel_text(of(both, 1, 2, 0), ["a", "b", "c"]) == (
        "(Gaussian (lengthscale 2.000, columns=[a, b]) + linear (columns=[c])) (columns=[b, c, a])"
    )
    assert kernel_text(of({"kernel": "linear"}, *range(9))) == "linear (columns=[0, 1, 2, 3, 4, 4 more])"
    assert len(kernel_text(of(gaussian, 2), names)) < 80
