"""Texts that stand for a missing number: each column has its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import ingest, open_table
from streamkernel.errors import SourceFormatError
from streamkernel.table.rows import RowReader


def marked(name: str, *marks: str) -> dict[str, Any]:
    return {"name": name, "missing": "mean", "missing_values": list(marks), "gaps": False, "fill": -1.0}


def stored(folder: Path, content: str, columns: list[dict[str, Any]], **options: Any) -> np.ndarray:
    (folder / "rows.csv").write_text(content)
    columns = [*columns, {"name": "y", "role": "target"}]
    ingest(folder / "rows.csv", folder / "s", schema=columns, dtype="float64", overwrite=True, **options)
    return RowReader(open_table(folder / "s").features).read(0, content.count("\n") - 1)


def test_a_mark_counts_in_its_column_alone(tmp_path: Path) -> None:
    columns = [marked("a", "?", "-9"), marked("b", "none"), {"name": "c"}]
    found = stored(tmp_path, "a,b,c,y\n?,1,-9,1\n -9,none,2,2\n 3.5 ,NA,1e3,3\n,-9,4,4\n", columns)
    np.testing.assert_array_equal(found, [[-1, 1, -9], [-1, -1, 2], [3.5, -1, 1000], [-1, -9, 4]])
    for content, place in (
        ("a,b,c,y\n1,1,1,1\n2,?,1,1\n", r"rows.csv:3:2: '\?' in column 'b' is not a number"),
        ("a,b,c,y\n1,1,1,1\nnone,2,1,1\n", "rows.csv:3:1: 'none' in column 'a' is not a number"),
        ("a,b,c,y\n1,1,1,1\n2,2,?,1\n", r"rows.csv:3:3: '\?' in column 'c' is not a number"),
    ):
        with pytest.raises(SourceFormatError, match=place):
            stored(tmp_path, content, columns)


def test_a_marked_column_has_the_decimal_point_of_the_file(tmp_path: Path) -> None:
    columns = [marked("a", "n.v."), {"name": "b"}]
    found = stored(tmp_path, "a;b;y\n1,5;2,5;1\nn.v.;-3;2\n-1e2;4;3\n", columns, decimal=",")
    np.testing.assert_array_equal(found, [[1.5, 2.5], [-1, -3], [-100, 4]])
    with pytest.raises(SourceFormatError, match=r"rows.csv:2:1: '1.5' in column 'a' is a number with a point"):
        stored(tmp_path, "a;b;y\n1.5;2;1\n", columns, decimal=",")


def test_marks_are_found_in_files_longer_than_a_block(tmp_path: Path) -> None:
    rows = [f"{'?' if i % 1000 == 999 else i / 8},{i},{i}" for i in range(90_000)]
    found = stored(tmp_path, "\n".join(["a,b,y", *rows, ""]), [marked("a", "?"), {"name": "b"}])
    wanted = np.where(np.arange(90_000) % 1000 == 999, -1, np.arange(90_000) / 8)
    np.testing.assert_array_equal(found[:, 0], wanted)
