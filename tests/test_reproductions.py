"""The pure parts of `scripts/reproductions`: fits by folds and along a path, committees, and what they lose."""

from __future__ import annotations

import ast
import csv
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import psutil
import pytest
from numpy.typing import NDArray
from private_modules import REPRODUCTIONS, private
from scipy.optimize import minimize

from streamkernel.engine import Session

Float = NDArray[np.float64]


least_squares = private("_least_squares")


def rows(m: int, d: int) -> tuple[Float, Float]:
    generator = np.random.default_rng(3)
    X = generator.standard_normal((m, 3))
    return X, 5.0 + np.sin(X[:, :1] + np.arange(d)) + 0.1 * generator.standard_normal((m, d))


def gaussian(X: Float, Z: Float) -> Float:
    return np.asarray(np.exp(-0.5 * ((X[:, None] - Z[None]) ** 2).sum(axis=2)))


def fitted(features: Float, penalty: Float, Y: Float) -> tuple[Float, Float]:
    """Coefficients and intercept of ``|Y - F a - 1 b'|^2 + tr(a' P a)`` by its normal equations."""
    F = np.column_stack([features, np.ones(len(features))])
    P = np.zeros((F.shape[1], F.shape[1]))
    P[:-1, :-1] = penalty
    solution = np.linalg.solve(F.T @ F + P, F.T @ Y)
    return solution[:-1], solution[-1]


@pytest.mark.parametrize("d", [1, 3])
def test_held_out_residuals_are_those_of_fits_without_the_fold(d: int) -> None:
    X, Y = rows(61, d)
    K, rho = gaussian(X, X), 0.2
    folds = least_squares.folds_of(61, 4)
    found = least_squares.held_out_residuals(K, Y, rho, folds)
    for fold, residual in zip(folds, found, strict=True):
        fit = np.setdiff1d(np.arange(61), np.arange(61)[fold])
        inner = K[np.ix_(fit, fit)]
        a, b = fitted(inner, rho * inner, Y[fit])
        np.testing.assert_allclose(residual, Y[fold] - K[fold][:, fit] @ a - b, rtol=0, atol=1e-9)


def test_folds_are_every_row_once() -> None:
    folds = least_squares.folds_of(23, 5)
    np.testing.assert_array_equal(np.concatenate([np.arange(23)[fold] for fold in folds]), np.arange(23))
    assert {fold.stop - fold.start for fold in folds} == {4, 5}


def test_singular_matrix_has_no_residuals() -> None:
    K = np.ones((6, 6))
    assert least_squares.held_out_residuals(K, np.ones((6, 1)), 0.0, least_squares.folds_of(6, 2)) is None


@pytest.mark.parametrize("d", [1, 3])
def test_leading_scores_are_those_of_separate_fits(d: int) -> None:
    Y = rows(80, d)[1]
    G, rho = np.random.default_rng(0).standard_normal((80, 9)) + 1.0, 0.7
    seen: list[Float] = []

    def score(predicted: Float, truth: Float) -> float:
        seen.append(predicted.copy())
        return float(least_squares.squared(predicted, truth))

    scores = least_squares.leading_scores(G[:60], Y[:60], G[60:], Y[60:], rho, score)
    for t in range(1, 10):
        a, b = fitted(G[:60, :t], rho * np.eye(t), Y[:60])
        np.testing.assert_allclose(seen[t - 1], G[60:, :t] @ a + b, rtol=0, atol=1e-9)
        assert scores[t - 1] == pytest.approx(np.mean((seen[t - 1] - Y[60:]) ** 2), rel=1e-12)


def test_share_of_wrong_classes() -> None:
    signs = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert least_squares.misclassified(np.array([[0.1], [-3.0], [-0.1], [0.2]]), signs) == 0.5
    indicators = np.eye(3)
    assert least_squares.misclassified(np.array([[0.9, 0.8, 0.0], [0.5, 0.1, 0.2], [0, 0, 1]]), indicators) == 1 / 3


@pytest.mark.parametrize(
    ("means", "limit", "rank"),
    [
        ([0.9, 0.5, 0.3, 0.2], 0.3, 3),
        ([0.9, 0.25, 0.6, 0.2], 0.3, 2),
        ([0.2], 0.3, 1),
        ([0.9, 0.5], 0.3, None),
        ([], 0.3, None),
    ],
)
def test_minimal_rank_is_the_first_within_the_limit(means: list[float], limit: float, rank: int | None) -> None:
    assert least_squares.minimal_rank(np.asarray(means), limit) == rank


committees = private("_committees")


def problem(m: int, q: int) -> Any:
    X, y = rows(m + q, 1)
    y = (y[:, 0] - y[:, 0].mean()) / y[:, 0].std()
    return committees.Problem(X[:m], y[:m], X[m:], y[m:], 1.3, 0.05)


def test_effective_degrees_of_the_exact_process() -> None:
    given = problem(80, 20)
    K = given.signal * gaussian(given.X, given.X)
    found, degrees = committees.exact(given)
    assert degrees == pytest.approx(np.trace(np.linalg.solve(K + given.noise * np.eye(80), K)), rel=1e-9)
    weights = np.linalg.solve(K + given.noise * np.eye(80), given.y)
    np.testing.assert_allclose(found.mean, given.signal * gaussian(given.X_test, given.X) @ weights, rtol=0, atol=1e-9)


