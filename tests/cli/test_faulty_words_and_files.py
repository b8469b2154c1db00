"""Misspelt options and columns, and files with faults that a reader cannot guess: each message names the way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(cli: Run, content: str | bytes, *options: str) -> str:
    """The message of an ingest; nothing is left behind."""
    Path("rows.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    error: str = cli("ingest", "rows.csv", "rows.zarr", *(options or ("--target", "y"))).error
    assert not Path("rows.zarr").exists()
    return error


def test_the_number_of_basis_functions_is_found_under_its_names_in_formulas_and_python(cli: Run) -> None:
    for flag in ("--n", "--n-components"):
        found = cli("fit", "rows.csv", "m", flag, 5)
        assert found.status == 2
        assert f"No such option '{flag}'. Did you mean '--basis'?" in found.err


def test_compare_tells_how_options_of_a_fit_are_given(cli: Run) -> None:
    for flag, name in (("--basis", "basis"), ("--n-components", "basis"), ("--alpha", "alpha")):
        found = cli("compare", "rows.zarr", "--estimators", "ridge", flag, 5)
        assert found.status == 2
        assert f"No such option '{flag}'. Options of fit are given by --set {name}=VALUE." in found.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--target", "Price"),
            "there is no target column 'Price' (did you mean 'price'?); its columns are area, price",
        ),
        (("--target", " price"), "did you mean 'price'?"),
        (("--target", "pricee"), "did you mean 'price'?"),
        (("--target", "price", "--drop", "AREA"), "there is no column 'AREA' (did you mean 'area'?)"),
        (("--target", "price", "--categories", "areas"), "'areas' for --categories (did you mean 'area'?)"),
        (("--target", "rooms"), "there is no target column 'rooms'; its columns are area, price"),
        (("--target", "7"), "there is no target column 7; its columns are area, price"),
    ],
)
def test_a_misspelt_column_is_answered_with_the_one_that_is_meant(
    cli: Run, folder: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in refusal(cli, "area,price\n1,2\n3,4\n", *options)


@pytest.mark.parametrize(
    "uses", [("--target", "y"), ("--target", "-1"), ("--id", "y"), ("--weight", "y"), ("--drop", "y")]
)
def test_a_column_has_one_use(cli: Run, folder: Path, uses: tuple[str, str]) -> None:
    assert "column 'y' " in refusal(cli, "a,b,y\n1,2,3\n4,5,6\n", "--target", "y", *uses)


def test_a_column_that_is_dropped_twice_is_left_out_once(cli: Run, folder: Path) -> None:
    Path("rows.csv").write_text("a,b,y\n1,2,3\n4,5,6\n")
    found = cli("ingest", "rows.csv", "rows.zarr", "--target", "y", "--drop", "b", "--drop", "b", "--json").result
    assert found["left_out"] == ["column 'b' (dropped)"]


@pytest.mark.parametrize("schema", [(), ("--schema", "auto")])
@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e999"])
def test_nothing_is_said_to_fill_an_infinity(cli: Run, folder: Path, value: str, schema: tuple[str, ...]) -> None:
    error = refusal(cli, f"a,y\n1,2\n{value},3\n", "--target", "y", *schema)
    assert "rows.csv:3" in error
    assert "--missing" not in error
    assert "correct" in error


def test_a_gap_beside_an_infinity_can_be_filled(cli: Run, folder: Path) -> None:
    assert "--missing mean" in refusal(cli, "a,b,y\n1,,3\ninf,2,3\n")


@pytest.mark.parametrize("schema", [("--schema", "auto"), ("--categories", "c")])
def test_zero_bytes_in_text_are_named_by_line_and_column(cli: Run, folder: Path, schema: tuple[str, ...]) -> None:
    error = refusal(cli, b'a,c,y\n1,u,2\n3,"v\nw",4\n5,u\0,6\n', "--target", "y", *schema)
    assert "rows.csv:5:2: a zero byte in column 'c'; the file is damaged" in error


def test_zero_bytes_in_a_column_that_is_left_out_are_not_read(cli: Run, folder: Path) -> None:
    Path("rows.csv").write_bytes(b"a,c,y\n1,u\0,2\n3,v,4\n")
    assert cli("ingest", "rows.csv", "rows.zarr", "--target", "y", "--drop", "c", "--schema", "auto").status == 0


def test_a_quote_that_is_not_closed_is_taken_for_one(cli: Run, folder: Path) -> None:
    error = refusal(cli, 'a,c,y\n1,"u,2\n3,v,4\n', "--target", "y", "--drop", "c")
    assert "rows.csv:2:2: 2 fields where the table has 3 columns, in a row that goes on to line 3: is a quote" in error
    assert "rows.csv:3:1: 1 field where the table has 3 columns; mend" in refusal(cli, "a,c,y\n1,2,3\n4\n")


@pytest.mark.parametrize("schema", [(), ("--schema", "auto")])
def test_thousands_with_a_comma_and_a_point_are_no_decimal_commas(
    cli: Run, folder: Path, schema: tuple[str, ...]
) -> None:
    content = 'a,b,y\n"1,234.5",1,2\n"2,345.6",2,3\n"12,345.6",3,4\n'
    Path("rows.csv").write_text(content)
    found = cli("ingest", "rows.csv", "rows.zarr", "--target", "y", *schema)
    said = found.err.replace("\n", " ")
    assert "--decimal" not in said
    assert "write numbers alone, such as 1234.5" in said
    assert found.status == (0 if schema else 1)


def test_points_among_decimal_commas_are_told(cli: Run, folder: Path) -> None:
    content, comma = "a;b;y\n1.234;1,5;2\n2.345;2,5;3\n12.345;3,5;4\n", ("--target", "y", "--decimal", ",")
    error = refusal(cli, content, *comma)
    assert "rows.csv:2:1: '1.234' in column 'a' is a number with a point; where it separates thousands" in error
    assert "leave --decimal , out" in error
    warned = cli("ingest", "rows.csv", "rows.zarr", *comma, "--schema", "auto")
    assert "column 'a' holds numbers with other signs, such as '1.234'" in warned.err.replace("\n", " ")


@pytest.mark.parametrize("kind", ["ridge", "ridge-classifier", "svc", "gp"])
def test_rows_without_targets_say_how_to_give_them(cli: Run, folder: Path, kind: str) -> None:
    Path("rows.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    assert cli("ingest", "rows.csv", "rows.zarr", "--quiet").status == 0
    plain = ("--basis", 2, "--kernel", "gaussian", "--lengthscale", 1, "--scheduler", "threads")
    alpha = ("--alpha", 0.1) if kind == "ridge" else ()
    assert "with --target" in cli("fit", "rows.zarr", "m", "--estimator", kind, *plain, *alpha).error
