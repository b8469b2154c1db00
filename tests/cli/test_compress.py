"""streamkernel compress: a small table that other commands take, resumed where it was interrupted, refused early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.table import open_table
from streamkernel.table.table import Table

THREADS = ("--scheduler", "threads", "--quiet")


@pytest.fixture
def store(cli: Callable[..., Any], friedman_csv: Path, tmp_path: Path) -> Path:
    path = tmp_path / "friedman.zarr"
    assert cli("ingest", friedman_csv, path, "--target", "target", "--quiet").status == 0
    return path


@pytest.mark.parametrize("method", ["subsample", "precluster", "squash", "thinning"])
def test_the_table_is_fitted_and_evaluated_as_others(
    cli: Callable[..., Any], store: Path, tmp_path: Path, method: str
) -> None:
    out, model = tmp_path / "small.zarr", tmp_path / "model.zarr"
    command = ("compress", store, out, "--method", method, "--size", 100, "--rows", "0:5000", "--json", *THREADS)
    found = cli(*command).result
    assert {name: found[name] for name in ("method", "rows", "weight", "weight_column")} == {
        "method": method,
        "rows": 5000,
        "weight": pytest.approx(5000.0),
        "weight_column": "w",
    }
    assert found["size"] == open_table(out).n_rows <= 100
    assert found["peak_memory_bytes"] > 0 < found["planned_memory_bytes"]
    assert cli("info", out, "--json").result["columns"] == cli("info", store, "--json").result["columns"]
    assert cli("fit", out, model, "--basis", 50, "--metric", "none", "--kernel", "gaussian", *THREADS).status == 0
    scores = cli("evaluate", model, store, "--rows", "5000:6000", "--json", *THREADS).result
    assert scores["r2"] > 0.5
    assert "exists; choose another path or give --overwrite" in cli(*command).error
    assert cli(*command, "--overwrite").result["fingerprint"] == found["fingerprint"]


def test_numbers_as_labels_and_a_column_of_weights(cli: Callable[..., Any], tmp_path: Path) -> None:
    lines = [f"{i % 7},{(i * i) % 11},{1 + i % 3},{int(i % 7 > 3)}" for i in range(300)]
    (tmp_path / "rows.csv").write_text("a,b,times,label\n" + "\n".join(lines) + "\n")
    store, out, model = tmp_path / "rows.zarr", tmp_path / "small.zarr", tmp_path / "model.zarr"
    assert cli("ingest", tmp_path / "rows.csv", store, "--target", "label", "--quiet").status == 0
    found = cli(
        "compress", store, out, "--size", 40, "--weight", "times", "--classify", "--basis", 20, "--json", *THREADS
    ).result
    assert found["weight_column"] == "times"
    assert found["weight"] == 600.0
    table = open_table(out)
    assert table.columns == ("a", "b")
    assert table.classes is None  # numbers, as they were
    assert cli("fit", out, model, "--estimator", "ridge-classifier", "--basis", 20, *THREADS).status == 0
    scores = cli("evaluate", model, store, "--weight", "times", "--json", *THREADS).result
    assert scores["accuracy"] > 0.9


def test_an_interrupted_run_is_gone_on_with(
    cli: Callable[..., Any], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("compress", store, tmp_path / "small.zarr", "--size", 60, "--json", *THREADS)
    undisturbed = cli(*command).result

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device", "somewhere")

    with monkeypatch.context() as patched:
        patched.setattr("streamkernel.cli.commands.compress.write_compressed", full)
        assert "No space left" in cli(*command, "--overwrite").error
    # The table that was there is untouched; the sweeps of the run that failed are beside it.
    assert cli("info", tmp_path / "small.zarr", "--json").result["fingerprint"] == undisturbed["fingerprint"]
    swept: list[int] = []
    blocks = Table.blocks_between
    monkeypatch.setattr(Table, "blocks_between", lambda *args: swept.append(1) or blocks(*args))
    found = cli(*command, "--overwrite", "--resume").result
    assert found["fingerprint"] == undisturbed["fingerprint"]
    assert found["resumed_sweeps"] == found["sweeps"] > 3
    assert len(list(tmp_path.glob(".small*"))) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--size", 7000), "--size is 7000, more than the 6000 rows; give at most 6000"),
        (("--size", 10, "--method", "precluster", "--basis", 5), "--basis is 5, and --method precluster uses no"),
        (("--size", 10, "--memory", "1MB"), "exceeds allowed memory (1 MB)"),
        (("--size", 10, "--rows", "0:9000"), "rows 0:9000 are not within"),
        (("--size", 10, "--weight", "none such"), "there is no column 'none such' of row weights"),
    ],
    ids=str,
)
def test_bad_input_is_refused(cli: Callable[..., Any], store: Path, tmp_path: Path, options: Any, message: str) -> None:
    assert message in cli("compress", store, tmp_path / "small.zarr", *options, *THREADS).error
    assert not (tmp_path / "small.zarr").exists()


def test_wrong_words_and_a_wrong_place_are_refused(cli: Callable[..., Any], store: Path, tmp_path: Path) -> None:
    assert cli("compress", store, tmp_path / "small.zarr", "--method", "distil").status == 2
    (tmp_path / "file.txt").write_text("mine")
    for flags in ((), ("--overwrite",)):
        assert "file.txt" in cli("compress", store, tmp_path / "file.txt", *flags, *THREADS).error
    assert (tmp_path / "file.txt").read_text() == "mine"


def test_a_table_is_not_compressed_into_its_own_place(cli: Callable[..., Any], store: Path) -> None:
    assert "which would be lost" in cli("compress", store, store, "--size", 20, "--overwrite", *THREADS).error
    assert open_table(store).n_rows == 6000
