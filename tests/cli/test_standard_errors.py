"""A number and its standard error are one field for readers, two for programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from streamkernel.cli.output import measured


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.123456, 0.0041, "0.1235 +- 0.0041"),
        (95.4321, 1.234, "95.4 +- 1.2"),
        (-1234.567, 25.0, "-1,235 +- 25"),
        (12345678.0, 1234.0, "1.23457e+07 +- 1.2e+03"),
        (1.5e-9, 2.5e-10, "0.00000000150 +- 0.00000000025"),
        (1.5e-19, 2.5e-20, "1.5e-19 +- 2.5e-20"),
        (0.25, math.nan, "0.25"),
        (0.0, 0.0, "0"),
        (math.inf, 1.0, "inf"),
    ],
)
def test_two_digits_of_the_error_are_shown(value: float, error: float, text: str) -> None:
    assert measured(value, error) == text


def test_evaluate_prints_them_as_one(cli: Callable, store: Path, model: Path) -> None:
    options = ("evaluate", model, store, "--rows", "5000:", "--scheduler", "threads")
    found = cli(*options, "--json").result
    printed = cli(*options).out
    assert f"rmse  {measured(found['rmse'], found['rmse_se'])}" in printed
    assert "_se" not in printed
    assert " se " not in printed
    one = cli("evaluate", model, store, "--rows", "5000:5001", "--scheduler", "threads", "--json").result
    assert one["rmse_se"] is None, "one row says nothing of the spread"
