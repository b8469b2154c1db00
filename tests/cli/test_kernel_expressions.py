"""Kernels as expressions on the command line: fit, info, report, plan, and the one error line of a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

THREADS = ("--scheduler", "threads", "--quiet")


def test_fit_info_and_report(cli: Callable, store: Path, tmp_path: Path) -> None:
    options = ("--kernel", "2*gaussian + linear", "--basis", 30, "--rows", "0:1500", "--json", *THREADS)
    told = cli("fit", store, tmp_path / "m", *options).result
    assert told["lengthscale"] is None
    kernel = cli("info", tmp_path / "m", "--json").result["kernel"]
    assert told["kernel"] == kernel
    assert kernel["left"]["factor"] == 2.0
    assert kernel["right"] == {"kernel": "linear"}
    assert "2.000 × Gaussian (lengthscale " in cli("info", tmp_path / "m").out
    again = cli("fit", store, tmp_path / "m", *options[:-4], *THREADS, "--overwrite").out
    assert "2.000 × Gaussian (lengthscale " in again
    assert cli("report", tmp_path / "m", tmp_path / "r.html").status == 0
    assert "of the first part; median distance of each part" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert cli("evaluate", tmp_path / "m", store, "--rows", "1500:2000", "--json").result["r2"] > 0.5


def test_the_plan_counts_both_parts(cli: Callable, store: Path) -> None:
    options = ("--basis", 30, "--rows", "0:1500", "--alpha", 0.1, "--json", *THREADS)
    one, two = (
        cli("plan", store, "--kernel", kernel, *options).result for kernel in ("gaussian", "gaussian + 3*laplacian")
    )
    assert two["seconds"] > one["seconds"]


def test_a_wrong_one_is_one_line(cli: Callable, store: Path, tmp_path: Path) -> None:
    said = cli("fit", store, tmp_path / "m", "--kernel", "2*gaussian + linaer", *THREADS).error
    wrong = (
        "--kernel = '2*gaussian + linaer' is wrong at character 14: 'linaer' is not known; did you mean linear? Or give"
    )
    assert wrong in said
    said = cli("fit", store, tmp_path / "m", "--kernel", "Gausian", *THREADS).error
    assert "--kernel = 'Gausian' is not known; did you mean gaussian? Or give one of gaussian, rbf," in said
    said = cli("plan", store, "--kernel", "polynomial + linear", "--degree", 2, *THREADS).error
    assert "--degree cannot be told apart in an expression" in said
    assert not list(tmp_path.iterdir())


def test_columns_by_name(cli: Callable, store: Path, tmp_path: Path) -> None:
    def fitted(kernel: str, name: str) -> dict:
        options = ("--kernel", kernel, "--basis", 20, "--rows", "0:1000", "--alpha", 0.1, "--json", *THREADS)
        assert cli("fit", store, tmp_path / name, *options).status == 0
        return cli("info", tmp_path / name, "--json").result["kernel"]

    placed = fitted("gaussian(columns=[0, 2]) + linear(columns=1)", "placed")
    assert fitted("gaussian(columns=[x0, 'x2']) + linear(columns=x1)", "named") == placed
    assert placed["left"]["columns"] == [0, 2]
    said = cli("fit", store, tmp_path / "m", "--kernel", "linear + gaussian(columns=[x0, hours])", *THREADS).error
    assert "the kernel gaussian sees a column 'hours', which is not there; give some of 'x0', 'x1', " in said
    assert not (tmp_path / "m").exists()
