"""No output is made inside of another one, where it would be a stranger."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zarr
from outputs.written import WRITERS, held

from streamkernel import Column, Schema, factorize
from streamkernel.cli import main
from streamkernel.errors import StoreExistsError
from streamkernel.report.publish import PAGE, PICTURE, checked_output
from streamkernel.table.row_outputs import check_values_file


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("around", list(WRITERS))
def test_refused_at_any_depth(tmp_path: Path, writer: Callable[..., None], around: str, overwrite: bool) -> None:
    place = tmp_path / "around"
    WRITERS[around](place)
    (tmp_path / "link").symlink_to(place)
    before = held(tmp_path)
    # One with a folder of chunks, which an array without an axis has not: file systems list them in any order.
    array = next(path.name for path in sorted(place.iterdir()) if (path / "c").is_dir())
    for inner in ("around/new", f"around/{array}/new", f"around/{array}/c/new", "link/new"):
        with pytest.raises(StoreExistsError, match="no output is made inside of another one; choose a path beside it"):
            writer(tmp_path / inner, overwrite=overwrite)
    assert held(tmp_path) == before


@pytest.mark.parametrize("around", list(WRITERS))
def test_refused_at_urls(s3: str, around: str) -> None:
    WRITERS[around](f"{s3}/a/around")
    for inner in ("a/around/new", "a/around/generations/new"):
        with pytest.raises(StoreExistsError, match=rf"{s3}/a/around is .*; choose a path beside it"):
            WRITERS["model"](f"{s3}/{inner}")
    WRITERS["model"](f"{s3}/a/beside")


def test_refused_in_an_array_of_anybody(tmp_path: Path, writer: Callable[..., None]) -> None:
    group = zarr.create_group(tmp_path / "group")
    group.create_array("X", data=np.ones((4, 2)))
    with pytest.raises(StoreExistsError, match="group/X is a Zarr array"):
        writer(tmp_path / "group" / "X" / "new")
    # What somebody's group holds is theirs to say.
    writer(tmp_path / "group" / "new")


def test_refused_by_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    WRITERS["table"](tmp_path / "t")
    np.savez(tmp_path / "s.npz", X=np.ones((8, 2)))
    before = held(tmp_path)
    table, inner = str(tmp_path / "t"), str(tmp_path / "t" / "new")
    for command in (
        ["fit", table, inner, "--basis", "3"],
        ["factor", table, inner, "--basis", "3", "--scheduler", "threads"],
        ["ingest", str(tmp_path / "s.npz"), inner],
    ):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert f"{tmp_path}/t is a table" in error
        assert error.count("\n") == 1
    with pytest.raises(StoreExistsError, match="is a table"):
        factorize(table, inner, n_components=3)
    assert held(tmp_path) == before


@pytest.mark.parametrize("around", list(WRITERS))
def test_files_are_refused_too(tmp_path: Path, around: str) -> None:
    """A page in a model would keep that model from being replaced ever after."""
    place = tmp_path / "around"
    WRITERS[around](place)
    before = held(tmp_path)
    array = next(path.name for path in place.iterdir() if path.is_dir())
    schema = Schema(columns=(Column("a", "number"),))
    for inside in (place, place / array):
        for refused in (
            partial(checked_output, inside / "page.html", overwrite=True),
            partial(checked_output, inside / "picture.png", overwrite=True, mark=PICTURE),
            partial(check_values_file, inside / "rows.csv", overwrite=True),
            partial(schema.write, inside / "schema.json", overwrite=True),
        ):
            with pytest.raises(StoreExistsError, match="no output is made inside of another one; choose a path beside"):
                refused()
    assert held(tmp_path) == before


def test_pages_are_refused_at_urls(s3: str) -> None:
    WRITERS["model"](f"{s3}/a/around")
    with pytest.raises(StoreExistsError, match=rf"{s3}/a/around is a saved model .*; choose a path beside it"):
        checked_output(f"{s3}/a/around/page.html", overwrite=False)
    checked_output(f"{s3}/a/page.html", overwrite=False)


def test_a_file_that_is_there_may_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions wrote such files."""
    WRITERS["model"](tmp_path / "m")
    (tmp_path / "m" / "page.html").write_bytes(PAGE)
    checked_output(tmp_path / "m" / "page.html", overwrite=True)
    monkeypatch.chdir(tmp_path / "m")
    with pytest.raises(StoreExistsError, match="is a saved model"):
        check_values_file("rows.csv", overwrite=False)
