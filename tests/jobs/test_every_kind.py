"""Every estimator that the package exports goes through a job and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import HANG
from problems import zarr_of_chunks

import streamkernel
from streamkernel.errors import ParameterError
from streamkernel.estimators.base import PredictingEstimator, SavedEstimator
from streamkernel.estimators.kernel_cca import KernelCCA
from streamkernel.jobs import JobsSession
from streamkernel.jobs.requests import requested
from streamkernel.kinds import KINDS, PREDICTORS, TRANSFORMERS

GIVEN: dict[str, dict[str, Any]] = {
    "committee": {
        "n_components": 40,
        "lengthscale": 3.0,
        "tune": "none",
        "signal_variance": 1.0,
        "noise_variance": 0.1,
        "block_size": 40,
    },
    "gp": {"n_components": 12, "tune": "none", "signal_variance": 1.0, "noise_variance": 0.1},
    "kmp": {"n_components": 12, "validation": 0.2},
    "kernel-cca": {"n_components": 1, "basis_size": 4},
    # As many as the solution has.
    "lp-regressor": {"n_components": 100},
}


def exported(base: type) -> list[type]:
    kinds = (getattr(streamkernel, name) for name in streamkernel.__all__)
    return [each for each in kinds if isinstance(each, type) and issubclass(each, base)]


def test_every_estimator_is_in_the_registry() -> None:
    predictors = {kind.estimator for kind in PREDICTORS.values()}
    transformers = {kind.estimator for kind in TRANSFORMERS.values()}
    assert predictors == set(exported(PredictingEstimator))
    assert predictors | transformers == set(exported(SavedEstimator))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same rows with counts, which every estimator of numbers takes, and with labels."""
    folder, rng = tmp_path_factory.mktemp("kinds"), np.random.default_rng(5)
    X = rng.standard_normal((120, 3))
    counts = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    labels = np.where(X[:, 1] > 0, "up", "down")
    source = folder / "labels.csv"
    source.write_text("a,b,c,y\n" + "".join(f"{','.join(map(str, x))},{y}\n" for x, y in zip(X, labels, strict=True)))
    streamkernel.ingest(source, folder / "labels.zarr", target="y")
    return {
        "numbers": zarr_of_chunks(folder / "numbers.zarr", X, counts, 60),
        "labels": str(folder / "labels.zarr"),
    }


# Their specifications have nothing that those of others have not.
ALIKE = (
    "gp-classifier",
    "poisson",
    "svr",
    "kmp-classifier",
    "lp",
    "kernel-pca",
    "quantile",
    "one-class",
    "ridge-classifier",
)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in ALIKE else kind for kind in sorted(KINDS)]
)
def test_what_a_job_made_is_the_local_fit(
    session: JobsSession, tables: dict[str, str], tmp_path: Path, kind: str
) -> None:
    rows = tables["labels" if KINDS[kind].classify else "numbers"]
    estimator = KINDS[kind].estimator(random_state=1, **GIVEN.get(kind, {"n_components": 12}))
    job = session.submit(estimator, rows, tmp_path / "model")
    fitted = job.result(HANG)
    assert type(fitted) is type(estimator)
    assert fitted.model_.digest == estimator.fit(rows).model_.digest
    # What the command line and the service tell of it is there for this kind, too.
    told = job.to_config()
    assert {"basis_size", "relative_residual_trace", "resumed_sweeps", "digest"} <= told["result"].keys()


def test_a_kernel_for_each_view_is_refused_before_work() -> None:
    with pytest.raises(ParameterError, match="kernel has a value for each view, and these settings have one for both"):
        requested(KernelCCA(1, kernel=("gaussian", "linear")))
