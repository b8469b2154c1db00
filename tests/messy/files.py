"""Messy files: forms, compressions, separators, encodings, headers and names."""

from __future__ import annotations

import bz2
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import zarr
from messy.case import Case, Maker, both, text
from zarr.codecs import Crc32cCodec


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


CATEGORICAL = parquet(pd.DataFrame({"a": [1.0, 2.0, 3.0], "c": pd.Categorical(["u", "v", "u"]), "y": [1.0, 2.0, 3.0]}))

FILES = [
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
        "the index that pandas writes",
        text(",a,y\n0,5,1\n1,7,2\n2,6,3\n"),
        "ingest rows.csv rows.zarr --target y",
        "x0, a",
    ),
    Case(
        "the index that pandas writes, left out",
        text(",a,y\n0,5,1\n1,7,2\n2,6,3\n"),
        "ingest rows.csv rows.zarr --target y --drop x0",
        "a",
    ),
    Case(
        "folders of Hive with spaces, %20 and no value",
        both(
            text("a,y\n1,1\n2,2\n", "t/k=a b/0.csv"),
            text("a,y\n3,3\n", "t/k=c%20d/0.csv"),
            text("a,y\n4,4\n", "t/k=__HIVE_DEFAULT_PARTITION__/0.csv"),
        ),
        "ingest t rows.zarr --target y --schema auto",
        "a, k=a b, k=c d, k is missing",
    ),
    Case(
        "a file without a header among others",
        both(text("a,y\n1,1\n2,2\n", "part-1.csv"), text("3,4\n5,6\n", "part-2.csv")),
        "ingest 'part-*.csv' rows.zarr --target y",
        "part-2.csv:1:1: the first line is numbers, and part-1.csv has a header; give all files",
    ),
    Case(
        "no header, and a target with a name",
        text("1,1\n2,2\n"),
        "ingest rows.csv rows.zarr --target y",
        "rows.csv:1:1: the first line is numbers, and the target has a name; write the names of the columns before it",
    ),
    Case(
        "plain text with the name of a compressed file",
        text("a,y\n1,1\n2,2\n", "rows.csv.bz2"),
        "ingest rows.csv.bz2 rows.zarr --target y",
        "it does not begin as a .bz2 file; rename it by what it holds, such as rows.csv for text",
    ),
    Case(
        "a comma that separates thousands",
        text('a,y\n"1,000",1\n"2,500",2\n'),
        "ingest rows.csv rows.zarr --target y",
        "where it separates thousands, leave it out, and where it is decimal, give --decimal , and --separator ,",
    ),
    Case(
        "semicolons and decimal commas",
        text("a;y\n1,5;1\n2,5;2\n"),
        "ingest rows.csv rows.zarr --target y --decimal ,",
        "a",
    ),
    Case(
        "the same without the option",
        text("a;y\n1,5;1\n2,5;2\n"),
        "ingest rows.csv rows.zarr --target y",
        "is a number with a decimal comma; give --decimal ,",
    ),
    Case(
        "decimal commas, with a look at the rows",
        text("a;y\n1,5;1\n2,5;2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "'1,5' in column 'a' is a number with a decimal comma; give --decimal ,",
    ),
    Case(
        "decimal commas in quotes between commas, with a look at the rows",
        text('a,y\n"1,500",1\n"2,5",2\n'),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "'2,5' in column 'a' is a number with a decimal comma; give --decimal , and --separator ,",
    ),
    Case(
        "the same with these options",
        text('a,y\n"1,500",1\n"2,5",2\n'),
        "ingest rows.csv rows.zarr --target y --schema auto --decimal , --separator ,",
        "a",
    ),
    Case(
        "Latin-1",
        text("größe,y\n1,1\n", encoding="latin-1"),
        "ingest rows.csv rows.zarr --target y",
        "name the encoding of the file, such as --encoding latin-1",
    ),
    Case(
        "Latin-1, named by an option",
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
    Case("a byte order mark at the start", text("\ufeffa,y\n1,1\n"), "ingest rows.csv rows.zarr --target y", "a"),
    Case("NPZ with other names", _npz, "ingest rows.npz rows.zarr --X features --y label", "x0, x1, x2"),
    Case("a Zarr group with other names", _groups, "ingest images.zarr rows.zarr --X features --y label", "x0, x1, x2"),
    Case(
        "a categorical of pandas", CATEGORICAL, "ingest rows.parquet rows.zarr --target y --schema auto", "a, c=u, c=v"
    ),
    Case(
        "a categorical of pandas, without a look at the rows",
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
        "two columns of the same name",
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
        "semicolons, and a name with a comma",
        text("a;b, c;y\n1;2;3\n4;5;6\n"),
        "ingest rows.csv rows.zarr --target y",
        "a, b, c",
    ),
    Case(
        "another separator, without the option",
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
        "a quote that is not closed",
        text('a,note,y\n1,"x,2\n3,z,4\n'),
        "ingest rows.csv rows.zarr --target y --drop note",
        "is a quote not closed?",
    ),
    Case(
        "zero bytes, as a crash leaves them",
        text("a,c,y\n1,u,2\n3,v\0,4\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "rows.csv:3:2: a zero byte in column 'c'",
    ),
    Case(
        "points that separate thousands among decimal commas",
        text("a;y\n1.234;2\n2.345,5;3\n"),
        "ingest rows.csv rows.zarr --target y --decimal ,",
        "rows.csv:2:1: '1.234' in column 'a' is a number with a point",
    ),
]
