"""Each command on real input: what it prints, what it writes, and that JSON and files keep their contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from streamkernel import Factor, KernelRidge, open_table
from streamkernel.cli.execution import execution_target
from streamkernel.cli.main import main
from streamkernel.cli.options import Resources, Scheduler
from streamkernel.models import RidgeModel

FIT_KEYS = {
    "basis_size", "sweeps", "residual_trace", "relative_residual_trace", "alpha", "lengthscale", "rows", "seconds",
    "peak_memory_bytes", "planned_memory_bytes",
}  # fmt: skip


def test_ingest_writes_a_table_that_plain_zarr_reads(store: Path) -> None:
    group = zarr.open_group(store, mode="r")
    assert group["X"].shape == (6000, 6)
    assert group["y"].shape == (6000,)
    assert (store / "COMPLETE").exists()


def test_info_of_table_and_model(cli: Callable, store: Path, model: Path) -> None:
    table = cli("info", store, "--json").result
    assert table["rows"] == 6000
    assert table["columns"] == [f"x{j}" for j in range(6)]
    fitted = cli("info", model, "--json").result
    assert fitted["basis_size"] == 100
    assert fitted["rows"] == 5000


def test_plan_reads_nothing_and_says_what_fit_will_say(
    cli: Callable, store: Path, of_model: tuple[object, ...], model: Path
) -> None:
    plan = cli("plan", store, *of_model, "--scheduler", "threads", "--json").result
    assert plan["sweeps"] == RidgeModel.load(model).config["sweep_count"]
    assert plan["planned_memory_bytes"] > 8 * 100**2
    assert cli("plan", store).status == 0


def test_fit_prints_its_contract(cli: Callable, store: Path, tmp_path: Path) -> None:
    options = ("--basis", 50, "--kernel", "gaussian", "--scheduler", "threads", "--json")
    result = cli("fit", store, tmp_path / "m", *options).result
    assert result.keys() >= FIT_KEYS
    assert result["basis_size"] == 50
    assert 0.0 < result["relative_residual_trace"] < 1.0
    assert result["residual_trace"] == pytest.approx(result["relative_residual_trace"] * 6000)
    assert result["peak_memory_bytes"] > 0
    assert not list(tmp_path.glob(".m*")), "checkpoints are gone once the model is there"


def test_evaluate_says_that_one_row_has_no_share_explained(cli: Callable, store: Path, model: Path) -> None:
    arguments = ("evaluate", model, store, "--rows", "5000:5001", "--scheduler", "threads", "--quiet")
    scores = cli(*arguments, "--json").result
    assert (scores["rows"], scores["r2"], scores["r2_se"]) == (1, None, None)
    assert scores["rmse"] == scores["mae"] > 0.0
    assert cli(*arguments).out.splitlines()[-1] == "r2    undefined: one row has no spread to explain"


def test_evaluate_agrees_with_the_estimator(cli: Callable, store: Path, model: Path) -> None:
    scores = cli("evaluate", model, store, "--rows", "5000:", "--scheduler", "threads", "--json").result
    block = open_table(store).read(5000, 6000)
    predicted = KernelRidge.load(model).predict(open_table(store).slice(5000, 6000)).compute()
    error = block.Y[:, 0] - predicted
    assert scores.keys() == {"rows", "rmse", "rmse_se", "mae", "mae_se", "r2", "r2_se"}
    assert scores["rows"] == 1000
    assert scores["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-10)
    assert scores["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-10)
    assert scores["r2"] == pytest.approx(1.0 - (error**2).sum() / ((block.Y - block.Y.mean()) ** 2).sum(), rel=1e-10)
    assert scores["r2"] > 0.95


@pytest.mark.parametrize("bounds", ["5000:", "4999:6000", "1:1025", ":"])
def test_predict_writes_what_the_estimator_says(
    cli: Callable, store: Path, model: Path, tmp_path: Path, bounds: str
) -> None:
    out = tmp_path / "p.zarr"
    result = cli("predict", model, store, out, "--rows", bounds, "--scheduler", "threads", "--json").result
    first, _, last = bounds.partition(":")
    table = open_table(store).slice(int(first or 0), int(last or 6000))
    written = zarr.open_group(out, mode="r")["prediction"][:]
    assert result["rows"] == len(written) == table.n_rows
    np.testing.assert_allclose(written, KernelRidge.load(model).predict(table).compute(), rtol=1e-9)
    assert (out / "COMPLETE").exists()


def test_report_is_one_file(cli: Callable, model: Path, store: Path, tmp_path: Path) -> None:
    assert cli("report", model, tmp_path / "r.html").status == 0
    assert "Residual trace" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "exists; choose another path or give --overwrite" in cli("report", model, tmp_path / "r.html").error
    assert cli("report", model, tmp_path / "r.html", "--data", store, "--rows", "5000:", "--overwrite").status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


@pytest.fixture(scope="module")
def factors(store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two rules on the first 1,000 rows."""
    folder = tmp_path_factory.mktemp("factors")
    options = ("--basis", "20", "--rows", "0:1000", "--scheduler", "threads", "--quiet")
    for rule in ("uniform", "rpcholesky"):
        assert main(["factor", str(store), str(folder / rule), "--rule", rule, *options]) == 0
    return {rule: folder / rule for rule in ("uniform", "rpcholesky")}


