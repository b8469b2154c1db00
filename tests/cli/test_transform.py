"""Transformers from the command line: plan, fit, info, transform; the same as the estimators of Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from streamkernel import KernelCCA, KernelPCA, KernelRidge, Nystroem, ingest, open_table
from streamkernel.kinds import TRANSFORMERS

THREADS = ("--scheduler", "threads", "--quiet")
RNG = np.random.default_rng(8)
X = RNG.standard_normal((220, 4))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2 + 0.1 * RNG.standard_normal(220)])

# Options of the command line, and the estimator that has the same parameters.
CASES: dict[str, tuple[list[str], Any]] = {
    "nystroem": (["nystroem", "--basis", "20"], Nystroem(20)),
    "kernel-pca": (["kernel-pca", "--basis", "30", "--components", "3"], KernelPCA(3, basis_size=30)),
    "sparse": (["kernel-pca", "--sparse", "15", "--components", "2"], KernelPCA(2, sparse=15)),
    "bound": (["kernel-pca", "--sparse", "bound", "--basis", "40"], KernelPCA(basis_size=40, sparse="bound")),
    "kernel-cca": (["kernel-cca", "--basis", "20"], KernelCCA(2, basis_size=20)),
    "columns": (
        ["kernel-cca", "--basis", "20", "--components", "1", "--view-columns", "x0,1;x2,x3", "--pool", "full"],
        KernelCCA(1, basis_size=20, view_columns=(["x0", 1], ["x2", "x3"]), pool="all"),
    ),
    "candidates": (
        ["kernel-cca", "--basis", "12", "--pool", "split", "--picks", "3", "--candidates", "9", "--bound-gamma", "0.5"],
        KernelCCA(2, basis_size=12, pool="split", picks=3, candidates=9, bound_gamma=0.5),
    ),
}
ARRAYS = {"nystroem": ["features"], "kernel-pca": ["scores"], "kernel-cca": ["variates", "variates_y"]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "rows"
    ingest(open_table(X, Y), path, chunk_rows=60, dtype="float64")
    return path


def test_every_transformer_has_a_case() -> None:
    assert {options[0] for options, _ in CASES.values()} == TRANSFORMERS.keys() == ARRAYS.keys()


@pytest.mark.parametrize("case", CASES)
def test_a_fit_is_that_of_python(cli: Callable, store: Path, tmp_path: Path, case: str) -> None:
    options, estimator = CASES[case]
    name = options[0]
    planned = cli("plan", store, "--estimator", *options, "--scheduler", "threads", "--json").result
    fitted = cli("fit", store, tmp_path / "m", "--estimator", *options, *THREADS, "--json").result
    estimator.fit(store)
    assert fitted["digest"] == estimator.model_.digest
    assert (fitted["estimator"], fitted["sweeps"]) == (name, estimator.n_sweeps_)
    assert planned["basis_size"] >= fitted["basis_size"]
    assert fitted["peak_memory_bytes"] <= fitted["planned_memory_bytes"]
    info = cli("info", tmp_path / "m", "--json").result
    assert info["digest"] == fitted["digest"]
    shared = {"components", "relative_residual_of_components", "correlations", "bound"} & fitted.keys()
    assert {key: info[key] for key in shared} == {key: fitted[key] for key in shared}
    told = cli("transform", tmp_path / "m", store, tmp_path / "out", "--rows", "100:", *THREADS, "--json").result
    assert (told["rows"], told["arrays"]) == (120, ARRAYS[name])
    out = zarr.open_group(tmp_path / "out", mode="r")
    assert (out.attrs["rows"], out.attrs["model_digest"]) == ([100, 220], fitted["digest"])
    read = type(estimator).load(tmp_path / "m")
    second = () if case == "columns" or name != "kernel-cca" else (Y[100:],)
    values = read.canonical_variates(X[100:], *second) if name == "kernel-cca" else (read.transform(X[100:]),)
    for array, expected in zip(ARRAYS[name], values, strict=True):
        np.testing.assert_allclose(out[array][:], expected, rtol=1e-9, atol=1e-9)


def test_a_column_whose_name_is_a_number_goes_by_its_name(cli: Callable, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("\n".join(["2,1,b", *(f"{a},{b},{c}" for a, b, c in X[:, :3])]))
    cli("ingest", tmp_path / "rows.csv", tmp_path / "rows", "--quiet")
    given = ("fit", tmp_path / "rows", tmp_path / "m", "--estimator", "kernel-cca", "--components", 1, "--basis", 9)
    assert cli(*given, "--view-columns", "1;-1,0", *THREADS).status == 0
    assert [view.names for view in KernelCCA.load(tmp_path / "m").model_.record.views] == [("1",), ("b", "2")]


def test_rows_without_the_second_view(cli: Callable, store: Path, tmp_path: Path) -> None:
    cli("fit", store, tmp_path / "m", "--estimator", "kernel-cca", "--basis", "20", *THREADS)
    ingest(X, tmp_path / "X", chunk_rows=50, dtype="float64")
    told = cli("transform", tmp_path / "m", tmp_path / "X", tmp_path / "out", *THREADS, "--json").result
    assert told["arrays"] == ["variates"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["kernel-pca", "--sparse", "20", "--basis", "30"], "--sparse 20 is the size of the basis, .* 30; give one"),
        (["kernel-pca", "--components", "9", "--basis", "5"], "9 components of a basis of 5 functions; give"),
        (["kernel-pca", "--sparse", "bound", "--kernel", "linear"], "--sparse bound needs a kernel whose"),
        (["kernel-pca", "--metric", "learned"], "--metric 'learned' is learned from targets"),
        (["nystroem", "--objective", "prediction"], "--objective prediction means nothing to the estimator nystroem"),
        (["nystroem", "--components", "3"], "--components means nothing to the estimator nystroem; .* kernel-pca"),
        (["kernel-cca", "--metric", "learned"], "--metric learned means nothing to the estimator kernel-cca"),
        (["kernel-cca", "--components", "9", "--basis", "5"], "9 components of a basis of 5 functions; give"),
        (["kernel-cca", "--view-columns", "a;x1"], "--view-columns name 'a', which is no column"),
        (["kernel-cca", "--view-columns", "x0;x1,x0"], "--view-columns name x0 twice"),
        (["kernel-cca", "--view-columns", "x0"], "not two groups of columns"),
        (["kernel-cca", "--pool", "single"], "--pool must be one of shared, split, full, not 'single'"),
        (["kernel-cca", "--rule-option", "centre=no"], "centre means nothing to kernel CCA"),
        (
            ["ridge", "--components", "3"],
            "--components means nothing to the estimator ridge; .* kernel-pca, kernel-cca",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(cli: Callable, store: Path, tmp_path: Path, options: list[str], message: str) -> None:
    for command in (("plan", store), ("fit", store, tmp_path / "m")):
        ran = cli(*command, "--estimator", *options, *THREADS)
        assert ran.status != 0
        assert re.search(message, " ".join(ran.err.split())), ran.err
    assert not (tmp_path / "m").exists()


def test_each_command_names_the_other(cli: Callable, store: Path, tmp_path: Path) -> None:
    KernelRidge(10).fit(X, Y[:, 0]).save(tmp_path / "ridge")
    KernelPCA(2, basis_size=10).fit(X).save(tmp_path / "pca")
    wrong = cli("transform", tmp_path / "ridge", store, tmp_path / "out", *THREADS)
    assert "is a model that predicts, not a transformer; streamkernel predict is for it" in wrong.error
    wrong = cli("predict", tmp_path / "pca", store, tmp_path / "out", *THREADS)
    assert "is a kernel PCA, not a model that predicts; streamkernel transform is for it" in wrong.error
    assert cli("transform", tmp_path / "nowhere", store, tmp_path / "out", *THREADS).status == 1
    assert not (tmp_path / "out").exists()


def test_interrupted_fits_go_on(cli: Callable, store: Path, tmp_path: Path) -> None:
    given = ("fit", store, tmp_path / "m", "--estimator", "kernel-pca", "--basis", "30", *THREADS, "--json")
    whole = cli(*given).result
    again = cli(*given, "--overwrite", "--resume").result
    assert again["digest"] == whole["digest"]


@pytest.mark.parametrize(
    ("options", "other", "message"),
    [
        (["kernel-cca", "--view-columns", "x0,x1;x2"], ["--view-columns", "x0,x1;x3"], "view_columns"),
        (["kernel-cca"], ["--pool", "split"], "pool"),
        (["kernel-cca"], ["--components", "3"], "component_count"),
        (["kernel-pca", "--components", "150"], ["--components", "160"], "component_count"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_run_with_other_options_is_not_gone_on_with(
    cli: Callable, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], other: list[str],
    message: str,
) -> None:  # fmt: skip
    """Also options that a model has no field of their own for: sweeps of other columns would be taken for its own."""
    given = ("fit", store, tmp_path / "m", "--estimator", *options, *THREADS)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device", "somewhere")

    with monkeypatch.context() as patched:
        patched.setattr("streamkernel.models.saved.SavedModel.save", full)
        assert "No space left" in cli(*given).error
    wrong = cli(*given, *other, "--resume").error
    assert "another configuration" in wrong
    assert message in wrong
    assert cli(*given, "--resume", "--json").result["resumed_sweeps"] > 1
