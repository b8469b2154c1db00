"""Small models of every kind in one folder, and services that serve them: in this process, or on a port of loopback."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import clusters
import data_sets
import httpx
import numpy as np
import pytest
from objects.flaky_proxy import FlakyProxy, flaky
from s3_server import S3Server
from service.live import Live
from service.stored import filled

from streamkernel import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    ingest,
)
from streamkernel.blobs import retries as patience
from streamkernel.service import Settings

P = 4
# A service does not look at how these were chosen, and the search takes seconds.
PLAIN: dict[str, Any] = {"kernel": "gaussian", "metric": "none"}
METRIC = np.diag([2.0, 1.0, 0.5, 0.0])[:, :3]
NAMES = ["ridge", "two", "labels", "gp", "gp-classifier"]


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    return data_sets.friedman(800, 5, 0.5, 0).X[:, :P].copy()


@pytest.fixture(scope="session")
def estimators(rows: np.ndarray) -> dict[str, Any]:
    y = data_sets.friedman(800, 5, 0.5, 0).y
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [12.0, 17.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "ridge": KernelRidge(30, **PLAIN).fit(rows, y),
            "two": KernelRidge(30, kernel="gaussian", metric=METRIC).fit(rows, np.column_stack([y, -y])),
            "labels": KernelRidgeClassifier(30, **PLAIN).fit(rows, labels),
            "gp": GaussianProcessRegressor(20, lengthscale=1.0, tune="none").fit(rows, y),
            "gp-classifier": GaussianProcessClassifier(20, lengthscale=1.0, tune="none").fit(rows, labels),
        }


@pytest.fixture(scope="session")
def saved(estimators: dict[str, Any], rows: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models, and what else may lie in such a folder. Not to be changed: `models` is a copy."""
    folder = tmp_path_factory.mktemp("models")
    for name, estimator in estimators.items():
        estimator.save(folder / name)
    np.savez(folder / "table.npz", X=rows, y=rows[:, 0])
    ingest(folder / "table.npz", folder / "table.zarr")
    Nystroem(10, **PLAIN).fit(rows).save(folder / "features")
    (folder / "notes.txt").write_text("nothing")
    return folder


@pytest.fixture
def models(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "models"))


@pytest.fixture
def settings(saved: Path) -> Settings:
    return Settings(saved)


# Not of the session: a service holds BLAS at one thread while it runs, and other tests are about that number.
@pytest.fixture(scope="module")
def client(saved: Path) -> Iterator[httpx.Client]:
    """Of a service without a token."""
    with (
        Live(Settings(saved)) as running,
        httpx.Client(base_url=running.url, trust_env=False, timeout=30) as found,
    ):
        yield found


@pytest.fixture
def live() -> Iterator[Callable[..., Live]]:
    """``live(settings)`` starts a service on a port; all are stopped at the end."""
    running: list[Live] = []

    def start(settings: Settings, **options: Any) -> Live:
        running.append(Live(settings, **options))
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.fixture(scope="session")
def until() -> Callable[..., None]:
    """``until(holds)`` waits for it."""
    return clusters.until


@pytest.fixture(scope="session")
def bucket(s3_server: S3Server, estimators: dict[str, Any]) -> str:
    """Two models below a URL, with other things beside them. Not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        return filled(f"{s3_server.bucket()}/our/models", estimators)


@pytest.fixture
def proxy(s3: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyProxy]:
    """Before the server; what it breaks is not tried again."""
    monkeypatch.setattr(patience, "PAUSES", ())
    with flaky(s3_server.endpoint) as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        yield made