def test_info_of_a_factor(cli: Callable, factors: dict[str, Path]) -> None:
    told = cli("info", factors["uniform"], "--json").result
    factor = Factor.load(factors["uniform"])
    assert (told["rows"], told["basis_size"], told["features"]) == (1000, 20, 6)
    assert (told["rule"], told["columns"], told["sweeps"]) == ("uniform", "float32", 2)
    assert told["residual_trace"] == factor.config["certificate"]["residual_trace"]
    assert told["digest"] == factor.digest
    assert "residual trace" in cli("info", factors["uniform"]).out


def test_factors_are_drawn_side_by_side(cli: Callable, store: Path, factors: dict[str, Path], tmp_path: Path) -> None:
    page, picture = tmp_path / "f.html", tmp_path / "f.png"
    assert cli("report", *factors.values(), page, "--data", store, "--png", picture).status == 0
    text = page.read_text(encoding="utf-8")
    for path in factors.values():
        assert Factor.load(path).digest in text
    assert "PCA, the optimum" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "exists" in cli("report", *factors.values(), page).error
    assert cli("report", factors["uniform"], page, "--overwrite").status == 0
    assert Factor.load(factors["rpcholesky"]).digest not in page.read_text(encoding="utf-8")
    assert cli("report", page).status == 2


def test_reports_of_what_does_not_go_together(
    cli: Callable, store: Path, model: Path, factors: dict[str, Path], tmp_path: Path
) -> None:
    page, uniform = tmp_path / "n.html", factors["uniform"]
    for mixed in ((uniform, model), (model, uniform)):
        assert f"{model} is not a factor" in cli("report", *mixed, page).error
    assert "rows 5:1000" in cli("report", uniform, page, "--data", store, "--rows", "5:1000").error
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / ".rows.unfinished").mkdir()
    for command in (("info", tmp_path / "half"), ("report", uniform, tmp_path / "half", page)):
        assert "is not a whole factor" in cli(*command).error
    assert not page.exists()


def test_a_model_is_drawn_as_a_picture_too(cli: Callable, model: Path, tmp_path: Path) -> None:
    assert cli("report", model, tmp_path / "m.html", "--png", tmp_path / "m.png").status == 0
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    refused = cli("report", model, tmp_path / "m.txt").error
    assert "m.txt: a report is a page of HTML; choose a name that ends in .html or .htm" in refused
    assert refused.endswith("is drawn by streamkernel report --png)")
    assert "m.svg: a picture is written as PNG" in cli("report", model, tmp_path / "n.html", "--png", "m.svg").error
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.html", "m.png"]


