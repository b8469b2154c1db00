"""Tables as people have them: what each gives. ``python tests/test_messy_inputs.py`` writes docs/messy_inputs.md anew.

Each case is a file or two, and a command. It works, and the page tells what is stored; or it is refused, and the page
has the message with its way out.
"""

from __future__ import annotations

import bz2
import io
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zarr
from zarr.codecs import Crc32cCodec

from streamkernel import open_table
from streamkernel.cli.main import main

PAGE = Path(__file__).resolve().parents[1] / "docs" / "messy_inputs.md"

Maker = Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    title: str
    make: Maker
    command: str
    # What the table holds, or a part of the message.
    gives: str
    input: bytes | None = None


def text(content: str, name: str = "rows.csv", encoding: str = "utf-8") -> Maker:
    return lambda folder: (folder / name).write_bytes(content.encode(encoding))


def both(*makers: Maker) -> Maker:
    return lambda folder: [make(folder) for make in makers]


def parquet(frame: pd.DataFrame) -> Maker:
    return lambda folder: pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "rows.parquet")


def _feather(folder: Path) -> None:
    pyarrow.feather.write_feather(pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0]}), folder / "rows.feather")


def _zst(folder: Path) -> None:
    with pa.output_stream(folder / "rows.csv.zst", compression="zstd") as stream:
        stream.write(b"a,y\n1,1\n2,2\n")


def _groups(folder: Path) -> None:
    group = zarr.create_group(folder / "images.zarr")
    for name, values in (("features", np.eye(3)), ("label", np.arange(3.0))):
        group.create_array(name, data=values, compressors=[Crc32cCodec()])


def _folders(folder: Path) -> None:
    for kind in ("cat", "dog"):
        place = folder / "t" / f"kind={kind}"
        place.mkdir(parents=True)
        (place / "part.csv").write_text("a,y\n1,1\n")


def _npz(folder: Path) -> None:
    np.savez(folder / "rows.npz", features=np.eye(3), label=np.arange(3.0))


JOB = "age,job,y\n30,baker,1\n40,smith,2\n50,baker,3\n"
MANY = "".join(f"{i},city {i % 40},{i % 7}\n" for i in range(200))
GAPS = "age,job,y\n30,baker,1\n,smith,2\n50,,3\n"
LATER = "ingest rows.csv rows.zarr --target y --schema auto && ingest later.csv rows.zarr --append"

CATEGORICAL = parquet(pd.DataFrame({"a": [1.0, 2.0, 3.0], "c": pd.Categorical(["u", "v", "u"]), "y": [1.0, 2.0, 3.0]}))