@pytest.mark.parametrize("partition", ["rows", "cells"])
def test_committee_of_one_member_is_the_exact_process_at_its_query_points(partition: str) -> None:
    given = problem(80, 20)
    reference, _ = committees.exact(given)
    found = committees.asked_together(given, 7, committees.members(given, 80, partition))
    np.testing.assert_allclose(found.mean, reference.mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.variance, reference.variance, rtol=0, atol=1e-8)


def test_loss_is_of_the_differences_row_by_row() -> None:
    generator = np.random.default_rng(5)
    reference = generator.exponential(size=400)
    shifted = committees.loss(reference + 0.01 + 0.001 * generator.standard_normal(400), reference)
    assert shifted.mean == pytest.approx(0.01, abs=2e-4)
    assert shifted.error == pytest.approx(0.001 / 20, rel=0.1)
    assert shifted.beyond_noise
    assert not committees.loss(reference, reference).beyond_noise
    assert not committees.loss(reference - 0.01, reference).beyond_noise


def test_committees_of_a_stored_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if data_sets.load("abalone") is None:
        pytest.skip("../shared/data/abalone.npz is not there")
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))
    monkeypatch.setattr(sys, "argv", ["bcm", "--sets", "abalone", "--rows", "120", "--results", str(tmp_path)])
    private("bcm").main()
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"README.md", "bcm.csv", "loss.png", "partitions.png"}
    with (tmp_path / "bcm.csv").open() as stream:
        found = list(csv.DictReader(stream))
    enough = [float(row["rmse"]) for row in found if float(row["share_of_p_eff"]) == 4.0]
    few = [float(row["rmse"]) for row in found if float(row["share_of_p_eff"]) == 0.125 and row["query"] == "landmarks"]
    assert max(enough) < min(few)


def test_reduced_machine_with_the_penalty_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """``1/2 (w'w + b^2) + C sum g^2`` over w of the kernel values themselves, minimised by SciPy."""
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))
    rsvm = private("rsvm")
    X, Y = rows(150, 1)
    part = rsvm.Rows(X, (Y[:, 0] > np.median(Y)).astype(float), X, Y[:, 0])
    basis = rsvm.basis_of(part, 12, 1.0, 0)
    F, t = np.column_stack([gaussian(X, basis.points), np.ones(150)]), 2.0 * part.y - 1.0

    def objective(b: Float) -> float:
        return float(0.5 * b @ b + 3.0 * ((np.logaddexp(0.0, 5.0 * (1.0 - t * (F @ b))) / 5.0) ** 2).sum())

    found = rsvm.solved(part, rsvm.PENALTIES["w'w"](basis), 3.0, Session())
    expected = minimize(objective, np.zeros(13), method="BFGS", options={"gtol": 1e-8})
    assert found.primal == pytest.approx(objective(found.coefficients), rel=1e-10)
    assert found.primal == pytest.approx(expected.fun, rel=1e-5)


def test_clusters_are_the_same_rows_however_many_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))
    rsvm = private("rsvm")
    monkeypatch.setattr(rsvm, "CHUNK", 100)
    X, y = rsvm.clusters(250)
    assert (X.shape, y.shape) == ((250, 32), (250, 1))
    np.testing.assert_array_equal(X[100:200].compute(), X.compute()[100:200])
    assert 0.1 < float(y.mean().compute()) < 0.9
    found = rsvm.large(250, 1)
    assert found.gap < 1e-10
    assert found.rows == 250


@pytest.mark.parametrize("folder", ["benchmarks", "reproductions"])
def test_what_a_script_takes_from_its_neighbour_is_there(folder: str) -> None:
    """Scripts run seldom: a name that moved to another file would be missed for long."""
    files = {path.stem: ast.parse(path.read_text("utf-8")) for path in (REPRODUCTIONS.parent / folder).glob("*.py")}
    taken = 0
    for script, tree in files.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in files:
                missing = {name.name for name in node.names} - names_of(files[node.module])
                assert not missing, f"{script}.py takes {missing} from {node.module}.py, which has no such names"
                taken += len(node.names)
    assert taken > 20


BENCHMARKS = REPRODUCTIONS.parent / "benchmarks"


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_every_benchmark_has_a_quick_run(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    [run] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ("run", "main")]
    assert "quick" in {argument.arg for argument in run.args.args} or "--quick" in {
        node.value for node in ast.walk(run) if isinstance(node, ast.Constant)
    }


def test_a_quick_run_installs_no_peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    peers = import_module("_peers")
    monkeypatch.setattr(peers, "HERE", tmp_path / "scripts" / "benchmarks")
    assert [peers.peer_python(name, install=False) for name in peers.PEERS] == [None] * len(peers.PEERS)
    assert not list(tmp_path.iterdir())


