"""What a look at the rows makes of dates, numbers and words as people write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamkernel import ingest, suggest_schema
from streamkernel.errors import DataError, ParameterError, SourceFormatError, StreamKernelWarning
from streamkernel.table.schema import Column
from streamkernel.table.schema.suggest import date_formats, have_signs
from streamkernel.table.schema.values import WrongValueError, dates


@pytest.mark.parametrize(
    ("texts", "formats"),
    [
        (["2020-01-31", "2020-02-01T10:00Z"], (None,)),
        (["31.01.2020", "01.02.2020"], ("%d.%m.%Y",)),
        (["31.01.20", "01.02.20"], ("%d.%m.%y",)),
        (["01/02/2020"], ("%d/%m/%Y", "%m/%d/%Y")),
        (["02/02/2020"], ("%d/%m/%Y",)),  # both orders are one day
        (["13/02/20 10:30 PM"], ("%d/%m/%y %I:%M %p",)),
        (["31.01.2020 10:30:59"], ("%d.%m.%Y %H:%M:%S",)),
        (["02 Jan 2020", "15 Feb 2020"], ("%d %b %Y",)),
        (["2 January 2020"], ("%d %B %Y",)),
        (["Jan 2, 2020"], ("%b %d, %Y",)),
        (["15-Mar-21"], ("%d-%b-%y",)),
        (["20200131", "19991231"], ("%Y%m%d",)),
        (["2020-01", "2020-12"], (None,)),
        (["2020-01", "2020-02-15"], (None,)),
        (["2020/01", "2020/2"], ("%Y/%m",)),
        (["01/2020", "12/2020"], ("%m/%Y",)),
        (["01.2020", "12.1999"], ("%m.%Y",)),
        (["Jan 2020", "May 2020"], ("%b %Y",)),
        (["January 2020", "May 2020"], ("%B %Y",)),
        (["2020-13"], ()),
        (["13.2020"], ()),
        (["2020-1"], ()),
        (["20200231"], ()),
        (["2020013"], ()),
        (["31.02.2020"], ()),
        (["soon"], ()),
        ([], (None,)),
    ],
)
def test_formats_of_dates(texts: list[str], formats: tuple[str | None, ...]) -> None:
    assert date_formats(pa.array(texts, pa.string())) == formats


def test_a_year_of_two_digits_is_none_of_four() -> None:
    # Arrow alone reads 15.03.21 by %d.%m.%Y as a day of the year 21.
    with pytest.raises(Exception, match=r"is not a date of the format %d\.%m\.%Y"):
        dates(pa.array(["15.03.21"]), "%d.%m.%Y")
    np.testing.assert_array_equal(dates(pa.array(["01.01.1000"]), "%d.%m.%Y"), [-354_285.0])


@pytest.mark.parametrize("text", ["5%", "$3.50", "3.50 €", "1,234", "1 234", "(12)", "\u221212", "1'000.5", "-$5"])
def test_numbers_with_other_signs(text: str) -> None:
    assert have_signs([text])


@pytest.mark.parametrize("text", ["5", "-5", "1e5", "10.0.0.1", "5 km", "%", "a%", "2020-01-31", "12:30", "A-1"])
def test_texts_without_other_signs(text: str) -> None:
    assert not have_signs([text])


def look(folder: Path, values: list[str]) -> Column:
    path = folder / "rows.csv"
    path.write_text("a,y\n" + "".join(f'"{value}",{row}\n' for row, value in enumerate(values)))
    return suggest_schema(path, target="y")["a"]


def test_words_for_no_value(tmp_path: Path) -> None:
    found = look(tmp_path, [*"1234", "None", "n.a.", "-", "None", "None"])
    assert (found.kind, set(found.missing_values)) == ("number", {"None", "n.a.", "-"})
    assert look(tmp_path, ["none", "1", "none", "1"]).kind == "category"
    with pytest.warns(StreamKernelWarning, match="'many' among the numbers of column 'a' is taken for a missing value"):
        found = look(tmp_path, [*map(str, range(40)), "many"])
    assert found.missing_values == ("many",)
    # Codes of digits are dates only where all are.
    assert look(tmp_path, ["20200101", "20200102", "20200103"]).format == "%Y%m%d"
    assert look(tmp_path, ["20200101", "20200102", "20201303"]).kind == "number"


def test_a_month_is_its_first_day() -> None:
    first = dates(pa.array(["2020-01-01", "1999-12-01"]), None)
    for texts, form in (
        (["2020-01", "1999-12"], None),
        (["2020/01", "1999/12"], "%Y/%m"),
        (["01.2020", "12.1999"], "%m.%Y"),
        (["Jan 2020", "Dec 1999"], "%b %Y"),
    ):
        np.testing.assert_array_equal(dates(pa.array(texts), form), first)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["01.2020", "02.2020", "12.1999"], "date"),
        (["01.2020", "01.2020", "", "10.2020"], "date"),
        (["10.2020", "11.2020", "12.2020"], "number"),  # nothing shows that they are no numbers
        (["01.2020", "02.5"], "number"),
        (["00.2020", "01.2020"], "number"),
        (["13.2020", "01.2020"], "number"),
        (["2020-01", "2020-02"], "date"),
        (["2020-01", "2020-13"], "category"),
    ],
)
def test_months_among_numbers_and_codes(tmp_path: Path, values: list[str], kind: str) -> None:
    assert look(tmp_path, values).kind == kind


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    with pytest.warns(StreamKernelWarning, match="column 'a' holds numbers with other signs, such as '0%'"):
        assert look(tmp_path, [f"{i}%" for i in range(40)]).kind == "text"
    with pytest.warns(StreamKernelWarning, match="%d/%m/%Y and %m/%d/%Y both read"):
        assert look(tmp_path, ["01/02/2020", "02/01/2020", "01/02/2020"]).kind == "category"
    with pytest.raises(SourceFormatError, match="%d/%m/%Y and %m/%d/%Y both read; give its format in the schema"):
        ingest(tmp_path / "rows.csv", tmp_path / "s", target="y", dates=["a"])


@pytest.mark.parametrize("target", ["{i}%", '"{i},5"', "2020-{month:02d}-{day:02d}"])
def test_values_that_are_no_labels_are_no_target(target: str, tmp_path: Path) -> None:
    rows = [target.format(i=i, month=i % 12 + 1, day=i % 28 + 1) for i in range(40)]
    (tmp_path / "rows.csv").write_text("a,y\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows)))
    with pytest.raises(DataError, match="each of which would be a class"):
        ingest(tmp_path / "rows.csv", tmp_path / "s", target="y")
    few = (tmp_path / "rows.csv").read_text().splitlines()[:8]  # few labels may be called so
    (tmp_path / "few.csv").write_text("\n".join([*few, ""]))
    assert len(ingest(tmp_path / "few.csv", tmp_path / "s", target="y").classes or ()) == 7


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("2020-01-31T12:30:00 UTC", 12.5),
        ("2020-01-31 12:30 UTC", 12.5),
        ("2020-01-31 12:30:00.000000000GMT", 12.5),
        ("2020-01-31 12:30:00 +0200", 10.5),
        ("2020-01-31 12:30:00.0 -05:30", 18.0),
        ("2020-01-31 12:30 +02", 10.5),
        ("2020-01-31 12:30:00+02", 10.5),
        ("2020-01-31 12:30:00", 12.5),
    ],
)
def test_a_zone_may_stand_after_a_space(text, hours):
    [found] = dates(pa.array([text]), None)
    assert found == pytest.approx(18292 + hours / 24, abs=1e-9)


@pytest.mark.parametrize(
    "text", ["2020-01-31 UTC", "2020-01-31 12:30:00 EST", "12:30:00 UTC", "2020-01-31 12:30:00 UTC Z"]
)
def test_other_words_are_no_zone(text):
    with pytest.raises(WrongValueError, match="is not a date"):
        dates(pa.array([text]), None)


def test_dates_with_points_are_dates_beside_decimal_commas(tmp_path: Path) -> None:
    rows = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2020;{i},5;{i // 2},{i}" for i in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["when;a;y", *rows]) + "\n")
    found = suggest_schema(tmp_path / "rows.csv", target="y", decimal=",")
    assert (found["when"].kind, found["when"].format) == ("date", "%d.%m.%Y")
    assert (found["a"].kind, found["y"].kind) == ("number", "number")
    made = ingest(tmp_path / "rows.csv", tmp_path / "s", target="y", decimal=",", schema="auto")
    assert made.columns[0] == "when (elapsed)"
    (tmp_path / "thousands.csv").write_text("a;b;y\n" + "".join(f"1.{i:03d},5;{i};{i}\n" for i in range(40)))
    with pytest.warns(UserWarning, match="column 'a' holds numbers with other signs, such as '1.000,5'"):
        ingest(tmp_path / "thousands.csv", tmp_path / "t", target="y", decimal=",", schema="auto")


def test_names_with_line_breaks_make_messages_of_one_line(tmp_path: Path) -> None:
    rows = pa.table({"a": [1.0, 2.0], "two\nlines": [1.0, 2.0], "y": [0.0, 1.0]})
    with pytest.raises(ParameterError) as caught:
        ingest(rows, tmp_path / "s", target="z")
    assert str(caught.value).endswith("its columns are a, two lines, y (give one of them, or an index, by target)")
