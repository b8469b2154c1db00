"""Jobs on a store of sparse rows: what a job made is the local fit, and what needs dense rows is refused at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from clusters import HANG
from sparse_rows import sparse_problem

from streamkernel import BayesianCommitteeMachine, KernelRidge, KernelRidgeClassifier, ingest, open_table
from streamkernel.errors import ParameterError
from streamkernel.jobs import JobsSession
from streamkernel.jobs.records import job_ids


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    X, y = sparse_problem(400, 60, 4.0)
    path = tmp_path_factory.mktemp("sparse") / "rows"
    ingest(open_table(X, np.where(y > 0.0, 1, 0), sparse=True), path, dtype="float64", chunk_rows=64)
    return str(path)


@pytest.mark.parametrize("estimator", [KernelRidge(12), KernelRidgeClassifier(12, class_weight="balanced")])
def test_what_a_job_made_is_the_local_fit(
    session: JobsSession, store: str, tmp_path: Path, estimator: KernelRidge
) -> None:
    fitted = session.submit(estimator, store, tmp_path / "model", rows=(0, 300)).result(HANG)
    whole = open_table(store, sparse=True, classify=isinstance(estimator, KernelRidgeClassifier))
    assert fitted.component_indices_.tolist() == estimator.fit(whole.slice(0, 300)).component_indices_.tolist()
    np.testing.assert_array_equal(fitted.dual_coef_, estimator.dual_coef_)
    assert fitted.model_.record.check is not None
    assert (fitted.components_ != estimator.components_).nnz == 0


def test_a_wish_for_dense_rows_is_refused_before_a_job_is_there(
    session: JobsSession, store: str, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=r"the rows are sparse .400 x 60.*cells"):
        session.submit(BayesianCommitteeMachine(5, partition="cells"), store, tmp_path / "model")
    assert not list(job_ids(str(tmp_path / "jobs")))
    assert not (tmp_path / "model").exists()