CASES = [
    Case(
        "text in a column",
        text(JOB),
        "ingest rows.csv rows.zarr --target y",
        "rows.csv:2:2: 'baker' in column 'job' is",
    ),
    Case(
        "text in a column, looked at",
        text(JOB),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "age, job=baker, job=smith",
    ),
    Case(
        "categories that are named",
        text(JOB),
        "ingest rows.csv rows.zarr --target y --categories job",
        "age, job=baker, job=smith",
    ),
    Case(
        "a category of 40 values",
        text("a,city,y\n" + MANY),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, city (mean of y)",
    ),
    Case(
        "the same without a target",
        text("a,city,y\n" + MANY),
        "ingest rows.csv rows.zarr --drop y --schema auto",
        "a",
    ),
    Case(
        "a category that only later rows have",
        both(text(JOB), text("age,job,y\n20,pirate,1\n", "later.csv")),
        LATER,
        "age, job=baker, job=smith",
    ),
    Case(
        "the same, and it must not be",
        both(text(JOB), text("age,job,y\n20,pirate,1\n", "later.csv")),
        LATER + " --unknown refuse",
        "later.csv:2: 'pirate' of column 'job' is none of its 2 categories",
    ),
    Case(
        "later rows with their columns in another order, and one more",
        both(text(JOB), text("y,more,job,age\n1,x,smith,20\n", "later.csv")),
        LATER,
        "age, job=baker, job=smith",
    ),
    Case(
        "later rows without a column",
        both(text(JOB), text("age,y\n20,1\n", "later.csv")),
        LATER,
        "later.csv has no column 'job', which the schema makes a feature",
    ),
    Case(
        "a missing number",
        text("a,y\n1,1\n,2\n"),
        "ingest rows.csv rows.zarr --target y",
        "fill missing values by --missing mean",
    ),
    Case(
        "a missing number, filled by the mean",
        text("a,y\n1,1\n,2\n"),
        "ingest rows.csv rows.zarr --target y --missing mean",
        "a",
    ),
    Case(
        "a missing number, filled by the median",
        text("a,y\n1,1\n,2\n"),
        "ingest rows.csv rows.zarr --target y --missing median",
        "a",
    ),
    Case(
        "missing values of all kinds, looked at",
        text(GAPS),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "age, age is missing, job=baker, job=smith, job is missing",
    ),
    Case("a missing target", text("a,y\n1,1\n2,\n"), "ingest rows.csv rows.zarr --target y", "y contains NaN"),
    Case(
        "a missing category that must not be",
        text(GAPS),
        "ingest rows.csv rows.zarr --target y --schema auto --missing refuse",
        "rows.csv:3: column 'age' has no value",
    ),
    Case(
        '"?" for a missing number',
        text("a,y\n" + "".join(f"{'?' if i == 7 else i},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, a is missing",
    ),
    Case(
        "dates of ISO 8601",
        text("when,y\n2020-01-01,1\n2020-06-01T12:00,2\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "when (elapsed), when (sine of the week), when (cosine of the week), when (sine of the day), "
        "when (cosine of the day)",
    ),
    Case(
        "dates as 31.12.2020",
        text("when,y\n31.12.2020,1\n01.02.2021,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed), when (sine of the week), when (cosine of the week)",
    ),
    Case(
        "dates as 31.12.2020, named",
        text("when,y\n31.12.2020,1\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "when (elapsed)",
    ),
    Case(
        "dates of both orders",
        text("when,y\n01/02/2020,1\n03/04/2020,2\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "column 'when' holds dates such as '01/02/2020', which %d/%m/%Y and %m/%d/%Y both read",
    ),
    Case(
        "a date that is none",
        text("when,y\n2020-01-01,1\n2020-02-30,2\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "rows.csv:3: '2020-02-30' of column 'when' is not a date",
    ),
    Case(
        "an id and free text",
        text("id,note,a,y\n" + "".join(f"{i},note number {i},{i},{i}\n" for i in range(30))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a",
    ),
    Case(
        "an id that is named", text("who,a,y\nx1,1,1\nx2,2,2\n"), "ingest rows.csv rows.zarr --target y --id who", "a"
    ),
    Case("two targets", text("a,u,v\n1,2,3\n4,5,6\n"), "ingest rows.csv rows.zarr --target u --target v", "a"),
    Case(
        "yes and no",
        text("member,y\nyes,1\nno,2\nyes,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "member",
    ),
    Case(
        "codes with leading zeros",
        text("zip,y\n00501,1\n10001,2\n00501,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "zip=00501, zip=10001",
    ),
    Case(
        "numbers that are categories",
        text("kind,y\n1,1\n2,2\n1,3\n"),
        "ingest rows.csv rows.zarr --target y --categories kind",
        "kind=1, kind=2",
    ),
    Case("a target of text", text("a,kind\n1,cat\n2,dog\n"), "ingest rows.csv rows.zarr --target kind", "a"),
    Case("row weights", text("a,n,y\n1,2,1\n2,3,2\n"), "ingest rows.csv rows.zarr --target y --weight n", "a"),
    Case(
        "several files",
        both(text("a,y\n1,1\n", "part-1.csv"), text("y,a\n2,2\n", "part-2.csv")),
        "ingest 'part-*.csv' rows.zarr --target y",
        "a",
    ),
    Case(
        "folders that are columns, one of text",
        _folders,
        "ingest t rows.zarr --target y --schema auto",
        "a, kind=cat, kind=dog",
    ),
    Case("tabs", text("a\ty\n1\t1\n", "rows.tsv"), "ingest rows.tsv rows.zarr --target y", "a"),
    Case(
        "bzip2",
        lambda folder: (folder / "rows.csv.bz2").write_bytes(bz2.compress(b"a,y\n1,1\n")),
        "ingest rows.csv.bz2 rows.zarr --target y",
        "a",
    ),
    Case("Zstandard", _zst, "ingest rows.csv.zst rows.zarr --target y", "a"),
    Case("Feather", _feather, "ingest rows.feather rows.zarr --target y", "a"),
    Case(
        "a pipe",
        text("", "none"),
        "ingest - rows.zarr --target y --schema auto",
        "a, b=u, b=v",
        b"a,b,y\n1,u,1\n2,v,2\n3,u,3\n",
    ),
    Case(
        "semicolons and decimal commas",
        text("a;y\n1,5;1\n2,5;2\n"),
        "ingest rows.csv rows.zarr --target y --decimal ,",
        "a",
    ),
    Case(
        "semicolons and decimal commas, not said",
        text("a;y\n1,5;1\n2,5;2\n"),
        "ingest rows.csv rows.zarr --target y",
        "is a number with a decimal comma; give --decimal ,",
    ),
    Case(
        "decimal commas, looked at",
        text("a;y\n1,5;1\n2,5;2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "column 'a' holds numbers with a comma, such as '1,5'; give --decimal ,",
    ),
    Case(
        "Latin-1",
        text("größe,y\n1,1\n", encoding="latin-1"),
        "ingest rows.csv rows.zarr --target y",
        "name the encoding of the file, such as --encoding latin-1",
    ),
    Case(
        "Latin-1, said",
        text("größe,y\n1,1\n", encoding="latin-1"),
        "ingest rows.csv rows.zarr --target y --encoding latin-1",
        "größe",
    ),
    Case(
        "UTF-16",
        text("a,y\n1,1\n", encoding="utf-16"),
        "ingest rows.csv rows.zarr --target y",
        "the file is UTF-16, not UTF-8; give --encoding utf-16",
    ),
    Case("a mark of bytes at the start", text("\ufeffa,y\n1,1\n"), "ingest rows.csv rows.zarr --target y", "a"),
    Case("NPZ with other names", _npz, "ingest rows.npz rows.zarr --X features --y label", "x0, x1, x2"),
    Case("a Zarr group with other names", _groups, "ingest images.zarr rows.zarr --X features --y label", "x0, x1, x2"),
    Case(
        "a categorical of pandas", CATEGORICAL, "ingest rows.parquet rows.zarr --target y --schema auto", "a, c=u, c=v"
    ),
    Case(
        "a categorical of pandas, not said",
        CATEGORICAL,
        "ingest rows.parquet rows.zarr --target y",
        "name it among --categories or --dates",
    ),
    Case(
        "lists in a column",
        parquet(pd.DataFrame({"a": [1.0, 2.0], "c": [[1], [2, 3]], "y": [1.0, 2.0]})),
        "ingest rows.parquet rows.zarr --target y --schema auto",
        "a",
    ),
    Case(
        "a line with a field too few",
        text("a,b,y\n1,2,3\n4,5\n"),
        "ingest rows.csv rows.zarr --target y",
        "rows.csv:3:2: 2 fields where the table has 3 columns",
    ),
    Case(
        "a line break in quotes",
        text('note,a,y\n"two\nlines",1,1\nx,2,2\n'),
        "ingest rows.csv rows.zarr --target y --drop note",
        "a",
    ),
    Case(
        "a name that is there twice",
        text("a,a,y\n1,2,3\n"),
        "ingest rows.csv rows.zarr --target y",
        "column name 'a' is already that of column 1",
    ),
    Case("an empty file", text(""), "ingest rows.csv rows.zarr --target y", "the file is empty"),
    Case(
        "a header and no rows",
        text("a,y\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "there are no rows after the header",
    ),
    Case(
        "infinity",
        text("a,y\ninf,1\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "rows.csv:2: inf of column 'a' is not finite",
    ),
    Case(
        "a column without any value",
        text("a,b,y\n1,,1\n2,,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a",
    ),
    Case(
        "dates of both orders, looked at",
        text("when,y\n01/02/2020,1\n03/04/2020,2\n01/02/2020,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when=01/02/2020, when=03/04/2020",
    ),
    Case(
        "dates as 15.03.21",
        text("when,y\n15.03.21,1\n16.03.21,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed)",
    ),
    Case(
        "dates as 20200131",
        text("when,y\n" + "".join(f"202001{i + 1:02d},{i}\n" for i in range(9))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed)",
    ),
    Case(
        "dates as Jan 31, 2020, and hours of a.m. and p.m.",
        text("day,at,y\n" + "".join(f'"Jan {i + 1}, 2020",01/{i + 13}/2020 {i + 1}:30 PM,{i}\n' for i in range(9))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "day (elapsed), at (elapsed), at (sine of the day), at (cosine of the day)",
    ),
    Case(
        "dates before 1970, and with zones",
        text("when,y\n1869-12-31T23:00:00-01:00,1\n1870-01-02,2\n1870-01-02T00:00:00Z,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed)",
    ),
    Case(
        "words for no number: n.a., -, None, NULL",
        text("a,y\n" + "".join(f"{['n.a.', '-', 'None', 'NULL', *range(8)][i % 12]},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, a is missing",
    ),
    Case(
        "a rare text among numbers",
        text("a,y\n" + "".join(f"{'yes' if i == 7 else i},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, a is missing",
    ),
    Case(
        "shares, prices and thousands",
        text("share,price,a,y\n" + "".join(f'{i}%,"${i},000.50",{i},{i}\n' for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a",
    ),
    Case(
        "a target of shares",
        text("a,y\n" + "".join(f"{i},{i}%\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y",
        "column 'y' holds numbers with other signs, such as '0%', each of which would be a class",
    ),
    Case(
        "a target of dates",
        text("a,y\n" + "".join(f"{i},2020-01-{i % 28 + 1:02d}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y",
        "column 'y' holds dates, such as '2020-01-01', each of which would be a class",
    ),
    Case(
        "labels with space around them, and of other case",
        text("a,y\n1, yes\n2,yes\n3,True \n4,TRUE\n"),
        "ingest rows.csv rows.zarr --target y",
        "a",
    ),
    Case(
        "a label that is missing",
        text("a,y\n1,cat\n2,NA\n3,dog\n"),
        "ingest rows.csv rows.zarr --target y",
        "y has 1 missing labels",
    ),
    Case(
        "no column that becomes a feature",
        text("note,y\n" + "".join(f"number {i},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "no column becomes a feature (column 'note' (text))",
    ),
    Case(
        "names with a comma between semicolons",
        text("a;b, c;y\n1;2;3\n4;5;6\n"),
        "ingest rows.csv rows.zarr --target y",
        "a, b, c",
    ),
    Case(
        "another separator, not said",
        text("a|y\n1|1\n2|2\n"),
        "ingest rows.csv rows.zarr --target y",
        "if this is a line of several fields, give --separator",
    ),
    Case(
        "the line sep=; of Excel",
        text("sep=;\na;y\n1;1\n"),
        "ingest rows.csv rows.zarr --target y",
        "the line 'sep=;' is Excel's, not a header",
    ),
    Case(
        "a text after 100,000 numbers",
        text("a,y\n" + "".join(f"{i},{i}\n" for i in range(101_000)) + "x,1\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "rows.csv:101002:1: 'x' in column 'a' is not a number",
    ),
    Case(
        "a weight below 0",
        text("a,w,y\n1,1,1\n2,-1,2\n"),
        "ingest rows.csv rows.zarr --target y --weight w",
        "weights must not be negative, row 1",
    ),
    Case(
        "a number beyond float64",
        text("a,y\n1e400,1\n2,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "inf of column 'a' is not finite",
    ),
    Case(
        "a schema with a wrong word",
        both(text(JOB), text('[[columns]]\nname = "age"\nkind = "integer"\n', "s.toml")),
        "ingest rows.csv rows.zarr --schema s.toml",
        "column 'age': kind must be one of number, boolean, category, date, text, not 'integer'",
    ),
]


def outcome(case: Case, folder: Path) -> tuple[bool, str]:
    """Whether it works, and the columns of the table, or the message."""
    case.make(folder)
    warned = ""
    for command in case.command.split(" && "):
        printed = io.StringIO()
        with redirect_stderr(printed), redirect_stdout(io.StringIO()):
            status = main([*shlex.split(command), "--quiet"])
        if status != 0:
            assert not (folder / "rows.zarr").exists() or "--append" in command
            [line] = [line for line in printed.getvalue().splitlines() if line.startswith("error: ")]
            return False, line.removeprefix("error: ")
        warned += "".join(
            f"; with the {line}" for line in printed.getvalue().splitlines() if line.startswith("warning")
        )
    table = open_table(folder / "rows.zarr")
    targets = ", ".join(table.target_names)
    return True, f"{', '.join(table.columns)}" + (f" | {targets}" if targets else "") + warned


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_each_works_or_says_the_way_out(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.input is not None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(case.input)))
    works, found = outcome(case, folder)
    if works:
        assert found.partition(" | ")[0] == case.gives
    else:
        assert case.gives in found
    assert row_of(case, works, found) in PAGE.read_text(encoding="utf-8").splitlines()


def test_there_are_at_least_40() -> None:
    assert len({case.title for case in CASES}) == len(CASES) >= 40


def row_of(case: Case, works: bool, found: str) -> str:
    features, _, rest = found.partition(" | ")
    targets, mark, warned = rest.partition("; with")
    gives = (
        f"features {features}" + (f"; target {targets}" if targets else "") + mark + warned
        if works
        else f"refused: {found}"
    )
    cells = [case.title, f"`{case.command}`", gives]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> Iterator[str]:
    yield "# Messy inputs\n"
    yield (
        "What tables as people have them give: features that are stored, or a message with the way out. Each row is a\n"
        "test; `python tests/test_messy_inputs.py` writes this page. [The guide](guide.md#tables-as-they-come) tells\n"
        "what the options mean.\n"
    )
    yield "| input | command | gives |\n|---|---|---|"


if __name__ == "__main__":
    import os
    import tempfile

    lines = list(page())
    for each in CASES:
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            if each.input is not None:
                sys.stdin = SimpleNamespace(buffer=io.BytesIO(each.input))  # type: ignore[assignment]
            lines.append(row_of(each, *outcome(each, Path(place))))
            os.chdir("/")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
