"""RELIABILITY's bad-input table at the command line: one line, exit status 1 (2 for usage), nothing created."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from streamkernel.errors import ParameterError
from streamkernel.kinds import PREDICTORS, check_options

THREADS = ("--scheduler", "threads")


@pytest.fixture
def copy(store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(store, tmp_path / "copy.zarr"))


def _nothing_but(folder: Path, *names: str) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--basis", 0], "error: --basis "),
        (["--basis", -5], "error: --basis "),
        (["--lengthscale", "nan"], "lengthscale"),
        (["--lengthscale", "-1"], "lengthscale"),
        (["--lengthscale", "0"], "lengthscale"),
        (["--lengthscale", "1,2"], "6 features"),
        (["--alpha", "nan"], "alpha"),
        (["--alpha", "inf"], "alpha"),
        (["--alpha", "-1"], "alpha"),
        (["--tol", "2"], "tol"),
        (["--objective", "1.5"], "objective"),
        (["--kernel", "magic"], "magic"),
        (["--memory", "lots"], "--memory"),
        (["--memory", "100MB", "--basis", 100], "exceeds allowed memory (100 MB)"),
        (["--rows", "5000:9000"], "5000:9000"),
        (["--rows", "10:10"], "no rows"),
        (["--scheduler", "nowhere"], "--scheduler"),
        (["--scheduler", ""], "--scheduler"),
        (["--gamma", "1", "--lengthscale", "2"], "gamma"),
    ],
)
def test_bad_options_of_fit(cli: Callable, store: Path, tmp_path: Path, options: list[object], said: str) -> None:
    place = () if "--scheduler" in options else THREADS
    assert said in cli("fit", store, tmp_path / "m", *place, *options).error
    _nothing_but(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [["fit"], ["fit", "a", "b", "--basis", "many"], ["fit", "a", "b", "--alpha", "big"], ["nonsense"],
     ["fit", "a", "b", "--rows", "1-2"], ["fit", "a", "b", "--lengthscale", "long"], ["predict", "a"]],
)  # fmt: skip
def test_usage_is_status_2(cli: Callable, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert ran.status == 2
    assert "Traceback" not in ran.err


def test_missing_store(cli: Callable, tmp_path: Path) -> None:
    for command in (
        ["fit", "no", "m"],
        ["plan", "no"],
        ["info", "no"],
        ["evaluate", "no", "no"],
        ["report", "no", "r"],
    ):
        arguments = [command[0], *(tmp_path / name for name in command[1:])]
        assert "no" in cli(*arguments).error
    _nothing_but(tmp_path)


def test_outputs_are_not_overwritten_unasked(cli: Callable, store: Path, model: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(model, tmp_path / "m"))
    before = (out / "config.json").read_bytes()
    error = cli("fit", store, out, "--basis", 10, *THREADS).error
    assert error.endswith("exists; choose another path or give --overwrite")
    assert (out / "config.json").read_bytes() == before
    assert cli("fit", store, out, "--basis", 10, "--rows", ":1000", *THREADS, "--overwrite").status == 0
    assert (out / "config.json").read_bytes() != before
    # A table is not a model: a mistyped path must not cost data.
    assert cli("fit", store, store, "--basis", 10, *THREADS, "--overwrite").status == 1


def test_chunk_missing_or_flipped(cli: Callable, copy: Path, tmp_path: Path) -> None:
    chunk = copy / "X" / "c" / "2" / "0"
    data = bytearray(chunk.read_bytes())
    chunk.unlink()
    assert "X/c/2/0" in cli("fit", copy, tmp_path / "m", "--basis", 10, *THREADS).error
    chunk.write_bytes(b"")
    assert "X/c/2/0" in cli("fit", copy, tmp_path / "m", "--basis", 10, *THREADS).error
    data[len(data) // 2] ^= 4
    chunk.write_bytes(data)
    assert "X/c/2/0" in cli("fit", copy, tmp_path / "m", "--basis", 10, *THREADS).error
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"zarr_format": 3}'])
def test_corrupt_metadata(cli: Callable, copy: Path, tmp_path: Path, text: str) -> None:
    (copy / "X" / "zarr.json").write_text(text)
    assert "zarr.json" in cli("fit", copy, tmp_path / "m", "--basis", 10, *THREADS).error


def test_nan_in_a_foreign_store(cli: Callable, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((500, 3))
    X[123, 1] = np.nan
    group = zarr.open_group(tmp_path / "t", mode="w")
    group.create_array("X", data=X, chunks=(100, 3))
    group.create_array("y", data=np.arange(500.0), chunks=(100,))
    error = cli("fit", tmp_path / "t", tmp_path / "m", "--basis", 10, *THREADS).error
    assert "123" in error
    assert not (tmp_path / "m").exists()


def test_csv_errors_name_file_line_and_column(cli: Callable, tmp_path: Path) -> None:
    cases = {
        "ragged.csv": ("a,b,y\n1,2,3\n4,5\n", "3"),
        "text.csv": ("a,b,y\n1,2,3\n4,five,6\n", "3"),
        "empty.csv": ("", "empty"),
        "twice.csv": ("a,a,y\n1,2,3\n", "a"),
        "target.csv": ("a,b\n1,2\n", "y"),
    }
    for name, (text, said) in cases.items():
        (tmp_path / name).write_text(text)
        error = cli("ingest", tmp_path / name, tmp_path / "t", "--target", "y").error
        assert name in error
        assert said in error
        assert not (tmp_path / "t").exists()
    (tmp_path / "latin.csv").write_bytes("a,b,y\n1,2,3\n4,\xe9,5\n".encode("latin-1"))
    assert "latin.csv" in cli("ingest", tmp_path / "latin.csv", tmp_path / "t", "--target", "y").error
    _nothing_but(tmp_path, *cases, "latin.csv")


def test_models_that_are_none(cli: Callable, store: Path, model: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(model, tmp_path / "broken"))
    shutil.rmtree(broken / "dual_coef")
    assert "dual_coef" in cli("evaluate", broken, store, *THREADS).error
    assert cli("evaluate", store, store, *THREADS).status == 1
    later = Path(shutil.copytree(model, tmp_path / "later"))
    config = (later / "config.json").read_text()
    (later / "config.json").write_text(config.replace('"version": 1', '"version": 99', 1))
    assert cli("predict", later, store, tmp_path / "p", *THREADS).status == 1
    assert not (tmp_path / "p").exists()


def test_a_table_of_another_width(cli: Callable, model: Path, tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "t", mode="w")
    group.create_array("X", data=np.ones((50, 4)), chunks=(10, 4))
    error = cli("predict", model, tmp_path / "t", tmp_path / "p", *THREADS).error
    assert "4 features" in error
    assert "6" in error


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_memory_limits_scoring_too(cli: Callable, model: Path, store: Path, tmp_path: Path, command: str) -> None:
    out = (tmp_path / "p",) if command == "predict" else ()
    assert "exceeds allowed memory (50 MB)" in cli(command, model, store, *out, "--memory", "50MB", *THREADS).error
    _nothing_but(tmp_path)


def test_gamma_is_not_ignored(cli: Callable, store: Path, tmp_path: Path) -> None:
    options = ("--kernel", "matern32", "--gamma", "0.5", "--basis", 10)
    assert "gamma" in cli("fit", store, tmp_path / "m", *options, *THREADS).error


def test_ridge_has_no_standard_deviations(cli: Callable, model: Path, store: Path, tmp_path: Path) -> None:
    assert "standard deviations" in cli("predict", model, store, tmp_path / "p", "--std", *THREADS).error


def test_an_option_that_nobody_has() -> None:
    """As jobs and requests may give it, which no parser of options has seen."""
    for option, near in {"number_of_foos": "", "alfa": ", but alpha", "basis": ", but n_components"}.items():
        with pytest.raises(ParameterError, match=rf"^there is no option {option}{near}; help\(KernelRidge\) lists"):
            check_options(PREDICTORS["ridge"], [option])
    with pytest.raises(ParameterError, match=r"it is an option of ridge, ridge-classifier"):
        check_options(PREDICTORS["gp"], ["alpha"])