def test_a_classifier_from_text_labels(cli: Callable, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 2))
    labels = np.array(["red", "green", "blue"])[(X[:, 0] > 0).astype(int) + ((X[:, 0] > 0) & (X[:, 1] > 0))]
    lines = ["a,b,colour", *(f"{a},{b},{label}" for (a, b), label in zip(X, labels, strict=True))]
    (tmp_path / "c.csv").write_text("\n".join(lines), encoding="utf-8")
    assert cli("ingest", tmp_path / "c.csv", tmp_path / "c", "--target", "colour").status == 0
    options = ("--estimator", "ridge-classifier", "--basis", 60, "--rows", ":600", "--scheduler", "threads")
    assert "ridge-classifier" in cli("fit", tmp_path / "c", tmp_path / "m", "--scheduler", "threads").error
    cli("fit", tmp_path / "c", tmp_path / "m", *options, "--json").result
    scores = cli(
        "evaluate", tmp_path / "m", tmp_path / "c", "--rows", "600:", "--scheduler", "threads", "--json"
    ).result
    assert scores.keys() == {"rows", "accuracy", "accuracy_se"}
    assert scores["accuracy"] > 0.9
    cli("predict", tmp_path / "m", tmp_path / "c", tmp_path / "p", "--scheduler", "threads", "--json").result
    group = zarr.open_group(tmp_path / "p", mode="r")
    classes = np.asarray(group.attrs["classes"])
    assert (classes[group["prediction"][:]] == labels).mean() > 0.9


def test_a_local_cluster_has_the_bits_of_threads(
    cli: Callable, store: Path, of_model: tuple[object, ...], model: Path, tmp_path: Path
) -> None:
    result = cli("fit", store, tmp_path / "m", *of_model, "--scheduler", "local", "--json").result
    assert result["digest"] == RidgeModel.load(model).digest


@pytest.mark.parametrize(
    ("cores", "workers", "given", "place"),
    [
        (1, None, None, "threads"),
        (4, None, None, "threads"),
        (5, None, None, "local"),
        (1, 1, None, "local"),
        (64, None, "threads", "threads"),
        (1, None, "local", "local"),
    ],
)
def test_few_cores_work_as_threads_unless_it_is_said(
    monkeypatch: pytest.MonkeyPatch, cores: int, workers: int | None, given: str | None, place: str
) -> None:
    monkeypatch.setattr("streamkernel.cli.execution.available_cpus", lambda: cores)
    found = execution_target(Resources(Scheduler(given), workers))
    assert (found.scheduler, found.workers) == (place, 0 if place == "threads" else workers or cores)


@pytest.mark.slow  # tests/objects has the same from a folder and from a URL
def test_a_killed_fit_resumes_with_the_same_bits(
    cli: Callable, store: Path, of_model: tuple[object, ...], model: Path, tmp_path: Path
) -> None:
    arguments = ["fit", store, tmp_path / "m", *of_model, "--scheduler", "threads", "--json"]
    # The process kills itself as soon as its first sweep is checkpointed: nothing is cleaned up.
    code = (
        "import os, signal, sys; from streamkernel.store import Checkpoints; save = Checkpoints.save\n"
        "def killing(self, *args):\n    save(self, *args); os.kill(os.getpid(), signal.SIGKILL)\n"
        "Checkpoints.save = killing; from streamkernel.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert not (tmp_path / "m").exists()
    assert (tmp_path / ".m.run").is_dir()
    differing = [*arguments[:4], 90, *arguments[5:]]
    assert "n_components" in cli(*differing, "--resume").error
    result = cli(*arguments, "--resume").result
    assert result["resumed_sweeps"] == 1
    assert result["digest"] == RidgeModel.load(model).digest
    assert not (tmp_path / ".m.run").exists()


def test_a_program_loads_without_collecting_garbage_and_works_with_it(store: Path) -> None:
    code = (
        "import gc, sys; from streamkernel.cli import main; runs = []; gc.callbacks.append(lambda *_: runs.append(1))\n"
        "sys.argv[1:] = ['info', sys.argv[1]]; status = main(); print(status, gc.isenabled(), "
        "gc.get_freeze_count() > 100_000, len(runs) < 50)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(store)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 True True True", done.stdout


def test_help_is_quick_and_needs_no_compiler() -> None:
    code = "import sys; from streamkernel.cli import main; main(['--help']); print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.rstrip().endswith("False")


def test_json_is_one_object_and_progress_goes_to_stderr(cli: Callable, store: Path, tmp_path: Path) -> None:
    options = ("--basis", 20, "--rows", ":1000", "--scheduler", "threads")
    ran = cli("fit", store, tmp_path / "m", *options, "--json")
    assert len(ran.out.splitlines()) == 1
    json.loads(ran.out)
    assert "final sweep" in ran.err
    quiet = cli("fit", store, tmp_path / "n", *options, "--json", "--quiet")
    assert "final sweep" not in quiet.err
