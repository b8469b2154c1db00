"""The table of the five papers in docs/methods.md: each call runs, each file and each page is there."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamkernel
from streamkernel.basis import Basis
from streamkernel.bounds import PursuitStop, compression_bound, pca_bound, sampled_residual, stop_at
from streamkernel.committee import OnlineCommittee, committee_predict, fit_generalised_committee, fit_svm_committee
from streamkernel.engine import Session
from streamkernel.errors import StreamKernelWarning
from streamkernel.factors import FeatureRows, nearest_neighbours, nystroem_regression, preconditioner
from streamkernel.factors.pca import pca_residual_traces
from streamkernel.kernels import Gaussian
from streamkernel.reductions.margins import Hinge
from streamkernel.reductions.sums import Features, NormalEquations
from streamkernel.selection.candidates import candidates_needed
from streamkernel.solvers import (
    ExactGP,
    FullSystem,
    OnlineGaussianProcess,
    ProjectedBayes,
    solve_active_set,
    solve_lagrangian,
    solve_smo,
)

pytestmark = pytest.mark.usefixtures("few_points")

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "methods.md"


def rows_of_the_table() -> list[list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("## The five papers")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


ROWS = rows_of_the_table()
CALLS = [call for row in ROWS for call in re.findall(r"`([^`]+)`", row[3])]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(120)
    t = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
    table, session = streamkernel.open_table(X, y), Session()
    basis, _ = Basis.empty(Gaussian(1.0), 3, X.dtype).append(X[:20], np.arange(20))
    given = {
        "X": X,
        "y": y,
        "t": t,
        "two_signs": np.where(t == "yes", 1.0, -1.0),
        "counts": rng.poisson(np.exp(0.3 * X[:, 0])).astype(float),
        "Xq": rng.standard_normal((5, 3)),
        "table": table,
        "two": streamkernel.open_table(X, t, classify=True),
        "kernel": Gaussian(1.0),
        "basis": basis,
        "rows": FeatureRows(table, basis),
        "features": Features.of_basis(basis),
        "session": session,
        "sums": session.sweep(NormalEquations.of(basis, np.array([y.mean()]), len(y)), table, "sums"),
        "factor": streamkernel.factorize(X, rule="uniform", n_components=10),
    }
    functions = [
        *(PursuitStop, compression_bound, pca_bound, sampled_residual, stop_at, OnlineCommittee, committee_predict),
        *(fit_generalised_committee, fit_svm_committee, nearest_neighbours, nystroem_regression, preconditioner),
        *(pca_residual_traces, Hinge, candidates_needed, ExactGP, FullSystem, OnlineGaussianProcess, ProjectedBayes),
        *(solve_active_set, solve_lagrangian, solve_smo),
    ]
    exported = {name: getattr(streamkernel, name) for name in streamkernel.__all__}
    return exported | {each.__name__: each for each in functions} | given


@pytest.mark.parametrize("call", CALLS)
def test_each_call_runs(call: str, names: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        # So few rows are too few for some bounds, and hold dependent functions: what is tested is the call.
        warnings.simplefilter("ignore", StreamKernelWarning)
        assert eval(call, dict(names)) is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][:40])
def test_each_file_and_page_is_there(row: list[str]) -> None:
    _, what, code, call, page = row
    assert what
    assert bool(call) != code.startswith("left out")
    for name in re.findall(r"`([^`]+)`", code):
        assert (ROOT / "streamkernel" / name).exists(), name
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert (PAGE.parent / target).is_file(), target