def test_a_claim_that_was_not_asked_keeps_its_reason_in_a_quick_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    report = import_module("_report")
    missing, measured = report.not_asked("peer", "it is not installed"), report.at_most("error", 2.0, 1.0)
    kept, quick = report.unasked([missing, measured], "--quick")
    assert kept == missing
    assert (quick["value"], quick["bound"], quick["ok"]) == (2.0, "--quick; at most 1.0", None)


def test_the_peak_of_a_measured_process_is_its_own() -> None:
    """`ru_maxrss` begins with the peak of the process that started it: here 300 MiB."""
    parent = (
        "import subprocess, sys\n"
        "held = b'1' * (300 << 20)\n"
        "code = f'import sys; sys.path.insert(0, {sys.argv[1]!r}); from _peak import peak_bytes; print(peak_bytes())'\n"
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    command = [sys.executable, "-c", parent, str(BENCHMARKS)]
    assert int(subprocess.run(command, check=True, capture_output=True).stdout) < 100 << 20
    for path in BENCHMARKS.glob("*.py"):
        assert path.stem == "_peak" or "ru_maxrss" not in path.read_text(encoding="utf-8"), path.name


def test_a_quick_run_of_billion_begins_anew_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fits that are there are not done again: those of an earlier version would be shown."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    billion = import_module("billion")
    with billion._folder(True, "") as first, billion._folder(True, "") as second:
        assert first != second
        (first / "made.json").write_text("{}")
    assert not list(tmp_path.iterdir())
    with billion._folder(False, "") as work:
        (work / "made.json").write_text("{}")
    assert [path.name for path in tmp_path.iterdir()] == ["streamkernel-billion"]


def test_a_place_for_results_that_cannot_be_is_told_before_the_measurements(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    report = import_module("_report")
    monkeypatch.setattr(sys, "argv", ["scripts/bench one", "--json", str(tmp_path / "missing" / "one.json")])
    with pytest.raises(SystemExit) as ended:
        report.main(lambda **options: pytest.fail("it ran"), "One.")
    assert ended.value.code == 2
    assert "its folder is not there" in capsys.readouterr().err


def test_a_part_that_is_not_there_is_told_before_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    report = import_module("_report")
    with pytest.raises(SystemExit, match="no part lage; there are one, large"):
        report.by_parts({"one": lambda *given: pytest.fail("it ran"), "large": None}, "one,lage", None, True)


def test_a_benchmark_that_is_ended_ends_its_process_and_leaves_no_folder(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, tempfile\n"
        f"sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        "from _report import main\n"
        "def run(quick=False):\n"
        "    with tempfile.TemporaryDirectory():\n"
        "        code = 'import os, time; print(os.getpid(), flush=True); time.sleep(60)'\n"
        "        subprocess.run([sys.executable, '-c', code])\n"
        "main(run, 'One.')\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        at_work = int(process.stdout.readline())
        assert len(list(tmp_path.iterdir())) == 1
        process.terminate()
        assert process.wait(30) == 143
    assert not psutil.pid_exists(at_work)
    assert not list(tmp_path.iterdir())


def test_the_facts_of_the_machine_have_a_blas() -> None:
    """Of a benchmark whose arrays are all in other processes, too."""
    code = f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r}); import _report; print(_report.machine_facts())"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert ast.literal_eval(found)["blas"]


def test_a_claim_tells_the_digits_of_a_small_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    report = import_module("_report")
    values = [report.at_most("gap", value, 1e-3)["value"] for value in (2.1436e-5, -1.0412e-3, 0.0, 0.12345678, 12.0)]
    assert values == [2.14e-5, -1.04e-3, 0.0, 0.1235, 12.0]


def test_parts_of_a_profile_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench profile` times functions by their names, some of them private."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for module, name, part in import_module("_profile_once").PARTS:
        holder, *inner = [import_module(module), *name.split(".")]
        for each in inner:
            assert each in vars(holder), f"{part}: {module} has no {name}"
            holder = vars(holder)[each]


def names_of(tree: ast.Module) -> set[str]:
    """Names that a file gives to others: those it defines, and those of modules that it loads or of its `__all__`."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import):
            found |= {name.asname or name.name for name in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            found |= own
            if "__all__" in own and node.value is not None:
                found |= set(ast.literal_eval(node.value))
    return found


@pytest.mark.parametrize(
    ("quick", "given", "reason"),
    [(False, (5, None), None), (False, (None, None), None), (False, (1, None), "--repetitions 1"),
     (False, (5, "10"), "--sizes 10"), (True, (1, None), "--quick")],
)  # fmt: skip
def test_claims_are_those_of_the_documented_run(
    monkeypatch: pytest.MonkeyPatch, quick: bool, given: Any, reason: str | None
) -> None:
    """A median of one process neither holds nor misses what is claimed of five."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    report = import_module("_report")
    claims = [report.at_most("seconds", 2.0, 1.0), report.not_asked("a peer", "it is not installed")]
    repetitions, sizes = given
    found = report.as_asked(claims, quick, repetitions=(repetitions, 5), sizes=(sizes, None))
    if reason is None:
        assert found == claims
    else:
        assert [claim["ok"] for claim in found] == [None, None]
        assert found[0]["bound"] == f"{reason}; at most 1.0"
        assert found[1] == claims[1]
